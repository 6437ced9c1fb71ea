"""Sums by node of the call tree, and by label for what has no stack: what every summary is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from ..recording.frame import Column, Frame, texts
from .cells import STATES
from .measures import MEASURES, seconds_of, sums_by
from .sites import state_label

if TYPE_CHECKING:
    import pandas as pd

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


def time_sums(rows: Frame, nodes: int) -> NodeSums:
    """The time measures of rows that ``measures.prepared`` made."""
    placed = rows["stack"] >= 0
    inside, outside = rows.take(placed), rows.take(~placed)
    names = [state_label(number) for number in range(STATES)]
    by_state = sums_by(outside, outside["stack_state"].astype(np.int64), STATES)
    times = NodeSums(MEASURES, sums_by(inside, inside["stack"], nodes), names, by_state)
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
    caller is in scope. The window and the choice of threads are applied.
    """

    tree: CallTree
    in_scope: NDArray[np.bool_]
    sums: NodeSums
    waits_known: bool

    @cached_property
    def charged(self) -> NDArray[np.int64]:
        """The node that each one is charged to."""
        return self.tree.nearest(self.in_scope)

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """A row for each node: seconds and bytes; NaN is unknown."""
        return shown(self.sums.nodes, self.sums, waits_known=self.waits_known).pandas()

    @cached_property
    def stackless(self) -> pd.DataFrame:
        """The same for what has no stack, by ``label``; labels without anything are left out."""
        sums = self.sums.stackless
        found = shown(sums, self.sums, waits_known=self.waits_known)
        used = np.any([np.nan_to_num(found[name]) != 0 for name in found.columns], axis=0)
        labels: dict[str, Column] = {"label": texts(self.sums.labels)}
        return Frame({**labels, **found.columns}).take(used).pandas()


def shown(values: _Floats, sums: NodeSums, *, waits_known: bool) -> Frame:
    """Rows of measures (by the names of ``sums``) as the columns of ``seconds_of`` and ``SIZES``."""
    columns = seconds_of(values[:, : len(MEASURES)], waits_known=waits_known)
    for name in SIZES:
        columns[name] = values[:, sums.column(name)] if name in sums.names else np.full(len(values), np.nan)
    return Frame(columns)
