"""A comparison of arms over the programs of one catalogue: the frame that the benchmarks of speed have in common."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from harness.arms import arms
from harness.errors import BenchmarkError
from harness.interleave import Plan, measure
from harness.measure import Bench
from harness.peers import peer_arms
from harness.report import summary, whole
from harness.store import Store
from harness.survey import ENVIRONMENTS, ROOT

Function = TypeVar("Function", bound=Callable[..., object])


def options(results: str, rounds: int) -> Callable[[Function], Function]:
    """The options that every such benchmark has; `results` is the default folder's name."""
    chosen = [
        click.option("--rounds", type=click.IntRange(min=1), default=rounds, show_default=True),
        click.option("--programs", "names", help="Comma-separated; all of them if left out."),
        click.option(
            "--seconds", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Least bare run time."
        ),
        click.option("--quick", is_flag=True, help="One short round, to see that everything works."),
        click.option("--arm", "others", multiple=True, metavar="NAME=COMMAND", help="Compare this, not tachograph."),
        click.option("--peers", default="", help="Profilers to compare as well, comma-separated, or 'all'."),
        click.option("--peer-rounds", type=click.IntRange(min=1), help="Rounds in which the peers take part."),
        click.option(
            "--timeout", type=float, default=60.0, show_default=True, help="Seconds after which a run is given up."
        ),
        click.option(
            "--results", type=click.Path(path_type=Path, file_okay=False), help=f"Default: results/{results}."
        ),
        click.option("--fresh", is_flag=True, help="Forget earlier results."),
    ]

    def decorate(function: Function) -> Function:
        for option in reversed(chosen):
            function = option(function)
        return function

    return decorate


def pick(names: str | None, programs: list[str]) -> list[str]:
    """The programs named in a comma-separated list; all if there is none."""
    if names is None:
        return programs
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in programs:
            raise BenchmarkError(f"--programs: there is no program {name!r}; there are {', '.join(programs)}")
    return chosen


def store_of(benchmark: str, results: Path | None, *, quick: bool, fresh: bool) -> Store:
    """Where a benchmark keeps its results: what `--results` names, or a folder of its own; `--quick` begins anew."""
    store = Store(results or ROOT / "results" / (f"{benchmark}-quick" if quick else benchmark))
    if fresh or quick:
        store.clear()
    return store


def show(plan: Plan, store: Store) -> None:
    """Prints the table and writes summary.json."""
    shown, against = plan.compared()
    found = summary(store.rows(), plan.programs, shown, against)
    (store.folder / "summary.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(whole(found, plan.programs, shown))
    print(f"rows and summary: {store.folder}")


def compare(
    benchmark: str,
    catalogue: str,
    programs: list[str],
    *,
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
    """Measures, prints the table and writes summary.json; ends with status 2 and one line if it cannot."""
    try:
        store = store_of(benchmark, results, quick=quick, fresh=fresh)
        compared = arms(list(others), peer_arms(peers, ENVIRONMENTS))
        chosen = pick(names, programs)
        plan = Plan(chosen, compared, 1 if quick else rounds, 0.2 if quick else seconds, peer_rounds=peer_rounds)
        measure(plan, Bench(catalogue, None, timeout), store)
        show(plan, store)
    except BenchmarkError as error:
        print(f"{benchmark}: {error}", file=sys.stderr)
        sys.exit(2)
