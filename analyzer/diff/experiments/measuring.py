"""The measurements of one run of an experiment: amounts of the whole program, of its functions and of its lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...report_data.difference import BY_NAME, WALL, Metric
from ..links import NO_FILE, SourceFile
from ..runs import Run

CPU, ALLOCATED = BY_NAME["cpu"], BY_NAME["memory.allocated"]

Place = tuple[str, str, int]
"""A function: path, qualified name, first line. A line: path, qualified name of its function, number."""


@dataclass(frozen=True)
class Measured:
    """The measurements of one run. Amounts are unknown where they are None.

    ``own`` has what functions used themselves, by metric: CPU seconds and allocated bytes. ``lines`` has the same.
    """

    files: Sequence[SourceFile]
    amounts: Mapping[Metric, float | None]
    busy_s: float
    lived_s: float
    own: Mapping[Metric, Mapping[Place, float]]
    lines: Mapping[Metric, Mapping[Place, float]] = field(default_factory=dict)
    units: Mapping[Metric, float] = field(default_factory=dict)
    """The amount that one sample stands for, by metric; missing where nothing was sampled."""


def measured(run: Run) -> Measured:
    """The amounts of a run."""
    totals = run.profile.totals
    waited = totals.main_cpu_wait_s or 0.0
    cpu_s = totals.clock_cpu_s or totals.cpu_s
    # How long a program had no processor is the machine's doing. Of several processes that is no part of the wall time.
    wall_s = totals.wall_s if totals.processes > 1 else max(totals.process_s - waited, 0.0)
    amounts = {CPU: cpu_s, WALL: wall_s, ALLOCATED: totals.allocated_bytes}
    own, lines = ({metric: _used(run, name, metric) for metric in (CPU, ALLOCATED)} for name in ("functions", "lines"))
    counts = {CPU: (totals.cpu_s, totals.samples), ALLOCATED: (totals.allocated_bytes, totals.allocation_samples)}
    units = {metric: amount / samples for metric, (amount, samples) in counts.items() if amount and samples}
    return Measured(run.files, amounts, waited, totals.main_s, own, lines, units)


def _used(run: Run, table: str, metric: Metric) -> dict[Place, float]:
    """Amounts of a metric of the functions or lines of a run; those that used nothing are left out."""
    used: dict[Place, float] = {}
    frame = getattr(run.profile, table)
    columns = (frame[name].tolist() for name in ("file_id", "function", "line", metric.column))
    for file, name, line, amount in zip(*columns, strict=True):
        if file != NO_FILE and isinstance(amount, int | float) and math.isfinite(amount) and amount > 0:
            place = (run.files[file].path, name, int(line) if isinstance(line, int) else 0)
            used[place] = used.get(place, 0.0) + amount
    return used
