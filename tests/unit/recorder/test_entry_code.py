"""What a process that is entered runs in its main thread: it takes nothing from the program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tachograph.recorder.attached.entry_code import START, entry, simple_entry

BEGINS = f"""
import os, sys, threading, time
before = sys.getswitchinterval()
go, runs = threading.Event(), threading.Event()
names = {{}}
exec({START!r}, names)
names["start"](lambda: runs.set() or go.wait())
runs.wait()
short = sys.getswitchinterval()
"""


def said_by(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.strip()


def test_the_switch_interval_is_put_back_in_the_end_and_in_a_child() -> None:
    code = f"""{BEGINS}
child = os.fork()
if child == 0: os._exit(int(sys.getswitchinterval() != before))
print(short < 0.0002 < before, os.waitpid(child, 0)[1])
go.set()
limit = time.monotonic() + 30
while sys.getswitchinterval() != before and time.monotonic() < limit: time.sleep(0.001)
print(sys.getswitchinterval() == before)
"""
    assert said_by(code).split() == ["True", "0", "True"]


FORKS_AT_ONCE = f"""
import _thread, os, sys
if sys.argv[1] == "entered-before":
    from tachograph.recorder import _native
    assert _native.stand_by(lambda request, held: (b"", None), True) is None
sys.setswitchinterval(0.02)
before, short, children = sys.getswitchinterval(), [], []
exec({START!r}, names := {{}})
# Where the main thread is when the thread has been started, and has made no step yet.
def fork(frame, event, called):
    if event == "c_return" and called.__name__ == "start_new_thread" and len(short) == len(children):
        short.append(sys.getswitchinterval() < 0.0002)
        children.append(os.fork())
        if children[-1] == 0: os._exit(int(sys.getswitchinterval() != before))
for _ in range(5):
    go = _thread.allocate_lock()
    go.acquire()
    sys.setprofile(fork)
    names["start"](go.acquire)
    sys.setprofile(None)
    go.release()
    while sys.getswitchinterval() < 0.0002: pass
print(short, [os.waitpid(child, 0)[1] for child in children])
"""


@pytest.mark.parametrize("how", ["first", "entered-before"])
def test_the_child_of_a_fork_before_the_threads_first_step_has_the_programs_switch_interval(how: str) -> None:
    assert said_by(FORKS_AT_ONCE, how) == f"{[True] * 5} {[0] * 5}"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython is entered otherwise")
@pytest.mark.parametrize("simple", [False, True])
def test_nothing_is_done_in_a_child_that_has_the_call_of_its_parent(tmp_path: Path, simple: bool) -> None:
    script = tmp_path / "enter.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    code = f"""
import marshal, os, sys, time
from tachograph.recorder.attached.entry_code import entry, simple_entry
own = os.getpid()
path = {str(script)!r}
child = os.fork()
exec(simple_entry(path, own, 4000) if {simple} else marshal.loads(entry(path, own)), {{}})
limit = time.monotonic() + 30
if child == 0: os._exit(len(os.listdir("/proc/self/task")) - 1)
print(os.waitpid(child, 0)[1])
while not os.path.exists({str(tmp_path / "ran")!r}) and time.monotonic() < limit: time.sleep(0.001)
print(time.monotonic() < limit)
"""
    assert said_by(code).split() == ["0", "True"]


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython is entered otherwise")
@pytest.mark.parametrize("simple", [False, True])
def test_nothing_is_done_in_a_child_that_a_handler_forks_in_the_midst(tmp_path: Path, simple: bool) -> None:
    script = tmp_path / "enter.py"
    script.write_text(f"import os; os.close(os.open(f'{tmp_path}/ran-{{os.getpid()}}', os.O_CREAT))", encoding="utf-8")
    code = f"""
import marshal, os, sys, time
from tachograph.recorder.attached.entry_code import entry, simple_entry
own, path, child = os.getpid(), {str(script)!r}, []
def fork(frame, event, called):  # as a handler that runs between two steps
    if event == "c_return" and called.__name__ == "getpid" and not child: child.append(os.fork())
code = compile(simple_entry(path, own, 4000), "", "exec") if {simple} else marshal.loads(entry(path, own))
sys.setprofile(fork)
exec(code, {{}})
sys.setprofile(None)
limit = time.monotonic() + 30
if child == [0]:
    while len(os.listdir("/proc/self/task")) > 1 and time.monotonic() < limit: time.sleep(0.001)
    os._exit(len(os.listdir("/proc/self/task")) - 1)
print(os.waitpid(child[0], 0)[1])
while not os.path.exists({str(tmp_path)!r} + f"/ran-{{own}}") and time.monotonic() < limit: time.sleep(0.001)
print(len([name for name in os.listdir({str(tmp_path)!r}) if name.startswith("ran")]), time.monotonic() < limit)
"""
    assert said_by(code).split() == ["0", "1", "True"]


def test_no_handler_runs_where_the_switch_interval_is_put_back_in_a_child() -> None:
    """Signals that a process gets while it forks are the parent's alone: the interpreter forgets them in the child."""
    code = f"""{BEGINS}
import ctypes, functools, signal
handled = []
signal.signal(signal.SIGUSR1, lambda number, frame: handled.append(os.getpid()))
# Nothing of Python's runs between this and the fork, which would run the handler.
os.register_at_fork(before=functools.partial(ctypes.PyDLL(None)["raise"], int(signal.SIGUSR1)))
child = os.fork()
if child == 0: os._exit(2 * len(handled) + (sys.getswitchinterval() != before))
print(len(handled), os.waitpid(child, 0)[1])
go.set()
"""
    assert said_by(code).split() == ["1", "0"]


def test_a_switch_interval_that_the_program_sets_meanwhile_stays() -> None:
    code = f"""{BEGINS}
sys.setswitchinterval(0.01)
go.set()
limit = time.monotonic() + 30
import _thread
while _thread._count() > 0 and time.monotonic() < limit: time.sleep(0.001)
print(sys.getswitchinterval())
"""
    assert said_by(code) == "0.01"


BEGINS_TO_RAISE = """
import ctypes, functools, marshal, os, signal, sys
from tachograph.recorder.attached.entry_code import entry, simple_entry
full, simple = marshal.loads(entry("/nonexistent", os.getpid())), simple_entry("/nonexistent", os.getpid(), 4000)
class Late(Exception): pass
class Again(Late):
    # The same signal comes at once, before anything of Python's runs.
    __init__ = staticmethod(functools.partial(ctypes.PyDLL(None)["raise"], int(signal.SIGUSR1)))
    __init__.__func__.func.restype = None
class Handler:
    def __call__(self, number, frame): raise Late
def handler(number, frame):
    global kind
    if kind != "again": raise Late
    kind = "function"
    raise Again
kind = sys.argv[1]
signal.signal(signal.SIGUSR1, Handler() if kind == "object" else handler)
# The interpreter runs handlers of signals where it is: here while code of ours runs.
def raise_now():
    if kind == "interrupt": signal.raise_signal(signal.SIGINT)
    if kind == "refusal": raise Late
    signal.raise_signal(signal.SIGUSR1)
def refuse(*arguments): raise Late
if kind == "replaced": __builtins__.exec = refuse
"""
RAISES_BEFORE_THE_THREAD = f"""
{BEGINS_TO_RAISE}
def raise_once(frame, event, called):
    if event == "c_call" and called.__name__ == "start_new_thread": raise_now()
if kind != "replaced": sys.setprofile(raise_once)
try: eval(full, {{}})
except (Late, KeyboardInterrupt): print("caught", end=" ")
else: print("nothing", end=" ")
if kind == "replaced":
    import time
    while sys.getswitchinterval() < 0.0002: time.sleep(0.001)  # the thread ends
print(sys.gettrace(), sys.getswitchinterval() > 0.0002)
"""
RAISES_IN_SIMPLE_TEXT = f"""
{BEGINS_TO_RAISE}
events = 0
def raise_once(event, arguments):
    global events
    events += event == "exec"
    if event == "exec" and events == 2: raise_now()
if kind != "replaced": sys.addaudithook(raise_once)
text = ctypes.create_string_buffer(simple.encode())
call = ctypes.cast(ctypes.pythonapi.PyRun_SimpleString, ctypes.c_void_p)
def work():
    done = 0
    try:
        ctypes.pythonapi.Py_AddPendingCall(call, text)
        for done in range(1000): pass
    except (Late, KeyboardInterrupt):
        return "caught" if done < 999 else "late"
    return "nothing"
print(work(), sys.gettrace(), sys.getswitchinterval() > 0.0002)
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython is entered otherwise")
@pytest.mark.parametrize("code", [RAISES_BEFORE_THE_THREAD, RAISES_IN_SIMPLE_TEXT], ids=["entry", "simple-entry"])
@pytest.mark.parametrize(
    ("kind", "comes"),
    [
        ("function", "caught"),
        ("object", "caught"),
        ("interrupt", "caught"),
        ("refusal", "nothing"),
        ("replaced", "nothing"),
    ],
)
def test_only_what_a_handler_raises_there_is_for_the_program(code: str, kind: str, comes: str) -> None:
    assert said_by(code, kind) == f"{comes} None True"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython is entered otherwise")
def test_what_a_second_handler_raises_at_once_is_for_the_program_too() -> None:
    """And the switch interval does not stay: the second one comes before anything of ours runs again."""
    assert said_by(RAISES_BEFORE_THE_THREAD, "again") == "caught None True"


def test_it_fits_where_there_is_little_room() -> None:
    path = "/run/user/1000/tachograph-abcdefgh/enter.py"
    full, short = (len(os.fsencode(simple_entry(path, 4_194_304, room))) for room in (4000, 0))
    assert short < 1000 < full < 1500
    assert len(entry(path, 4_194_304)) < 3000
