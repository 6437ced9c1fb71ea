"""Sums of time by node of the call tree, and from there by line, function, file or thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

CPU_MEASURES = ("samples", "cpu_ns", "python_ns", "native_ns", "kernel_ns", "unknown_ns", "kernel_known_ns")
WAIT_MEASURES = ("wait_ns", "main_wait_ns", "gpu_wait_ns", "cpu_wait_ns")
MEASURES = (*CPU_MEASURES, *WAIT_MEASURES)
"""Sums in nanoseconds, but for ``samples``. ``kernel_known_ns`` is the CPU time whose kernel part was recorded."""

SECONDS = (
    "cpu_s",
    "python_s",
    "native_s",
    "kernel_s",
    "unknown_s",
    "wait_s",
    "main_wait_s",
    "gpu_wait_s",
    "cpu_wait_s",
)
"""The columns that frames show, in seconds."""


def prepared(cpu: pd.DataFrame, waits: pd.DataFrame | None, main_threads: NDArray[np.bool_]) -> pd.DataFrame:
    """Attributed CPU facts and waits as one table: stack, thread, stack_state and the measures."""
    left = cpu.assign(kernel_known_ns=np.where(cpu["kernel_known"], cpu["cpu_ns"], 0.0))
    parts = [left[["stack", "thread", "stack_state", *CPU_MEASURES]]]
    if waits is not None:
        main = main_threads[waits["thread"].to_numpy()]
        # Being ready to run while there is no free processor is not waiting for anything that the program asked for.
        on_cpu = waits["kind"] == "cpu"
        wait_ns = waits["wait_ns"].where(~on_cpu, 0.0)
        waiting = waits.assign(
            wait_ns=wait_ns,
            main_wait_ns=wait_ns.where(main, 0.0),
            gpu_wait_ns=wait_ns.where(waits["kind"] == "gpu", 0.0),
            cpu_wait_ns=waits["wait_ns"].where(on_cpu, 0.0),
        )
        parts.append(waiting[["stack", "thread", "stack_state", *WAIT_MEASURES]])
    columns = ["stack", "thread", "stack_state", *MEASURES]
    return pd.concat(parts, ignore_index=True).reindex(columns=columns).fillna(0.0)


def sums_by(rows: pd.DataFrame, index: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """The measures of ``rows`` summed by ``index`` (0 .. size - 1), as an array of size by measures."""
    sums = np.zeros((size, len(MEASURES)))
    for column, name in enumerate(MEASURES):
        sums[:, column] = np.bincount(index, weights=rows[name].to_numpy(np.float64), minlength=size)
    return sums


def as_seconds(sums: NDArray[np.float64], *, waits_known: bool, prefix: str = "") -> pd.DataFrame:
    """The measures as the columns of ``seconds_of``."""
    return pd.DataFrame(seconds_of(sums, waits_known=waits_known, prefix=prefix))


def seconds_of(sums: NDArray[np.float64], *, waits_known: bool, prefix: str = "") -> dict[str, NDArray[Any]]:
    """The measures by name in seconds (``samples`` as a count), NaN where something is not known.

    The kernel's part is unknown where no sample recorded it; Python and native are where no sample could be decided.
    """
    values = {name: sums[:, column] for column, name in enumerate(MEASURES)}
    has_cpu = values["cpu_ns"] > 0
    kernel_unknown = has_cpu & (values["kernel_known_ns"] <= 0)
    decided = values["python_ns"] + values["native_ns"]
    undecided = (decided <= 0) & (values["unknown_ns"] > 0)
    found: dict[str, NDArray[Any]] = {f"{prefix}samples": np.rint(values["samples"]).astype(np.int64)}
    for name in SECONDS:
        seconds = values[name.removesuffix("_s") + "_ns"] / 1e9
        if name == "kernel_s":
            seconds = np.where(kernel_unknown, np.nan, seconds)
        elif name in ("python_s", "native_s"):
            seconds = np.where(undecided, np.nan, seconds)
        elif "wait" in name and not waits_known:
            seconds = np.full(len(seconds), np.nan)
        found[prefix + name] = seconds
    return found


def whole_numbers(values: NDArray[np.float64]) -> pd.arrays.IntegerArray:
    """Counts as nullable integers; NaN is null."""
    unknown = np.isnan(values)
    return pd.arrays.IntegerArray(np.where(unknown, 0, values).astype(np.int64), unknown)


def rank(names: Sequence[object]) -> tuple[NDArray[np.int64], int]:
    """Numbers 0, 1 ... for equal rows of columns, and how many there are."""
    frame = pd.DataFrame({str(number): column for number, column in enumerate(names)})
    groups = frame.groupby(list(frame.columns), sort=False).ngroup().to_numpy().astype(np.int64)
    return groups, int(groups.max()) + 1 if len(groups) else 0
