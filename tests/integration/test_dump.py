"""tachograph dump: threads and tasks of a program that runs, as they are now."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from integration import support
from integration.test_attach import STANDBY, attach, command, running, things

pytestmark = [pytest.mark.native, pytest.mark.recording]

TASKS = """
import asyncio, sys, threading
done, begun = threading.Event(), threading.Event()
def blocked():
    begun.set()
    done.wait()
async def inner(event): await event.wait()
async def outer(event): await inner(event)
async def awaits_a_task(task): await task
async def main():
    threading.Thread(target=blocked, name="waiting", daemon=True).start()
    begun.wait()
    first = asyncio.create_task(outer(asyncio.Event()), name="first")
    second = asyncio.create_task(awaits_a_task(first), name="second")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    print("ready", flush=True)
    await second
asyncio.run(main())
"""


def test_dump_shows_threads_and_tasks(tmp_path: Path) -> None:
    with running([sys.executable, "-c", TASKS], tmp_path, STANDBY) as process:
        # A lock, the loop, and the poll of the standby: they sleep a moment after the program said that it is ready.
        support.wait_for(lambda: calls(process.pid) == ["202", "232", "7"], "all threads to wait", timeout=60)
        done = command("dump", process.pid, cwd=tmp_path)
        assert (done.status, done.stderr) == (0, "")
        assert things(process.pid)[2] == 0
        as_json = command("dump", process.pid, "--json", cwd=tmp_path)
        assert (as_json.status, as_json.stderr) == (0, "")
    head, *parts, end = done.stdout.split("\n\n")
    assert head.startswith(f"process {process.pid}: CPython {sys.version.split()[0]}: ")
    assert "Native frames are not shown" in end
    by_head = {part.splitlines()[0]: [line.split()[0] for line in part.splitlines()[1:]] for part in parts}
    (of_main,) = [stack for line, stack in by_head.items() if line.startswith(f"thread {process.pid} MainThread")]
    assert of_main[-1] == "<module>"
    (of_thread,) = [stack for line, stack in by_head.items() if " waiting, waits in futex" in line]
    assert "blocked" in of_thread
    tasks = {line: stack for line, stack in by_head.items() if line.startswith("task ")}
    assert tasks["task first, waits for a Future"] == ["Event.wait", "inner", "outer"]
    assert tasks["task second, waits for task first"] == ["awaits_a_task"]
    assert len(tasks) == 3
    # The standby's own thread is not shown, and there is no other.
    assert len(by_head) == 5
    told = json.loads(as_json.stdout)
    assert (told["pid"], told["python_version"]) == (process.pid, sys.version.split()[0])
    of_main, of_thread = told["threads"]
    assert (of_main["tid"], of_main["name"], of_main["python"]) == (process.pid, "MainThread", True)
    assert (of_thread["name"], of_thread["running"], of_thread["waits_in"]) == ("waiting", False, "futex")
    assert "blocked" in [frame["function"] for frame in of_thread["stack"]]
    assert {task["name"]: task["waits_for"] for task in told["tasks"]}["second"] == "task first"


FORKED = """
import os, threading, time
def inner():
    end = time.monotonic() + 60
    while time.monotonic() < end: sum(range(5000))
if os.fork() == 0:
    print(os.getpid(), flush=True)
    inner()
os.wait()
"""


def test_the_main_thread_of_a_forked_process_has_its_own_id(tmp_path: Path) -> None:
    """Before CPython 3.14 threading has that of the parent's thread: the child's seemed to be of no Python."""
    with subprocess.Popen([sys.executable, "-c", FORKED], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            shown = command("dump", child, "--json", cwd=tmp_path)
            assert (shown.status, shown.stderr) == (0, "")
            (thread,) = json.loads(shown.stdout)["threads"]
            assert (thread["tid"], thread["name"], thread["python"]) == (child, "MainThread", True)
            assert thread["stack"][0]["function"] == "inner"
            done = attach(child, "--duration", "200ms", "-o", "run.tacho", cwd=tmp_path)
            assert done.status == 0, done.stderr
            names = {row["tid"]: row["name"] for row in support.rows(tmp_path / "run.tacho", "threads")}
            assert names[child] == "MainThread"
        finally:
            os.kill(child, signal.SIGKILL)


def calls(pid: int) -> list[str]:
    """The numbers of the system calls that threads are in; "running" where one is in none."""
    return sorted(
        Path(f"/proc/{pid}/task/{tid}/syscall").read_text().split()[0] for tid in os.listdir(f"/proc/{pid}/task")
    )
