"""What a definition of leaks gets to see, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ...samples.accumulate import counted, summed

_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Histories:
    """The followed blocks of the window, by group (a line, or a call path to one), in the order of birth.

    Times are seconds since the beginning of the window. A block that was still held at the end has the death ``inf``.
    """

    group: NDArray[np.int64]
    groups: int
    thread: NDArray[np.int64]
    size: _Floats
    """Bytes that the block occupies."""
    birth: _Floats
    death: _Floats
    weight: _Floats
    """Bytes that it stands for."""
    variance: _Floats
    duration: float
    """Seconds from the beginning of the window to its end, or to where the interpreter began to shut down."""
    growth: float
    """By what part of its highest the footprint grew over the window (slope of the regression line times duration)."""
    peak: float
    """The highest footprint, in bytes."""
    importing: NDArray[np.bool_]
    """Whether a block was allocated while a module was being imported."""

    def counted(self, mask: NDArray[np.bool_]) -> _Floats:
        """By group, the number of blocks of ``mask``."""
        return counted(self.group[mask], self.groups)

    def weighed(self, mask: NDArray[np.bool_], values: _Floats | None = None) -> _Floats:
        """By group, the sum of ``values`` (None: of the weights) over the blocks of ``mask``."""
        chosen = self.weight if values is None else values
        return summed(self.group[mask], chosen[mask], self.groups)

    def regrouped(self, group: NDArray[np.int64], groups: int) -> Histories:
        """The same blocks in other groups; those of group -1 are left out."""
        kept = group >= 0
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: value[kept] for name, value in values.items() if isinstance(value, np.ndarray)}
        return Histories(**{**values, **arrays, "group": group[kept], "groups": groups})


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The answer: one entry per group in every array."""

    mallocs: _Floats
    frees: _Floats
    likelihood: _Floats
    """0..1; NaN where no block says anything."""
    leaking: NDArray[np.bool_]
    leaked: _Floats
    """Bytes that were not given back."""
    beyond: _Floats
    """The part of ``leaked`` that is an estimate, and its variance."""
    variance: _Floats
    blocks: _Floats
    """Sampled blocks behind ``leaked``."""
    first: _Floats
    """When the first block of the group was allocated, in seconds."""
    elapsed: _Floats
    """Seconds in which ``leaked`` accrued; the rate is their quotient."""


def likelihood(mallocs: _Floats, frees: _Floats) -> _Floats:
    """1 - (frees + 1) / (mallocs - frees + 2), clipped to 0..1 (Scalene 2023, section 3.4); NaN without mallocs."""
    score = np.clip(1 - (frees + 1) / (mallocs - frees + 2), 0.0, 1.0)
    return np.where(mallocs > 0, score, np.nan)
