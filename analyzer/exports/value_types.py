"""The values of each stack in formats that hold several of them: their types, and their sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .exported_rows import heap_rows
from .extract import Extract
from .frame_tree import FrameTree


@dataclass(frozen=True, slots=True)
class ValueType:
    """Type of a value, and its unit: ``count``, ``nanoseconds`` or ``bytes``."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Period:
    """Between two samples lies so much of something."""

    type: ValueType
    length: int


HEAP = tuple(
    ValueType(f"{name}_{what}", unit)
    for name in ("alloc", "inuse")
    for what, unit in (("objects", "count"), ("space", "bytes"))
)
"""The types of Go's heap profiles, in their order, which readers of pprof know."""


def value_types(extract: Extract) -> tuple[ValueType, ...]:
    """The types of an extract's values."""
    return HEAP if extract.heap else (ValueType("samples", "count"), default_type(extract))


def default_type(extract: Extract) -> ValueType:
    """The type that is shown first."""
    return HEAP[-1] if extract.heap else ValueType(str(extract.metric), extract.metric.unit)


def period_of(extract: Extract) -> Period | None:
    """The distance of samples, where it is known."""
    if extract.heap:
        mean = extract.recording.manifest.parameters.get("block_mean_bytes")
        return Period(ValueType("space", "bytes"), mean) if type(mean) is int and mean > 0 else None
    interval = extract.recording.interval_ns
    if interval is None or extract.metric.unit != "nanoseconds":
        return None
    return Period(default_type(extract), interval)


def value_sums(extract: Extract, tree: FrameTree) -> pd.DataFrame:
    """One row per thread, node and request: these, and a column of whole numbers for each of the types."""
    if not extract.heap:
        return extract.sums(tree).rename(columns={"weight": default_type(extract).name})
    parts = [_zeros(0)]
    for name, rows in heap_rows(extract.recording, extract.window, extract.processes, extract.metric):
        included = extract.included_rows(rows)
        part = _zeros(len(included)).assign(thread=included.thread, node=tree.nodes(included))
        parts.append(part.assign(**{f"{name}_space": included.weight, f"{name}_objects": included.blocks}))
    sums = pd.concat(parts, ignore_index=True).groupby(["thread", "node"], as_index=False, sort=True).sum()
    return sums.assign(request=-1, **{each.name: np.rint(sums[each.name]).astype(np.int64) for each in HEAP})


def _zeros(length: int) -> pd.DataFrame:
    ids = {name: np.zeros(length, np.int64) for name in ("thread", "node")}
    return pd.DataFrame(ids | {each.name: np.zeros(length) for each in HEAP})
