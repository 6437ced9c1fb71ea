"""Time by task: by the coroutine that a step of a task of asyncio or trio began with, and by the name that it has.

While a task runs, the coroutine that it was made of is on the stack, called by the event loop; the coroutines that it
awaits lie above it. So every sample and every wait in a task's step belongs to that coroutine. The task's name is in
``stacks.task`` of that frame, where the recorder knew it. A task that awaits is on no thread's stack: how long it did
is known from the censuses of suspended tasks, as far as there were any.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ..conclusions.awaits import MEASURE as AWAITING
from ..conclusions.awaits import Awaits
from ..recording.call_tree import NOTHING, CallTree
from ..recording.frame import Column, Frame, WholeNumbers
from ..recording.opened import Recording
from ..recording.text import printable
from ..samples.reduction import SECONDS
from ..samples.sites import NodeSums, shown
from ..statistics.grouped_sums import counted, summed
from ..statistics.intervals import wilson

_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
"""CO_GENERATOR and so on, of code objects' flags."""
_CO = _COROUTINE | _ITERABLE_COROUTINE

_ASYNCIO = re.compile(r"(^|/)asyncio/\w+\.py$")
_TRIO = re.compile(r"(^|/)trio/_core/\w+\.py$")
_LOOP = re.compile(
    r"(^|/)(asyncio/\w+|uvloop/\w+|trio/_core/\w+|lib(64)?/python\d+\.\d+t?/selectors|Lib/selectors)\.py$"
)
_ENTRIES = frozenset(
    (
        ("base_events.py", "BaseEventLoop.run_forever"),
        ("base_events.py", "BaseEventLoop.run_until_complete"),
        ("base_events.py", "BaseEventLoop._run_once"),
        ("runners.py", "Runner.run"),
        ("events.py", "Handle._run"),
    )
)
"""Functions from which everything runs: their callees are a task's step, a callback, or the loop's own work."""
_TRIO_ENTRIES = frozenset((("_run.py", "run"), ("_run.py", "unrolled_run"), ("_run.py", "GuestState.guest_tick")))
_HANDLE = ("events.py", "Handle._run")
_RESUMING = ("base_events.py", "BaseEventLoop.call_soon")

COLUMNS = (
    "kind",
    "function",
    "task",
    "file",
    "line",
    "samples",
    *(name for name in SECONDS if name not in ("main_wait_s", "wait_s")),
    "cpu_share",
    "cpu_share_low",
    "cpu_share_high",
    "blocked_s",
    "idle_s",
    "await_s",
    "awaited_by",
    "allocated_bytes",
    "live_at_peak_bytes",
    "live_at_end_bytes",
    "copied_bytes",
)
"""Columns of ``Profile.tasks``."""

LOOP_ROW, REST_ROW = "<event loop>", "<no event loop>"


class Kind(enum.IntEnum):
    """Kinds of code that a frame belongs to."""

    NONE = 0
    TASK = 1
    CALLBACK = 2
    LOOP = 3


_TRIO_LOOP = 4
"""A loop without callbacks, as long as kinds are looked for: what it calls beside coroutines is its own work."""


@dataclass(frozen=True)
class Steps:
    """Kind of each node of the call tree, and the node of its root: a task's coroutine, or a callback.

    Where a library made the task of a coroutine of its own (a server's, for a request), the root is the outermost
    coroutine in scope that this one awaits, for all nodes that it is on the way to.

    ``task`` is by node the number of the task's name in ``names``; NOTHING where it has none that is known, or one that
    only repeats the name of its coroutine, as libraries give them.
    """

    kind: NDArray[np.int8]
    root: NDArray[np.int64]
    task: NDArray[np.int64]
    names: list[str]


def has_coroutines(recording: Recording) -> bool:
    """True if any code that was recorded is a coroutine's."""
    return bool((ids(recording.table("codes").column("flags")) & _CO).any())


def find_steps(recording: Recording, tree: CallTree, in_scope: NDArray[np.bool_]) -> Steps | None:
    """Finds the steps of tasks, callbacks and event loops in the call tree; None if no code is a coroutine's."""
    if not has_coroutines(recording):
        return None
    flags = np.append(ids(recording.table("codes").column("flags")), 0)
    stacks = recording.table("stacks")
    code = ids(stacks.column("code"))
    node_flags: list[int] = flags[code].tolist()
    recorded, names = _names(stacks)
    named = (recorded != NOTHING).tolist()
    functions = _Functions(tree)
    kind, begun = [int(Kind.NONE)] * len(tree), [NOTHING] * len(tree)
    mine_in_scope, root = in_scope.tolist(), [NOTHING] * len(tree)
    # The nearest frame that is not a generator: a coroutine is awaited through generators (``__await__``), too.
    over = [NOTHING] * len(tree)
    for node, (parent, function) in enumerate(zip(tree.parent.tolist(), tree.function.tolist(), strict=True)):
        below, caller = (Kind.NONE, NOTHING) if parent < 0 else (kind[parent], over[parent])
        above = NOTHING if parent < 0 else begun[parent]
        mine = node_flags[node]
        through = mine & (_GENERATOR | _ASYNC_GENERATOR) and not mine & _CO
        over[node] = caller if through else node
        if named[node]:
            below, above = Kind.TASK, node
        elif mine & (_CO | _ASYNC_GENERATOR):
            awaited = caller != NOTHING and bool(node_flags[caller] & _CO)
            # Within a task's step another begins only if asyncio runs it (an eager task, a loop within the loop).
            by_asyncio = caller != NOTHING and functions.asyncio[int(tree.function[caller])]
            if not awaited and (below != Kind.TASK or (by_asyncio and not through)):
                below, above = Kind.TASK, node
        elif functions.entry[function]:
            below, above = functions.loop[function], NOTHING
        elif below == Kind.LOOP and functions.called_back(function, int(tree.function[parent])):
            below, above = Kind.CALLBACK, node
        kind[node], begun[node] = below, above
        shown = root[parent] if parent >= 0 and begun[parent] == above else above
        if below == Kind.TASK and mine & (_CO | _ASYNC_GENERATOR) and mine_in_scope[node] and not mine_in_scope[shown]:
            shown = node
        root[node] = shown
    first = np.array(begun, np.int64)
    task = np.where(first >= 0, recorded[first], NOTHING)
    for functions_of in (tree.function[first], tree.function[root]):
        task = _without_automatic(task, names, functions_of, tree)
    kinds = np.array(kind, np.int8)
    kinds[kinds == _TRIO_LOOP] = Kind.LOOP
    return Steps(kinds, np.array(root, np.int64), task, names)


def _without_automatic(
    task: NDArray[np.int64], names: list[str], function: NDArray[np.int64], tree: CallTree
) -> NDArray[np.int64]:
    """The tasks' names without those that are a module and the name of the function beside them."""
    pairs, pair = np.unique(np.stack([task, function]), axis=1, return_inverse=True)
    automatic = [
        mine != NOTHING
        and of >= 0
        and names[mine].endswith("." + tree.function_names[of])
        and all(part.isidentifier() for part in names[mine][: -len(tree.function_names[of]) - 1].split("."))
        for mine, of in pairs.T.tolist()
    ]
    return np.where(np.array(automatic, np.bool_)[pair.reshape(-1)], NOTHING, task)


def _names(stacks: pa.Table) -> tuple[NDArray[np.int64], list[str]]:
    """The number of each node's own task, NOTHING where it has none, and the names by number."""
    numbers: dict[str, int] = {}
    own = [
        NOTHING if name is None else numbers.setdefault(name, len(numbers))
        for name in stacks.column("task").to_pylist()
    ]
    return np.array(own, np.int64), list(numbers)


class _Functions:
    """Role of each function in asyncio or trio; the last entry stands for unknown code."""

    def __init__(self, tree: CallTree) -> None:
        paths = [path.replace("\\", "/") for path in tree.paths]
        ours = [bool(_ASYNCIO.search(path)) for path in paths]
        loops = [bool(_LOOP.search(path)) for path in paths]
        files = tree.function_files.tolist()
        places = [(paths[file].rpartition("/")[2], name) for file, name in zip(files, tree.function_names, strict=True)]
        self.asyncio = [ours[file] for file in files] + [False]
        self.machinery = [loops[file] for file in files] + [False]
        trio = [bool(_TRIO.search(paths[file])) for file in files]
        self.loop = [_TRIO_LOOP if of_trio else int(Kind.LOOP) for of_trio in trio] + [int(Kind.LOOP)]
        self.entry = [
            (asyncio and place in _ENTRIES) or (of_trio and place in _TRIO_ENTRIES)
            for asyncio, of_trio, place in zip(self.asyncio, trio, places, strict=False)
        ] + [False]
        self.handle = [mine and place == _HANDLE for mine, place in zip(self.asyncio, places, strict=False)] + [False]
        # The Python version of a task runs its coroutine itself; either version makes the loop resume it later.
        self._stepping = [
            mine and ((file == "tasks.py" and "Task" in name) or (file, name) == _RESUMING)
            for mine, (file, name) in zip(self.asyncio, places, strict=False)
        ] + [False]

    def called_back(self, function: int, caller: int) -> bool:
        """True if a function that a loop calls is a callback: any but the loop's own, and those that a handle runs."""
        return not self.machinery[function] or (self.handle[caller] and not self._stepping[function])


def sum_tasks(
    steps: Steps | None,
    tree: CallTree,
    sums: NodeSums,
    effective: float,
    *,
    waits_known: bool,
    awaits: Awaits | None = None,
) -> Frame:
    """One row per root coroutine and name of a task, and per callback, one for the loops, one for the rest.

    ``kind`` is task, callback, loop or none. ``task`` is the name; null if the program gave none, or it is not known.
    ``blocked_s`` is time off the CPU within a step, when its loop could do nothing else; ``idle_s``, of the loop, is
    time in which there was nothing to do. ``await_s`` is time in which tasks were suspended, ``awaited_by`` the root
    coroutine of the tasks that awaited them for most of it. Sorted by CPU time; empty if there are no tasks.
    """
    if steps is None or not (steps.kind == Kind.TASK).any():
        return Frame({name: [] for name in COLUMNS})
    count, tasks = len(tree.function_names) + 1, len(steps.names) + 1
    # A loop's own work is one row, whatever functions it is done by; so is the rest.
    function = np.where(steps.root >= 0, tree.function[steps.root], NOTHING)
    key = steps.kind.astype(np.int64) * count + np.where(function >= 0, function, count - 1)
    key = key * tasks + steps.task + 1
    keys, group = np.unique(key, return_inverse=True)
    values = summed(group, sums.nodes, len(keys))
    # Samples without a Python stack are in no step; they go with the rest.
    rest = np.flatnonzero(keys // (count * tasks) == Kind.NONE)
    if not len(rest):
        keys, values = np.append(keys, (count - 1) * tasks), np.vstack([values, np.zeros(values.shape[1])])
        rest = np.array([len(keys) - 1])
    values[rest[0]] += sums.stackless.sum(axis=0)
    keys, task = np.divmod(keys, tasks)
    names = [printable(steps.names[each - 1]) if each else None for each in task.tolist()]
    await_s = np.full(len(keys), np.nan)
    awaited_by: list[str | None] = [None] * len(keys)
    if awaits is not None:
        await_s = np.where(keys // count == Kind.TASK, values[:, sums.column(AWAITING)] / 1e9, np.nan)
        awaited_by = _awaited_by(tree, steps, group, awaits, len(keys))
    frame = _frame(tree, sums, keys, values, waits_known=waits_known).with_columns(
        {"task": names, "await_s": await_s, "awaited_by": awaited_by}
    )
    shares = frame["cpu_s"] / max(float(frame["cpu_s"].sum()), 1e-12)
    frame = frame.with_columns(_shares(shares, effective)).select(COLUMNS)
    measures = ("cpu_s", "blocked_s", "idle_s", "await_s", "allocated_bytes", "copied_bytes")
    frame = frame.take(np.any([np.nan_to_num(frame[name]) > 0 for name in measures], axis=0))
    return frame.take(frame.largest_first("cpu_s", "blocked_s", "await_s"))


def _awaited_by(
    tree: CallTree, steps: Steps, group: NDArray[np.int64], awaits: Awaits, groups: int
) -> list[str | None]:
    """The root coroutine of the tasks that awaited those of each group for longest; None where none is known."""
    nothing = len(tree.function_names)
    root = np.where(awaits.awaiter >= 0, steps.root[awaits.awaiter], NOTHING)
    function = np.where(root >= 0, tree.function[root], nothing)
    pairs, pair = np.unique(group[awaits.stack] * (nothing + 1) + function, return_inverse=True)
    time = summed(pair, awaits.await_ns, len(pairs))
    names: list[str | None] = [None] * groups
    for each in np.argsort(time, kind="stable").tolist():
        mine, by = divmod(int(pairs[each]), nothing + 1)
        if by < nothing and time[each] > 0:
            names[mine] = printable(tree.function_names[by])
    return names


def by_coroutine(tasks: Frame, effective: float) -> Frame:
    """The frame of tasks with all tasks of a coroutine in one row, in the same order; without the column ``task``.

    ``effective`` is the effective number of samples.
    """
    keys = ("kind", "function", "file", "line")
    numbers: dict[tuple[object, ...], int] = {}
    rows = zip(*(tasks[name].tolist() for name in keys), strict=True)
    group = np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
    first = np.unique(group, return_index=True)[1]
    added = {
        name: _added(values, group, len(numbers))
        for name, values in tasks.columns.items()
        if not isinstance(values, WholeNumbers) and values.dtype != object
    }
    frame = tasks.select((*keys, "awaited_by")).take(first).with_columns(added)
    frame = frame.with_columns(_shares(frame["cpu_share"], effective))
    return frame.take(frame.largest_first("cpu_s", "blocked_s", "await_s"))


def _added(values: NDArray[Any], group: NDArray[np.int64], groups: int) -> NDArray[Any]:
    """Sums of the known values by group; NaN where none is known."""
    measured = ~np.isnan(values)
    sums = summed(group[measured], values[measured], groups)
    unknown = counted(group[measured], groups) == 0
    return np.where(unknown, np.nan, sums) if unknown.any() else sums.astype(values.dtype)


def _shares(shares: NDArray[np.float64], effective: float) -> dict[str, Column]:
    """Shares of the CPU time, with the ends of their intervals."""
    low, high = wilson(shares, effective)
    return {"cpu_share": shares, "cpu_share_low": low, "cpu_share_high": high}


def _frame(
    tree: CallTree, sums: NodeSums, keys: NDArray[np.int64], values: NDArray[np.float64], *, waits_known: bool
) -> Frame:
    kinds, function = np.divmod(keys, len(tree.function_names) + 1)
    named = (function < len(tree.function_names)) & np.isin(kinds, (Kind.TASK, Kind.CALLBACK))
    at = np.where(named, function, 0)
    names = {Kind.LOOP: LOOP_ROW, Kind.NONE: REST_ROW}
    measures = shown(values, sums, waits_known=waits_known)
    looping = kinds == Kind.LOOP
    wait = measures["wait_s"]
    places = list(zip(at.tolist(), named.tolist(), strict=True))
    files = [tree.paths[tree.function_files[place]] if inside else None for place, inside in places]
    return measures.with_columns(
        {
            "blocked_s": np.where(~looping & (kinds != Kind.NONE), wait, np.nan),
            "idle_s": np.where(looping, wait, np.nan),
            "kind": [Kind(kind).name.lower() for kind in kinds.tolist()],
            "function": [
                printable(tree.function_names[place]) if inside else names.get(Kind(kind), "<unknown code>")
                for (place, inside), kind in zip(places, kinds.tolist(), strict=True)
            ],
            "file": [None if path is None else printable(path, 4096) for path in files],
            "line": WholeNumbers.of([int(tree.function_lines[place]) if inside else None for place, inside in places]),
        }
    )
