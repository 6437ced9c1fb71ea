"""The native functions that lines spent their own CPU time in, as the page shows them beside a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..profile.profile import Profile
from ..recording.native_names import short_library
from ..recording.tree import NOTHING
from ..samples.path_sums import PATH_MEASURES

MOST = 6
"""Functions that are shown of a line."""

_CPU, _PYTHON = PATH_MEASURES.index("cpu_ns"), PATH_MEASURES.index("python_ns")


@dataclass(frozen=True, slots=True)
class Callee:
    """A native function that was running for a line."""

    name: str
    module: str
    """The library, in short."""
    cpu_s: float


def native_callees(profile: Profile, lines: pd.DataFrame) -> list[list[Callee]]:
    """For each row of ``lines`` the functions with most CPU time, those aside whose time is mostly Python's."""
    facts, tree, calls = profile.paths, profile.paths.tree, profile.calls
    inside = (tree.stack != NOTHING) & np.append(calls.in_scope, False)[tree.stack]
    at = np.append(tree.stack, NOTHING)[tree.nearest(inside)]
    cpu, python = facts.sums[:, _CPU], facts.sums[:, _PYTHON]
    found = pd.DataFrame(
        {
            "file": np.append(calls.tree.file, NOTHING)[at],
            "line": np.append(calls.tree.line, NOTHING)[at],
            "native": tree.native,
            "cpu": cpu / 1e9,
        }
    )[(at != NOTHING) & (tree.native != NOTHING) & (cpu > 0) & (2 * python <= cpu)]
    sums = found.groupby(["file", "line", "native"], as_index=False)["cpu"].sum().sort_values("cpu", ascending=False)
    names, paths = facts.functions.names, facts.functions.paths
    by_line: dict[tuple[int, int], list[Callee]] = {}
    for file, line, native, seconds in sums.itertuples(index=False, name=None):
        callees = by_line.setdefault((int(file), int(line)), [])
        if len(callees) < MOST:
            callees.append(Callee(names[int(native)], short_library(paths[int(native)]), float(seconds)))
    places = zip(lines["file_id"].tolist(), lines["line"].tolist(), strict=True)
    return [[] if line is pd.NA else by_line.get((int(file), int(line)), []) for file, line in places]
