"""Sums by node of the call tree, and by label for what has no stack: what every summary is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from .cells import STATES
from .measures import MEASURES, as_seconds, sums_by
from .sites import state_label

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NodeSums:
    """Measures ``names`` of every node of the call tree (nodes by names) and of every label (labels by names)."""

    names: tuple[str, ...]
    nodes: _Floats
    labels: list[str]
    stackless: _Floats

    def column(self, name: str) -> int:
        """The place of a measure."""
        return self.names.index(name)

    def total(self, name: str) -> float:
        """The sum of a measure over everything."""
        column = self.column(name)
        return float(self.nodes[:, column].sum() + self.stackless[:, column].sum())


def time_sums(rows: pd.DataFrame, nodes: int) -> NodeSums:
    """The time measures of rows that ``measures.prepared`` made."""
    stack, state = (rows[name].to_numpy().astype(np.int64) for name in ("stack", "stack_state"))
    placed = stack >= 0
    names = [state_label(number) for number in range(STATES)]
    by_state = sums_by(rows[~placed], state[~placed], STATES)
    times = NodeSums(MEASURES, sums_by(rows[placed], stack[placed], nodes), names, by_state)
    return joined([times])


def joined(parts: Sequence[NodeSums]) -> NodeSums:
    """All measures of all parts; equal labels become one."""
    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    stackless = []
    for part in parts:
        sums = np.zeros((len(labels), len(part.names)))
        np.add.at(sums, [labels.index(label) for label in part.labels], part.stackless)
        stackless.append(sums)
    return NodeSums(
        tuple(name for part in parts for name in part.names),
        np.hstack([part.nodes for part in parts]),
        labels,
        np.hstack(stackless),
    )


SIZES = (
    "allocated_bytes",
    "python_allocated_bytes",
    "requested_bytes",
    "freed_bytes",
    "live_at_peak_bytes",
    "live_at_resident_peak_bytes",
    "live_at_end_bytes",
    "copied_bytes",
)
"""Measures in bytes that ``Calls`` shows as they are; NaN where they were not recorded."""


@dataclass(frozen=True)
class Calls:
    """The call tree with what was measured at every node itself: for flame graphs and exports.

    Nothing is charged to callers yet: ``charged`` says which node each one is charged to under the scope, -1 where no
    caller is in scope. ``nodes`` has a row for each node; ``stackless`` has the same columns and ``label``, for what
    has no stack. Seconds and bytes; NaN is unknown. The window and the choice of threads are applied.
    """

    tree: CallTree
    in_scope: NDArray[np.bool_]
    charged: NDArray[np.int64]
    nodes: pd.DataFrame
    stackless: pd.DataFrame


def calls(tree: CallTree, in_scope: NDArray[np.bool_], sums: NodeSums, *, waits_known: bool) -> Calls:
    """The call tree with its measures."""
    nodes, stackless = (_shown(values, sums, waits_known=waits_known) for values in (sums.nodes, sums.stackless))
    stackless.insert(0, "label", sums.labels)
    used = stackless.drop(columns="label").fillna(0.0).any(axis=1)
    return Calls(tree, in_scope, tree.nearest(in_scope), nodes, stackless[used].reset_index(drop=True))


def _shown(values: _Floats, sums: NodeSums, *, waits_known: bool) -> pd.DataFrame:
    frame = as_seconds(values[:, : len(MEASURES)], waits_known=waits_known)
    for name in SIZES:
        frame[name] = values[:, sums.column(name)] if name in sums.names else np.nan
    return frame
