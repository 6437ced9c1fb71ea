"""A program may enter a user namespace, which the kernel refuses to a process of several threads."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

ENTER = """
import ctypes, os, subprocess, sys, time
NEW_USER = 0x10000000
def enter():
    library = ctypes.CDLL(None, use_errno=True)
    return library.unshare(NEW_USER), ctypes.get_errno()
def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
def in_child():
    os.write(1, f"{enter()}\\n".encode())
time.sleep(0.2)  # the recorder's own thread is there by now
subprocess.run([sys.executable, "-S", "-c", "0"], preexec_fn=in_child, check=True)
if os.fork() == 0:
    print("fork", enter(), flush=True)
    os._exit(0)
os.wait()
print(enter(), flush=True)
spend(0.3)
time.sleep(0.3)
"""


def test_user_namespace(tmp_path: Path) -> None:
    bare = support.bare(["-c", ENTER], tmp_path)
    if "(-1, 1)" in bare.stdout or "(-1, 28)" in bare.stdout:
        pytest.skip("user namespaces are not allowed here")
    assert bare == support.Outcome(0, "(0, 0)\nfork (0, 0)\n(0, 0)\n", "")
    assert support.record(["-c", ENTER], tmp_path) == bare
    waits = support.rows(tmp_path / "run.tacho", "waits")
    late = max(row["end_ns"] for row in waits) - min(row["start_ns"] for row in waits)
    assert late > 500_000_000  # waits are seen after it too


JOIN = """
import ctypes, os, time
NEW_USER = 0x10000000
library = ctypes.CDLL(None, use_errno=True)
ready, hold = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.write(ready[1], b"%d" % (library.unshare(NEW_USER) == 0))
    os.close(hold[1])
    os.read(hold[0], 1)
    os._exit(0)
made = os.read(ready[0], 1)
time.sleep(0.2)  # the recorder's own thread is there again
space = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
joined = library.setns(space, NEW_USER), ctypes.get_errno()
os.close(hold[1])
os.waitpid(child, 0)
print(made, joined)
"""


def test_the_user_namespace_of_another(tmp_path: Path) -> None:
    bare = support.bare(["-c", JOIN], tmp_path)
    if bare.stdout != "b'1' (0, 0)\n":
        pytest.skip("user namespaces are not allowed here")
    assert support.record(["-c", JOIN], tmp_path) == bare
