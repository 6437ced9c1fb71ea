"""What recording costs, told apart from what chance does: bare and recorded processes side by side, in turns.

    python benchmarks/side_by_side.py           # half an hour
    python benchmarks/side_by_side.py --quick   # a few turns: does it work?

Whole runs of a program that follow each other differ by several percent on a machine that others share; overhead.py has
them, beside other profilers, with start-up and end. Here all arms of a program run at once and take turns of a quarter
of a second, in several sets of processes. The ten programs of table 1, and those of native_code.py; what is not
installed (numpy, pandas, scikit-learn) is left out.
"""

import sysconfig
from pathlib import Path

import click

from harness import programs
from harness.arms import CPU_ONLY, FULL, RECORD, beside_bare
from harness.comparison import pick
from harness.in_turn import Turns
from harness.survey import ROOT, complaints
from harness.turn_plan import Catalogue, Plan, take_missing
from harness.turn_tables import costs
from programs.native_code import PROGRAMS as NATIVE
from programs.suite import PROGRAMS as TABLE_1

ARMS = {CPU_ONLY: f"{RECORD} --cpu-only", "no paths": f"{RECORD} --cpu-only --native-depth 0", FULL: RECORD}
CATALOGUES = {**dict.fromkeys(TABLE_1, "suite"), **dict.fromkeys(NATIVE, "native_code")}
"""Programs, and the module that has each."""


@click.command()
@click.option("--sets", type=click.IntRange(min=1), default=6, show_default=True, help="Sets of processes.")
@click.option("--turns", type=click.IntRange(min=1), default=4, show_default=True, help="Of each set.")
@click.option("--seconds", type=click.FloatRange(min=0.01), default=0.25, show_default=True, help="CPU time of a turn.")
@click.option("--programs", "names", help="Comma-separated; all of them if left out.")
@click.option("--quick", is_flag=True, help="A few short turns, to see that everything works.")
@click.option("--timeout", type=float, default=120.0, show_default=True, help="Seconds after which a set is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/side_by_side.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
def main(
    sets: int,
    turns: int,
    seconds: float,
    names: str | None,
    quick: bool,
    timeout: float,
    results: Path | None,
    fresh: bool,
) -> None:
    """What recording costs, told apart from what chance does."""
    with complaints("side_by_side"):
        taken = Turns((results or ROOT / "results" / "side_by_side") / "turns.jsonl")
        if fresh or quick:
            taken.clear()
        chosen = pick(names, list(CATALOGUES))
        if quick:
            chosen, sets, turns, seconds = ["fannkuch", "standard library"], 1, 2, 0.02
        sites = {"suite": programs.installed(), "native_code": Path(sysconfig.get_path("purelib"))}
        found = {name: Catalogue(CATALOGUES[name], sites[CATALOGUES[name]]) for name in chosen}
        take_missing(taken, found, beside_bare(ARMS), Plan(sets, turns, seconds, timeout))
        print(costs(taken.all(), chosen, list(ARMS)))


if __name__ == "__main__":
    main()
