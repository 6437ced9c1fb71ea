"""The program's signals are its own: handlers, timers, masks, alternate stacks, faulthandler, interrupted calls."""

import json
import platform
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

HANDLERS = support.PROGRAMS / "handlers.py"


def test_signals_that_the_program_uses(tmp_path: Path, library: Path) -> None:
    target = [HANDLERS, library]
    plain = support.bare(target, tmp_path)
    recorded = support.record(target, tmp_path, "--interval", "5")
    assert plain.status == 0, plain.stderr
    assert json.loads(plain.stdout)["SIGPROF in range"] is True  # the program itself proves what it means to
    assert json.loads(recorded.stdout) == json.loads(plain.stdout)
    assert recorded == plain
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    assert report["totals"]["samples"] > 50  # and it was recorded all the while


def test_the_program_takes_every_signal(tmp_path: Path) -> None:
    """A program that claims all signals keeps them all, and learns of none that it did not send."""
    code = (
        "import signal, time\n"
        "got = []\n"
        "for n in sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}):\n"
        "    signal.signal(n, lambda number, frame: got.append(number))\n"
        "end = time.process_time() + 0.5\n"
        "while time.process_time() < end: pass\n"
        "print(got)\n"
    )
    plain = support.bare(["-c", code], tmp_path)
    recorded = support.record(["-c", code], tmp_path, "--interval", "5")
    assert recorded == plain
    assert plain.stdout == "[]\n"


BY_NUMBER = """
import ctypes, os, signal, time
class Action(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("flags", ctypes.c_ulong), ("restorer", ctypes.c_void_p),
                ("mask", ctypes.c_ulong)]
libc, rt_sigaction = ctypes.CDLL(None, use_errno=True), 13
numbers = sorted(set(range(1, 65)) - {signal.SIGINT, signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, 32, 33})
before = {}
for handler in (0, 1, 0):
    seen = []
    for number in numbers:
        action, old = Action(handler, 0, None, 1 << 9), Action()
        failed = libc.syscall(rt_sigaction, number, ctypes.byref(action), ctypes.byref(old), ctypes.c_long(8))
        now = Action()
        libc.syscall(rt_sigaction, number, None, ctypes.byref(now), ctypes.c_long(8))
        seen.append((number, failed, old.handler, now.handler, now.flags, now.mask))
        before.setdefault(number, old)
    print(seen)
    end = time.process_time() + 0.2
    while time.process_time() < end: sum(range(500)); bytearray(100_000)
for number in numbers: libc.syscall(rt_sigaction, number, ctypes.byref(before[number]), None, ctypes.c_long(8))
signal.signal(signal.SIGSEGV, lambda *_: print("handled"))
signal.raise_signal(signal.SIGSEGV)
print(libc.syscall(rt_sigaction, 11, ctypes.c_void_p(8), None, ctypes.c_long(8)), ctypes.get_errno())
print(libc.syscall(rt_sigaction, 11, None, None, ctypes.c_long(4)), ctypes.get_errno())
print(libc.syscall(rt_sigaction, 99, None, None, ctypes.c_long(8)), ctypes.get_errno())
"""


def test_signals_that_are_set_by_the_number_of_the_system_call(tmp_path: Path) -> None:
    plain = support.bare(["-c", BY_NUMBER], tmp_path)
    assert plain.stderr == ""
    assert support.record(["-c", BY_NUMBER], tmp_path, "--interval", "5") == plain


BY_NAME = """
import ctypes, signal, time
class Action(ctypes.Structure):
    _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int),
                ("restorer", ctypes.c_void_p)]
def work():
    end = time.process_time() + 0.2
    while time.process_time() < end: sum(range(500)); bytearray(100_000)
libc = ctypes.CDLL("libc.so.6", use_errno=True)
libc.signal.restype = ctypes.c_void_p
numbers = [signal.SIGHUP, signal.SIGUSR1, signal.SIGSTKFLT, signal.SIGPROF, 36, 64]
for handler in (0, 1, 0):
    print([(number, libc.signal(number, ctypes.c_void_p(handler))) for number in numbers])
    work()
got = []
count = ctypes.CFUNCTYPE(None, ctypes.c_int)(got.append)
address = ctypes.cast(count, ctypes.c_void_p).value
for number in (signal.SIGSTKFLT, signal.SIGUSR1):
    action, old = Action(address, (ctypes.c_ulong * 16)(), 0, None), Action()
    print(libc.sigaction(number, ctypes.byref(action), ctypes.byref(old)), old.handler)
    libc.sigaction(number, None, ctypes.byref(old))
    print(old.handler == address)
work()
signal.raise_signal(signal.SIGSTKFLT)
print(got)
everything, mask = (ctypes.c_ulong * 16)(*[(1 << 64) - 1] * 16), (ctypes.c_ulong * 16)()
print(libc.pthread_sigmask(signal.SIG_SETMASK, everything, None), libc.pthread_sigmask(0, None, mask), hex(mask[0]))
work()
print(libc.prctl(38, 1, 0, 0, 0), libc.prctl(39, 0, 0, 0, 0), libc.signal(16, None) == address)
work()
"""


def test_signals_that_are_set_by_functions_that_are_looked_up_in_libc(tmp_path: Path) -> None:
    """As ctypes looks for them, past what the loader finds first."""
    plain = support.bare(["-c", BY_NAME], tmp_path)
    assert (plain.status, plain.stderr) == (0, "")
    assert support.record(["-c", BY_NAME], tmp_path, "--interval", "5") == plain
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 50


EVERY = """
import os, signal, time
got = []
numbers = sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
for number in numbers: signal.signal(number, lambda number, frame: got.append(number))
for number in numbers:
    os.killpg(0, number)
    end = time.monotonic() + 10
    while number not in got and time.monotonic() < end: time.sleep(0.001)
time.sleep(0.5)
print(got == numbers, len(got), flush=True)
"""


def test_every_signal_to_the_process_group(tmp_path: Path) -> None:
    """The recording command is in the group: whatever the program handles, it outlives, and passes nothing on twice."""
    with support.start(["-c", EVERY], tmp_path) as process:
        out, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert out == f"True {len(signal.valid_signals()) - 2}\n"
    assert json.loads((tmp_path / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))["state"] == "complete"


def test_faulthandler_reports_a_real_fault(tmp_path: Path) -> None:
    """A segmentation fault of the program's own kills it, with the traceback that faulthandler prints."""
    script = tmp_path / "faults.py"
    script.write_text(
        "import ctypes, faulthandler, time\n"
        "faulthandler.enable()\n"
        "def fault():\n"
        "    end = time.process_time() + 0.2\n"
        "    while time.process_time() < end: pass\n"
        "    ctypes.string_at(0)\n"
        "fault()\n",
        encoding="utf-8",
    )
    plain, recorded = support.bare([script], tmp_path), support.record([script], tmp_path, "--interval", "5")
    assert plain.status == 128 + signal.SIGSEGV

    def stack(text: str) -> list[str]:
        return [line for line in text.splitlines() if line.startswith(("Fatal", '  File "'))]

    assert recorded.status == plain.status
    assert stack(recorded.stderr) == stack(plain.stderr)
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 5


BLOCKING = """
import ctypes, os, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
never, _ = os.pipe()
reader, writer = os.pipe()
stop = False
def burn():
    while not stop: sum(range(1000))
def feed():
    time.sleep(0.6)
    os.write(writer, b"x")
burners = [threading.Thread(target=burn) for _ in range(2)]
feeder = threading.Thread(target=feed)
results = {}
def block(kind):
    results[kind] = library.oracle_block(kind, reader if kind == 4 else never, 600)
blockers = [threading.Thread(target=block, args=(kind,)) for kind in range(5)]
for thread in (*burners, feeder, *blockers): thread.start()
begin = time.monotonic()
main = library.oracle_block(0, never, 500)
for thread in blockers: thread.join()
stop = True
for thread in (*burners, feeder): thread.join()
print(main, sorted(results.items()), time.monotonic() - begin >= 0.5)
"""


def test_blocking_calls_are_not_interrupted(tmp_path: Path, library: Path) -> None:
    """poll, select, epoll_wait, nanosleep and read in C, which restart after no signal, see none (EINTR is 4)."""
    target: list[str | Path] = ["-c", BLOCKING, library]
    recorded = support.record(target, tmp_path, "--interval", "2")
    assert recorded == support.bare(target, tmp_path)
    assert recorded.stdout == "0 [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)] True\n"
    waits = support.rows(tmp_path / "run.tacho", "waits")
    assert sum(row["off_cpu_ns"] for row in waits) > 2_000_000_000  # it was watched all the while


IGNORED = """
import os, subprocess
shown = ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]
subprocess.run(shown)
print([line for line in open("/proc/self/status") if line.startswith("SigIgn")], flush=True)
os.execvp(shown[0], shown)
"""


SPAWNING = """
import ctypes, os, sys
class Action(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulong) for name in ("handler", "flags", "restorer", "mask")]
for number in (32, 33):
    action = Action(str(number) in sys.argv[1])
    assert ctypes.CDLL(None).syscall(13, number, ctypes.byref(action), None, ctypes.c_long(8)) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""

PYTHON = [sys.executable, "-c", IGNORED]
SHOWN = ["/bin/grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of rt_sigaction is that of x86-64")
@pytest.mark.parametrize(
    ("ignored", "program"),
    [
        *(("none", PYTHON), ("32", PYTHON), ("none", SHOWN), ("32,33", SHOWN)),
        *(pytest.param(ignored, SHOWN, marks=pytest.mark.slow) for ignored in ("32", "33")),
    ],
)
def test_the_same_signals_are_ignored(tmp_path: Path, ignored: str, program: list[str]) -> None:
    """posix_spawn, which starts the program, has glibc's own signals ignored in it; it may have started us as well.

    Signal 33 only of programs without Python: glibc handles it in a process that has threads, such as ours.
    """
    caller = [sys.executable, "-c", SPAWNING, ignored]
    record = [*support.COMMAND, "record", "-q", "-o", "run.tacho"]
    plain, recorded = (support.run([*caller, *command, *program], tmp_path) for command in ([], record))
    expected = {("32" in ignored) + 2 * ("33" in ignored)}
    for outcome in (plain, recorded):
        masks = re.findall(r"SigIgn:\W+t?([0-9a-f]{16})", outcome.stdout)
        assert {int(mask, 16) >> 31 for mask in masks} == expected
    assert program == SHOWN or recorded == plain


MASKS = """
import os, signal, subprocess, sys, threading
def blocked():
    return signal.SIGSTKFLT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
def of_kernel(text):
    (line,) = [each for each in text.splitlines() if each.startswith("SigBlk")]
    return bool(int(line.split()[1], 16) >> (signal.SIGSTKFLT - 1) & 1)
def tell(who):
    print(who, blocked(), flush=True)
    shown = subprocess.run(["grep", "SigBlk", "/proc/self/status"], capture_output=True, text=True).stdout
    print(who, "subprocess", of_kernel(shown), flush=True)
    reading, writing = os.pipe()
    os.waitpid(os.posix_spawn("/bin/grep", ["grep", "SigBlk", "/proc/self/status"], os.environ,
                              file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)]), 0)
    print(who, "spawned", of_kernel(os.read(reading, 4096).decode()), flush=True)
def in_thread(who):
    thread = threading.Thread(target=tell, args=(who,))
    thread.start()
    thread.join()
tell("main before")
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
tell("main")
in_thread("thread")
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGSTKFLT])
tell("main after")
in_thread("thread after")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGSTKFLT])
if len(sys.argv) > 1:
    os.execv("/bin/grep", ["grep", "SigBlk", "/proc/self/status"])
"""


@pytest.mark.parametrize("arguments", [[], ["exec"]])
def test_threads_and_programs_inherit_the_mask_as_it_was_set(tmp_path: Path, arguments: list[str]) -> None:
    plain = support.bare(["-c", MASKS, *arguments], tmp_path)
    assert plain.stderr == ""
    assert {line.rpartition(" ")[2] for line in plain.stdout.splitlines()} >= {"True", "False"}
    assert support.record(["-c", MASKS, *arguments], tmp_path) == plain


def test_a_program_that_begins_with_the_signal_blocked_is_sampled(tmp_path: Path) -> None:
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    code = (
        "import os, signal, sys\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        f"os.execv(sys.executable, [sys.executable, '-c', {burn!r}])"
    )
    support.record(["-c", code], tmp_path)
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 15


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_below_gdb_that_passes_the_signal_on(tmp_path: Path) -> None:
    """It knows no SIGSTKFLT, and real-time signals only: see docs/explanation/what-recording-changes.md."""
    burn = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('done')"
    command = ["gdb", "-nx", "-q", "-batch", "-ex", "handle SIG62 nostop noprint pass", "-ex", "run", "--args"]
    outcome = support.record([*command, sys.executable, "-c", burn], tmp_path)
    assert "done" in outcome.stdout
    assert "received signal" not in outcome.stdout
    program = support.rows(tmp_path / "run.tacho", "processes")[-1]
    assert (program["recorded"], program["exit_status"]) == ("python", 0)
    rows = support.rows(tmp_path / "run.tacho", "threads")
    threads = [row["thread"] for row in rows if row["process"] == program["process"]]
    assert sum(row["thread"] in threads for row in support.rows(tmp_path / "run.tacho", "cpu")) > 15


ENDING_THREAD = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
kept = []
def at_end(value):
    with open("/proc/thread-self/status") as file:
        kept.extend(int(line.split()[1], 16) for line in file if line.startswith("SigBlk"))
function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(at_end)
key = ctypes.c_uint()
assert libc.pthread_key_create(ctypes.byref(key), function) == 0
thread = threading.Thread(target=libc.pthread_setspecific, args=(key, 1))
thread.start()
thread.join()
while not kept: time.sleep(0.001)
print([number for number in (2, 10, 14, 15, 40) if kept[0] >> number - 1 & 1])
"""


def test_no_signal_finds_a_thread_that_was_joined(tmp_path: Path) -> None:
    """What is done when it ends takes longer than it would have lived: others may block a signal meanwhile."""
    outcome = support.record(["-c", ENDING_THREAD], tmp_path)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("[2, 10, 14, 15, 40]\n", "", 0)
