"""The rows of the sections of a report: what is in them and in which order, the same for all renderers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..profile.awaiters import Awaiting
from ..profile.profile import Profile
from ..profile.tasks import by_coroutine
from ..recording.frame import Frame, Row
from ..recording.native_names import native_label, short_library, short_name
from ..recording.question_options import Sort
from ..recording.text import printable

LEAST_SHOWN = 0.0005
"""Shares and seconds below this are blank in a narrow column."""

MOST_NATIVE = 10


def place_text(row: Row) -> str:
    """Where a row is: ``file.py:12``, or the function if it is on no line."""
    return str(row["function"]) if row["file"] is None else f"{row['file']}:{row['line']}"


_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
    10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 31: "SIGSYS",
}  # fmt: skip
"""Names of Linux's signals, which the machine that shows a recording may number otherwise."""


def exit_text(status: int | None) -> str:
    """The exit status of a process, or the name of the signal that ended it."""
    if status is None:
        return "?"
    return str(status) if status >= 0 else _SIGNALS.get(-status, f"signal {-status}")


def process_remarks(process: Mapping[str, object]) -> list[str]:
    """Words for what is not ordinary about a process."""
    remarks = ["fork"] if process["origin"] == "fork" else []
    words = {"listed": "not recorded", "native": "without Python stacks"}
    return remarks + [text for recorded, text in words.items() if process["recorded"] == recorded]


LEAST_NATIVE = 0.005
"""Native functions with less of the CPU time of their own are left out."""

GUESSED = 0.05
"""A part of a function's time with guessed native paths that is worth a remark."""


def function_rows(profile: Profile, sort: Sort = Sort.CPU) -> list[Row]:
    """Functions with anything to tell, the most of ``sort`` first; where that is bytes, as ``own`` and ``total``."""
    frame = profile.frames.functions
    total = f"total_{sort.column}" if f"total_{sort.column}" in frame else "total_cpu_s"
    frame = frame.take(frame.largest_first(sort.column, total))
    if sort.by_size:
        some = frame[total] > 0
    else:
        some = (frame["total_cpu_share"] >= LEAST_SHOWN) | (frame["total_wait_s"] >= LEAST_SHOWN)
    rows = frame.take(np.flatnonzero(some & (frame["file_id"] >= 0))).rows()
    if not sort.by_size:
        return list(rows)
    return [{**row, "own": row[sort.column], "total": row[total] if total.endswith("bytes") else None} for row in rows]


def native_function_rows(profile: Profile) -> list[Row]:
    """Native functions with a part of the time, the most first; ``name``, ``module`` and ``remark`` are for reading.

    They are chosen by the time that does not count as Python's: the interpreter's own functions run for Python code.
    """
    frame, has_paths = profile.frames.native_functions, profile.paths.recorded
    if profile.totals.cpu_s <= 0:
        return []
    own = np.maximum(frame["cpu_s"] - np.nan_to_num(frame["python_s"]), 0.0)
    order = np.argsort(-own, kind="stable")
    chosen = order[own[order] >= LEAST_NATIVE * profile.totals.cpu_s][:MOST_NATIVE]
    rows = []
    for row in frame.take(chosen[np.argsort(-frame["cpu_s"][chosen], kind="stable")]).rows():
        library = short_library(profile.paths.functions.paths[row["native"]])
        name = short_name(native_label(str(row["function"]), library))
        guessed = row["guessed_s"] / row["total_cpu_s"] if has_paths and row["total_cpu_s"] > 0 else 0.0
        remark = f"({guessed:.0%} guessed)" if guessed >= GUESSED else ""
        rows.append({**row, "name": name, "module": "" if name.startswith("[") else library, "remark": remark})
    return rows


def native_subtitle(profile: Profile, rows: Sequence[Row]) -> str:
    """The text beside the title of native functions, with what is unusual in the names and remarks of ``rows``."""
    parts = ["in part of the time above" if profile.paths.recorded else "callers not recorded"]
    if any(row["name"] == "[anonymous]" for row in rows):
        parts.append("[anonymous]: made at run time, as by a JIT compiler")
    if any(row["remark"] for row in rows):
        parts.append("guessed: no unwind tables, so its callers are uncertain")
    return "; ".join(parts)


def call_rows(profile: Profile) -> list[Row] | None:
    """Functions whose calls were watched, those with the most time in all of their calls first; None without any."""
    frame = profile.frames.functions
    if np.isnan(frame["watched_s"]).all():
        return None
    spent = np.nan_to_num(frame["calls"] * frame["call_mean_s"])
    order = np.argsort(-spent, kind="stable")
    return list(frame.take(order[spent[order] > 0]).rows()) or None


def thread_rows(profile: Profile, sort: Sort = Sort.CPU) -> list[Row] | None:
    """Threads, each with its process's name as ``owner`` where there are several; None if there is only one thread."""
    frame = profile.frames.threads
    if len(frame) < 2:
        return None
    if sort is Sort.WAIT:
        frame = frame.take(frame.largest_first("wait_s"))
    processes = profile.frames.processes
    owners = dict(zip(processes["process"], processes["name"], strict=True)) if len(processes) > 1 else {}
    return [{**row, "owner": owners.get(row["process"])} for row in frame.rows()]


def span_rows(profile: Profile) -> list[Row] | None:
    """Spans by their names, the last row what was in none; None where there are no spans."""
    return list(profile.frames.spans.rows()) if profile.frames.spans else None


@dataclass(frozen=True, slots=True)
class Coroutine:
    """A root coroutine with what its tasks have, and with those of its tasks that have names."""

    row: Row
    named: Sequence[Row]
    unnamed: Sequence[Row]


@dataclass(frozen=True, slots=True)
class TaskTable:
    """Coroutines with time in a task or a callback, then what is in neither."""

    coroutines: Sequence[Coroutine]
    others: Sequence[Row]
    subtitle: str
    idle_s: float | None
    """Time in which event loops had nothing to do; None where it is not known."""


def task_table(profile: Profile) -> TaskTable | None:
    """Time by root coroutine and by task; None if there is no coroutine."""
    tasks = profile.frames.tasks
    if not len(tasks):
        return None
    frame = by_coroutine(tasks, profile.totals.effective_samples)
    placed = np.isin(frame["kind"].astype(str), ("task", "callback"))
    coroutines = [_coroutine(row, tasks) for row in frame.take(placed).rows()]
    names = " and the task's name" if any(name is not None for name in tasks["task"]) else ""
    idle = frame["idle_s"][~np.isnan(frame["idle_s"])]
    return TaskTable(
        coroutines,
        list(frame.take(~placed).rows()),
        f"by the coroutine at the root of a task's step{names}; blocked: off the CPU in a step",
        float(idle.sum()) if len(idle) else None,
    )


NEVER_IDLE = 0.01
"""An event loop that is idle for at most this part of the time of its steps always has something to do."""

HELD = 0.5
"""A function that has this part of the steps' time holds their event loop."""


def loop_holder(profile: Profile) -> Row | None:
    """The function, a row of ``functions``, that held the event loop for most of the time, if the loop was never idle.

    Code outside of an event loop may call the same function: all of its time is taken off.
    """
    table, functions = task_table(profile), profile.frames.functions
    if table is None or table.idle_s is None or not len(functions):
        return None
    steps = sum(_held_s(each.row, "blocked_s") for each in table.coroutines)
    if not steps or table.idle_s > NEVER_IDLE * steps:
        return None
    outside = sum(_held_s(row, "blocked_s") for row in table.others if row["kind"] == "none")
    most = max(functions.rows(), key=lambda row: _held_s(row, "main_wait_s"))
    return most if _held_s(most, "main_wait_s") - outside >= HELD * steps else None


def _held_s(row: Row, waiting: str) -> float:
    """Seconds that a row ran, and that it was off the CPU without letting go of its thread."""
    return float(np.nan_to_num([float(row[name] or 0.0) for name in ("cpu_s", waiting)]).sum())


def _coroutine(coroutine: Row, tasks: Frame) -> Coroutine:
    keys = ("kind", "function", "file", "line")
    mine = [row for row in tasks.rows() if all(row[name] == coroutine[name] for name in keys)]
    named = [row for row in mine if row["task"] is not None] if coroutine["kind"] == "task" else []
    return Coroutine(coroutine, named, [row for row in mine if row["task"] is None] if named else [])


def awaited_text(branch: Awaiting) -> str:
    """The coroutines out of scope that a task is in; empty where it awaits a task or a future itself."""
    return " > ".join(name for name in (branch.calls, branch.awaits) if name is not None)


def awaiting_rows(profile: Profile) -> list[Row] | None:
    """Tasks, each below those that await them, with their ``depth``; None where nothing is known of them."""
    if not profile.awaiting:
        return None
    rows = []
    for root in profile.awaiting:
        for depth, each in root.walk():
            row: Row = {name: getattr(each, name) for name in _AWAITING}
            rows.append({**row, "depth": depth, "awaited": awaited_text(each)})
    return rows


_AWAITING = ("function", "file", "line", "source", "calls", "awaits", "await_s", "tasks_mean", "tasks_peak")


def leak_rows(profile: Profile) -> list[Row] | None:
    """The leaks with the call paths of their blocks; None if memory was not recorded."""
    leaks = profile.frames.leaks
    if leaks is None:
        return None
    return [{**leak, "path": [printable(str(step), 500) for step in leak["path"]]} for leak in leaks.rows()]


def repeated_work_rows(profile: Profile) -> list[Row] | None:
    """Repeated work, with the source of its lines; None if it was not looked for."""
    redundancies = profile.frames.redundancies
    if redundancies is None:
        return None
    files = dict(zip(profile.frames.files["file"], profile.frames.files["file_id"].tolist(), strict=True))

    def source(row: Row) -> str | None:
        return (profile.sources.line(files.get(row["file"], -1), row["line"] or 0) or "").strip() or None

    return [{**row, "source": source(row)} for row in redundancies.rows()]


def process_rows(profile: Profile) -> list[Row] | None:
    """The tree of processes, each behind its parent, with how it ended; None if there is only one."""
    frame = profile.frames.processes
    if len(frame) < 2:
        return None
    return [{**row, "exit": exit_text(row["exit_status"]), "remarks": process_remarks(row)} for row in frame.rows()]


ALLOCATORS = {
    "native": "malloc of native code",
    "mapped": "anonymous mappings",
    "raw": "Python: raw",
    "mem": "Python: buffers",
    "obj": "Python: objects",
}
"""The allocators by their names in a recording."""


def allocator_rows(profile: Profile) -> list[Row] | None:
    """Bytes by the allocator that handed them out, as ``by``; None if memory was not recorded."""
    if profile.memory is None:
        return None
    rows = profile.memory.frames.domains.rows()
    return [{**row, "by": ALLOCATORS.get(row["domain"], row["domain"])} for row in rows if row["allocated_bytes"] > 0]
