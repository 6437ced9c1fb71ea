"""The places that are not nodes of the call tree: labels for what has no stack."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..samples.cells import STATES
from ..samples.nodes import Calls
from ..samples.sites import Sites, state_label

HELD = ("live_at_peak_bytes", "live_at_resident_peak_bytes", "live_at_end_bytes")
"""What was held at the moments that have a name."""

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
        known = np.array([self._numbers.get(label, -1 - self.nodes) for label in sites.labels], np.int64) + self.nodes
        return np.concatenate([np.arange(self.nodes), known])[site]

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
