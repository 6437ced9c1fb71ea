"""``tachograph compare``: runs two programs in turns until it is known which is slower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tachograph.format import FormatError
from tachograph.grouped_help import GroupedCommand
from tachograph.quantities import parse_seconds

from .common import OUTPUT, Failure, one_line_errors, option

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..diff.experiments.sides import Side
    from ..diff.experiments.turns import Outcome, Plan
    from ..report_data.experiment import Answer

DEFAULT_EFFECT = "3%"
DEFAULT_TIME = "5m"
MOST_WARMUP = 1000

COMPARED, ANSWER, RUNS = "What to compare", "When it is known", "Runs"
"""Further groups of options in ``--help``."""


def _percent(ctx: click.Context, param: click.Parameter, value: str) -> float:
    text = value.strip().removesuffix("%").strip()
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.01 <= number <= 1000:
        raise click.BadParameter(f"{value!r} is not a share such as 3% (0.01 to 1000)", ctx, param)
    return number / 100


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    number = parse_seconds(value, bare=True)
    if number is None or not 0 < number <= 7 * 86400:
        raise click.BadParameter(f"{value!r} is not a time such as 90s or 5m (at most 7d)", ctx, param)
    return number


@click.command(
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph compare 'python old.py' 'python new.py'\n"
    "  tachograph compare --base main --new HEAD -- python bench.py\n"
    "  tachograph compare --base HEAD --new . -- python bench.py   uncommitted work\n"
    "  tachograph compare 'envs/a/bin/python job.py' 'envs/b/bin/python job.py'\n"
    "  tachograph compare --effect 1% --time 20m 'python old.py' 'python new.py'\n"
    "  tachograph compare --json - 'python old.py' 'python new.py' | jq .verdict",
    help="Run two programs in turns, and tell which is slower, by how much, and in which function.\n\n"
    "BASE and NEW are command lines, in quotes. With --base and --new they are revisions of this git repository, and"
    " COMMAND runs in a worktree of each. It stops as soon as the answer is known. Exit status: 1 if NEW is slower,"
    " needs more, or is mixed; 0 otherwise. All options: tachograph help cli",
)
@click.argument("commands", nargs=-1, required=True, metavar="BASE NEW | -- COMMAND...")
@option("--base", group=COMPARED, metavar="REVISION", help="The revision to compare with.")
@option("--new", group=COMPARED, metavar="REVISION", help="The other one; '.' is the working tree.")
@option(
    "--effect",
    group=ANSWER,
    default=DEFAULT_EFFECT,
    metavar="PERCENT",
    callback=_percent,
    help=f"Smallest change that matters. [default: {DEFAULT_EFFECT}]",
)
@option(
    "--time",
    "time_s",
    group=ANSWER,
    default=DEFAULT_TIME,
    metavar="TIME",
    callback=_seconds,
    help=f"The longest that it may take. [default: {DEFAULT_TIME}]",
)
@option("--strict", group=ANSWER, is_flag=True, help="Exit status 1 also if not judged.")
@option(
    "--warmup",
    group=RUNS,
    type=click.IntRange(0, MOST_WARMUP),
    default=1,
    metavar="N",
    help="First pairs, which do not count. [default: 1]",
)
@option(
    "--interval",
    group=RUNS,
    type=click.FloatRange(0.1, 1000),
    default=1.0,
    metavar="MS",
    help="CPU time between two samples. [default: 1]",
)
@option("-i", "--ignore-failure", group=RUNS, is_flag=True, help="Go on if a run fails.")
@option("-o", "--output", group=OUTPUT, metavar="DIR", help="Recordings' folder. [default: compare-001]")
@option("--json", group=OUTPUT, metavar="FILE|-", help="Write the answer as JSON.")
@one_line_errors
def compare(
    commands: tuple[str, ...],
    base: str | None,
    new: str | None,
    effect: float,
    time_s: float,
    warmup: int,
    interval: float,
    ignore_failure: bool,
    output: str | None,
    strict: bool,
    json: str | None,
) -> None:
    """Compares two programs."""
    from ..diff.experiments.folder import next_folder
    from ..diff.experiments.turns import Plan, run_in_turns
    from ..report_data.difference import NOT_JUDGED
    from ..report_data.experiment import MIXED, WORSE

    with _sides(commands, base, new) as sides:
        folder = next_folder() if output is None else Path(output)
        options = ("--interval", f"{interval:g}")
        plan = Plan(sides, folder, effect, time_s, warmup, options, ignore_failure)
        with _watching(plan) as watch:
            outcome = run_in_turns(plan, watch)
    _tell(plan, outcome, json)
    verdict = outcome.answer.verdict
    if verdict in WORSE or verdict == MIXED or (strict and verdict == NOT_JUDGED):
        click.get_current_context().exit(1)


def _sides(commands: tuple[str, ...], base: str | None, new: str | None) -> AbstractContextManager[tuple[Side, Side]]:
    from ..diff.experiments.sides import two_commands, two_revisions

    if base is not None and new is not None:
        return two_revisions(base, new, commands)
    if base is not None or new is not None:
        raise Failure("revisions need both sides: tachograph compare --base main --new HEAD -- python bench.py")
    if len(commands) != 2:
        raise Failure(
            f"a comparison is of two commands, not {len(commands)}: put each in quotes, as in"
            " tachograph compare 'python old.py' 'python new.py'"
        )
    return nullcontext(two_commands(*commands))


@contextmanager
def _watching(plan: Plan) -> Iterator[Callable[[Answer, float], None]]:
    """A line on standard error that says what is known so far; nothing unless that is a terminal."""
    from rich.console import Console
    from rich.live import Live

    from ..render.terminal.experiment_lines import progress_line, waiting_line

    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield lambda answer, took_s: None
        return
    with Live(waiting_line(), console=console, transient=True, auto_refresh=False) as live:
        live.refresh()
        yield lambda answer, took_s: live.update(progress_line(answer, took_s, plan.time_s), refresh=True)


def _tell(plan: Plan, outcome: Outcome, json: str | None) -> None:
    if not outcome.answer.pairs:
        raise FormatError(_nothing(plan, outcome))
    if json is not None:
        from ..recording.output_file import write_text
        from ..render.json_document import pieces
        from ..render.json_experiment import document

        facts = {
            "ended": outcome.ended,
            "took_s": outcome.took_s,
            "effect_that_matters": plan.effect,
            "folder": str(plan.folder),
            "sides": {
                side.name: {
                    "command": list(side.command),
                    "revision": side.revision,
                    "recordings": outcome.runs[side.name],
                }
                for side in plan.sides
            },
        }
        write_text(pieces({**document(outcome.answer), **facts}), json)
    if json != "-":
        from rich.console import Console

        from ..render.terminal.experiment_lines import show

        labels = [side.label for side in plan.sides]
        console = Console(highlight=False, markup=False, emoji=False)
        show(outcome.answer, labels, outcome.took_s, str(plan.folder), console)


def _nothing(plan: Plan, outcome: Outcome) -> str:
    from ..diff.experiments.turns import INTERRUPTED

    if outcome.ended == INTERRUPTED:
        return "interrupted before the first pair of runs was complete"
    return f"no pair of runs was complete in {plan.time_s:g} s after {plan.warmup} for warm-up: give more --time"
