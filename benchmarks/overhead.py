"""What recording costs: pyperformance programs bare and recorded, interleaved, in one run of this command.

    python benchmarks/overhead.py                      # the whole of it: nine rounds, about fifty minutes
    python benchmarks/overhead.py --quick              # one short round of two programs: does it work?
    python benchmarks/overhead.py --arm 'peer=peer run -o {recording} {program}'
    python benchmarks/overhead.py --peers scalene,memray,py-spy --timeout 60

Every round runs every program once in each arm, one after another: bare, bare again (whose ratio to the first is the
noise floor), recorded without memory, recorded in full. The order of the arms turns with the round. Programs run for a
fixed number of passes, chosen once so that the bare program takes at least `--seconds`. Two times are compared: the
program's own, taken inside it around its work, and the whole command's. Beside them stand the program's largest
resident set and the size of what is left on disk. Then start-up and finalising are measured, in the same interleaved
way.

Rows are kept in `--results` as they are measured (rows.csv); an interrupted run goes on where it stopped. The summary
is printed and written to summary.json.
"""

import json
import sys
from pathlib import Path

import click

from harness import programs
from harness.arms import arms
from harness.comparison import pick, store_of
from harness.errors import BenchmarkError
from harness.interleave import LongRun, Plan, measure
from harness.measure import Bench
from harness.peers import peer_arms
from harness.report import long_run, long_run_table, summary, whole
from harness.store import Store
from harness.survey import ENVIRONMENTS
from programs.suite import PROGRAMS

LONG_PROGRAM = "raytrace"
LONG = "long run of " + LONG_PROGRAM
"""The ten-second run after which finalising is timed, as a program in the table of rows."""


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option("--programs", "names", help=f"Comma-separated; all of them if left out: {', '.join(PROGRAMS)}.")
@click.option("--seconds", type=click.FloatRange(min=0.01), default=3.0, show_default=True, help="Least bare run time.")
@click.option("--quick", is_flag=True, help="One short round of two programs, to see that everything works.")
@click.option("--arm", "others", multiple=True, metavar="NAME=COMMAND", help="Compare this instead of tachograph.")
@click.option("--peers", default="", help="Profilers to compare as well, comma-separated (benchmarks/peers), or 'all'.")
@click.option("--peer-rounds", type=click.IntRange(min=1), help="Rounds in which the peers take part; all if left out.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/overhead.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
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
) -> None:
    """What recording costs: programs bare and recorded, interleaved."""
    try:
        chosen = pick(names, list(PROGRAMS))
        compared = arms(list(others), peer_arms(peers, ENVIRONMENTS))
        if quick:
            few = chosen if names else ["fannkuch", "async_tree_none"]
            plan = Plan(few, compared, 1, 0.5, LongRun(LONG, LONG_PROGRAM, 1.0, 1), 3)
        else:
            long = LongRun(LONG, LONG_PROGRAM, 10.0, 3)
            plan = Plan(chosen, compared, rounds, seconds, long, max(rounds, 15), peer_rounds)
        store = store_of("overhead", results, quick=quick, fresh=fresh)
        measure(plan, Bench("suite", programs.installed(), timeout), store)
        _show(plan, store)
    except BenchmarkError as error:
        print(f"overhead: {error}", file=sys.stderr)
        sys.exit(2)


def _show(plan: Plan, store: Store) -> None:
    compared, against = plan.compared()
    rows = store.rows()
    found = summary(rows, plan.programs, compared, against)
    long = long_run(rows, LONG_PROGRAM, LONG, compared, against)
    ours = [arm.name for arm in plan.arms if not arm.peer and arm.name in compared]
    (store.folder / "summary.json").write_text(json.dumps(found | long, indent=2) + "\n", encoding="utf-8")
    print(whole(found, plan.programs, compared, long_run_table(long, ours)))
    print(f"rows and summary: {store.folder}")


if __name__ == "__main__":
    main()
