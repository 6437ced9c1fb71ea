"""What recording costs loops that do little but allocate or copy: the worst programs for a recorder of memory.

    python benchmarks/allocation.py                    # nine rounds, about five minutes
    python benchmarks/allocation.py --quick            # one short round: does it work?

Bare, bare again (the noise floor), recorded without memory, recorded in full: interleaved as in `overhead.py`. The
loops are in programs/loops.py.
"""

import json
import sys
from pathlib import Path

import click

from harness.arms import arms
from harness.errors import BenchmarkError
from harness.interleave import Plan, measure
from harness.measure import Bench
from harness.report import summary, table
from harness.store import Store
from programs.loops import PROGRAMS

ROOT = Path(__file__).resolve().parent.parent


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option("--seconds", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Least bare run time.")
@click.option("--quick", is_flag=True, help="One short round, to see that everything works.")
@click.option("--arm", "others", multiple=True, metavar="NAME=COMMAND", help="Compare this instead of tachograph.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/allocation.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
def main(
    rounds: int,
    seconds: float,
    quick: bool,
    others: tuple[str, ...],
    timeout: float,
    results: Path | None,
    fresh: bool,
) -> None:
    """What recording costs loops that allocate and copy."""
    try:
        folder = results or ROOT / "results" / ("allocation-quick" if quick else "allocation")
        store = Store(folder)
        if fresh or quick:
            store.clear()
        plan = Plan(list(PROGRAMS), arms(list(others)), 1 if quick else rounds, 0.2 if quick else seconds)
        measure(plan, Bench("loops", None, timeout), store)
        compared = [arm.name for arm in plan.arms[2:]]
        found = summary(store.rows(), plan.programs, compared)
        (folder / "summary.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
        print(table(found, plan.programs, compared))
        print(f"rows and summary: {folder}")
    except BenchmarkError as error:
        print(f"allocation: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
