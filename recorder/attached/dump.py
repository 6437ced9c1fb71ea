"""``tachograph dump``: what a process is doing now."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from tachograph.recorder import clock
from tachograph.recorder.attached.doors import check_can_be_asked
from tachograph.recorder.attached.injection import entered
from tachograph.recorder.attached.running_processes import Process, look
from tachograph.recorder.problems import one_line

EXAMPLES = """\b
Examples:
  tachograph dump 4711
  tachograph dump 4711 --json
"""

# Those that threads are found waiting in, by machine.
_X86_64 = {
    0: "read", 1: "write", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 23: "select",
    34: "pause", 35: "nanosleep", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
    47: "recvmsg", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 128: "rt_sigtimedwait",
    130: "rt_sigsuspend", 202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat",
    270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 288: "accept4", 299: "recvmmsg", 426: "io_uring_enter",
    441: "epoll_pwait2", 449: "futex_waitv",
}  # fmt: skip
_AARCH64 = {
    22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 63: "read", 64: "write", 65: "readv", 66: "writev",
    67: "pread64", 68: "pwrite64", 72: "pselect6", 73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid",
    98: "futex", 101: "nanosleep", 115: "clock_nanosleep", 133: "rt_sigsuspend", 137: "rt_sigtimedwait", 202: "accept",
    203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4", 243: "recvmmsg",
    260: "wait4", 426: "io_uring_enter", 441: "epoll_pwait2", 449: "futex_waitv",
}  # fmt: skip
_CALLS = {"x86_64": _X86_64, "aarch64": _AARCH64}
LOOKS = 5
"""How often the threads are looked at before the process is asked: while it answers, they wait for the interpreter."""

NO_NATIVE_FRAMES = "Native frames are not shown: 'tachograph attach' records them."


@click.command("dump", epilog=EXAMPLES)
@click.argument("pid", type=int, metavar="PID")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def dump_command(pid: int, as_json: bool) -> None:
    """Show what each thread and each asyncio task of process PID is doing and waiting for, now.

    The process is this user's. It stands by (tachograph standby, TACHOGRAPH_STANDBY=1), or may be traced by this
    command, which runs under the same CPython; 'tachograph ps' says which.
    """
    process = look(pid)
    check_can_be_asked(process)
    with entered(process) as connection:
        running = threads_that_run(pid)
        now = connection.ask("dump")
    if as_json:
        click.echo(json.dumps(as_objects(process, now, running), indent=2))
        return
    command = one_line(" ".join(process.command))
    click.echo(f"process {pid}: CPython {now['version']}: {command}")
    for thread in now["threads"]:
        click.echo(f"\n{thread_line(thread, running)}")
        show_stack(thread["stack"])
    for task in now["tasks"]:
        waits = "" if task["waits_for"] is None else f", waits for {one_line(task['waits_for'])}"
        click.echo(f"\ntask {one_line(task['name'])}{waits}")
        show_stack(task["stack"])
    if now["tasks_left_out"]:
        click.echo(f"\nand {now['tasks_left_out']:,} tasks more")
    click.echo(f"\n{NO_NATIVE_FRAMES}")


def as_objects(process: Process, now: dict[str, Any], running: set[int]) -> dict[str, Any]:
    """The dump as JSON objects, for programs; null is unknown."""
    threads = [
        {
            "tid": thread["tid"],
            "name": thread["name"],
            "python": thread["python"],
            "running": thread["tid"] in running,
            "waits_in": None if thread["tid"] in running else call_name(thread["syscall"]),
            "stack": frames(thread["stack"]),
        }
        for thread in now["threads"]
    ]
    tasks = [{**task, "stack": frames(task["stack"])} for task in now["tasks"]]
    return {
        "pid": process.pid,
        "program": process.title,
        "command": list(process.command),
        "python_version": now["version"],
        "threads": threads,
        "tasks": tasks,
        "tasks_left_out": now["tasks_left_out"],
    }


def frames(stack: list[Any]) -> list[dict[str, Any]]:
    """The frames, the innermost first; ``line`` is null where it is not known."""
    return [{"function": name, "file": file, "line": line or None} for name, file, line in stack]


def call_name(number: int | None) -> str | None:
    """The name of a system call, None for none."""
    return None if number is None else _CALLS.get(os.uname().machine, {}).get(number, f"system call {number}")


def threads_that_run(pid: int) -> set[int]:
    """The threads that were found on a processor, or ready to run, at one of some looks."""
    running = set()
    for _ in range(LOOKS):
        for thread in Path(f"/proc/{pid}/task").glob("*"):
            try:
                state = (thread / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
            except (OSError, IndexError):
                continue  # it has ended
            if state == "R":
                running.add(int(thread.name))
        clock.rest(0.005)
    return running


def thread_line(thread: dict[str, Any], running: set[int]) -> str:
    """One thread: its number, its name, and whether it runs or what it waits in."""
    tid, call = thread["tid"], thread["syscall"]
    name = "" if thread["name"] is None else f" {one_line(thread['name'])}"
    number = "" if tid is None else f" {tid}"
    if tid in running:
        does = ", runs"
    elif call is None:
        does = ""
    else:
        does = f", waits in {call_name(call)}"
    return f"thread{number}{name}{does}{'' if thread['python'] else ', of no Python'}"


def show_stack(stack: list[Any]) -> None:
    """The frames, the innermost first."""
    for name, file, line in stack:
        click.echo(f"    {one_line(name)}  {one_line(os.fspath(file))}:{line}")
