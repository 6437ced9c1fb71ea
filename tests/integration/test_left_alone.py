"""Programs with other rights than their caller's, and with a sanitizer's runtime: they run as without us."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from integration import support
from tachograph.recorder.command.support import preload_library

pytestmark = pytest.mark.native

NOBODY = 65534

STARTS = """
import ctypes, os, subprocess, sys
path, folder, name = sys.argv[1], os.path.dirname(sys.argv[1]), os.path.basename(sys.argv[1])
os.environ["PATH"] = f"/nowhere:{folder}:{os.environ['PATH']}"
libc = ctypes.CDLL(None)
def forked(start):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        start()
        os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
environ = lambda: ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
def spawned(spawn, what):
    pid = ctypes.c_int()
    arguments = (ctypes.c_char_p * 2)(what.encode(), None)
    assert spawn(ctypes.byref(pid), what.encode(), None, None, arguments, environ()) == 0
    print(os.waitstatus_to_exitcode(os.waitpid(pid.value, 0)[1]), flush=True)
descriptor = os.open(path, os.O_RDONLY)
directory = os.open(folder, os.O_RDONLY)
text = lambda value: ctypes.c_char_p(value.encode())
strings = (ctypes.c_char_p * 2)(name.encode(), None)
subprocess.run([path]); subprocess.run([name]); subprocess.run(["./" + name], cwd=folder)
forked(lambda: os.execv(path, [name])); forked(lambda: os.execvp(name, [name]))
forked(lambda: os.execve(descriptor, [name], os.environ))
forked(lambda: libc.execvp(text(name), strings))
forked(lambda: libc.execlp(text(name), text(name), None))
forked(lambda: libc.execveat(directory, text(name), strings, environ(), 0))
spawned(libc.posix_spawn, path); spawned(libc.posix_spawnp, name)
os.waitpid(os.posix_spawn(path, [name], os.environ), 0)
print(os.system(path) >> 8, flush=True)
with os.popen(name) as pipe: print(pipe.read(), end="", flush=True)
print(subprocess.run(["sh", "-c", f"exec {name}"]).returncode, flush=True)
"""
"""Starts a program in every way there is."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    built = support.compile_program(Path(__file__).with_name("native") / "says_how_it_was_started.c", folder)
    if built is None:
        pytest.skip("no C compiler")
    return Path(built)


@pytest.fixture(params=["set_user", "set_group"])
def secure(request: pytest.FixtureRequest, plain: Path, open_folder: Path) -> Path:
    """A program that runs with rights of the user ``nobody``, whichever user starts it."""
    if os.geteuid() != 0:
        pytest.skip("only root can make another user's program")
    program = Path(shutil.copy(plain, open_folder / "secure"))
    os.chown(program, NOBODY if request.param == "set_user" else 0, NOBODY if request.param == "set_group" else 0)
    program.chmod(0o4755 if request.param == "set_user" else 0o2755)
    if support.run([str(program)], open_folder).stdout != "secure 1\n":
        pytest.skip("set-user-ID programs are not run as such here")
    return program


def losses(recording: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["quality"]:
        found[entry["loss"]] = found.get(entry["loss"], 0) + entry["count"]
    return found


def test_a_program_with_other_rights_is_given_none_of_our_variables(secure: Path, open_folder: Path) -> None:
    bare = support.bare(["-c", STARTS, secure], open_folder)
    assert (bare.status, bare.stderr) == (0, "")
    assert bare.stdout.count("secure 1\n") == 15
    assert support.record(["-c", STARTS, secure], open_folder) == bare
    # All but those that a shell started, which is not recorded itself and has nowhere to count them.
    assert losses(open_folder / "run.tacho")["execs"] == 12


BECOMES_ANOTHER_USER = f"""
import os, subprocess, sys
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
for path in sys.argv[1:]:
    print(subprocess.run([path]).returncode, flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file capabilities")
def test_a_program_with_file_capabilities_is_given_none_of_our_variables(plain: Path, open_folder: Path) -> None:
    program = Path(shutil.copy(plain, open_folder / "capable"))
    program.chmod(0o755)
    os.setxattr(program, "security.capability", b"\x01\0\0\x02" + b"\0\x04" + bytes(14))
    library = preload_library()
    if library is None or support.as_user(NOBODY, lambda: os.access(library, os.R_OK)) != "True":
        pytest.skip("the library is in a folder of root's alone")
    bare = support.bare(["-c", BECOMES_ANOTHER_USER, program], open_folder)
    assert bare == support.Outcome(0, "secure 1\n5\n", "")
    assert support.record(["-c", BECOMES_ANOTHER_USER, program], open_folder) == bare


def test_a_program_without_other_rights_is_recorded(plain: Path, tmp_path: Path) -> None:
    """So what is shown above is of rights, and not of programs that are no Python."""
    recorded = support.record(["-c", STARTS, plain], tmp_path)
    assert recorded == support.bare(["-c", STARTS, plain], tmp_path)
    assert "secure 0\n" in recorded.stdout
    assert "execs" not in losses(tmp_path / "run.tacho")


def test_as_the_first_program_it_is_left_alone_and_a_line_says_so(secure: Path, open_folder: Path) -> None:
    done = support.record([secure], open_folder)
    assert (done.status, done.stdout) == (5, "secure 1\n")
    assert len(done.stderr.splitlines()) == 1
    assert "other rights than those of its caller" in done.stderr


PYTHON = "import os; print(sorted(name for name in os.environ if name.startswith('TACHOGRAPH_')))"


@pytest.fixture
def python(open_folder: Path) -> Path:
    """A copy of this interpreter with nothing special about it, and the packages of this one."""
    (open_folder / "sitecustomize.py").write_text(
        f"import site\nsite.addsitedir({sysconfig.get_path('purelib')!r})\n", encoding="utf-8"
    )
    return Path(shutil.copy(os.path.realpath(sys.executable), open_folder / "python3"))


@pytest.mark.parametrize("secure", [False, True], ids=["as_it_is", "set_group"])
def test_a_python_with_other_rights_does_not_obey_its_caller(python: Path, open_folder: Path, secure: bool) -> None:
    """The caller names a file that a note is appended to, which only the other rights allow."""
    if os.geteuid() != 0:
        pytest.skip("only root can make another group's program")
    if secure:
        os.chown(python, 0, NOBODY)
        python.chmod(0o2755)
    precious, spool = open_folder / "precious", open_folder / "spool"
    precious.write_text("precious\n", encoding="utf-8")
    spool.mkdir()
    status = precious.stat()
    config = "interval_ns=1,sampler=native,paused=0,segment=1048576,waits=0,include=zzz"
    environment = {
        **support.environment(),
        "PYTHONPATH": str(open_folder),
        "PYTHONHOME": sys.base_prefix,
        "TACHOGRAPH_SPOOL": str(spool),
        "TACHOGRAPH_CONFIG": f"{config},log={precious}:{status.st_dev}:{status.st_ino}",
        "TACHOGRAPH_PARENT": "1-1",
    }
    done = support.run([str(python), "-c", PYTHON], open_folder, env=environment)
    assert (done.status, done.stdout, done.stderr) == (0, "[]\n", "")
    assert precious.read_bytes().startswith(b"precious\n")
    assert (precious.stat().st_size == 9) == secure


@pytest.mark.parametrize("secure", [False, True], ids=["as_it_is", "set_group"])
def test_a_python_with_other_rights_does_not_stand_by(python: Path, open_folder: Path, secure: bool) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make another group's program")
    if secure:
        os.chown(python, 0, NOBODY)
        python.chmod(0o2755)
    environment = {
        **support.environment(),
        "PYTHONPATH": str(open_folder),
        "PYTHONHOME": sys.base_prefix,
        "TACHOGRAPH_STANDBY": "1",
    }
    code = "import os; print(len(os.listdir('/proc/self/task')))"
    done = support.run([str(python), "-c", code], open_folder, env=environment)
    assert (done.status, done.stdout, done.stderr) == (0, "1\n" if secure else "2\n", "")


def runtime() -> str:
    """The path of AddressSanitizer's runtime."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    found = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    path = os.path.realpath(found.stdout.strip())
    if not os.path.isabs(path) or not os.path.exists(path):
        pytest.skip("the compiler has no AddressSanitizer")
    return path


SANITIZED = {"ASAN_OPTIONS": "detect_leaks=0"}

STARTS_SANITIZED = """
import os, subprocess, sys
env = dict(os.environ, LD_PRELOAD=sys.argv[1], ASAN_OPTIONS="detect_leaks=0")
child = [sys.executable, "-c", "print('child runs')"]
print(subprocess.run(child, env=env).returncode, flush=True)
print(os.waitstatus_to_exitcode(os.waitpid(os.posix_spawn(child[0], child, env), 0)[1]), flush=True)
print(subprocess.run(["sh", "-c", "LD_PRELOAD=$1 exec $2 -c 'print(1)'", "sh", *sys.argv[1:], sys.executable],
                     env={"ASAN_OPTIONS": "detect_leaks=0"}).returncode, flush=True)
os.environ.update(LD_PRELOAD=sys.argv[1], ASAN_OPTIONS="detect_leaks=0")
print(os.system("echo by a shell") >> 8, flush=True)
with os.popen("echo through a pipe") as pipe: print(pipe.read(), end="", flush=True)
os.execv(child[0], child)
"""


def test_a_child_with_a_preloaded_sanitizer_runs_as_without_us(tmp_path: Path) -> None:
    bare = support.bare(["-c", STARTS_SANITIZED, runtime()], tmp_path)
    if bare.status != 0 or bare.stdout.count("child runs") != 3:
        pytest.skip(f"Python does not run with this runtime: {bare}")
    assert support.record(["-c", STARTS_SANITIZED, runtime()], tmp_path) == bare
    assert losses(tmp_path / "run.tacho")["execs"] >= 3


def test_a_command_with_a_preloaded_sanitizer_runs_as_without_us(tmp_path: Path) -> None:
    env = {**support.environment(), **SANITIZED, "LD_PRELOAD": runtime()}
    bare = support.bare(["-c", "print('runs'); raise SystemExit(4)"], tmp_path, env=env)
    if (bare.status, bare.stdout) != (4, "runs\n"):
        pytest.skip(f"Python does not run with this runtime: {bare}")
    done = support.run(
        [*support.COMMAND, "record", "-q", "-o", "run.tacho", "-c", "print('runs'); raise SystemExit(4)"],
        tmp_path,
        env=env,
    )
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    assert len(done.stderr.splitlines()) == 1
    assert "sanitizer's runtime" in done.stderr


def test_another_preloaded_library_is_kept(tmp_path: Path, library: Path) -> None:
    code = "import os; print(os.environ['LD_PRELOAD'])"
    env = {**support.environment(), "LD_PRELOAD": str(library)}
    assert support.record(["-c", code], tmp_path, env=env) == support.bare(["-c", code], tmp_path, env=env)
    assert any(row["recorded"] == "python" for row in support.rows(tmp_path / "run.tacho", "processes"))
