"""attach and dump in programs with modules, descriptors and folders of an unusual kind."""

import os
import re
import shutil
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from integration import support
from integration.test_attach import STANDBY, attach, command, is_complete, running, starts_attach, things
from tachograph.recorder.attached import connection, injection
from tachograph.recorder.attached.pending_call import PendingCall, alone
from tachograph.recorder.attached.running_processes import look
from tachograph.recorder.problems import Refused

pytestmark = [pytest.mark.native, pytest.mark.recording]

NOBODY = 65534

WORKS = "\ndef work():\n    while True: sum(range(5000))\nprint('ready', flush=True)\nwork()\n"


@pytest.mark.parametrize("stands_by", [False, True])
def test_modules_of_the_programs_own_with_names_of_the_standard_library(tmp_path: Path, stands_by: bool) -> None:
    (tmp_path / "json.py").write_text("VALUE = 1\n", encoding="utf-8")
    (tmp_path / "program.py").write_text("import json, time\nassert json.VALUE" + WORKS, encoding="utf-8")
    with running([sys.executable, "program.py"], tmp_path, STANDBY if stands_by else {}) as process:
        shown = command("dump", process.pid, cwd=tmp_path)
        assert (shown.status, shown.stderr) == (0, "")
        assert re.search(r"^    work  .*program.py:\d+$", shown.stdout, re.MULTILINE)
        done = attach(process.pid, "--duration", "100ms", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert is_complete(tmp_path / "run.tacho")


@pytest.mark.parametrize("stands_by", [False, True])
def test_no_module_of_the_programs_own_is_imported(tmp_path: Path, stands_by: bool) -> None:
    """It has not imported them itself, and what begins with an import of them is the program's affair."""
    command_of = [sys.executable, "-c", "import sys, tachograph, contextlib, warnings; print(*sys.modules)"]
    loaded = support.run(command_of, tmp_path).stdout.split()
    (tmp_path / "modules").mkdir()
    for path in Path(os.__file__).parent.glob("[a-z]*.py"):
        if path.stem not in loaded and path.stem != "importlib":
            text = f"open('imported', 'a').write('{path.stem} ')"
            (tmp_path / "modules" / path.name).write_text(text, encoding="utf-8")
    assert {"typing.py", "struct.py"} <= set(os.listdir(tmp_path / "modules"))
    (tmp_path / "program.py").write_text(WORKS, encoding="utf-8")
    env = {"PYTHONPATH": str(tmp_path / "modules"), **(STANDBY if stands_by else {})}
    with running([sys.executable, "program.py"], tmp_path, env) as process:
        shown = command("dump", process.pid, cwd=tmp_path)
        assert (shown.status, shown.stderr) == (0, "")
        done = attach(process.pid, "--duration", "100ms", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert is_complete(tmp_path / "run.tacho")
    assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text(encoding="utf-8")


def test_what_cannot_be_imported_is_told(tmp_path: Path) -> None:
    """A bundle may have no more modules than it needs."""
    program = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name == "tachograph.recorder.attached.requests":
            raise ImportError("there is no 'module' in this bundle")
sys.meta_path.insert(0, Without())
"""
    with running([sys.executable, "-c", program + WORKS], tmp_path, STANDBY) as process:
        for what in ("dump", "attach"):
            line = support.one_line(
                command(what, process.pid, cwd=tmp_path), f"process {process.pid}: it cannot import"
            )
            assert "there is no 'module' in this bundle" in line


CHANGES_OF_PATH = """
import select, sys
sys.path.append({place!r})
first = tuple(sys.path)
seen = {{first}}
print("ready", flush=True)
while not select.select([0], [], [], 0)[0]: seen.add(tuple(sys.path))
print(seen == {{first}})
"""


def test_the_path_of_modules_stays_as_it_is(tmp_path: Path) -> None:
    """Also where the folder that tachograph is in is on it, and others are behind."""
    program = CHANGES_OF_PATH.format(place=str(tmp_path))
    with running([sys.executable, "-c", program], tmp_path) as process:
        assert command("dump", process.pid, cwd=tmp_path).status == 0
        done = attach(process.pid, "--duration", "100ms", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert process.communicate("\n", timeout=60) == ("True\n", "")


WRITES_TO_CLOSED = """
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
for number in (0, 1, 2): os.close(number)
end = time.monotonic() + 60
count = 0
while time.monotonic() < end and not os.path.exists("over"):
    for number in (0, 1, 2):
        try:
            count += os.write(number, b"x" * 40)
        except OSError:
            pass
    sum(range(2000))
with open("wrote", "w") as file: file.write(str(count))
"""


@pytest.mark.parametrize("stands_by", [False, True])
def test_a_daemon_that_writes_to_streams_that_it_has_closed(tmp_path: Path, stands_by: bool) -> None:
    with running([sys.executable, "-c", WRITES_TO_CLOSED], tmp_path, STANDBY if stands_by else {}) as process:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        support.wait_for(lambda: "0" not in os.listdir(f"/proc/{process.pid}/fd"), "the daemon")
        done = attach(process.pid, "--duration", "1s", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert is_complete(tmp_path / "run.tacho")
        (tmp_path / "over").touch()
        process.wait(timeout=60)
    assert process.returncode == 0


WRITES_BESIDE = """
import os, sys, threading
print("ready", flush=True)
sys.stdin.readline()
for number in (0, 1, 2): os.close(number)
def write():
    while True:
        for number in (0, 1, 2):
            try:
                os.write(number, b"x" * 40)
            except OSError:
                pass
for _ in range(2): threading.Thread(target=write, daemon=True).start()
while not os.path.exists("over"): os.stat(".")
os._exit(os.open("/", os.O_RDONLY))
"""


def test_no_client_reads_what_a_daemon_writes_to_closed_streams(tmp_path: Path) -> None:
    """Nor does a client that is waited for take a number that the program's next file has: it exits with that."""
    with running([sys.executable, "-c", WRITES_BESIDE], tmp_path, STANDBY) as process:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        support.wait_for(lambda: "0" not in os.listdir(f"/proc/{process.pid}/fd"), "the daemon")
        for _ in range(200):
            client = connection.connect(process.pid)
            assert client is not None
            with client:
                assert "threads" in client.ask("dump")
        (tmp_path / "over").touch()
        assert process.wait(timeout=60) == 0


SEVERAL_INTERPRETERS = """
import importlib
for name in ("_interpreters", "_xxsubinterpreters"):
    try: kept = importlib.import_module(name).create()
    except ImportError: continue
    break
else: raise SystemExit("no interpreters")
"""


def test_a_process_with_a_subinterpreter(tmp_path: Path) -> None:
    """sys.remote_exec, from 3.14 on, takes the newest interpreter."""
    with running([sys.executable, "-c", SEVERAL_INTERPRETERS + WORKS], tmp_path) as process:
        shown = command("dump", process.pid, cwd=tmp_path)
        assert (shown.status, shown.stderr) == (0, "")
        assert re.search(r"^    work  ", shown.stdout, re.MULTILINE)
        done = attach(process.pid, "--duration", "300ms", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert is_complete(tmp_path / "run.tacho")
        assert len(support.rows(tmp_path / "run.tacho", "cpu")) > 0


FORKS_WITHOUT_DESCRIPTORS = """
import os, resource, time, warnings
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
held, times = [], []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
with warnings.catch_warnings(record=True) as shown:
    warnings.simplefilter("always")
    for _ in range(5):
        begin = time.perf_counter()
        child = os.fork()
        if child == 0: os._exit(0)
        os.waitpid(child, 0)
        times.append(time.perf_counter() - begin)
for each in held: os.close(each)
with open("forks", "w") as file: print(min(times), len(shown), file=file)
"""


def test_forks_on_standby_where_no_descriptor_is_left(tmp_path: Path) -> None:
    """From 3.12 on the thread that stands by leaves before each fork: it is called without a connection of its own."""
    with running([sys.executable, "-c", FORKS_WITHOUT_DESCRIPTORS + WORKS], tmp_path, STANDBY) as process:
        shortest, warnings = (tmp_path / "forks").read_text(encoding="utf-8").split()
        assert float(shortest) < 0.5
        assert warnings == "0"
        assert re.search(r"^    work  ", command("dump", process.pid, cwd=tmp_path).stdout, re.MULTILINE)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the interpreter opens the file itself")
def test_a_program_that_is_shown_all_warnings_is_shown_none_of_ours(tmp_path: Path) -> None:
    program = "import time\nprint('ready', flush=True)\nwhile True: sum(range(5000))\n"
    with running([sys.executable, "-X", "dev", "-W", "error", "-c", program], tmp_path) as process:
        before = things(process.pid)
        assert command("dump", process.pid, cwd=tmp_path).status == 0
        done = attach(process.pid, "--duration", "100ms", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        support.wait_for(lambda: things(process.pid) == before, "the end of the standby", timeout=60)
        process.kill()
        assert process.communicate(timeout=60) == ("", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_keep_a_process_from_being_entered(tmp_path: Path) -> None:
    """By taking the name, or the lock, that tells one tachograph of another."""

    def squat(writer: int, pid: int) -> None:
        with socket.socket(socket.AF_UNIX) as name:
            name.bind(f"\0tachograph-entering-{pid}")
            os.write(writer, b".")
            time.sleep(60)

    with running([sys.executable, "-c", WORKS], tmp_path) as process:
        squatter, reader = support.fork_as(NOBODY, lambda writer: squat(writer, process.pid))
        try:
            assert os.read(reader, 1) == b"."
            shown = command("dump", process.pid, cwd=tmp_path)
            assert (shown.status, shown.stderr) == (0, "")
        finally:
            os.close(reader)
            support.kill_quietly(squatter)
            os.waitpid(squatter, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_end_the_standby_of_a_process_that_is_entered(tmp_path: Path) -> None:
    """It connects to each socket at once: who entered the process is still answered, and then it is left alone."""

    def connect_first(writer: int, pid: int) -> None:
        os.set_blocking(writer, False)
        while True:
            for name in connection.standing_by().get(pid, ()):
                with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
                    client.connect(f"\0{name}")
                    os.write(writer, b".")

    with running([sys.executable, "-c", WORKS], tmp_path) as process:
        other, reader = support.fork_as(NOBODY, lambda writer: connect_first(writer, process.pid))
        try:
            before = things(process.pid)
            for _ in range(3):
                shown = command("dump", process.pid, cwd=tmp_path)
                assert (shown.status, shown.stderr) == (0, "")
                support.wait_for(lambda: things(process.pid) == before, "the end of the standby", timeout=60)
            assert len(os.read(reader, 1 << 20)) >= 3
        finally:
            os.close(reader)
            support.kill_quietly(other)
            os.waitpid(other, 0)


def test_who_comes_while_another_one_is_answered_is_answered_next(tmp_path: Path) -> None:
    """Also where one in between has gone meanwhile, and the process would be left."""
    with running([sys.executable, "-c", WORKS], tmp_path) as process:
        before = things(process.pid)
        with injection.entered(look(process.pid)):
            killed, last = connection.connect(process.pid), connection.connect(process.pid)
            assert killed is not None
            assert last is not None
            killed.close()
        with last:
            assert "threads" in last.ask("dump")
        support.wait_for(lambda: things(process.pid) == before, "the end of the standby", timeout=60)


def test_two_do_not_enter_a_process_at_once(tmp_path: Path) -> None:
    with running([sys.executable, "-c", WORKS], tmp_path) as process, alone(process.pid, 0):
        with pytest.raises(Refused, match="is being entered by another tachograph"), alone(process.pid, 0):
            raise AssertionError("entered twice")
        with alone(os.getpid(), 0):
            pass


def test_no_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is none, a line says so; where another one can be had, it is."""
    with running([sys.executable, "-c", WORKS], tmp_path) as process, monkeypatch.context() as patched:
        patched.setattr(injection, "_folders", lambda: iter([str(tmp_path / "missing")]))
        for what in ("dump", "attach"):
            support.one_line(command(what, process.pid, cwd=tmp_path), "no folder for temporary files")
        good = tmp_path / "good"
        good.mkdir()
        patched.setattr(injection, "_folders", lambda: iter([str(tmp_path / "missing"), str(good)]))
        assert command("dump", process.pid, cwd=tmp_path).status == 0
        assert list(good.iterdir()) == []


@pytest.mark.skipif(
    shutil.which("unshare") is None or os.geteuid() != 0, reason="only root can make its disk read-only"
)
def test_a_disk_that_nothing_can_be_written_to(tmp_path: Path) -> None:
    """In a mount namespace of its own; the command and the program are in it."""
    program = f"""
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {WORKS!r}], stdout=subprocess.PIPE)
child.stdout.readline()
done = subprocess.run([*{list(support.COMMAND)!r}, "dump", str(child.pid)], capture_output=True, text=True)
child.kill()
print(done.returncode, done.stdout, done.stderr)
"""
    read_only = "mount -o remount,bind,ro / && mount -t tmpfs -o ro tmpfs /dev/shm && mount -t tmpfs -o ro tmpfs /run"
    shell = f'mount --bind / / 2>/dev/null; {read_only} && cd / && exec "$0" "$@"'
    done = support.run(
        ["unshare", "--mount", "sh", "-c", shell, sys.executable, "-c", program],
        tmp_path,
        env={**support.environment(), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    if "ready" not in done.stdout and done.status != 0:
        pytest.skip(f"no read-only root here: {done.stderr[:200]}")
    assert done.stdout.startswith("2 "), done
    assert "no folder for temporary files" in done.stdout
    assert "Traceback" not in done.stdout


READS_SIGNALS = """
import ctypes, os, signal, struct, sys, threading, time
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
mask = (ctypes.c_ulong * 16)(*[2**64 - 1] * 16)
reader = ctypes.CDLL(None).signalfd(-1, mask, os.O_NONBLOCK)
got = []
def look():
    try:
        while data := os.read(reader, 128): got.append(struct.unpack_from("I", data)[0])
    except BlockingIOError:
        pass
def sets_it_free():
    while "memfd:tachograph" not in open("/proc/self/maps").read(): time.sleep(0.01)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGSTKFLT])
    while True: sum(range(2000))
threading.Thread(target=sets_it_free, daemon=True).start()
print("ready", flush=True)
while not os.path.exists("over"):
    sum(range(5000))
    look()
print(got)
"""


def test_a_program_that_reads_its_signals_gets_none_of_ours(tmp_path: Path) -> None:
    """It blocked all of them before: its main thread is sampled from outside, and one that lets ours in, by it."""
    with running([sys.executable, "-c", READS_SIGNALS], tmp_path) as process:
        done = attach(process.pid, "--duration", "2s", "-o", "run.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        (tmp_path / "over").touch()
        assert process.communicate(timeout=60) == ("[]\n", "")
    rows = support.rows(tmp_path / "run.tacho", "cpu")
    of_main = {row["thread"]: row["main"] for row in support.rows(tmp_path / "run.tacho", "threads")}
    ways = {(of_main[row["thread"]], row["origin"]) for row in rows}
    by_signal, from_outside = 0, 1
    assert (False, by_signal) in ways
    assert ways <= {(False, by_signal), (False, from_outside), (True, from_outside)}


ADDS_A_CALL = """
#include <pthread.h>
#include <unistd.h>
int Py_AddPendingCall(int (*)(void*), void*);
static int nothing(void* argument) { return 0; }
static void* later(void* argument) {
    usleep(300000);
    Py_AddPendingCall(nothing, 0);
    return 0;
}
int begin(void) {
    pthread_t thread;
    return pthread_create(&thread, 0, later, 0);
}
"""
UNWOKEN = """
import ctypes, time
ctypes.CDLL("./adds.so").begin()
print("ready", flush=True)
end = time.monotonic() + 120
while time.monotonic() < end: sum(range(5000))
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the interpreter is entered by other means")
def test_calls_of_others_that_have_not_woken_the_main_thread(tmp_path: Path) -> None:
    """Up to 3.12 a lone main thread does not notice a call of another thread: greenlet adds one where a thread ends."""
    (tmp_path / "adds.c").write_text(ADDS_A_CALL, encoding="utf-8")
    if support.compile_library(tmp_path / "adds.c", tmp_path) is None:
        pytest.skip("no C compiler")
    with running([sys.executable, "-c", UNWOKEN], tmp_path) as process:
        support.wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 1, "the end of the thread")
        shown = command("dump", process.pid, cwd=tmp_path)
        assert (shown.status, shown.stderr) == (0, "")


THERE_BEFORE = """
import ctypes, os, sys, threading, time
from tachograph.recorder import span
def works(name, until):
    while not until():
        with span(name): sum(range(5000))
        time.sleep(0.01)
asked = threading.Event()
threading.Thread(target=works, args=("of a thread", asked.is_set)).start()
def ask():
    sys.stdin.readline()
    asked.set()
threading.Thread(target=ask, daemon=True).start()
traces = os.path.exists("traces.so") and ctypes.CDLL("./traces.so")
print("ready", flush=True)
works("of the first thread", asked.is_set)
{end}
"""
TRACES = "#include <sys/ptrace.h>\nint trace_me(void) { return (int)ptrace(PTRACE_TRACEME, 0, 0, 0); }\n"
ENDS = {
    "exec": "os.execv('/bin/echo', ['echo', 'done'])",
    # From then on the thread stops at every signal, and the parent lets it go on from none.
    "trace": """
print(traces.trace_me(), flush=True)
end = time.thread_time() + 0.5
while time.thread_time() < end: sum(range(5000))
print("done")
""",
    "create": """
def child(): sum(range(5000))
threading.Thread(target=child, name="child").start()
print("done")
""",
}


@pytest.mark.parametrize("what", ENDS)
def test_threads_that_were_there_before(tmp_path: Path, what: str) -> None:
    """Their spans, execs and children are theirs, and one that has itself traced gets no more signals."""
    if what == "trace":
        (tmp_path / "traces.c").write_text(TRACES, encoding="utf-8")
        if support.compile_library(tmp_path / "traces.c", tmp_path) is None:
            pytest.skip("no C compiler")
    with running([sys.executable, "-c", THERE_BEFORE.format(end=ENDS[what])], tmp_path) as process:
        attached = starts_attach(process.pid, "-q", "-o", "run.tacho", cwd=tmp_path)
        support.wait_for(lambda: (tmp_path / "run.tacho" / "spool").exists(), "the recording")
        time.sleep(1.0)
        out, errors = process.communicate("\n", timeout=60)
        assert (out.splitlines()[-1:], errors) == (["done"], "")
        assert attached.wait(timeout=60) == 0
    names = {row["thread"]: row["name"] for row in support.rows(tmp_path / "run.tacho", "threads")}
    spans = support.rows(tmp_path / "run.tacho", "spans")
    assert {row["name"] for row in spans} == {"of the first thread", "of a thread"}
    assert {names[row["thread"]] for row in spans if row["name"] == "of the first thread"} == {"MainThread"}
    if what == "exec":
        assert support.losses(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))["execs"] == 1
    if what == "create":
        (child,) = [row for row in support.rows(tmp_path / "run.tacho", "threads") if row["name"] == "child"]
        assert names[child["creator"]] == "MainThread"


RAISES_OFTEN = """
import collections, gc, os, signal, sys, time
class Late(Exception): pass
armed, met = False, collections.Counter()
def handler(number, frame):
    global armed
    if armed:
        armed = False
        raise Late
def work():
    global armed
    try:
        armed = True
        for _ in range(200_000): pass
        armed = False
    except BaseException as error:
        armed = False
        met[repr(error)] += 1
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
print("ready", flush=True)
while not os.path.exists("end"): work()
signal.setitimer(signal.ITIMER_REAL, 0)
limit = time.monotonic() + 30
while sys.getswitchinterval() < 0.001 and time.monotonic() < limit:  # threads of ours that have not ended
    gc.collect()
    time.sleep(0.01)
print(*met, sys.getswitchinterval())
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="sys.remote_exec runs the file, and reports what is raised")
def test_what_handlers_raise_while_a_process_is_entered_is_raised_in_the_program(tmp_path: Path) -> None:
    """With PyRun_SimpleString, a quarter of them were printed, and the program got a SystemError instead."""
    (tmp_path / "script.py").write_text("open('entered', 'a').write('x')\n", encoding="utf-8")
    with running([sys.executable, "-c", RAISES_OFTEN], tmp_path) as process:
        for _ in range(30):
            PendingCall(process.pid, tmp_path / "script.py").add(time.monotonic() + 30)
        support.wait_for(lambda: len((tmp_path / "entered").read_bytes()) >= 30, "the threads", timeout=60)
        (tmp_path / "end").touch()
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (0, "Late() 0.005\n", "")


FORKS_WHILE_IT_WAITS = """
import os, threading, time
def fork():
    while not os.path.exists("go"): time.sleep(0.01)
    child = os.fork()
    if child == 0:
        limit = time.monotonic() + 0.5
        while not os.path.exists("entered") and time.monotonic() < limit: sum(range(1000))
        os._exit(0)
    os.waitpid(child, 0)
    os.write(end, b"x")
waits, end = os.pipe()
thread = threading.Thread(target=fork)
thread.start()
print("ready", flush=True)
os.read(waits, 1)
thread.join()
while not os.path.exists("end"): sum(range(1000))
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="sys.remote_exec is for one thread, which the child has not")
def test_a_child_that_is_forked_while_the_main_thread_waits_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import os; open('entered', 'a').write(f'{os.getpid()} ')\n", encoding="utf-8")
    with running([sys.executable, "-W", "ignore", "-c", FORKS_WHILE_IT_WAITS], tmp_path) as process:
        PendingCall(process.pid, tmp_path / "script.py").add(time.monotonic() + 30)
        (tmp_path / "go").touch()
        entered = tmp_path / "entered"
        support.wait_for(lambda: entered.exists() and entered.read_text() != "", "the thread")
        (tmp_path / "end").touch()
        assert process.wait(timeout=60) == 0
    assert (tmp_path / "entered").read_text(encoding="utf-8") == f"{process.pid} "


DEEP = """
import os
ready = False
def deeper():
    global ready
    try: deeper()
    except RecursionError:
        if ready: os.write(1, b"another\\n")
        elif os.write(1, b"ready\\n"):
            ready = True
            while not os.access("end", 0): pass
deeper()
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the interpreter is entered by other means")
def test_a_program_that_is_as_deep_as_it_may_be(tmp_path: Path) -> None:
    with running([sys.executable, "-c", DEEP], tmp_path) as process:
        for _ in range(3):
            PendingCall(process.pid, tmp_path / "script.py").add(time.monotonic() + 30)
        (tmp_path / "end").touch()
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out, said) == (0, "", "")
