"""``tachograph diff``: what became slower or faster between two recordings, or two groups of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tachograph.format import FormatError
from tachograph.grouped_help import GroupedCommand

from ..diff.experiments.folder import is_experiment, open_experiment
from ..recording.question_options import DEFAULT_TOKENS, Attribution
from .common import (
    FILTERS,
    OUTPUT,
    SHOW,
    Failure,
    check_markdown,
    find_recording,
    markdown_options,
    one_line_errors,
    option,
    progress,
    recordings_here,
    thread_option,
    window_options,
)

if TYPE_CHECKING:
    from ..report_data.difference import DiffResult, Judgement

GROUPS = ("--base", "--new")

COMPARED, VERDICTS = "What to compare", "Verdicts"
"""Further groups of options in ``--help``."""


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


class DiffCommand(GroupedCommand):
    """A command of two sides with several recordings each: ``--base a b`` stands for ``--base a --base b``."""

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
    cls=DiffCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph diff                            the two newest recordings here\n"
    "  tachograph diff compare-001                an experiment of 'compare'\n"
    "  tachograph diff old.tacho new.tacho --html diff.html\n"
    "  tachograph diff --base a1.tacho a2.tacho --new b1.tacho b2.tacho b3.tacho\n"
    "  tachograph diff old.tacho new.tacho --fail-if 'cpu>5%'\n"
    "  tachograph diff old.tacho new.tacho --fail-if 'function parse* cpu>0.5s'\n"
    "  tachograph diff old.tacho new.tacho --shares --json - | jq '.lines[0]'",
    help="Show what became slower or faster, or needs more or less memory, between two recordings.\n\n"
    "BASE is the recording to compare with; without any, they are the two newest in this folder. With several on a"
    " side, differences are judged by how much runs really differ. Lines are followed through edits of the sources."
    " All options: tachograph help cli",
)
@click.argument("recordings", nargs=-1, metavar="[BASE NEW | EXPERIMENT]", type=click.Path())
@option("--base", group=COMPARED, multiple=True, metavar="BASE...", help="Recordings to compare with.")
@option("--new", group=COMPARED, multiple=True, metavar="NEW...", help="Recordings that are compared with them.")
@option("--shares", group=COMPARED, is_flag=True, help="Compare shares of each run's total.")
@option("--anyway", group=COMPARED, is_flag=True, help="Compare unlike runs, and judge busy ones.")
@option(
    "--fail-if",
    group=VERDICTS,
    multiple=True,
    metavar="CONDITION",
    help="Exit status 1 on a certain change: 'cpu>5%'.",
)
@option(
    "--spread",
    group=VERDICTS,
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="How much runs differ, with one a side.",
)
@option(
    "--smallest",
    group=VERDICTS,
    type=click.FloatRange(0, 100),
    default=1.0,
    metavar="PERCENT",
    help="Smallest difference with a verdict. [default: 1]",
)
@option("--metric", group=SHOW, metavar="NAME", help="Show rows by this metric, such as wait.")
@option("--top", group=SHOW, type=click.IntRange(1), metavar="N", help="Show the N largest differences.")
@option("--scope", group=FILTERS, metavar="project|all|GLOB", help="Code to attribute time to, as in 'analyze'.")
@thread_option
@window_options
@option("--html", group=OUTPUT, metavar="FILE", help="Write a report for browsers.")
@option("--json", group=OUTPUT, metavar="FILE|-", help="Write everything as JSON.")
@markdown_options
@option("--figures", group=OUTPUT, metavar="DIR", help="Write figures (PNG and SVG).")
@click.option(
    "--attribution",
    hidden=True,
    type=click.Choice([*map(str, Attribution)]),
    default="auto",
    help="How Python is distinguished from native code.",
)
@one_line_errors
def diff(**typed: object) -> None:
    """Shows the difference between recordings."""
    if not run(Options(**typed)):  # type: ignore[arg-type]
        click.get_current_context().exit(1)


def run(options: Options) -> bool:
    """Run the command with these options; returns False if a condition failed."""
    from ..diff.comparison import diff as compare
    from ..diff.gate import judge, needs_amounts, parse_condition
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
            shares=True if options.shares else False if any(map(needs_amounts, conditions)) else None,
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
        from ..render.html.diff_page import write

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

        from ..render.terminal.diff_lines import show

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
    from ..render.markdown.diff_summary import summary
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
