"""The present stacks of each thread and each asyncio task; runs in the process itself, in the standby's thread.

Nothing is called that belongs to the program, and nothing is imported but what asyncio has imported itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

MOST_FRAMES, MOST_TASKS, LONGEST_TEXT = 500, 1000, 500
Frame = tuple[str, str, int]
"""Qualified name, file, and line (0: not known)."""


def present_moment() -> dict[str, Any]:
    """The threads with their stacks, leaf first, and the tasks; numbers and texts that JSON has.

    ``syscall`` is the number of the system call that a thread is in, None where it runs or that is not known;
    ``python`` is False for threads that the interpreter does not know.
    """
    import _imp
    import _thread

    # The interpreter's own functions: gevent's and eventlet's of these names tell of greenlets.
    system = _imp.create_builtin(_thread.__spec__)
    frames = sys._current_frames()  # noqa: SLF001 - it is documented
    own = system.get_ident()
    threads: list[dict[str, Any]] = []
    listed: set[int | None] = {system.get_native_id()}
    threads_by_ident = {thread.ident: thread for thread in _enumerated()}
    unknown = [ident for ident in frames if ident != own and ident not in threads_by_ident]
    # `threading` has not been imported, or has other numbers.
    has_main = any(_is_main(threads_by_ident[ident]) for ident in frames if ident in threads_by_ident)
    main = unknown[0] if len(unknown) == 1 and not has_main else None
    for ident, frame in frames.items():
        if ident == own:
            continue
        thread = threads_by_ident.get(ident)
        tid = None if thread is None else native_id(thread)
        if ident == main:
            tid, thread = os.getpid(), _main_thread()
        listed.add(tid)
        name = None if thread is None else _text(thread.name)
        threads.append({"tid": tid, "name": name, "python": True, "syscall": _syscall(tid), "stack": _stack(frame)})
    threads += [
        {"tid": tid, "name": _system_name(tid), "python": False, "syscall": _syscall(tid), "stack": []}
        for tid in sorted(map(int, os.listdir("/proc/self/task")))
        if tid not in listed
    ]
    tasks = list(_tasks(frames))
    threads.sort(key=lambda thread: (thread["tid"] != os.getpid(), not thread["python"]))
    return {
        "version": sys.version.split()[0],
        "threads": threads,
        "tasks": tasks[:MOST_TASKS],
        "tasks_left_out": max(0, len(tasks) - MOST_TASKS),
    }


def native_id(thread: Any) -> int | None:
    """The system's id of a thread of ``threading``; None if it is not known.

    In a forked child ``threading`` has that of the thread in the parent (before CPython 3.14), and eventlet's main
    thread has none.
    """
    number: int | None = getattr(thread, "native_id", None)  # of gevent and eventlet some threads have none
    if number is not None and os.path.exists(f"/proc/self/task/{number}"):
        return number
    return os.getpid() if _is_main(thread) else None


def _main_thread() -> Any:
    threading = sys.modules.get("threading")
    return None if threading is None else threading.main_thread()


def _is_main(thread: Any) -> bool:
    """True for the main thread; eventlet has two objects for it."""
    return thread is _main_thread() or type(thread).__name__ == "_MainThread"


def _enumerated() -> list[Any]:
    threading = sys.modules.get("threading")
    return [] if threading is None else list(threading.enumerate())


def _stack(frame: FrameType | None) -> list[Frame]:
    stack: list[Frame] = []
    while frame is not None and len(stack) < MOST_FRAMES:
        stack.append(_place(frame))
        frame = frame.f_back
    return stack


def _place(frame: FrameType) -> Frame:
    code = frame.f_code
    return _text(code.co_qualname), _text(code.co_filename), frame.f_lineno or 0


def _text(text: object) -> str:
    return str(text)[:LONGEST_TEXT]


def _system_name(tid: int) -> str | None:
    try:
        with open(f"/proc/self/task/{tid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().rstrip("\n")
    except OSError:
        return None


def _syscall(tid: int | None) -> int | None:
    try:
        with open(f"/proc/self/task/{tid}/syscall", "rb") as file:
            return int(file.read().split()[0])  # "running" where it is in none
    except (OSError, ValueError, IndexError):
        return None


def _tasks(frames: dict[int, FrameType]) -> Iterator[dict[str, Any]]:
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return
    for loop in _running_loops(asyncio, frames):
        for task in sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name()):
            waiter = getattr(task, "_fut_waiter", None)  # None where it is about to run
            waits_for: str | None
            if isinstance(waiter, asyncio.Task):
                waits_for = f"task {_text(waiter.get_name())}"
            else:
                waits_for = None if waiter is None else f"a {_text(type(waiter).__name__)}"
            yield {"name": _text(task.get_name()), "stack": _awaits(task.get_coro()), "waits_for": waits_for}


def _running_loops(asyncio: Any, frames: dict[int, FrameType]) -> list[Any]:
    """The loops that run, found in the local variables of asyncio's own frames."""
    home = os.path.dirname(asyncio.__file__)
    loops: list[Any] = []
    for innermost in frames.values():
        frame: FrameType | None = innermost
        while frame is not None:
            if frame.f_code.co_filename.startswith(home) and frame.f_code.co_varnames[:1] == ("self",):
                held = frame.f_locals.get("self")
                if isinstance(held, asyncio.Runner):
                    held = held.get_loop()
                if isinstance(held, asyncio.AbstractEventLoop) and held not in loops:
                    loops.append(held)
            frame = frame.f_back
    return loops


def _awaits(awaited: Any) -> list[Frame]:
    """The frames of a coroutine and of what it awaits, leaf first."""
    stack: list[Frame] = []
    while len(stack) < MOST_FRAMES:
        frame = _attribute(awaited, "cr_frame", "gi_frame", "ag_frame")
        if frame is None:
            break
        stack.append(_place(frame))
        awaited = _attribute(awaited, "cr_await", "gi_yieldfrom", "ag_await")
    stack.reverse()
    return stack


def _attribute(thing: Any, *names: str) -> Any:
    return next((getattr(thing, name) for name in names if hasattr(thing, name)), None)
