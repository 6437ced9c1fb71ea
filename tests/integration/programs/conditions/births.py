"""Processes that begin in unusual ways: amid an import, twice forked, by clone3, beside a broken sitecustomize, by exec
of the program itself with hardly any environment."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

STEP = "STEP"
CLONE3, CLONE_PIDFD = 435, 0x1000


def burn() -> None:
    sum(range(3_000_000))


def execute(step: str, **environment: str) -> None:
    print(step, sorted(os.environ), flush=True)
    os.execve(sys.executable, [sys.executable, __file__], {STEP: step, **environment})


def forks_amid_an_import(folder: Path) -> None:
    """Which another thread does, under the lock of the import."""
    text = """
import os, threading
def fork():
    child = os.fork()
    if child == 0:
        import decimal, json
        print("child imports", json.dumps(1), flush=True)
        os._exit(7)
    print("it ends with", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
thread = threading.Thread(target=fork)
thread.start()
thread.join()
"""
    (folder / "forks.py").write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    __import__("forks")


def becomes_a_daemon() -> None:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            os.closerange(0, writer)
            os.closerange(writer + 1, 100)
            burn()
            os.write(writer, f"daemon {sorted(map(int, os.listdir('/proc/self/fd')))[0]}".encode())
        os._exit(0)
    os.close(writer)
    os.wait()
    print(os.read(reader, 100), os.read(reader, 100), flush=True)
    os.close(reader)


def with_broken_sitecustomize(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("raise RuntimeError('broken')\n", encoding="utf-8")
    for options in ([], ["-I"], ["-S"], ["-OO"]):
        child = [sys.executable, *options, "-c", "import sys; print(sys.flags.optimize, __debug__)"]
        done = subprocess.run(child, env={"PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False)
        print(options, done.returncode, done.stdout, done.stderr.replace(str(folder), "FOLDER"), flush=True)


def by_clone3() -> None:
    """Which gives a descriptor of the child, and runs nothing of libc's or of Python's in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = ctypes.c_int(-1)
    numbers = (CLONE_PIDFD, ctypes.addressof(descriptor), 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    arguments = (ctypes.c_uint64 * len(numbers))(*numbers)
    child = libc.syscall(CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments))
    if child == 0:
        libc._exit(3)
    if child < 0:
        print("no clone3")
        return
    ended = os.waitid(os.P_PIDFD, descriptor.value, os.WEXITED)
    os.close(descriptor.value)
    print("clone3", ended is not None and (ended.si_pid == child, ended.si_status), flush=True)


def begin() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        forks_amid_an_import(folder)
        with_broken_sitecustomize(folder)
    becomes_a_daemon()
    by_clone3()
    thread = threading.Thread(target=execute, args=("second",), kwargs={"EMPTY": ""})
    thread.start()
    thread.join()


burn()
if os.environ.get(STEP) is None:
    begin()
elif os.environ[STEP] == "second":
    execute("third", LD_PRELOAD="")
print("ended", sorted(os.environ), flush=True)
sys.exit(9)
