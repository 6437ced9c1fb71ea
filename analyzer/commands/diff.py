"""``tachograph diff``: what became slower or faster between two recordings, or two groups of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tachograph.format import FormatError

from ..experiments.folder import is_experiment, open_experiment
from ..recording.question_options import DEFAULT_TOKENS, Attribution
from .common import (
    Failure,
    check_markdown,
    find_recording,
    markdown_options,
    one_line_errors,
    progress,
    recordings_here,
    thread_option,
    window_options,
)

if TYPE_CHECKING:
    from ..report_data.difference import DiffResult, Judgement

GROUPS = ("--base", "--new")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    recordings: tuple[str, ...]
    base: tuple[str, ...]
    new: tuple[str, ...]
    metric: str | None
    top: int | None
    shares: bool
    spread: float | None
    smallest: float
    fail_if: tuple[str, ...]
    anyway: bool
    scope: str | None
    attribution: str
    thread: str | None
    start: float | None
    end: float | None
    json: str | None
    html: str | None
    markdown: str | None
    tokens: int | None
    figures: str | None


class GroupedCommand(click.Command):
    """A command whose groups take several values: ``--base a b c`` stands for ``--base a --base b --base c``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Writes the groups out before click parses them."""
        return super().parse_args(ctx, list(spread_groups(args)))


def spread_groups(arguments: list[str]) -> Iterator[str]:
    """The arguments with the name of a group before each of its values."""
    group: str | None = None
    taken = 0
    for argument in arguments:
        if argument in GROUPS:
            group, taken = argument, 0
            yield argument
        elif group is not None and (taken == 0 or not argument.startswith("-")):
            if taken:
                yield group
            taken += 1
            yield argument
        else:
            group = None
            yield argument


@click.command(
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph diff                                   the two newest recordings here\n"
    "  tachograph diff old.tacho new.tacho\n"
    "  tachograph diff compare-001                       an experiment of 'tachograph compare'\n"
    "  tachograph diff --base a1.tacho a2.tacho a3.tacho --new b1.tacho b2.tacho b3.tacho\n"
    "  tachograph diff old.tacho new.tacho --fail-if 'cpu>5%' --fail-if 'memory.peak>10%'\n"
    "  tachograph diff old.tacho new.tacho --fail-if 'function parse* cpu>0.5s'\n"
    "  tachograph diff old.tacho new.tacho --html diff.html\n"
    "  tachograph diff old.tacho new.tacho --shares --json - | jq '.lines[0]'",
    help="Show what became slower or faster, or needs more or less memory, between two recordings.\n\n"
    "BASE is the recording to compare with; without any, they are the two newest in this folder. With --base"
    " and --new each side may have several recordings: then differences are judged by how much runs really differ."
    " Lines are followed through edits of the sources. Exit status 1: a condition of --fail-if failed.",
)
@click.argument("recordings", nargs=-1, metavar="[BASE NEW | EXPERIMENT]", type=click.Path())
@click.option("--base", multiple=True, metavar="BASE...", help="The recordings to compare with.")
@click.option("--new", multiple=True, metavar="NEW...", help="The recordings that are compared with them.")
@click.option(
    "--fail-if",
    multiple=True,
    metavar="CONDITION",
    help="End with exit status 1 if METRIC grew by more than AMOUNT for certain (its 95 % interval lies above):"
    " 'cpu>5%', 'wait>0.5s', 'memory.peak>10%', 'function NAME cpu>5%', 'native NAME cpu>5%', 'file PATH cpu>5%',"
    " 'line FILE:N cpu>20%'.",
)
@click.option(
    "--metric", metavar="NAME", help="Show the lines and functions by this metric, such as cpu, wait, native."
)
@click.option("--top", type=click.IntRange(1), metavar="N", help="Show the N largest differences, certain or not.")
@click.option(
    "--shares",
    is_flag=True,
    help="Compare shares of each run's total instead of amounts: for servers, and runs of different length.",
)
@click.option(
    "--spread",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="With one recording a side: how much runs are known to differ (standard deviation); without it there are no"
    " verdicts.",
)
@click.option(
    "--smallest",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="The smallest difference that gets a verdict, of the total; or five times as much of the amount itself.",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Compare even if programs, settings or machine load differ.",
)
@click.option("--scope", metavar="project|all|GLOB", help="Whose lines are charged, as in 'analyze'.")
@click.option(
    "--attribution",
    type=click.Choice([*map(str, Attribution)]),
    default="auto",
    show_default=True,
    help="How Python is told from native, as in 'analyze'.",
)
@thread_option
@window_options
@click.option("--json", metavar="FILE|-", help="Write everything as JSON to a file, or to standard output.")
@click.option("--html", metavar="FILE", help="Write a report for browsers: one file that needs no network.")
@markdown_options
@click.option("--figures", metavar="DIR", help="Write figures (PNG and SVG) into a folder.")
@one_line_errors
def diff(**typed: object) -> None:
    """Shows the difference between recordings."""
    if not run(Options(**typed)):  # type: ignore[arg-type]
        click.get_current_context().exit(1)


def run(options: Options) -> bool:
    """Run the command with these options; returns False if a condition failed."""
    from ..diff.compare import diff as compare
    from ..diff.gate import judge, parse_condition
    from ..profile.question import Question
    from ..report_data.difference import SELF, Outcome

    check_markdown(options.markdown, options.tokens, options.json)
    base, new = chosen(options)
    conditions = [parse_condition(text) for text in options.fail_if]
    names = [metric.name for metric in SELF]
    if options.metric is not None and options.metric not in names:
        raise Failure(f"--metric {options.metric!r}: there is no such metric; there are: {', '.join(names)}")
    question = Question(
        options.scope, options.thread, options.start, options.end, attribution=Attribution(options.attribution)
    )
    with progress() as watcher:
        result = compare(
            base,
            new,
            question,
            anyway=options.anyway,
            shares=options.shares,
            spread=None if options.spread is None else options.spread / 100,
            smallest=options.smallest / 100,
            watcher=watcher,
        )
        judgements = judge(result, conditions)
        written = write_files(options, result, judgements)
    for line in written:
        click.echo(line, err=True)
    tell(options, result, judgements)
    return all(judgement.outcome is not Outcome.FAILED for judgement in judgements)


def write_files(options: Options, result: DiffResult, judgements: list[Judgement]) -> list[str]:
    """Write the files of the options; returns lines with their paths."""
    written = []
    if options.json is not None and options.json != "-":
        _write_json(options, result, judgements)
    if options.markdown is not None and options.markdown != "-":
        _write_markdown(options, result, judgements)
    if options.html is not None:
        from ..render.html.difference import write

        written.append(f"{options.html}: {write(result, options.html) / 1e6:.1f} MB")
    if options.figures is not None:
        from ..render.figures.charts import write_diff_figures

        paths = write_diff_figures(result, Path(options.figures))
        written.append(f"{options.figures}: {', '.join(path.name for path in paths)}")
    return written


def tell(options: Options, result: DiffResult, judgements: list[Judgement]) -> None:
    """Show the result or, if it went to files, only the conditions that failed."""
    if all(each is None for each in (options.json, options.html, options.markdown, options.figures)):
        from rich.console import Console

        from ..render.terminal.difference import show

        console = Console(highlight=False, markup=False, emoji=False)
        show(result, console, metric=options.metric, top=options.top, judgements=judgements)
        return
    if options.json == "-":
        _write_json(options, result, judgements)
    if options.markdown == "-":
        _write_markdown(options, result, judgements)
    from ..report_data.difference_sections import explained

    for judgement in judgements:
        if judgement.outcome == "failed":
            click.echo(f"tachograph: failed: {judgement.condition.text}: {explained(judgement)}", err=True)


def _write_json(options: Options, result: DiffResult, judgements: list[Judgement]) -> None:
    from ..recording.output_file import write_text
    from ..render.json_difference import document
    from ..render.json_document import pieces

    assert options.json is not None
    write_text(pieces(document(result, judgements, options.top)), options.json)


def _write_markdown(options: Options, result: DiffResult, judgements: list[Judgement]) -> None:
    from ..render.markdown.difference import summary
    from ..render.markdown.document import write

    most = options.tokens or DEFAULT_TOKENS
    text = summary(result, most, metric=options.metric, top=options.top, judgements=judgements)
    write(text, str(options.markdown))


def chosen(options: Options) -> tuple[list[Path], list[Path]]:
    """The recordings of both sides.

    Errors:
        FormatError: the sides of the recordings are ambiguous.
    """
    if options.base or options.new:
        if options.recordings or not (options.base and options.new):
            raise FormatError("groups need both sides, and nothing else: tachograph diff --base A... --new B...")
        return [find_recording(path) for path in options.base], [find_recording(path) for path in options.new]
    if not options.recordings:
        recordings = recordings_here()
        if len(recordings) < 2:
            count = "is only one" if recordings else "is no"
            raise FormatError(f"there {count} recording in this folder: name two, tachograph diff BASE NEW")
        return [recordings[-2]], [recordings[-1]]
    if len(options.recordings) == 1 and is_experiment(Path(options.recordings[0])):
        experiment = open_experiment(Path(options.recordings[0]))
        return experiment.base, experiment.new
    if len(options.recordings) != 2:
        raise FormatError(
            f"a diff is of two recordings, not {len(options.recordings)}: tachograph diff BASE NEW, or groups with"
            " --base A... --new B..."
        )
    return [find_recording(options.recordings[0])], [find_recording(options.recordings[1])]
