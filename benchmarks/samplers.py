"""The delay of signals against native sampling, on real programs: how much of the time is Python?

    python benchmarks/samplers.py                      # the ten programs, five seconds each: two minutes
    python benchmarks/samplers.py --quick              # two programs, a second each

Each program is recorded by tachograph's two samplers, one after the other: `signal`, which is the published algorithm
of the Scalene papers (OSDI 2023, section 2) and infers native time from late signals, and `native`, which looks at the
program counter. The difference is in percentage points of the CPU time.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from harness.arms import RECORD, Arm
from harness.ours import analysis
from harness.sample import over_programs, record_program
from harness.survey import ROOT, complaints
from programs.suite import PROGRAMS

ARMS = {
    "native": Arm("native", f"{RECORD} --cpu-only"),
    "signal": Arm("signal", f"{RECORD} --sampler signal"),
}


@dataclass(frozen=True)
class Split:
    """Percent of the CPU time that is Python's, as each sampler tells; None where it saw nothing."""

    program: str
    native: float | None
    signal: float | None
    samples: dict[str, int]


@click.command()
@click.option("--seconds", type=click.FloatRange(min=0.01), default=5.0, show_default=True, help="Least time of a run.")
@click.option("--quick", is_flag=True, help="Two programs of one second, to see that everything works.")
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), help="Default: results/samplers.json.")
def main(seconds: float, quick: bool, results: Path | None) -> None:
    """The two samplers on the ten programs."""
    names = ["fannkuch", "docutils"] if quick else list(PROGRAMS)
    with complaints("samplers"):
        splits = over_programs(names, lambda name, site: compare(name, site, 1.0 if quick else seconds))
    print(table(splits))
    target = results or ROOT / "results" / "samplers.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps([asdict(split) for split in splits], indent=1) + "\n", encoding="utf-8")


def compare(program: str, site: Path, seconds: float) -> Split:
    """Records a program with both samplers."""
    totals: dict[str, dict[str, Any]] = {}
    for name, arm in ARMS.items():
        with record_program(arm, program, site, seconds) as recording:
            totals[name] = analysis(recording)["totals"]
    shares = {name: python_share(total) for name, total in totals.items()}
    samples = {name: total["samples"] for name, total in totals.items()}
    return Split(program, shares["native"], shares["signal"], samples)


def python_share(totals: dict[str, Any]) -> float | None:
    """Percent of the CPU time that is Python's."""
    return 100.0 * totals["python_s"] / totals["cpu_s"] if totals["cpu_s"] else None


def table(splits: list[Split]) -> str:
    """The table for people."""
    lines = [f"{'Python, % of CPU time':<26}{'native sampler':>16}{'signal delay':>16}{'difference':>14}"]
    for split in splits:
        if split.native is None or split.signal is None:
            lines.append(f"{split.program:<26}  no samples")
            continue
        difference = split.signal - split.native
        lines.append(f"{split.program:<26}{split.native:>16.1f}{split.signal:>16.1f}{difference:>+14.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
