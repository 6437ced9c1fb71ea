"""Children that are killed, each in another way, and told of by another call; what the parent saw of each is printed."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable

BUSY_S = 0.2
READY = tempfile.mkdtemp()


def burn(seconds: float = BUSY_S) -> None:
    while time.process_time() < seconds:
        sum(range(1000))


def ready(name: str) -> None:
    """Say that all CPU time is spent, and how much it was."""
    with open(f"{READY}/{name}.part", "w", encoding="utf-8") as file:
        file.write(f"{os.getpid()} {time.process_time_ns()}")
    os.rename(f"{READY}/{name}.part", f"{READY}/{name}")


def work(name: str) -> None:
    burn(time.process_time() + BUSY_S)
    ready(name)
    time.sleep(60)


def wait_until_ready(name: str) -> tuple[int, int]:
    while not os.path.exists(f"{READY}/{name}"):
        time.sleep(0.005)
    with open(f"{READY}/{name}", encoding="utf-8") as file:
        pid, cpu_ns = map(int, file.read().split())
    return pid, cpu_ns


def note(name: str, pid: int, cpu_ns: int, killed_ns: int, status: int) -> None:
    row = {"name": name, "pid": pid, "cpu_ns": cpu_ns, "killed_ns": killed_ns, "status": status}
    print(json.dumps(row | {"told_ns": time.monotonic_ns()}), flush=True)


def forked(name: str, number: int, take: Callable[[int], int], then: Callable[[str], None] = work) -> None:
    child = os.fork()
    if child == 0:
        then(name)
    pid, cpu_ns = wait_until_ready(name)
    killed_ns = time.monotonic_ns()
    os.kill(pid, number)
    note(name, pid, cpu_ns, killed_ns, take(child))


def by_waitid(child: int) -> int:
    info = os.waitid(os.P_PID, child, os.WEXITED)
    assert info is not None
    return -info.si_status


def by_polling(child: int) -> int:
    while (told := os.waitpid(-1, os.WNOHANG))[0] == 0:
        time.sleep(0.001)
    assert told[0] == child
    return os.waitstatus_to_exitcode(told[1])


def aborts(name: str) -> None:
    burn(time.process_time() + BUSY_S)
    ready(name)
    os.abort()


def with_children(name: str) -> None:
    """A grandchild that takes more time than the child, and is waited for."""
    pid = os.fork()
    if pid == 0:
        burn(4 * BUSY_S)
        os._exit(0)
    os.waitpid(pid, 0)
    work(name)


def large(name: str) -> None:
    held = os.urandom(1 << 20) * 200
    ready(name)
    time.sleep(60)
    del held


def started(name: str, command: list[str]) -> None:
    child = subprocess.Popen(command)
    pid, cpu_ns = wait_until_ready(name)
    killed_ns = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    note(name, pid, cpu_ns, killed_ns, child.wait() if pid == child.pid else -9)
    child.wait()


def main() -> None:
    status = os.waitstatus_to_exitcode
    forked("by_waitpid", signal.SIGKILL, lambda child: status(os.waitpid(child, 0)[1]))
    forked("by_wait", signal.SIGTERM, lambda child: status(os.wait()[1]))
    forked("by_wait3", signal.SIGSEGV, lambda child: status(os.wait3(0)[1]))
    forked("by_wait4", signal.SIGKILL, lambda child: status(os.wait4(child, 0)[1]))
    forked("by_waitid", signal.SIGKILL, by_waitid)
    forked("by_polling", signal.SIGKILL, by_polling)
    forked("aborts", 0, lambda child: status(os.waitpid(child, 0)[1]), aborts)
    forked("with_children", signal.SIGKILL, lambda child: status(os.waitpid(child, 0)[1]), with_children)
    forked("large", signal.SIGKILL, lambda child: status(os.waitpid(child, 0)[1]), large)

    process = multiprocessing.get_context("fork").Process(target=work, args=("in_process",))
    process.start()
    pid, cpu_ns = wait_until_ready("in_process")
    killed_ns = time.monotonic_ns()
    process.kill()
    process.join()
    note("in_process", pid, cpu_ns, killed_ns, process.exitcode or 0)

    again = [sys.executable, __file__]
    started("started", [*again, "started"])
    started("below_a_shell", ["/bin/sh", "-c", f"{sys.executable} {__file__} below_a_shell; true"])
    started("below_a_subshell", ["/bin/sh", "-c", f"({sys.executable} {__file__} below_a_subshell; true); true"])
    thread = threading.Thread(target=started, args=("in_thread", [*again, "in_thread"]))
    thread.start()
    thread.join()

    sleep = subprocess.Popen(["sleep", "60"])
    time.sleep(0.5)
    killed_ns = time.monotonic_ns()
    sleep.kill()
    note("sleep", sleep.pid, 0, killed_ns, sleep.wait())
    time.sleep(1)  # what a process with threads was told is written a moment later, by the recorder's own thread
    own_ns = time.process_time_ns()
    note("itself", os.getpid(), own_ns, time.monotonic_ns(), -9)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        READY = os.environ["READY"]
        work(sys.argv[1])
    os.environ["READY"] = READY
    main()
