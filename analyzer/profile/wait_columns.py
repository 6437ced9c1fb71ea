"""What lines, functions, files and threads waited for, and how much of the waiting was idleness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..recording.frame import Frame
from ..samples.cells import STATES
from ..samples.nodes import NodeSums
from ..samples.sites import state_label
from ..samples.summary import Columns, Placement
from ..samples.wait_reasons import REASONS

COLUMN = "wait_for"

IDLE = 0.5
"""A thread that waits in one place for more than this part of the time is idle there."""

_NAMES = tuple(f"wait_for_{number}_ns" for number in range(len(REASONS)))
_Floats = NDArray[np.float64]


def wait_measure(reason: str) -> str:
    """The name of the measure, in nanoseconds by node, of the waits for a reason."""
    return _NAMES[REASONS.index(reason)]


def reason_sums(waits: Frame, nodes: int) -> NodeSums:
    """Waits (``Facts.waits``) by node or stack state, and by reason; those for a processor left out."""
    waits = waits.take(waits["kind"] != "cpu")
    stack, reason = waits["stack"], waits["reason"]
    by_node, by_state = np.zeros((nodes, len(REASONS))), np.zeros((STATES, len(REASONS)))
    placed, amount = stack >= 0, waits["wait_ns"]
    np.add.at(by_node, (stack[placed], reason[placed]), amount[placed])
    states = waits["stack_state"][~placed]
    np.add.at(by_state, (states, reason[~placed]), amount[~placed])
    labels = [state_label(state) for state in range(STATES)]
    names = list(dict.fromkeys(labels))
    merged = np.zeros((len(names), len(REASONS)))
    np.add.at(merged, [names.index(label) for label in labels], by_state)
    return NodeSums(_NAMES, by_node, names, merged)


@dataclass(frozen=True)
class WaitColumns:
    """Makes the column ``wait_for`` from the measures ``names`` of a summary; None where nothing waited."""

    names: tuple[str, ...]

    def columns(self, placement: Placement, own: _Floats, total: _Floats) -> Columns:
        """By row a list of (reason, seconds), the most first."""
        del total
        result: NDArray[Any] = np.full(placement.rows, None, object)
        if _NAMES[0] not in self.names:
            return {COLUMN: result}
        first = self.names.index(_NAMES[0])
        values = own[:, first : first + len(REASONS)]
        for row in np.flatnonzero(values.any(axis=1)).tolist():
            result[row] = ranked(values[row])
        return {COLUMN: result}


def ranked(values: Sequence[float] | _Floats) -> list[tuple[str, float]]:
    """Reasons with their seconds, from nanoseconds by number of reason, the most first."""
    order = np.argsort(-np.asarray(values), kind="stable")
    return [(REASONS[number], float(values[number]) / 1e9) for number in order.tolist() if values[number] > 0]


def idle_seconds(waits: Frame, wall_s: float | None) -> float:
    """The waiting of threads in a place where they wait for most of the time: workers and servers without work."""
    if not wall_s:
        return 0.0
    waits = waits.take(waits["kind"] != "cpu")
    _, place = np.unique(np.stack([waits["thread"], waits["stack"]]), axis=1, return_inverse=True)
    sums = np.bincount(place.reshape(-1), weights=waits["wait_ns"]) / 1e9
    return float(sums[sums > IDLE * wall_s].sum())
