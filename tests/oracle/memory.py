"""Reading memory from a recorded run: bytes by line from the analysis, and exact counts from the recording's tables.

The truth is what the program says of itself (programs/memory_truth.py): bytes by name, and windows between two fences.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from oracle.support import Run, marked
from tachograph.format.enumerations import DOMAINS

PYTHON_DOMAINS = DOMAINS[2:]
THRESHOLD = 10_485_767
"""Bytes: the default of --memory-threshold."""
BLOCK_MEAN = 512 << 10
"""Bytes: the least mean of the sampling of blocks."""


def sampling_error(count: int, size: int, mean: int = BLOCK_MEAN) -> float:
    """Three standard deviations, in bytes, of what ``count`` blocks of ``size`` are estimated at from their sample.

    As for independent samples, which those of the recorder are no worse than: each is there with probability
    ``p = 1 - exp(-size / mean)`` and stands for ``size / p`` bytes; the variance of such a sum is
    ``count * size^2 * (1 - p) / p``.
    """
    part = -math.expm1(-size / mean)
    return 3 * size * math.sqrt(count * (1 - part) / part)


def mean_of(run: Run) -> int:
    """The mean of the sampling of a byte, in the average over all that the blocks stand for."""
    found = [(int(row["weight_bytes"]), int(row["mean_bytes"])) for row in rows(run.recording, "allocations")]
    return round(sum(weight * mean for weight, mean in found) / sum(weight for weight, _ in found))


def rows(recording: Path, table: str) -> list[dict[str, Any]]:
    """A table of a recording as a list of dicts, by pyarrow alone."""
    found: list[dict[str, Any]] = pq.read_table(recording / f"{table}.parquet").to_pylist()
    return found


def line_rows(run: Run, *names: str) -> list[dict[str, Any]]:
    """The objects of the analysis for the lines that are marked with one of ``names``."""
    numbers = set[int]().union(*(marked(run.program, name) for name in names))
    return [
        row
        for row in run.report["lines"]
        if row["line"] in numbers and Path(row["file"] or "").name == run.program.name
    ]


def line_bytes(run: Run, key: str, *names: str) -> float:
    """The sum of ``key`` over the lines that are marked with one of ``names``; a line without a row counts nothing."""
    found = [row[key] for row in line_rows(run, *names)]
    assert None not in found, f"{key} of {names} is not known"
    return float(sum(found))


def function_row(run: Run, name: str) -> dict[str, Any]:
    """The object of the analysis for the program's function ``name``."""
    (found,) = (
        row
        for row in run.report["functions"]
        if row["function"] == name and Path(row["file"] or "").name == run.program.name
    )
    return dict(found)


def check_lines(run: Run, key: str, names: Sequence[str], *, rel: float, extra: float = 0.0) -> None:
    """Assert that ``key`` of each marked line is what the program says, within ``rel`` of it and ``extra`` bytes."""
    wrong = []
    for name in names:
        true, reported = run.truth["sizes"][name], line_bytes(run, key, name)
        if abs(reported - true) > rel * true + extra:
            wrong.append(f"{name}: {reported:,.0f} for {true:,} ± {rel * true + extra:,.0f}")
    assert not wrong, f"{key}: " + "; ".join(wrong)


def flow(row: dict[str, Any]) -> int:
    """Allocated minus freed bytes of a row of table memory."""
    return sum(int(row[f"{domain}_allocated_bytes"]) - int(row[f"{domain}_freed_bytes"]) for domain in DOMAINS)


def moved(row: dict[str, Any]) -> int:
    """Allocated plus freed bytes of a row of table memory."""
    return sum(int(row[f"{domain}_{way}_bytes"]) for domain in DOMAINS for way in ("allocated", "freed"))


def window(run: Run, name: str) -> list[dict[str, Any]]:
    """The rows of table memory that count what happened in a window of the truth, and its second fence."""
    begin, end = run.truth["windows"][name]
    return [row for row in rows(run.recording, "memory") if begin < row["time_ns"] <= end]


def window_bytes(run: Run, name: str, *domains: str) -> tuple[int, int]:
    """Exact bytes of some domains that were allocated and freed in a window.

    The fence is a block of one of Python's domains, and of which one depends on the version: all are asked or none.
    """
    found = window(run, name)
    fence = run.truth["fence"] if set(domains) >= set(PYTHON_DOMAINS) else 0
    allocated, freed = (
        sum(int(row[f"{domain}_{way}_bytes"]) for row in found for domain in domains) for way in ("allocated", "freed")
    )
    return allocated - fence, freed - fence
