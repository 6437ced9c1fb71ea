"""The tests of a recording that ``pytest --tachograph`` made: what each phase of each cost, and the line at fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..conclusions.copies import read_copies
from ..conclusions.memory import read_heap
from ..recording.call_tree import CallTree, load_tree
from ..recording.frame import Frame, WholeNumbers, texts
from ..recording.opened import Recording
from ..recording.sources import Sources
from ..recording.time_window import Window
from ..recording.tree import NOTHING
from ..samples.intervals import poisson_sums
from ..samples.scope import PROJECT
from ..samples.sites import Sites
from ..samples.stream import Stream
from .build import named_scope
from .test_memory import Estimates, TestPeaks, copied_by_tests, kept_by_tests
from .test_phases import LIMITS, PHASES, Floats, Ids, TestTimes, read_test_phases

COLUMNS = (
    "test",
    "phase",
    "count",
    "duration_s",
    "cpu_s",
    "wait_s",
    "peak_bytes",
    "peak_bytes_low",
    "copied_bytes",
    "copied_bytes_low",
    "kept_bytes",
    "kept_bytes_low",
    *LIMITS,
)
TIME, CPU, PEAK, COPIES, KEPT = "time", "cpu", "peak", "copies", "kept"
"""What a line can be at fault for; TIME is CPU time and waiting."""

_MEANS = ("duration_s", "cpu_s", "wait_s", "copied_bytes", "copied_bytes_low", "kept_bytes", "kept_bytes_low")

PartsOf = Callable[[int], tuple[Ids, Floats]]
"""Of a group, nodes of the call tree (as large as their number, or larger: no stack) and amounts."""


@dataclass(frozen=True)
class Place:
    """A line of the project, and what of its test's phase is charged to it: seconds or bytes."""

    file: str
    line: int
    function: str
    source: str | None
    amount: float


@dataclass(frozen=True)
class Tests:
    """One row per test and phase, and the lines that are charged.

    ``frame`` has COLUMNS. ``count`` says how often the phase ran; the others are means of these runs, but for
    ``peak_bytes``: the most that was held at once of what the phase allocated. ``cpu_s`` is that of the whole process
    by its own clock (by samples where that was not read), ``wait_s`` that of the test's own thread. ``kept_bytes`` is
    what lines of the project allocated in the call and the process still held at its end, without what imports
    allocated. ``_low`` is the lower end of the 95 % interval. LIMITS are what the test's marks allow. NaN is unknown.
    """

    __test__ = False

    frame: Frame
    group: Ids
    """By row, its group (``TestPhases``)."""
    parts: Mapping[str, Sequence[PartsOf]]
    """By what a line can be at fault for."""
    tree: CallTree
    charged: Ids
    """By node, the nearest node of the project."""
    sources: Sources

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, row: int, what: str) -> Place | None:
        """The line of the project with the largest part of TIME, CPU, PEAK, COPIES or KEPT; None if none has any."""
        sums: dict[tuple[int, int], float] = {}
        node_of: dict[tuple[int, int], int] = {}
        for parts in self.parts[what]:
            for place, amount in zip(*map(np.ndarray.tolist, parts(int(self.group[row]))), strict=True):
                node = int(self.charged[place]) if place < len(self.charged) else NOTHING
                if node != NOTHING:
                    key = int(self.tree.file[node]), int(self.tree.line[node])
                    sums[key] = sums.get(key, 0.0) + amount
                    node_of[key] = node
        if not sums or max(sums.values()) <= 0:
            return None
        key = max(sums, key=lambda each: sums[each])
        function = self.tree.function_names[int(self.tree.function[node_of[key]])]
        return Place(self.tree.paths[key[0]], key[1], function, self.sources.line(*key), sums[key])


def read_tests(recording: Recording) -> Tests:
    """The tests of a recording; none where it has no spans of tests.

    Errors:
        FormatError: the recording is damaged.
    """
    phases = read_test_phases(recording)
    stream, tree = Stream(recording), load_tree(recording)
    charged = _charged(recording, tree)
    times = TestTimes(stream, phases)
    stream.feed(times)
    heap = read_heap(recording, Window())
    sites = Sites(recording) if heap is None else heap.sites
    copies = read_copies(recording, Window(), sites)
    places = len(sites) + 1
    peaks = None if heap is None else TestPeaks(heap, phases)
    kept = None if heap is None else kept_by_tests(heap, phases, tree, charged, places)
    copied = None if copies is None else copied_by_tests(copies, phases, places)
    groups, told = phases.groups, phases.told
    columns: dict[str, Floats] = dict(told)
    cpu_s, wait_s = (sums.by_group(groups) for sums in (times.cpu_sums, times.wait_sums))
    columns["cpu_s"] = np.where(np.isnan(told["cpu_s"]), cpu_s, told["cpu_s"])
    columns["wait_s"] = wait_s if stream.waits_known else np.full(groups, np.nan)
    columns |= _bounded("peak", None if peaks is None else peaks.estimates, groups)
    columns |= _bounded("copied", None if copied is None else copied.estimates(groups), groups)
    columns |= _bounded("kept", None if kept is None else kept.estimates(groups), groups)
    for name in _MEANS:
        columns[name] = columns[name] / np.maximum(phases.count, 1)
    there = np.flatnonzero(phases.count)
    frame = Frame(
        {
            "test": texts([phases.tests[group // len(PHASES)] for group in there.tolist()]),
            "phase": texts([PHASES[group % len(PHASES)] for group in there.tolist()]),
            "count": WholeNumbers.of_floats(phases.count[there].astype(np.float64)),
            **{name: column[there] for name, column in columns.items()},
        }
    )
    parts: dict[str, Sequence[PartsOf]] = {
        TIME: (times.cpu_sums.of, times.wait_sums.of),
        CPU: (times.cpu_sums.of,),
        PEAK: () if peaks is None else (peaks.at_peak,),
        COPIES: () if copied is None else (copied.of,),
        KEPT: () if kept is None else (kept.of,),
    }
    files = Sources(recording.table("files"), recording.table("codes"))
    return Tests(frame.select(COLUMNS), there, parts, tree, charged, files)


def _charged(recording: Recording, tree: CallTree) -> Ids:
    """By node, the nearest node of the project: code without a file is a worker's or a library's, not a test's."""
    scope = replace(named_scope(PROJECT, recording), own_code=False)
    inside = np.array([*map(scope.includes, tree.paths), False], np.bool_)
    return tree.nearest(inside[tree.file] & (tree.line != NOTHING))


def _bounded(name: str, estimates: Estimates | None, groups: int) -> dict[str, Floats]:
    """The columns of an estimate; NaN where it was not recorded."""
    if estimates is None:
        return {f"{name}_bytes": np.full(groups, np.nan), f"{name}_bytes_low": np.full(groups, np.nan)}
    certain, beyond, variance = estimates.T
    low, _ = poisson_sums(certain, beyond, variance)
    return {f"{name}_bytes": certain + beyond, f"{name}_bytes_low": low}
