"""Merges the call trees of all runs into one, function by function, for differential flame graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..recording.call_tree import NOTHING
from ..recording.text import printable
from ..report_data.difference import Status
from ..report_data.difference_metrics import Metric
from ..samples.summary import UNKNOWN_CODE
from .links import Link
from .places import Placer
from .run import Run
from .side import Key, Side

_Ids = NDArray[np.int64]
ROOT = -1


class MergedTree:
    """Nodes of all runs by their path of functions; a caller always has a smaller number than what it calls."""

    def __init__(self, base: Side, new: Side, link: Link, placer: Placer) -> None:
        self._link, self._placer = link, placer
        self._base, self._new = base, new
        self._numbers: dict[tuple[int, int], int] = {}
        self._functions: dict[tuple[str, Key | None], int] = {}
        self._labels: list[dict[str, Any]] = []
        self._parents: list[int] = []
        self._function: list[int] = []
        self.of_base = [self._add(base, number, run) for number, run in enumerate(base.runs)]
        self.of_new = [self._add(new, number, run) for number, run in enumerate(new.runs)]

    def places(self) -> pd.DataFrame:
        """``Level.places`` of the calls."""
        labels = [self._labels[function] for function in self._function]
        frame = pd.DataFrame({"parent": np.array(self._parents, np.int64)})
        for column in ("function", "file", "line", "status"):
            values = [label[column] for label in labels]
            frame[column] = pd.array(values, "Int64") if column == "line" else pd.Series(values, dtype=object)
        return frame

    def sums(self, run: Run, nodes: _Ids, metrics: Sequence[Metric]) -> pd.DataFrame:
        """For each node of the merged tree what a run has in it and below it."""
        own = pd.concat([run.profile.calls.nodes, run.profile.calls.stackless], ignore_index=True)
        size = len(self._parents)
        columns = [metric.column for metric in metrics if metric.column in own and own[metric.column].notna().any()]
        sums = np.zeros((size, len(columns)))
        for column, name in enumerate(columns):
            weights = np.nan_to_num(own[name].to_numpy(np.float64))
            sums[:, column] = np.bincount(nodes, weights=weights, minlength=size)
        return pd.DataFrame(self._below(sums), columns=columns)

    def _below(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Adds to each node what is below it, level by level from the deepest."""
        parents = np.array(self._parents, np.int64)
        depth = [0] * len(parents)
        for node, parent in enumerate(self._parents):
            depth[node] = depth[parent] + 1 if parent >= 0 else 0
        order = np.argsort(-np.array(depth, np.int64), kind="stable")
        steps = np.array(depth, np.int64)[order]
        ends = np.flatnonzero(np.diff(steps, append=-1)) + 1
        start = 0
        for end in ends.tolist():
            level = order[start:end]
            callers = parents[level]
            np.add.at(sums, callers[callers >= 0], sums[level[callers >= 0]])
            start = end
        return sums

    def _add(self, side: Side, number: int, run: Run) -> _Ids:
        """Merges a run; its nodes and then its labels, by their numbers in the merged tree."""
        calls = run.profile.calls
        functions = [self._known(side, number, key) for key in run.functions()]
        unknown = self._label(("label", (UNKNOWN_CODE,)), UNKNOWN_CODE)
        merged: list[int] = []
        parents: list[int] = calls.tree.parent.tolist()
        for parent, function in zip(parents, calls.tree.function.tolist(), strict=True):
            above = merged[parent] if parent >= 0 else ROOT
            merged.append(self._node(above, functions[function] if function != NOTHING else unknown))
        labels = calls.stackless["label"].tolist()
        merged += [self._node(ROOT, self._label(("label", (label,)), label)) for label in labels]
        return np.array(merged, np.int64)

    def _node(self, parent: int, function: int) -> int:
        found = self._numbers.setdefault((parent, function), len(self._parents))
        if found == len(self._parents):
            self._parents.append(parent)
            self._function.append(function)
        return found

    def _known(self, side: Side, number: int, function: tuple[int, str, int]) -> int:
        """The merged tree's number of a run's function."""
        own = side.keys[number].function(function)
        other = self._placer.follow("functions", own, forward=side is self._base)
        base, new = (own, other) if side is self._base else (other, own)
        key = ("new", new) if new is not None else ("base", base)
        if key in self._functions:
            return self._functions[key]
        place = self._placer.function_place(base, new, function[1])
        return self._label(key, place["function"], place)

    def _label(self, key: tuple[str, Key | None], name: str, place: dict[str, Any] | None = None) -> int:
        if key not in self._functions:
            self._functions[key] = len(self._labels)
            plain = {"function": printable(name), "file": None, "line": None, "status": Status.SAME}
            self._labels.append({name: (place or plain)[name] for name in plain})
        return self._functions[key]
