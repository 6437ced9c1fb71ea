"""Mapping of places to the rows of the profile's tables that their values are added to.

A place is a node of the call tree, or a label for what has no stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING, CallTree
from ..recording.text import printable
from ..samples.attribution import STATES
from ..samples.sites import Calls, Sites, state_label
from ..samples.summary import OUT_OF_SCOPE, UNKNOWN_CODE

MAX_LINES, MAX_FUNCTIONS, MAX_FILES = 2_000, 1_000, 1_000
"""Rows of a table that are drawn at most."""

Place = tuple[int, int, str]
"""File, line and name."""

Ids = NDArray[np.int64]
Values = NDArray[np.float64]


class Groups:
    """Sums over groups of places; ``member[i]`` is the group (0 .. size - 1) of place i, negative for none.

    The groups are put in order once, for many bins of time.
    """

    def __init__(self, member: Ids, size: int) -> None:
        self.size = size
        order = np.argsort(member, kind="stable")
        order = order[np.searchsorted(member[order], 0) :]
        self._order = order
        self._present, self._starts = np.unique(member[order], return_index=True)

    def sums(self, values: Values) -> Values:
        """``values`` (measures by places) summed by group: measures by groups."""
        result = np.zeros((len(values), self.size))
        if len(self._order):
            result[:, self._present] = np.add.reduceat(values[:, self._order], self._starts, axis=1)
        return result


def with_below(values: Values, spans: tuple[Ids, Ids]) -> Values:
    """``values`` (measures by nodes) with everything below each node; ``spans`` as in ``CallTree``."""
    start, end = spans
    ordered = np.empty_like(values)
    ordered[:, start] = values
    running = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(ordered, axis=1, out=running[:, 1:])
    return running[:, end] - running[:, start]


@dataclass(frozen=True)
class Target:
    """Some rows of one of the profile's frames, ``rows`` being their numbers in it, and the sums for them."""

    rows: Ids
    own: Groups
    total: Groups
    """Sums of nodes only: the outermost ones of each row, so that a stack counts once for each row in it."""
    left_out: int
    """Rows of the frame that are not among them."""


class Charged:
    """The node that each place is charged to under a profile's scope; ``labels`` are the places behind the nodes."""

    def __init__(self, calls: Calls, labels: Sequence[str]) -> None:
        self.tree = calls.tree
        self.in_scope = calls.in_scope
        self.node = calls.charged
        self.labels = labels

    def target(self, frame: pd.DataFrame, key_of_node: Ids, key_of_row: Ids, names: str, limit: int) -> Target:
        """The rows of ``frame`` that matter most; a node belongs to the row with the same key.

        ``names`` is the column that holds the names of the rows without a line.
        """
        rows = important(frame, limit)
        row_of_key = {int(key): number for number, key in enumerate(key_of_row[rows].tolist()) if key != NOTHING}
        keys, inverse = np.unique(key_of_node, return_inverse=True)
        member = np.array([row_of_key.get(int(key), NOTHING) for key in keys], np.int64)[inverse]
        lineless = {
            name: number
            for number, (name, file) in enumerate(
                zip(frame[names].iloc[rows], frame["file_id"].iloc[rows], strict=True)
            )
            if file == NOTHING
        }
        labels = [lineless.get(label, NOTHING) for label in self.labels]
        of_node = np.where(self.node == NOTHING, lineless.get(OUT_OF_SCOPE, NOTHING), member[self.node])
        outermost = self.tree.outermost(np.where(self.in_scope, key_of_node, NOTHING))
        return Target(
            rows,
            Groups(np.concatenate([of_node, np.array(labels, np.int64)]), len(rows)),
            Groups(np.where(outermost, member, NOTHING), len(rows)),
            len(frame) - len(rows),
        )


def important(frame: pd.DataFrame, limit: int) -> Ids:
    """Numbers of the rows that come first by any measure, in the frame's own order."""
    if len(frame) <= limit:
        return np.arange(len(frame))
    measures = [name for name in IMPORTANCE if name in frame]
    ranks = np.stack([frame[name].astype(float).fillna(0.0).rank(ascending=False).to_numpy() for name in measures])
    best = np.argsort(ranks.min(axis=0), kind="stable")[:limit]
    return np.sort(best)


IMPORTANCE = ("cpu_s", "total_cpu_s", "main_wait_s", "wait_s", "allocated_bytes", "live_at_peak_bytes", "copied_bytes")


def line_keys(tree: CallTree, frame: pd.DataFrame) -> tuple[Ids, Ids]:
    """Equal numbers for nodes, and rows of ``Profile.lines``, of the same line; a function where no line is known."""
    names = np.array([printable(name) for name in tree.function_names] + [UNKNOWN_CODE], object)
    nodes = zip(tree.file.tolist(), tree.line.tolist(), names[tree.function].tolist(), strict=True)
    return _numbered(map(_of_line, nodes), map(_of_line, _rows(frame)))


def _of_line(place: Place) -> Place:
    return place if place[1] == NOTHING else (*place[:2], "")


def function_keys(tree: CallTree, frame: pd.DataFrame) -> tuple[Ids, Ids]:
    """Equal numbers for nodes, and rows of ``Profile.functions``, of the same function."""
    names = map(printable, tree.function_names)
    functions = list(zip(tree.function_files.tolist(), tree.function_lines.tolist(), names, strict=True))
    of_function, of_row = _numbered([*functions, (NOTHING, NOTHING, UNKNOWN_CODE)], _rows(frame))
    return of_function[tree.function], of_row


def file_keys(tree: CallTree, frame: pd.DataFrame) -> tuple[Ids, Ids]:
    """Equal numbers for nodes, and rows of ``Profile.files``, of the same file."""
    unknown = len(tree.paths)
    file_ids = frame["file_id"].to_numpy(np.int64)
    rows = np.where((file_ids == NOTHING) & (frame["file"] == UNKNOWN_CODE).to_numpy(), unknown, file_ids)
    return np.where(tree.file == NOTHING, unknown, tree.file), rows


def _rows(frame: pd.DataFrame) -> Iterator[Place]:
    lines = frame["line"].fillna(NOTHING).astype(np.int64)
    return zip(frame["file_id"].tolist(), lines.tolist(), frame["function"].tolist(), strict=True)


def _numbered(nodes: Iterable[Place], rows: Iterable[Place]) -> tuple[Ids, Ids]:
    numbers: dict[Place, int] = {}
    of_nodes = [numbers.setdefault(place, len(numbers)) for place in nodes]
    # Rows such as <other code> have neither file nor line; only unknown code is found among the nodes.
    of_rows = [
        NOTHING if place[0] == NOTHING and place[2] != UNKNOWN_CODE else numbers.setdefault(place, len(numbers))
        for place in rows
    ]
    return np.array(of_nodes, np.int64), np.array(of_rows, np.int64)


HELD = ("live_at_peak_bytes", "live_at_resident_peak_bytes", "live_at_end_bytes")
"""Columns of bytes held at moments that have a name."""

WEIGHTS = (
    "cpu_s",
    "main_wait_s",
    "wait_s",
    "allocated_bytes",
    *HELD,
    "copied_bytes",
)
"""Columns of ``Calls`` that graphs may be drawn of."""


_STATE_LABELS = [state_label(state) for state in range(STATES)]
_STATE_NAMES = list(dict.fromkeys(_STATE_LABELS))

OF_STATE = np.array([_STATE_NAMES.index(label) for label in _STATE_LABELS], np.int64)
"""The number of each stack state's label; these labels are the first."""


class Labels:
    """Numbers for labels: those of stack states, and those that the heap found."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.names = list(dict.fromkeys([*_STATE_NAMES, *calls.stackless["label"]]))
        self.nodes = len(calls.tree)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def place(self, name: str) -> int | None:
        """The place of a label; None if the profile has no such label."""
        number = self._numbers.get(name)
        return None if number is None else self.nodes + number

    def places(self, sites: Sites, site: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of what the heap found at ``sites``; -1 for labels that the profile has not."""
        label_places = (
            np.array([self._numbers.get(label, -1 - self.nodes) for label in sites.labels], np.int64) + self.nodes
        )
        return np.concatenate([np.arange(self.nodes), label_places])[site]

    def sums(self, name: str) -> NDArray[np.float64] | None:
        """A column of ``Calls`` by node and then by label; None if it is not known."""
        nodes, stackless = self._calls.nodes[name], self._calls.stackless[name]
        if nodes.isna().all() and stackless.isna().all():
            return None
        values = np.zeros(self.nodes + len(self.names))
        values[: self.nodes] = nodes.fillna(0.0).to_numpy()
        for label, value in zip(self._calls.stackless["label"], stackless.fillna(0.0), strict=True):
            values[self.nodes + self._numbers[label]] += value
        return values
