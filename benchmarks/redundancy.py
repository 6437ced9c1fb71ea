"""PieProf's experiment: what looking for repeated work costs (figures 4 and 5), and what it finds (table 2).

    python benchmarks/redundancy.py --fresh              # both, about forty minutes
    python benchmarks/redundancy.py --only cost --fresh  # what it costs: fifteen minutes
    python benchmarks/redundancy.py --quick              # a few turns: does it work?
    python benchmarks/redundancy.py --page               # the page alone, from the last results

Cost: bare, bare again (the noise floor), and `--redundancy` for both kinds and for each alone, all side by side, each a
tenth of a second in its turn, in six sets of processes. Table 2: each program is recorded as it was and as it was
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

from harness.arms import BARE, BARE_AGAIN, RECORD, Arm, beside_bare
from harness.comparison import pick
from harness.errors import BenchmarkError
from harness.in_turn import Turn, Turns, added_memory
from harness.ours import analysis
from harness.survey import ROOT
from harness.turn_plan import Catalogue, Plan, take_missing
from harness.turn_tables import by_program, middle_and_worst
from page.one_section import put_section
from page.sections import REPEATED_WORK
from programs.repeated_work import AFTER, OVERHEAD, TABLE_2, names_of_table_2

REDUNDANCY = f"{RECORD} --redundancy"
BOTH = "redundancy"
ARMS = {
    BOTH: REDUNDANCY,
    "loads alone": f"{REDUNDANCY} --accesses loads",
    "stores alone": f"{REDUNDANCY} --accesses stores",
    "sampling": f"{RECORD} --cpu-only",
    "redundancy and memory": f"{REDUNDANCY} --with-memory",
}
USUAL = (BOTH, "loads alone", "stores alone")
"""The arms that are compared if no others are asked for."""
MEDIAN, WORST, MEMORY_BYTES = 1.05, 1.10, 8 << 20
"""What both kinds together may cost: slowdowns over the programs, and memory beyond the bare program's."""
PAPER_SLOWDOWNS = {"loads alone": "1.04 to 1.22", "stores alone": "1.03 to 1.08"}
"""Medians over its programs, from few samples to many."""
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
    "adam": 1.07,
    "ggnn": 1.07,
    "normalize": 1.7,
    "learning": 3.0,
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
@click.option("--only", type=click.Choice(["cost", "found"]), help="One half: what it costs, or what it finds.")
@click.option("--rounds", type=click.IntRange(min=1), default=6, show_default=True, help="Sets of processes.")
@click.option("--turns", type=click.IntRange(min=1), default=4, show_default=True, help="Of each set.")
@click.option("--seconds", type=click.FloatRange(min=0.01), default=0.1, show_default=True, help="CPU time of a turn.")
@click.option("--programs", "names", help="Comma-separated; all of them if left out.")
@click.option("--arms", default=",".join(USUAL), show_default=True, help=f"Of {', '.join(ARMS)}.")
@click.option("--quick", is_flag=True, help="A few short turns, to see that everything works.")
@click.option("--timeout", type=float, default=120.0, show_default=True, help="Seconds after which a set is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/redundancy.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
@click.option("--page", "page_alone", is_flag=True, help="Measure nothing; write the page from the results.")
@click.option("--record-seconds", type=float, default=15.0, show_default=True, help="CPU time of a program of table 2.")
def main(
    only: str | None,
    rounds: int,
    turns: int,
    seconds: float,
    names: str | None,
    arms: str,
    quick: bool,
    timeout: float,
    results: Path | None,
    fresh: bool,
    page_alone: bool,
    record_seconds: float,
) -> None:
    """What looking for repeated work costs, and what it finds."""
    if quick:
        rounds, turns, seconds, record_seconds = 1, 2, 0.02, 2.0
    try:
        folder = results or ROOT / "results" / ("redundancy-quick" if quick else "redundancy")
        taken, table_2 = Turns(folder / "turns.jsonl"), folder / "table_2.json"
        chosen, asked = pick(names, list(OVERHEAD)), pick(arms, list(ARMS))
        if page_alone:
            told = [cost(taken.all(), chosen, asked), table(of_last_run(table_2))]
            (folder / "table.txt").write_text("\n\n".join(told) + "\n", encoding="utf-8")
            print(put_section(REPEATED_WORK, folder, ROOT / "docs"))
            return
        if fresh or quick:
            taken.clear()
        if only != "found":
            compared = beside_bare({each: ARMS[each] for each in asked})
            catalogue = Catalogue("repeated_work", Path(sysconfig.get_path("purelib")))
            take_missing(taken, dict.fromkeys(chosen, catalogue), compared, Plan(rounds, turns, seconds, timeout))
            print(cost(taken.all(), chosen, asked) + "\n")
        if only != "cost":
            found = [find(name, record_seconds) for name in (["cec_power"] if quick else names_of_table_2())]
            table_2.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
            print(table(found))
    except BenchmarkError as error:
        print(f"redundancy: {error}", file=sys.stderr)
        sys.exit(2)


def of_last_run(file: Path) -> list[Found]:
    """What was found in the programs of table 2."""
    if not file.exists():
        raise BenchmarkError(f"there is no {file}: run this without --page")
    return [Found(**each) for each in json.loads(file.read_text(encoding="utf-8"))]


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


def cost(turns: list[Turn], programs: list[str], arms: list[str]) -> str:
    """What it takes: of all programs, and of each."""
    return f"{verdict(turns, programs, arms)}\n\n{each_program(turns, programs, arms)}"


def verdict(turns: list[Turn], programs: list[str], arms: list[str]) -> str:
    """CPU time and memory beside what they may be, and the paper's. A second bare arm tells what chance does.

    Ratios are of CPU time in the same turn, over the mean of both bare arms; intervals of 95 % over sets of processes.
    """
    lines = [
        f"{'CPU time, of the bare one':<26}{'median of programs':<25}{'worst program':<25}  "
        f"{'':<28}{'memory, MB':>11}  paper's medians"
    ]
    for arm in (BARE_AGAIN, *arms):
        found = middle_and_worst(turns, programs, arm)
        if found is None:
            continue
        center, worst, slowest = found
        added = [more for program in programs if (more := added_memory(turns, program, arm, BARE)) is not None]
        memory = max(added, default=0.0)
        said = PAPER_SLOWDOWNS.get(arm, "")
        if arm == BOTH:
            kept = center.value <= MEDIAN and worst.value <= WORST and memory <= MEMORY_BYTES
            said = "kept" if kept else "not kept"
        row = f"{arm:<26}{center!s:<25}{worst!s:<25}  {slowest:<28}{memory / (1 << 20):>11.1f}  {said}"
        lines.append(row.rstrip())
    lines.append(f"{BOTH} may take {MEDIAN} in the median, {WORST} at most, and {MEMORY_BYTES >> 20} MB.")
    return "\n".join(lines)


def each_program(turns: list[Turn], programs: list[str], arms: list[str]) -> str:
    """The ratios of each program, with the memory of the first arm."""

    def memory(program: str) -> str:
        return f"{(added_memory(turns, program, arms[0], BARE) or 0.0) / (1 << 20):>11.1f}"

    head = f"{'program':<28}" + "".join(f"{arm:<25}" for arm in (BARE_AGAIN, *arms)) + f"{'memory, MB':>11}"
    return "\n".join([head, *by_program(turns, programs, arms, memory)])


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
