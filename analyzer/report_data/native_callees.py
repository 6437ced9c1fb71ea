"""The native functions that lines spent their own CPU time in, waited in, or that allocated for them, for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..profile.profile import Profile
from ..recording.call_tree import NOTHING
from ..recording.native_names import short_library
from ..samples.call_paths import PATH_MEASURES, PathTree

MOST = 6
"""Functions that are shown of a line."""

LEAST_SHARE = 0.01
"""Allocators, and functions that waited, with less of what the whole program has are left out."""

_BYTES = ("live_at_peak_bytes", "live_at_end_bytes", "allocated_bytes")

Item = TypeVar("Item")

_CPU, _PYTHON, _WAIT = (PATH_MEASURES.index(name) for name in ("cpu_ns", "python_ns", "wait_ns"))


@dataclass(frozen=True, slots=True)
class Callee:
    """A native function that was running for a line."""

    name: str
    module: str
    """The library, in short."""
    place: str | None
    """Its source file and first line, as ``FILE:N``; None where they are not known."""
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Allocator:
    """A native function that allocated for a line."""

    name: str
    module: str
    place: str | None
    live_at_peak_bytes: float
    live_at_end_bytes: float
    allocated_bytes: float


@dataclass(frozen=True, slots=True)
class Waiter:
    """A native function that waited for a line."""

    name: str
    module: str
    place: str | None
    wait_s: float


def native_waiters(profile: Profile, lines: pd.DataFrame) -> list[list[Waiter]]:
    """For each row of ``lines`` the functions that waited most, for anything but a processor.

    Those are named that the innermost Python frame called, as of ``native_allocators``: ``sock_recv`` tells more than
    the C library's ``recv``.
    """
    facts = profile.paths
    wait = facts.sums[:, _WAIT] / 1e9
    sums = _sums(profile, _called(facts.tree), wait > 0, {"wait": wait})
    sums = sums[sums["wait"] >= LEAST_SHARE * max(float(wait.sum()), 1e-9)].sort_values("wait", ascending=False)
    return _first_by_row(profile, sums, lines, Waiter)


def native_allocators(profile: Profile, lines: pd.DataFrame) -> list[list[Allocator]]:
    """For each row of ``lines`` the functions that hold most at the peak, then those that allocated most.

    Those are named that the innermost Python frame called: numpy's ``array_zeros`` tells more than the function behind
    it that calls malloc.
    """
    facts, tree = profile.paths, profile.paths.tree
    if "allocated_bytes" not in facts.held:
        return [[] for _ in range(len(lines))]
    held = [facts.held.get(name, np.zeros(len(tree))) for name in _BYTES]
    sums = _sums(profile, _called(tree), np.max(held, axis=0) > 0, dict(zip(_BYTES, held, strict=True)))
    wholes = [max(float(values.sum()), 1.0) for values in held]
    share = np.max([sums[name] / whole for name, whole in zip(_BYTES, wholes, strict=True)], axis=0)
    sums = sums[share >= LEAST_SHARE].sort_values(["live_at_peak_bytes", "allocated_bytes"], ascending=False)
    return _first_by_row(profile, sums, lines, Allocator)


def _called(tree: PathTree) -> NDArray[np.int64]:
    """The outermost native function behind the innermost Python frame, for each node; NOTHING for none."""
    outermost: list[int] = []
    for parent, native in zip(tree.parent.tolist(), tree.native.tolist(), strict=True):
        above = outermost[parent] if parent != NOTHING and native != NOTHING else NOTHING
        outermost.append(native if above == NOTHING else above)
    return np.array(outermost, np.int64)


def _places(profile: Profile) -> NDArray[np.int64]:
    """The node of the call tree in scope that each node of the paths is charged to; NOTHING for none."""
    tree, in_scope = profile.paths.tree, np.append(profile.calls.in_scope, False)
    inside = (tree.stack != NOTHING) & in_scope[tree.stack]
    return np.asarray(np.append(tree.stack, NOTHING)[tree.nearest(inside)], np.int64)


def _sums(
    profile: Profile, native: NDArray[np.int64], kept: NDArray[np.bool_], amounts: Mapping[str, NDArray[np.float64]]
) -> pd.DataFrame:
    """The amounts by file, line and native function, of the nodes of the paths that are kept and have both."""
    at, calls = _places(profile), profile.calls.tree
    rows = pd.DataFrame(
        {
            "file": np.append(calls.file, NOTHING)[at],
            "line": np.append(calls.line, NOTHING)[at],
            "native": native,
            **amounts,
        }
    )[(at != NOTHING) & (native != NOTHING) & kept]
    return rows.groupby(["file", "line", "native"], as_index=False)[list(amounts)].sum()


def _first_by_row(
    profile: Profile, sums: pd.DataFrame, lines: pd.DataFrame, make: Callable[..., Item]
) -> list[list[Item]]:
    """For each row of ``lines`` its first rows of the sums, as ``make`` has them of name, module, place, amounts."""
    functions = profile.paths.functions
    by_line: dict[tuple[int, int], list[Item]] = {}
    for file, line, native, *amounts in sums.itertuples(index=False, name=None):
        callees = by_line.setdefault((int(file), int(line)), [])
        if len(callees) < MOST:
            name, module = functions.names[int(native)], short_library(functions.paths[int(native)])
            callees.append(make(name, module, functions.place(int(native)), *map(float, amounts)))
    places = zip(lines["file_id"].tolist(), lines["line"].tolist(), strict=True)
    return [[] if line is pd.NA else by_line.get((int(file), int(line)), []) for file, line in places]


def native_callees(profile: Profile, lines: pd.DataFrame) -> list[list[Callee]]:
    """For each row of ``lines`` the functions with most CPU time, those aside whose time is mostly Python's."""
    facts = profile.paths
    cpu, python = facts.sums[:, _CPU], facts.sums[:, _PYTHON]
    sums = _sums(profile, facts.tree.native, (cpu > 0) & (2 * python <= cpu), {"cpu": cpu / 1e9})
    return _first_by_row(profile, sums.sort_values("cpu", ascending=False), lines, Callee)
