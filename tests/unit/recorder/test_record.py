"""The recording command with the signal sampler, which works with and without native parts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from unit.recorder.conftest import Run

RECORD = ("record", "--sampler", "signal", "-o", "run.tacho")

BUSY = """
import sys, threading, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))
threading.current_thread().name = "chief"
burn(float(sys.argv[1]))
"""


def rows(path: Path, table: str) -> list[dict[str, object]]:
    return pq.read_table(path / f"{table}.parquet").to_pylist()  # type: ignore[no-any-return]


def test_a_script_is_recorded(run: Run, tmp_path: Path) -> None:
    (tmp_path / "busy.py").write_text(BUSY)
    done = run(*RECORD, "busy.py", "0.5", "--password", "hunter2")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("tachograph: recorded ")
    assert done.stderr.endswith("nothing lost; next: tachograph analyze run.tacho\n")
    assert done.stderr.count("\n") == 1
    path = tmp_path / "run.tacho"
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    assert manifest["argv"] == ["busy.py", "0.5", "--password", "***"]
    assert manifest["parameters"]["interval_ns"] == 10_000_000
    # The signal sampler records no memory, and says so.
    assert manifest["parameters"]["memory"] is False
    assert not {"memory_threshold", "block_mean_bytes", "copies_min_bytes"} & manifest["parameters"].keys()
    assert not {"memory", "allocations", "copies"} & manifest["tables"].keys()
    assert "hunter2" not in "".join(file.read_bytes().decode("latin-1") for file in path.iterdir())
    (thread,) = rows(path, "threads")
    assert (thread["name"], thread["main"], thread["python_name"]) == ("chief", True, True)
    samples = rows(path, "cpu")
    assert len(samples) > 10
    assert 0.3e9 < sum(int(str(row["cpu_ns"])) for row in samples) < 0.7e9
    sources = {row["path"]: row["source"] for row in rows(path, "files")}
    assert sources == {str(tmp_path / "busy.py"): BUSY}
    codes = {row["code"]: row["qualname"] for row in rows(path, "codes")}
    leaves = {row["stack"]: codes[row["code"]] for row in rows(path, "stacks")}
    assert {leaves[row["stack"]] for row in samples} <= {"burn", "<module>"}
    (process,) = rows(path, "processes")
    assert (process["exit_status"], process["sampler"], process["implementation"]) == (0, "signal", "cpython")
    assert process["executable"] == sys.executable


PRINT_ALL = """
import os, signal, sys
print(sys.argv, sys.path[0], __name__, __file__ if "__file__" in dir() else None, sys.flags, __spec__ is None)
print(sorted(os.environ.items()), sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])), os.getcwd(), sys.stdin.read())
print([signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD, signal.SIGHUP)])
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3], os.getpgid(0) == os.getpgid(os.getppid()))
print("to stderr", file=sys.stderr)
sys.exit(5)
"""


@pytest.mark.parametrize("target", [["show.py"], ["./sub/../show.py"], ["-m", "show"], ["-c", PRINT_ALL], ["-"]])
def test_the_program_sees_what_it_would_see(
    run: Run, tmp_path: Path, environment: dict[str, str], target: list[str]
) -> None:
    (tmp_path / "show.py").write_text(PRINT_ALL)
    (tmp_path / "sub").mkdir()
    arguments = [*target, "-o", "x", "--", "-q"]
    text = PRINT_ALL if target == ["-"] else "typed\n"
    command = [sys.executable, *arguments]
    bare = subprocess.run(
        command, env=environment, cwd=tmp_path, input=text, text=True, capture_output=True, check=False, timeout=60
    )
    done = run(*RECORD, "-q", *arguments, input=text)
    assert (done.stdout, done.stderr, done.returncode) == (bare.stdout, bare.stderr, bare.returncode)
    assert done.returncode == 5


@pytest.mark.parametrize("mask", [set(), {signal.SIGUSR1, signal.SIGTERM}])
def test_signal_mask_and_dispositions_are_handed_on(
    run: Run, tmp_path: Path, environment: dict[str, str], mask: set[int]
) -> None:
    code = "import signal as s; print(sorted(s.pthread_sigmask(0, [])), s.getsignal(s.SIGHUP), s.getsignal(s.SIGINT))"

    def before() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    bare = subprocess.run(
        [sys.executable, "-c", code], env=environment, preexec_fn=before, text=True, capture_output=True, check=True
    )
    assert run(*RECORD, "-q", "-c", code, preexec_fn=before).stdout == bare.stdout


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('message')", 1),
        ("import os; os._exit(255)", 255),
        ("1/0", 1),
        ("import os; os.kill(os.getpid(), 15)", -15),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os; os.abort()", -6),
        ("import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)", -2),
    ],
)
def test_the_exit_status_is_the_programs(run: Run, tmp_path: Path, code: str, status: int) -> None:
    done = run(*RECORD, "-c", code)
    assert done.returncode == status
    assert rows(tmp_path / "run.tacho", "processes")[0]["exit_status"] == status
    assert not list(tmp_path.glob("core*"))


def test_tracebacks_are_the_programs_own(run: Run, tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    for target in (["broken.py"], ["-c", "def g():\n  1/0\ng()"], ["-m", "broken"], ["-m", "no.such.module"]):
        bare = subprocess.run(
            [sys.executable, *target], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        done = run(*RECORD, "-qf", *target)
        assert (done.stderr, done.returncode) == (bare.stderr, bare.returncode)


def test_pause_and_resume(run: Run, tmp_path: Path) -> None:
    code = """
import time
from tachograph.recorder import pause, resume
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def before(): burn(0.3)
def during(): burn(0.3)
def after(): burn(0.3)
before(); resume(); resume(); during(); pause(); pause(); after()
"""
    assert run(*RECORD, "--start-paused", "-c", code).returncode == 0
    codes = {str(row["qualname"]) for row in rows(tmp_path / "run.tacho", "codes")}
    assert codes == {"<module>", "during", "burn"}
    assert run("record", "--sampler", "signal", "-o", "b.tacho", "-c", code).returncode == 0
    codes = {str(row["qualname"]) for row in rows(tmp_path / "b.tacho", "codes")}
    # It is recorded while it calls the two, and a sample may find it there.
    assert codes - {"resume", "pause"} == {"<module>", "before", "during", "burn"}
    assert rows(tmp_path / "run.tacho", "files")[0]["source"] == code


def test_threads_and_joins(run: Run, tmp_path: Path) -> None:
    code = """
import threading, time
def burn():
    end = time.process_time() + 0.4
    while time.process_time() < end: sum(range(1000))
def sleep(): time.sleep(0.5)
threads = [threading.Thread(target=burn, name="burner"), threading.Thread(target=sleep, name="sleeper")]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    assert run(*RECORD, "-c", code).returncode == 0
    path = tmp_path / "run.tacho"
    names = {row["thread"]: row["name"] for row in rows(path, "threads")}
    seen = [names[row["thread"]] for row in rows(path, "cpu")]
    assert seen.count("burner") > 10
    assert seen.count("sleeper") < len(seen) / 10
    assert seen.count("MainThread") < len(seen) / 5


def test_an_exec_ends_the_recording_and_does_not_kill_the_next_program(run: Run, tmp_path: Path) -> None:
    code = """
import os, sys
sum(i for i in range(3_000_000))
os.execv(sys.executable, [sys.executable, "-c", "sum(i for i in range(5_000_000)); print('lived')"])
"""
    done = run(*RECORD, "-c", code)
    assert (done.returncode, done.stdout) == (0, "lived\n")
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text())
    assert {"process": 0, "loss": "execs", "count": 1} in manifest["quality"]


def test_forks_are_recorded_and_harmless(run: Run, tmp_path: Path) -> None:
    code = """
import os, sys
pid = os.fork()
sum(i for i in range(3_000_000))
if pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
sys.exit(4)
"""
    assert run(*RECORD, "-c", code).returncode == 4
    manifest = json.loads((tmp_path / "run.tacho" / "manifest.json").read_text())
    assert not {entry["loss"] for entry in manifest["quality"]} & {"forks_unrecorded", "processes_unarmed"}
    first, forked = rows(tmp_path / "run.tacho", "processes")
    assert (first["parent"], first["exit_status"], forked["parent"]) == (None, 4, first["process"])


def test_a_program_that_becomes_an_unrecorded_python(run: Run) -> None:
    code = "import os, sys; os.execv(sys.executable, [sys.executable, '-S', '-c', 'print(1)'])"
    done = run(*RECORD, "-c", code)
    assert (done.returncode, done.stdout) == (0, "1\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["record"], "nothing to record"),
        (["record", "missing.py"], "there is no script missing.py"),
        (["record", "."], "directory without a __main__.py"),
        (["record", "--interval", "0", "-c", ""], "0 ms is not between 1 and 1000 ms"),
        (["record", "--interval", "nan", "-c", ""], "nan ms is not between"),
        (["record", "--interval", "1e9", "-c", ""], "1e+09 ms is not between"),
        (["record", "--interval", "fast", "-c", ""], "'fast' is not a number"),
        (["record", "--sampler", "none", "-c", ""], "'none' is not one of"),
        (["record", "--memory-threshold", "10mb", "-c", ""], "'10mb' is not a number of bytes such as 10485767, 64K"),
        (["record", "--memory-threshold", "-1", "-c", ""], "'-1' is not a number of bytes"),
        (["record", "--memory-threshold", "65535", "-c", ""], "65535 is not between 64K and 1024G"),
        (["record", "--memory-threshold", "1025G", "-c", ""], "1025G is not between 64K and 1024G"),
        (["record", "--memory-threshold", "1M", "-c", ""], "of no use with --sampler signal"),
        (["record", "--cpu-only", "--memory-threshold", "1M", "-c", ""], "of no use with --cpu-only"),
        (["record", "--wrong", "-c", ""], "no such option"),
        (["record", "-m"], "-m needs a module"),
        (["record", "-o", "there/x.tacho", "-c", ""], "cannot write the recording there/x.tacho: no such file"),
        (["record", "-o", "file", "-c", ""], "file exists and is not a recording"),
        (["record", "-o", "full", "-c", ""], "full exists"),
        (["record", "-fo", "full", "-c", ""], "is not a recording"),
        (["recover", "missing"], "there is no recording missing"),
        (["recover", "file"], "file is a file"),
        (["recover", "full"], "full is not a recording"),
        (["nothing"], "no such command"),
    ],
)
def test_bad_input_is_one_line(run: Run, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    before = sorted(tmp_path.rglob("*"))
    if arguments[0] == "record" and "--sampler" not in arguments:
        arguments = ["record", "--sampler", "signal", *arguments[1:]]
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("tachograph: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("arguments", [["record", "-c", ""], ["record", "--sampler", "signal", "-c", ""]])
def test_a_system_without_signals_and_forks(environment: dict[str, str], tmp_path: Path, arguments: list[str]) -> None:
    code = f"""
import os, signal, sys
import pathlib, tachograph.cli
sys.platform = "win32"
for module, names in ((signal, "SIGKILL SIGBUS SIGCHLD pthread_sigmask valid_signals sigwaitinfo"),
                      (os, "uname posix_spawn posix_fallocate O_NOFOLLOW sched_getaffinity")):
    for name in names.split(): delattr(module, name)
tachograph.cli.main({arguments!r})
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "tachograph: cannot record here: recording needs Linux, this is win32; "
        "'tachograph analyze' works here on recordings made elsewhere\n"
    )


def test_no_room_before_the_start(run: Run, tmp_path: Path) -> None:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = run(*RECORD, "-c", "print('ran')", preexec_fn=limit)
    assert (done.returncode, done.stdout) == (2, "")
    assert "ulimit -f" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_standard_error_may_be_gone(run: Run, tmp_path: Path) -> None:
    done = run(*RECORD, "-c", "print('ran')", preexec_fn=lambda: os.close(2))
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert (tmp_path / "run.tacho" / "cpu.parquet").exists()


def test_little_is_imported_before_the_program_starts(tmp_path: Path) -> None:
    """Each of these modules would keep every recorded program waiting."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from tachograph.recorder.command import launch\n"
        "def start(*_):\n"
        "    print(*sorted(set(sys.modules) - before))\n"
        "    sys.stdout.flush()\n"
        "    raise KeyboardInterrupt\n"
        "launch.start = start\n"
        "sys.argv = ['tachograph', 'record', '--sampler', 'signal', '-c', 'pass']\n"
        "from tachograph.start import run\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    modules = set(done.stdout.split())
    assert "tachograph.recorder.collect.output" in modules, done.stderr
    slow = {
        "click",
        "dataclasses",
        "datetime",
        "inspect",
        "pyarrow",
        "shutil",
        "tempfile",
        "threading",
        "tomllib",
        "uuid",
    }
    layouts = {"tachograph.format.enumerations", "tachograph.format.schema", "tachograph.format.spool.layout"}
    assert not modules & (slow | layouts)
