"""In which tasks, and in which spans of the program, threads waited: by node of the call tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING
from ..recording.recorded_spans import Spans
from ..recording.span_tracks import Tracks
from ..recording.text import printable
from ..samples.stream import CpuBatch, WaitBatch
from ..statistics.grouped_sums import summed
from .tasks import Steps

MOSTLY = 0.5
"""A task or a span is named where it has more than this part of the time."""

_Ids = NDArray[np.int64]


@dataclass(eq=False)
class SpanWaits:
    """A sink: waits by node and track, of the rows that say in which span they were."""

    tracks: Tracks
    times: bool = False
    _sums: dict[tuple[int, int], float] = field(default_factory=dict)

    def cpu(self, batch: CpuBatch) -> None:
        """Nothing: only waits are asked for."""

    def waits(self, batch: WaitBatch) -> None:
        """Takes the waits within spans, but those for a processor."""
        batch = batch.for_the_world()
        rows = np.flatnonzero((batch.track >= self.tracks.first) & (batch.stack < batch.nodes))
        if not len(rows):
            return
        keys = np.stack([batch.stack[rows], batch.track[rows]])
        pairs, group = np.unique(keys, axis=1, return_inverse=True)
        waited = summed(group.reshape(-1), batch.weight_ns[rows], pairs.shape[1])
        for node, track, ns in zip(*pairs.tolist(), waited.tolist(), strict=True):
            self._sums[node, track] = self._sums.get((node, track), 0.0) + ns

    def conclude(self, spans: Spans) -> dict[int, dict[str, float]]:
        """Nanoseconds by node and the name of the outermost span, such as the route of a request."""
        outermost = _outermost(spans, self.tracks)
        by_node: dict[int, dict[str, float]] = {}
        for (node, track), ns in self._sums.items():
            if track in outermost:
                of_node = by_node.setdefault(node, {})
                of_node[outermost[track]] = of_node.get(outermost[track], 0.0) + ns
        return by_node


def _outermost(spans: Spans, tracks: Tracks) -> dict[int, str]:
    """The name of the outermost span around the spans of each track, by track."""
    shown = [printable(name, 80) for name in spans.names]
    place = {number: row for row, number in enumerate(spans.number.tolist())}
    names: list[int] = []
    outermost: dict[int, str] = {}
    for row, (number, parent) in enumerate(zip(spans.number.tolist(), spans.parent.tolist(), strict=True)):
        above = place.get(parent, row)
        names.append(names[above] if above < row else int(spans.name[row]))
        outermost[int(tracks.of_span[number])] = shown[names[row]]
    return outermost


@dataclass(frozen=True, eq=False)
class StepWaits:
    """Whose waits those of a node were."""

    task: _Ids
    """The number of the task's name, by node; NOTHING where it has none, or it is not known."""
    task_names: list[str]
    spans: dict[int, dict[str, float]]
    """Nanoseconds by node and the name of the outermost span; a node without spans is missing."""

    @classmethod
    def of(cls, steps: Steps, waits: SpanWaits | None, spans: Spans) -> StepWaits:
        """The tasks' names from the steps of the call tree, the spans' from a sink."""
        return cls(steps.task, steps.names, {} if waits is None else waits.conclude(spans))

    def mostly(self, waited: Iterable[tuple[int, float]]) -> tuple[str | None, str | None]:
        """The name of the task, and that of the span, that most of the waits are in: nodes with nanoseconds."""
        tasks: dict[str, float] = {}
        spans: dict[str, float] = {}
        whole = 0.0
        for node, ns in waited:
            whole += ns
            number = int(self.task[node])
            if number != NOTHING:
                name = printable(self.task_names[number], 80)
                tasks[name] = tasks.get(name, 0.0) + ns
            for name, in_span in self.spans.get(node, {}).items():
                spans[name] = spans.get(name, 0.0) + in_span
        return _most(tasks, whole), _most(spans, whole)


def _most(by_name: dict[str, float], whole: float) -> str | None:
    name = max(by_name, key=lambda each: (by_name[each], each), default=None)
    return name if name is not None and by_name[name] > MOSTLY * whole else None
