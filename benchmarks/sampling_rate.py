"""Table 2 of the Scalene paper (OSDI 2023): how many samples a threshold takes, and how many a rate would have taken.

    python benchmarks/sampling_rate.py                 # the ten programs, ten seconds each: three minutes
    python benchmarks/sampling_rate.py --quick         # two programs, a second each

Each program is recorded once, in full. *Threshold* is the number of times that allocated minus freed bytes moved by the
threshold since the last such time; crossings that share a row with others count as well. *Rate* is the number of
samples that a sampler with one sample per so many bytes allocated or freed would be expected to take: the bytes of the
same table, which are exact, divided by the threshold. Both are counts of one and the same run.
"""

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from harness.arms import FULL, arms
from harness.sample import over_programs, record_program
from harness.survey import ROOT, complaints
from programs.suite import PROGRAMS
from tachograph.format import Manifest, load_specification

PAPER = {
    "async_tree_none": (556, 215),
    "async_tree_io": (524, 187),
    "async_tree_cpu_io_mixed": (719, 167),
    "async_tree_memoization": (375, 167),
    "docutils": (20, 5),
    "fannkuch": (426, 5),
    "mdp": (316, 6),
    "pprint": (7976, 23),
    "raytrace": (215, 7),
    "sympy": (6757, 10),
}
"""Rate and threshold samples in the paper's table."""


@dataclass(frozen=True)
class Counts:
    """The two counts of one recording, and the bytes that they come from."""

    program: str
    threshold_samples: int
    rows: int
    """All rows of `memory`, those that were not written because of the threshold included."""
    moved_bytes: int
    """Bytes allocated and freed."""
    threshold_bytes: int

    @property
    def rate_samples(self) -> float:
        """Samples expected at one per `threshold_bytes`."""
        return self.moved_bytes / self.threshold_bytes

    @property
    def ratio(self) -> float | None:
        """How many times fewer the threshold takes; None if it took none."""
        return self.rate_samples / self.threshold_samples if self.threshold_samples else None


@click.command()
@click.option(
    "--seconds", type=click.FloatRange(min=0.01), default=10.0, show_default=True, help="Least time of a run."
)
@click.option("--quick", is_flag=True, help="Two programs of one second, to see that everything works.")
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), help="Default: results/sampling_rate.json.")
def main(seconds: float, quick: bool, results: Path | None) -> None:
    """Threshold samples against rate-based ones (table 2)."""
    programs = ["fannkuch", "async_tree_none"] if quick else list(PROGRAMS)
    with complaints("sampling_rate"):
        counts = over_programs(programs, lambda name, site: record(name, site, 1.0 if quick else seconds))
    print(table(counts))
    target = results or ROOT / "results" / "sampling_rate.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    plain = [asdict(count) | {"rate_samples": count.rate_samples, "ratio": count.ratio} for count in counts]
    target.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


def record(program: str, site: Path, seconds: float) -> Counts:
    """Records a program and counts."""
    full = next(arm for arm in arms([]) if arm.name == FULL)
    with record_program(full, program, site, seconds) as recording:
        return read(recording, program)


def read(recording: Path, program: str) -> Counts:
    """The counts of a finished recording."""
    manifest = Manifest.read(recording / "manifest.json")
    merged = sum(entry["count"] for entry in manifest.quality if entry["loss"] == "crossings_merged")
    threshold = manifest.parameters["memory_threshold"]
    return count(pq.read_table(recording / "memory.parquet"), program, threshold, merged)


def count(memory: pa.Table, program: str, threshold_bytes: int, merged: int = 0) -> Counts:
    """The counts of a table `memory` of one process. What was held before the recording began is not counted."""
    start = [value.name for value in load_specification().enums["memory_event"]].index("start")
    moved = memory.filter(pc.not_equal(pc.cast(memory["event"], pa.int64()), start))
    allocated = _sum_of(moved, "_allocated_bytes")
    freed = _sum_of(moved, "_freed_bytes")
    crossings, net = merged, 0
    # Rows that were written for another reason come between two crossings, and have their part of the way.
    for change in (allocated - freed).tolist():
        net += change
        if abs(net) >= threshold_bytes:
            crossings, net = crossings + 1, 0
    return Counts(
        program=program,
        threshold_samples=crossings,
        rows=len(memory),
        moved_bytes=int((allocated + freed).sum()),
        threshold_bytes=threshold_bytes,
    )


def _sum_of(memory: pa.Table, suffix: str) -> NDArray[np.int64]:
    """The sum over the domains, row by row."""
    total = np.zeros(len(memory), np.int64)
    for name in memory.column_names:
        if name.endswith(suffix):
            total += memory[name].to_numpy()
    return total


def table(counts: list[Counts]) -> str:
    """The table for people, beside the paper's."""
    lines = [
        f"{'':<26}{'rate':>10}{'threshold':>11}{'ratio':>9}{'rows':>7}{'moved':>11}   paper: rate, threshold, ratio"
    ]
    for one in counts:
        rate, threshold = PAPER[one.program]
        ratio = "-" if one.ratio is None else f"{one.ratio:.0f}x"
        lines.append(
            f"{one.program:<26}{one.rate_samples:>10.0f}{one.threshold_samples:>11}{ratio:>9}{one.rows:>7}"
            f"{one.moved_bytes / 1e9:>8.2f} GB   {rate:>6} {threshold:>6} {rate / threshold:>6.0f}x"
        )
    known = [one.ratio for one in counts if one.ratio is not None]
    if known:
        lines.append(f"median ratio {statistics.median(known):.0f}x, highest {max(known):.0f}x (paper: 18x, 676x)")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
