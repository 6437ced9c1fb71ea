"""The tests of a recording that ``pytest --tachograph`` made: the cost of each phase of each test, and its line.

The plugin of pytest writes a span per phase (named ``setup``, ``call`` or ``teardown``), whose fields have the test's
id, the CPU time of its process by the process's own clock, and the limits that the test's marks set. A phase's memory
is the most that it held at once, the bytes that it copied, and the bytes that its call kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..conclusions.copies import Copies, read_copies
from ..conclusions.memory import Heap, read_heap
from ..conclusions.memory.blocks import Blocks
from ..recording.call_tree import NOTHING, CallTree, load_tree
from ..recording.frame import Frame, WholeNumbers, texts
from ..recording.opened import Recording
from ..recording.recorded_spans import own_and_total, read_spans
from ..recording.sources import Sources
from ..recording.time_window import TimeRanges, Window
from ..samples.attribution import STATES
from ..samples.groups import Numbers
from ..samples.sites import Sites
from ..samples.stream import CpuBatch, Stream, WaitBatch
from ..samples.summary import PROJECT
from ..statistics.grouped_sums import summed
from ..statistics.intervals import poisson_sums
from .build import named_scope

Estimates = NDArray[np.float64]
"""Groups by three columns: sampled bytes, the estimated bytes beyond them, and the variance."""

_IMPORTING = "<frozen importlib"


class TestPeaks:
    """The most bytes of its own that each group held at once, in all threads of its process."""

    __test__ = False

    def __init__(self, heap: Heap, phases: TestPhases) -> None:
        blocks = _apart(heap)
        group = phases.of_processes.group_at(blocks.process, blocks.birth_ns)
        rows = np.flatnonzero((group != NOTHING) & blocks.followed)
        rows = rows[np.lexsort((blocks.birth_ns[rows], group[rows]))]
        self._group, self._blocks = group[rows], blocks.where(rows)
        self.estimates: Estimates = np.zeros((phases.groups, 3))
        self._peak_ns = np.zeros(phases.groups, np.int64)
        for each, first, last in self._by_group():
            self.estimates[each], self._peak_ns[each] = self._highest(first, last)

    def at_peak(self, group: int) -> tuple[Ids, Floats]:
        """Sites and bytes of the blocks that a group held at its peak."""
        mine = (self._group == group) & self._blocks.alive(int(self._peak_ns[group]))
        return self._blocks.site[mine], self._blocks.bytes[mine]

    def _by_group(self) -> Iterator[tuple[int, int, int]]:
        first = np.flatnonzero(np.diff(self._group, prepend=NOTHING))
        after = np.append(first, len(self._group))[1:]
        for start, end in zip(first.tolist(), after.tolist(), strict=True):
            yield int(self._group[start]), start, end

    def _highest(self, first: int, last: int) -> tuple[Floats, int]:
        """The estimate at the peak of some blocks, and its time."""
        blocks = self._blocks
        birth = blocks.birth_ns[first:last]
        death = np.maximum(blocks.death_ns[first:last], birth + 1)
        values = np.column_stack([each[first:last] for each in (blocks.certain, blocks.beyond, blocks.variance)])
        time = np.concatenate((birth, death))
        # Of one moment, what is released counts first: the next block may have its place.
        order = np.lexsort((np.repeat([1, 0], len(birth)), time))
        held = np.cumsum(np.concatenate((values, -values))[order], axis=0)
        peak = int(np.argmax(held[:, 0] + held[:, 1]))
        return np.maximum(held[peak], 0.0), int(time[order[peak]])


def _apart(heap: Heap) -> Blocks:
    """The blocks themselves, while they lived, and their estimated rest, spread over time as in ``held``.

    A single large block that lives for a moment was there, however little it is on average.
    """
    blocks, held = heap.blocks, heap.held
    nothing = np.zeros(len(blocks))
    themselves = replace(blocks, beyond=nothing, variance=nothing)
    beyond = replace(held, certain=nothing, beyond=np.maximum(held.bytes - blocks.certain, 0.0))
    both = ((getattr(each, field.name) for each in (themselves, beyond)) for field in fields(Blocks))
    return Blocks(*(np.concatenate(tuple(arrays)) for arrays in both))


class TestSizes:
    """Bytes summed by group and place, with what their estimates need."""

    __test__ = False

    def __init__(self, places: int, group: Ids, site: Ids, values: Estimates) -> None:
        self._sums = [PlaceSums(places) for _ in range(3)]
        for column, sums in enumerate(self._sums):
            sums.add(group, site, values[:, column])

    def estimates(self, groups: int) -> Estimates:
        """Estimates of each group."""
        return np.column_stack([sums.by_group(groups) for sums in self._sums])

    def of(self, group: int) -> tuple[Ids, Floats]:
        """Places and bytes of a group."""
        place, certain = self._sums[0].of(group)
        return place, certain + self._sums[1].of(group)[1]


def copied_by_tests(copies: Copies, phases: TestPhases, places: int) -> TestSizes:
    """Bytes that each phase copied, in all threads of its process."""
    group = phases.of_processes.group_at(phases.owner[copies.thread], copies.time_ns)
    values = np.column_stack((copies.certain, copies.beyond, copies.variance))[copies.sampled]
    return TestSizes(places, group[copies.sampled], copies.site[copies.sampled], values)


def kept_by_tests(heap: Heap, phases: TestPhases, tree: CallTree, charged: Ids, places: int) -> TestSizes:
    """Bytes that the project allocated in the calls of tests and still held when its process ended.

    Allocations of imports are left out: modules stay.
    """
    blocks = heap.blocks
    group = phases.of_processes.group_at(blocks.process, blocks.birth_ns)
    imports = np.array([*(path.startswith(_IMPORTING) for path in tree.paths), False], np.bool_)
    counts = np.append((charged != NOTHING) & (tree.nearest(imports[tree.file]) == NOTHING), False)
    mine = (group % len(PHASES) == CALL) & counts[np.minimum(blocks.site, len(tree))] & heap.alive_at_end()
    values = np.column_stack((blocks.certain, blocks.beyond, blocks.variance))[mine]
    return TestSizes(places, group[mine], blocks.site[mine], values)


PHASES = ("setup", "call", "teardown")
CALL = PHASES.index("call")
LIMITS = ("limit_cpu_s", "limit_memory_bytes", "limit_copies_bytes", "no_leaks_bytes")
"""Fields of the span of a call: what the marks of its test allow."""

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TestPhases:
    """The spans of tests. A *group* is a phase of a test: ``3 * test + phase``."""

    __test__ = False  # for pytest, which takes names like this one for tests

    tests: list[str]
    """The ids of tests, in the order in which they ran."""
    count: Ids
    """Number of runs of each group."""
    reported: Mapping[str, Floats]
    """Values from the spans themselves: duration_s, cpu_s (sums), and LIMITS, by group. NaN where they have none."""
    of_processes: TimeRanges
    """The time ranges of groups, by process in place of the thread: all its threads work for the test that it runs."""
    of_threads: TimeRanges
    """The time ranges of groups, of the threads that run the tests."""
    owner: Ids
    """By thread, its process."""

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.count)


def read_test_phases(recording: Recording) -> TestPhases:
    """The phases of all tests of a recording.

    Errors:
        FormatError: the recording is damaged.
    """
    spans = read_spans(recording)
    span_fields = [fields_of(text) for text in spans.fields]
    is_phase = [name in PHASES for name in spans.names]
    of_tests = np.array(
        [
            is_phase[name] and isinstance(fields.get("test"), str)
            for name, fields in zip(spans.name.tolist(), span_fields, strict=True)
        ],
        np.bool_,
    )
    tests: dict[str, int] = {}
    group, rows = [], np.flatnonzero(of_tests).tolist()
    for row in rows:
        test = tests.setdefault(str(span_fields[row]["test"]), len(tests))
        group.append(test * len(PHASES) + PHASES.index(spans.names[int(spans.name[row])]))
    groups = len(tests) * len(PHASES)
    mine = replace(spans.only(of_tests), name=np.array(group, np.int64), names=[""] * groups)
    reported = {name: np.full(groups, np.nan) for name in LIMITS}
    reported["cpu_s"] = np.zeros(groups)
    reported["duration_s"] = summed(mine.name, (mine.end_ns - mine.start_ns) / 1e9, groups)
    for row, each in zip(rows, group, strict=True):
        reported["cpu_s"][each] += _number(span_fields[row].get("cpu_ns")) / 1e9
        for name in LIMITS if each % len(PHASES) == CALL else ():
            reported[name][each] = _number(span_fields[row].get(name))
    owner = recording.all_threads.process
    of_processes, _ = own_and_total(replace(mine, thread=owner[mine.thread]), Window(), None)
    of_threads, _ = own_and_total(mine, Window(), None)
    count = np.bincount(mine.name, minlength=groups)
    return TestPhases(list(tests), count, reported, of_processes, of_threads, owner)


def fields_of(text: str | None) -> Mapping[str, object]:
    """The fields of a span; none where they are not what our plugin writes."""
    try:
        fields = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _number(value: object) -> float:
    """A number that is not negative; NaN where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    return float(value) if 0 <= value < 1 << 63 else math.nan


class PlaceSums:
    """Weights summed by group and place: a node of the call tree or, behind the nodes, what has no stack."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._numbers = Numbers()
        self._sums = np.zeros(0)

    def add(self, group: Ids, place: NDArray[np.integer], weight: Floats) -> None:
        """Adds what lies in a group (not NOTHING)."""
        inside = group != NOTHING
        number = self._numbers.of(group[inside] * self._places + place[inside].astype(np.int64))
        grown = summed(number, weight[inside], len(self._numbers))
        grown[: len(self._sums)] += self._sums
        self._sums = grown

    def by_group(self, groups: int) -> Floats:
        """The sum of each group."""
        return summed(self._numbers.keys // self._places, self._sums, groups)

    def of(self, group: int) -> tuple[Ids, Floats]:
        """Places and sums of a group."""
        mine = np.flatnonzero(self._numbers.keys // self._places == group)
        return self._numbers.keys[mine] % self._places, self._sums[mine]


class TestTimes:
    """The sink that sums up CPU time of a test's process, and the waiting of its own thread, in seconds."""

    __test__ = False
    times = True

    def __init__(self, stream: Stream, phases: TestPhases) -> None:
        self._phases = phases
        self.cpu_sums = PlaceSums(stream.nodes + STATES + 1)
        self.wait_sums = PlaceSums(stream.nodes + STATES + 1)

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        group = self._phases.of_processes.group_at(self._phases.owner[batch.thread], batch.time_ns)
        self.cpu_sums.add(group, batch.place, batch.weight_ns / 1e9)

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits; those for a processor do not count."""
        mine = batch.for_the_world()
        # Waits on one line that follow one another closely are one row: it may last over many tests.
        row, group, part = self._phases.of_threads.overlaps(mine.thread, mine.start_ns, mine.end_ns)
        self.wait_sums.add(group, mine.place[row], mine.whole_ns[row] * part / 1e9)


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
"""Quantities that a line can be at fault for; TIME is CPU time and waiting."""

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
    charged = _charged(recording, tree, phases.tests)
    times = TestTimes(stream, phases)
    stream.feed(times)
    heap = read_heap(recording, Window())
    sites = Sites(recording) if heap is None else heap.sites
    copies = read_copies(recording, Window(), sites)
    places = len(sites) + 1
    peaks = None if heap is None else TestPeaks(heap, phases)
    kept = None if heap is None else kept_by_tests(heap, phases, tree, charged, places)
    copied = None if copies is None else copied_by_tests(copies, phases, places)
    groups, reported = phases.groups, phases.reported
    columns: dict[str, Floats] = dict(reported)
    cpu_s, wait_s = (sums.by_group(groups) for sums in (times.cpu_sums, times.wait_sums))
    columns["cpu_s"] = np.where(np.isnan(reported["cpu_s"]), cpu_s, reported["cpu_s"])
    columns["wait_s"] = wait_s if stream.waits_known else np.full(groups, np.nan)
    columns |= _bounded("peak", None if peaks is None else peaks.estimates, groups)
    columns |= _bounded("copied", None if copied is None else copied.estimates(groups), groups)
    columns |= _bounded("kept", None if kept is None else kept.estimates(groups), groups)
    for name in _MEANS:
        columns[name] = columns[name] / np.maximum(phases.count, 1)
    ran = np.flatnonzero(phases.count)
    frame = Frame(
        {
            "test": texts([phases.tests[group // len(PHASES)] for group in ran.tolist()]),
            "phase": texts([PHASES[group % len(PHASES)] for group in ran.tolist()]),
            "count": WholeNumbers.of_floats(phases.count[ran].astype(np.float64)),
            **{name: column[ran] for name, column in columns.items()},
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
    return Tests(frame.select(COLUMNS), ran, parts, tree, charged, files)


def _charged(recording: Recording, tree: CallTree, tests: Sequence[str]) -> Ids:
    """Nearest node of the project above each node: code without a file is a worker's or a library's, not a test's.

    Installed packages that have tests among ``tests`` (``pytest --pyargs``) belong to the project.
    """
    scope = replace(named_scope(PROJECT, recording), own_code=False)
    tested = tested_packages(tree.paths, tests)
    inside = np.array([*(scope.includes(path) or path.startswith(tested) for path in tree.paths), False], np.bool_)
    return tree.nearest(inside[tree.file] & (tree.line != NOTHING))


def tested_packages(paths: Sequence[str], tests: Sequence[str]) -> tuple[str, ...]:
    """The folders of installed packages that have the files of some tests."""
    files = {test.partition("::")[0].rpartition("../")[2] for test in tests}
    names = {file.rpartition("/")[2] for file in files}
    folders = set()
    for path in paths:
        before, installed, inside = path.rpartition("/site-packages/")
        package, slash, _ = inside.partition("/")
        if installed and slash and path.rpartition("/")[2] in names and path.endswith(tuple(files)):
            folders.add(f"{before}{installed}{package}/")
    return tuple(sorted(folders))


def _bounded(name: str, estimates: Estimates | None, groups: int) -> dict[str, Floats]:
    """The columns of an estimate; NaN where it was not recorded."""
    if estimates is None:
        return {f"{name}_bytes": np.full(groups, np.nan), f"{name}_bytes_low": np.full(groups, np.nan)}
    certain, beyond, variance = estimates.T
    low, _ = poisson_sums(certain, beyond, variance)
    return {f"{name}_bytes": certain + beyond, f"{name}_bytes_low": low}
