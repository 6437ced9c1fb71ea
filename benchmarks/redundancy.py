"""PieProf's experiment: what looking for repeated work costs (figures 4 and 5), and what it finds (table 2).

    python benchmarks/redundancy.py --fresh            # five rounds and table 2, about forty minutes on a quiet machine
    python benchmarks/redundancy.py --quick            # one short round: does it work?

Bare, bare again (the noise floor), sampled alone, with `--redundancy` for both kinds and for each alone, and with
memory as well: interleaved as in `overhead.py`. Then each program of table 2 is recorded as it was and as it was
rewritten, for the same CPU time, and both forms are timed. The programs are in programs/repeated_work.py; they need
numpy, numexpr and scikit-learn beside tachograph.
"""

import json
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from harness.arms import BARE, BARE_AGAIN, RECORD, Arm
from harness.comparison import options, pick, show, store_of
from harness.errors import BenchmarkError
from harness.interleave import Plan, measure
from harness.measure import Bench
from harness.ours import analysis
from harness.store import Row
from harness.summary import ratio, size
from programs.repeated_work import AFTER, OVERHEAD, TABLE_2, names_of_table_2

REDUNDANCY = f"{RECORD} --redundancy"
BOTH = "redundancy"
ARMS = {
    "sampling": f"{RECORD} --cpu-only",
    BOTH: REDUNDANCY,
    "loads alone": f"{REDUNDANCY} --accesses loads",
    "stores alone": f"{REDUNDANCY} --accesses stores",
    "redundancy and memory": f"{REDUNDANCY} --with-memory",
}
MEDIAN, WORST, MEMORY_BYTES = 1.05, 1.10, 8 << 20
"""What both kinds together may cost: slowdowns over the programs, and memory beyond the bare program's."""
PAPER_SLOWDOWNS = {"loads alone": "1.05 to 1.22", "stores alone": "1.03 to 1.09"}
LONGER = 3
"""So many times the CPU time for a program of table 2 whose finding is not beyond doubt: where traps are dear, pairs
are few.
"""
PAPER = {
    "iris": 2.02,
    "cec_4": 27.3,
    "cec_9": 1.9,
    "cec_power": 1.4,
    "rotate": 2.8,
    "conv": 3.9,
    "lars_path": 6.1,
    "regression": 1.5,
    "adx": 16.6,
    "cholesky": 3.9,
    "product": 3.0,
}
"""How much faster the function became, in the paper."""


@dataclass(frozen=True)
class Found:
    """A program of table 2. Quantities in CPU seconds; None where nothing is found."""

    name: str
    speedup: float
    paper: float | None
    place: int | None
    """Of the finding, in the list; from 1."""
    category: str | None
    kind: str | None
    before_s: float | None
    after_s: float
    """Of the same category, in the rewritten form, for as much work."""


@click.command()
@options("redundancy", rounds=5)
@click.option("--record-seconds", type=float, default=15.0, show_default=True, help="CPU time of a program of table 2.")
def main(
    rounds: int,
    names: str | None,
    seconds: float,
    quick: bool,
    others: tuple[str, ...],
    peers: str,
    peer_rounds: int | None,
    timeout: float,
    results: Path | None,
    fresh: bool,
    record_seconds: float,
) -> None:
    """What looking for repeated work costs, and what it finds."""
    try:
        if others or peers or peer_rounds:
            raise BenchmarkError("the arms of this benchmark are fixed: no other profiler looks for repeated work")
        store = store_of("redundancy", results, quick=quick, fresh=fresh)
        chosen = pick(names, list(OVERHEAD))
        compared = [Arm(BARE, "{python}"), Arm(BARE_AGAIN, "{python}"), *(Arm(*each) for each in ARMS.items())]
        plan = Plan(chosen, compared, 1 if quick else rounds, 0.2 if quick else seconds)
        measure(plan, Bench("repeated_work", Path(sysconfig.get_path("purelib")), timeout), store)
        table_2 = ["cec_power"] if quick else names_of_table_2()
        found = [find(name, 2.0 if quick else record_seconds) for name in table_2]
        (store.folder / "table_2.json").write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
        print(table(found) + "\n")
        print(verdict(store.rows(), chosen) + "\n")
        show(plan, store)
    except BenchmarkError as error:
        print(f"redundancy: {error}", file=sys.stderr)
        sys.exit(2)


def find(name: str, seconds: float) -> Found:
    """Records both forms of a program of table 2, and times them bare."""
    first = findings(name, seconds)
    if not any(each["category"] for each in first):
        seconds *= LONGER
        first = findings(name, seconds)
    later = findings(name + AFTER, seconds)
    decided = [each for each in first if each["category"] is not None]
    best = decided[0] if decided else first[0] if first else None
    category = best["category"] if best else None
    faster = rate(name + AFTER) / rate(name)
    return Found(
        name,
        faster,
        PAPER.get(name),
        first.index(best) + 1 if best else None,
        category,
        best["kind"] if best else None,
        sum(each["quantity_s"] for each in first if each["category"] == category) if best else None,
        # In the same CPU time it goes through its work so many times more.
        sum(each["quantity_s"] for each in later if each["category"] == category) / faster,
    )


def findings(name: str, seconds: float) -> list[dict[str, Any]]:
    """What is reported of a program, the largest first."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        recording = Path(folder) / "recording.tacho"
        run(Arm(name, REDUNDANCY).command([str(TABLE_2), name, str(seconds)], recording))
        found: list[dict[str, Any]] | None = analysis(recording)["redundancies"]
        if found is None:
            raise BenchmarkError("this machine gives no watchpoints")
        return found


def rate(name: str) -> float:
    """Rounds of a program in a second, bare: the median of five."""
    command = [sys.executable, str(TABLE_2), name, "0.4"]
    return statistics.median(float(run(command).split()[-1]) / 0.4 for _ in range(5))


def run(command: list[str]) -> str:
    """What a command prints."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command[-3:])}: {done.stderr[-200:]}")
    return done.stdout


def verdict(rows: list[Row], programs: list[str]) -> str:
    """CPU time and memory beside what they may be, and the paper's. A second bare run tells what chance does.

    Ratios are of CPU time and between arms of the same round, of which the least is taken for each program: what else
    runs on the machine makes a run slower and never faster.
    """
    lines = [f"{'CPU time, of the bare run':<24}{'median':>8}{'worst':>8}  {'program':<28}{'memory, MB':>11}  paper"]
    for arm in (BARE_AGAIN, *ARMS):
        found = {program: ratio(rows, program, arm, BARE, lambda row: row.in_program_cpu_s) for program in programs}
        ratios = {program: each.of_fastest for program, each in found.items() if each is not None}
        if not ratios:
            continue
        slowest = max(ratios, key=lambda program: ratios[program])
        added = [more for program in programs if (more := size(rows, program, arm, BARE).above_bare) is not None]
        middle, memory = statistics.median(ratios.values()), max(added, default=0.0)
        kept = middle <= MEDIAN and ratios[slowest] <= WORST and memory <= MEMORY_BYTES
        lines.append(
            f"{arm:<24}{middle:>8.3f}{ratios[slowest]:>8.3f}  {slowest:<28}{memory / (1 << 20):>11.1f}  "
            + (PAPER_SLOWDOWNS.get(arm, "") if arm != BOTH else "kept" if kept else "not kept")
        )
    lines.append(f"{BOTH} may take {MEDIAN} in the median, {WORST} at most, and {MEMORY_BYTES >> 20} MB.")
    return "\n".join(lines)


def table(found: list[Found]) -> str:
    """Table 2: what is found, and how much faster the function becomes, beside the paper's."""
    lines = [
        f"{'program':<12}{'faster':>8}{'paper':>8}{'place':>7}  {'category':<30}{'kind':<7}{'before':>8}{'after':>8}",
        f"{'':<12}{'':>8}{'':>8}{'':>7}  {'':<30}{'':<7}{'s':>8}{'s':>8}",
    ]
    for each in found:
        paper = "-" if each.paper is None else f"{each.paper:.1f}"
        before = "-" if each.before_s is None else f"{each.before_s:.2f}"
        lines.append(
            f"{each.name:<12}{each.speedup:>8.1f}{paper:>8}{each.place or '-':>7}  {each.category or '-':<30}"
            f"{each.kind or '-':<7}{before:>8}{each.after_s:>8.2f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
