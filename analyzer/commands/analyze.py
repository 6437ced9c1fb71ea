"""``tachograph analyze``: where a recorded program spent its time.

``--tree`` and ``--line`` show call trees: of the program, and of one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import hexdigits
from typing import TYPE_CHECKING

import click

from tachograph.grouped_help import GroupedCommand

from ..recording.output_file import uncollected
from ..recording.question_options import DEFAULT_TOKENS, Attribution, LeakRule, PoolRule, Sort
from ..recording.text import printable
from .common import (
    FILTERS,
    OUTPUT,
    RECORDING_HELP,
    SHOW,
    Failure,
    check_markdown,
    find_recording,
    markdown_options,
    one_line_errors,
    option,
    process_option,
    progress,
    thread_option,
    window_options,
)

if TYPE_CHECKING:
    from rich.console import Console

    from ..profile.profile import Profile
    from ..profile.question import Question
    from ..recording.opened import Recording
    from ..report_data.advice.table import Advice

TRACE_DIGITS = 32


def tell_calls(profile: Profile, line: str | None, json: str | None, console: Console, top: int | None) -> None:
    """Shows the calls of a line ``FILE:N``, or of the program, in the terminal or as JSON (a file, or ``-``).

    Errors:
        FormatError: there is no such line, or the file cannot be written.
    """
    from ..profile.call_branches import call_tree, line_calls

    if json is not None:
        from ..recording.output_file import write_text
        from ..render.json_document import line_document, pieces, tree_document

        answer = (
            tree_document(profile, call_tree(profile))
            if line is None
            else line_document(profile, line_calls(profile, line))
        )
        write_text(pieces(answer), json)
        return
    from ..render.terminal.call_tree_lines import show_line, show_tree

    if line is None:
        show_tree(profile, call_tree(profile), console, top)
    else:
        show_line(profile, line_calls(profile, line), console, top)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    recording: str | None
    scope: str | None
    attribution: str
    pool_attribution: str
    thread: str | None
    process: tuple[str, ...]
    processes: bool
    tasks: bool
    where: bool
    tree: bool
    line: str | None
    start: float | None
    end: float | None
    sort: str | None
    memory: bool
    leaks: str
    span: str | None
    trace: str | None
    top: int | None
    notes: bool
    json: str | None
    html: str | None
    markdown: str | None
    tokens: int | None
    figures: str | None
    follow: bool

    @property
    def files(self) -> list[str]:
        """The documents that take the place of the report in the terminal."""
        return [each for each in (self.json, self.html, self.markdown, self.figures) if each is not None]


@click.command(
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph analyze                             the newest recording here\n"
    "  tachograph analyze run.tacho --line sim.py:42  what this line calls\n"
    "  tachograph analyze run.tacho --memory          who holds the memory\n"
    "  tachograph analyze run.tacho --from 10         without the first 10 s\n"
    "  tachograph analyze run.tacho --thread main --sort wait\n"
    "  tachograph analyze run.tacho --html report.html",
    help="Show where a recorded program spent its time and who held its memory, by line.\n\n"
    + RECORDING_HELP
    + " All options: tachograph help cli",
)
@click.argument("recording", required=False, type=click.Path())
@option("--top", group=SHOW, type=click.IntRange(1), metavar="N", help="Show the first N lines.")
@option(
    "--sort",
    group=SHOW,
    type=click.Choice([*map(str, Sort)]),
    metavar="COLUMN",
    help="Sort by cpu, wait, total, live, leak, ...",
)
@option("--memory", group=SHOW, is_flag=True, help="Show memory instead of time: --sort live.")
@option("--line", group=SHOW, metavar="FILE:N", help="Show what this line spends its time in.")
@option("--tree", group=SHOW, is_flag=True, help="Show the call tree instead.")
@option("--processes", group=SHOW, is_flag=True, help="Show the tree of processes instead.")
@option("--tasks", group=SHOW, is_flag=True, help="Show tasks (asyncio, trio); --tree: what awaits.")
@option("--where", group=SHOW, is_flag=True, help="Show where the memory is instead.")
@option("--notes", group=SHOW, is_flag=True, help="Show all notes on the quality of the data.")
@option("--follow", group=SHOW, is_flag=True, help="Show a recording while it is written.")
@option(
    "--leaks",
    group=SHOW,
    type=click.Choice([*map(str, LeakRule)]),
    default=str(LeakRule.DEFAULT),
    help="What counts as a leak. [default: default]",
)
@option("--scope", group=FILTERS, metavar="project|all|GLOB", help="Code to attribute time to. [default: project]")
@thread_option
@process_option
@option("--span", group=FILTERS, metavar="NAME[KEY=VALUE,...]", help="Only within spans of this name (a glob).")
@option("--trace", group=FILTERS, metavar="ID", help="Only within spans of this OpenTelemetry trace.")
@window_options
@option("--html", group=OUTPUT, metavar="FILE", type=click.Path(), help="Write a report for browsers.")
@option("--json", group=OUTPUT, metavar="FILE|-", type=click.Path(), help="Write everything as JSON.")
@markdown_options
@option("--figures", group=OUTPUT, metavar="DIR", type=click.Path(), help="Write figures (PNG and SVG).")
@click.option(
    "--attribution",
    hidden=True,
    type=click.Choice([*map(str, Attribution)]),
    default="auto",
    help="How Python is distinguished from native code.",
)
@click.option(
    "--pool-attribution",
    hidden=True,
    type=click.Choice([*map(str, PoolRule)]),
    default=str(PoolRule.POSITIONS),
    help="How CPU time of native threads is attributed to lines.",
)
@one_line_errors
def analyze(**typed: object) -> None:
    """Shows a profile."""
    run(Options(**typed))  # type: ignore[arg-type]


def _span_pattern(span: str | None, trace: str | None) -> str | None:
    """The spans that ``--span`` and ``--trace`` leave."""
    if trace is None:
        return span
    if len(trace) != TRACE_DIGITS or not set(trace) <= set(hexdigits):
        raise Failure(f"--trace {printable(trace, 40)!r}: the id of a trace has {TRACE_DIGITS} hexadecimal digits")
    name, _, fields = (span or "*").partition("[")
    return f"{name}[{fields.removesuffix(']')}{',' if fields else ''}trace_id={trace.lower()}]"


def run(options: Options) -> None:
    """Run the command with these options."""
    with uncollected():
        from ..profile import build  # noqa: F401  # with pandas and pyarrow, once and for all that follow
        from ..profile.question import Question
        from ..recording.opened import Recording
        from ..report_data.advice.table import Advice

    question = Question(
        options.scope,
        options.thread,
        options.start,
        options.end,
        attribution=Attribution(options.attribution),
        pools=PoolRule(options.pool_attribution),
        leaks=options.leaks,
        span=_span_pattern(options.span, options.trace),
        processes=options.process,
    )
    sort = options.sort or ("live" if options.memory else "cpu")
    awaiting = options.tasks and options.tree
    tree, tasks = (each and not awaiting for each in (options.tree, options.tasks))
    views = [tree, options.line is not None, options.processes, tasks, options.where]
    pages = any(each is not None for each in (options.html, options.figures, options.markdown))
    if awaiting and (any(views) or pages or options.follow):
        raise Failure("--tasks --tree is a view of its own: leave out the other views and --follow")
    if sum(views[:2]) > 1 or (any(views[:2]) and (any(views[2:]) or pages or options.follow)):
        raise Failure(
            "--tree and --line are views of their own: leave out the other one, --html, --markdown, --figures and"
            " --follow"
        )
    check_markdown(options.markdown, options.tokens, options.json)
    if options.follow:
        _follow(options, question, sort)
        return
    advice = Advice()
    with progress() as watcher, Recording.open(find_recording(options.recording)) as recording:
        recording.watcher = watcher
        profile, written = _answer(recording, question, options, sort, advice)
    for line in written:
        click.echo(line, err=True)
    if awaiting:
        _tell_awaiting(profile, options)
        return
    if options.tree or options.line is not None:
        tell_calls(profile, options.line, options.json, console(), options.top)
        return
    _tell(profile, options, sort, advice)


def _answer(
    recording: Recording, question: Question, options: Options, sort: str, advice: Advice
) -> tuple[Profile, list[str]]:
    """The profile, and lines with the paths of the written files."""
    written = []
    if options.html is not None or options.figures is not None:
        from ..render.write import write_reports
        from ..report_data.report_data import build_report_data

        data = build_report_data(recording, question)
        profile = data.profile
        written = write_reports(recording, data, options.html, options.figures, sort, advice)
    else:
        from ..profile.build import build_profile

        profile = build_profile(recording, question)
    calls = options.tree or options.line is not None
    if options.json is not None and options.json != "-" and not calls:
        from ..render.json_document import write

        recording.step("writing the JSON")
        write(profile, options.json, top=options.top, sort=sort, advice=advice)
    if options.markdown is not None and options.markdown != "-":
        recording.step("writing the summary")
        _write_markdown(profile, options, sort, advice)
    return profile, written


def _write_markdown(profile: Profile, options: Options, sort: str, advice: Advice) -> None:
    from ..render.markdown.document import write
    from ..render.markdown.profile_parts import summary

    most = options.tokens or DEFAULT_TOKENS
    write(summary(profile, most, sort=sort, top=options.top, advice=advice), str(options.markdown))


def _tell(profile: Profile, options: Options, sort: str, advice: Advice) -> None:
    """Print the answer to standard output; nothing if it went to files."""
    if options.json == "-":
        from ..render.json_document import write

        write(profile, options.json, top=options.top, sort=sort, advice=advice)
    if options.markdown == "-":
        _write_markdown(profile, options, sort, advice)
    if options.files:
        return
    from ..render.terminal.report import show

    if options.processes:
        from ..render.terminal.process_lines import show as show_processes

        show_processes(profile, console())
    if options.tasks:
        from ..render.terminal.task_lines import show as show_tasks

        show_tasks(profile, console(), options.top)
    if options.where:
        from ..render.terminal.where_lines import show as show_where

        show_where(profile, console())
    if options.processes or options.tasks or options.where:
        return
    following = options.sort is None and not options.memory
    show(profile, console(), Sort(sort), options.top, advice, notes=options.notes, following=following)


def _tell_awaiting(profile: Profile, options: Options) -> None:
    """Prints the tasks below those that await them, or writes them as JSON."""
    if options.json is not None:
        from ..recording.output_file import write_text
        from ..render.json_document import awaiting_document, pieces

        write_text(pieces(awaiting_document(profile)), options.json)
        return
    from ..render.terminal.task_lines import show_tree

    show_tree(profile, console(), options.top)


def _follow(options: Options, question: Question, sort: str) -> None:
    """Shows a recording while it is written."""
    if options.processes or options.tasks or options.where or options.files:
        raise Failure("--follow shows the report in the terminal: leave out the other views")
    from .follow import follow

    follow(find_recording(options.recording), question, console(), Sort(sort), options.top, notes=options.notes)


def console() -> Console:
    """The terminal, or the file or pipe in its place."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)
