"""The phases of the tests of a recording, and sums of what was sampled while they lasted.

The plugin of pytest writes a span per phase (named ``setup``, ``call`` or ``teardown``), whose fields have the test's
id, the CPU time of its process by the process's own clock, and the limits that the test's marks set.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ..recording.named_spans import own_and_total, read_spans
from ..recording.opened import Recording
from ..recording.time_ranges import TimeRanges
from ..recording.time_window import Window
from ..recording.tree import NOTHING
from ..samples.accumulate import Numbers, summed
from ..samples.cells import STATES
from ..samples.stream import CpuBatch, Stream, WaitBatch

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
    """By group, how often it ran."""
    told: Mapping[str, Floats]
    """By group, what the spans themselves tell: duration_s, cpu_s (sums), and LIMITS. NaN where they do not."""
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
    said = [fields_of(text) for text in spans.fields]
    is_phase = [name in PHASES for name in spans.names]
    wanted = np.array(
        [
            is_phase[name] and isinstance(fields.get("test"), str)
            for name, fields in zip(spans.name.tolist(), said, strict=True)
        ],
        np.bool_,
    )
    tests: dict[str, int] = {}
    group, rows = [], np.flatnonzero(wanted).tolist()
    for row in rows:
        test = tests.setdefault(str(said[row]["test"]), len(tests))
        group.append(test * len(PHASES) + PHASES.index(spans.names[int(spans.name[row])]))
    groups = len(tests) * len(PHASES)
    mine = replace(spans.only(wanted), name=np.array(group, np.int64), names=[""] * groups)
    told = {name: np.full(groups, np.nan) for name in LIMITS}
    told["cpu_s"] = np.zeros(groups)
    told["duration_s"] = summed(mine.name, (mine.end_ns - mine.start_ns) / 1e9, groups)
    for row, each in zip(rows, group, strict=True):
        told["cpu_s"][each] += _number(said[row].get("cpu_ns")) / 1e9
        for name in LIMITS if each % len(PHASES) == CALL else ():
            told[name][each] = _number(said[row].get(name))
    owner = ids(recording.table("threads").column("process"))
    of_processes, _ = own_and_total(replace(mine, thread=owner[mine.thread]), Window(), None)
    of_threads, _ = own_and_total(mine, Window(), None)
    count = np.bincount(mine.name, minlength=groups)
    return TestPhases(list(tests), count, told, of_processes, of_threads, owner)


def fields_of(text: str | None) -> Mapping[str, object]:
    """The fields of a span; none where they are not what our plugin writes."""
    try:
        said = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


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
