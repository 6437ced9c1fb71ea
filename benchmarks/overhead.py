"""What recording costs: pyperformance programs bare and recorded, interleaved, in one run of this command.

    python benchmarks/overhead.py                      # the whole of it: nine rounds, about forty minutes
    python benchmarks/overhead.py --quick              # one short round of two programs: does it work?
    python benchmarks/overhead.py --arm 'peer=peer run -o {recording} {program}'

Every round runs every program once in each arm, one after another: bare, bare again (whose ratio to the first is the
noise floor), recorded. The order of the arms turns with the round. Programs run for a fixed number of passes, chosen
once so that the bare program takes at least `--seconds`. Two times are compared: the program's own, taken inside it
around its work, and the whole command's. Then start-up and finalising are measured, in the same interleaved way.

Rows are kept in `--results` as they are measured (rows.csv); an interrupted run goes on where it stopped. The summary
is printed and written to summary.json.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from harness import programs as programs_folder
from harness.arms import BARE, Arm, arms
from harness.errors import BenchmarkError
from harness.measure import START_UP, Bench
from harness.report import summary, table
from harness.store import Row, Store
from programs.driver import PROGRAMS

ROOT = Path(__file__).resolve().parent.parent
LONG_PROGRAM = "raytrace"
LONG = "long run of " + LONG_PROGRAM
"""The ten-second run after which finalising is timed, as a program in the table of rows."""


@dataclass(frozen=True)
class Plan:
    """What is measured. Times in seconds."""

    programs: list[str]
    arms: list[Arm]
    rounds: int
    seconds: float
    long_seconds: float
    start_ups: int


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=9, show_default=True)
@click.option("--programs", "names", help=f"Comma-separated; all of them if left out: {', '.join(PROGRAMS)}.")
@click.option("--seconds", type=click.FloatRange(min=0.01), default=3.0, show_default=True, help="Least bare run time.")
@click.option("--quick", is_flag=True, help="One short round of two programs, to see that everything works.")
@click.option("--arm", "others", multiple=True, metavar="NAME=COMMAND", help="Compare this instead of tachograph.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/overhead.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
def main(
    rounds: int,
    names: str | None,
    seconds: float,
    quick: bool,
    others: tuple[str, ...],
    timeout: float,
    results: Path | None,
    fresh: bool,
) -> None:
    """What recording costs: programs bare and recorded, interleaved."""
    try:
        chosen = _chosen(names)
        if quick:
            plan = Plan(chosen if names else ["fannkuch", "async_tree_none"], arms(list(others)), 1, 0.5, 1.0, 3)
        else:
            plan = Plan(chosen, arms(list(others)), rounds, seconds, 10.0, max(rounds, 15))
        folder = results or ROOT / "results" / ("overhead-quick" if quick else "overhead")
        store = Store(folder)
        if fresh or quick:
            store.clear()
        _measure(plan, store, timeout)
        _show(plan, store, folder)
    except BenchmarkError as error:
        print(f"overhead: {error}", file=sys.stderr)
        sys.exit(2)


def _chosen(names: str | None) -> list[str]:
    if names is None:
        return list(PROGRAMS)
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in PROGRAMS:
            raise BenchmarkError(f"--programs: there is no program {name!r}; there are {', '.join(PROGRAMS)}")
    return chosen


def _measure(plan: Plan, store: Store, timeout_s: float) -> None:
    site = ROOT / "build" / "benchmarks" / f"pyperformance-{platform.python_version()}"
    bench = Bench(site, programs_folder.install(site), timeout_s)
    store.agree(
        {
            "python": platform.python_version(),
            "cpu_count": os.cpu_count(),
            "seconds": plan.seconds,
            "arms": {arm.name: arm.template for arm in plan.arms},
        }
    )
    known = {row.key for row in store.rows()}
    loops = {row.program: row.loops for row in store.rows() if row.arm == BARE}
    steps = list(_steps(plan))
    with _progress(len(steps)) as show:
        for done, (number, name, arm) in enumerate(steps):
            show(done, f"round {number + 1}: {name}, {arm.name}")
            if (number, name, arm.name) not in known:
                store.append(_run(plan, bench, loops, number, name, arm))


def _steps(plan: Plan) -> Iterator[tuple[int, str, Arm]]:
    """Everything to run, in order: round, program, arm. The order of the arms turns with the round."""
    for number in range(max(plan.rounds, plan.start_ups)):
        names: list[str] = []
        if number < plan.rounds:
            names += plan.programs
        if number < min(plan.rounds, 5):
            names.append(LONG)
        if number < plan.start_ups:
            names.append(START_UP)
        turn = number % len(plan.arms)
        for name in names:
            for arm in plan.arms[turn:] + plan.arms[:turn]:
                yield number, name, arm


def _run(plan: Plan, bench: Bench, loops: dict[str, int], number: int, name: str, arm: Arm) -> Row:
    """Measures one step. `loops` holds, and gets, the number of passes for each program."""
    if name == START_UP:
        return bench.start_up(number, arm)
    program, seconds = (LONG_PROGRAM, plan.long_seconds) if name == LONG else (name, plan.seconds)
    if name not in loops:
        loops[name] = bench.calibrate(plan.arms[0], program, seconds)
    return replace(bench.program(number, arm, program, loops[name]), program=name)


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal, nothing anywhere else."""
    if not sys.stderr.isatty():
        yield lambda _done, _text: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=done, description=text)


def _show(plan: Plan, store: Store, folder: Path) -> None:
    compared = [arm.name for arm in plan.arms[2:]]
    found = summary(store.rows(), plan.programs, compared, LONG)
    target = folder / "summary.json"
    target.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(table(found, plan.programs, compared))
    print(f"rows and summary: {folder}")


if __name__ == "__main__":
    main()
