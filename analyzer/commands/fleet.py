"""``tachograph fleet``: questions about thousands of recordings in a folder or an object store.

One command for each question, and the parts that all of them share: options, opening the fleet, writing the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from .common import one_line_errors, progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from ..fleet.opened_fleet import Fleet


P = ParamSpec("P")
R = TypeVar("R")

SETTINGS = {"help_option_names": ["-h", "--help"]}
URL_HELP = "URL is a folder with recordings, at any depth, or a URL of fsspec, such as s3://bucket/shop."


def settings(short: str, about: str, *examples: str) -> dict[str, Any]:
    """Declaration of a question: its line in the list of questions, its help, and examples."""
    return {
        "context_settings": SETTINGS,
        "short_help": short,
        "help": f"{about}\n\n{URL_HELP}",
        "epilog": "\b\nExamples:\n" + "\n".join(f"  tachograph fleet {each}" for each in examples),
    }


def fleet_options(command: Callable[P, R]) -> Callable[P, R]:
    """The options of all questions: the index, the selected recordings, and the workers."""
    options = (
        click.option("--where", metavar="KEY=VALUE", multiple=True, help="Only recordings with this label; VALUE may"
                     " be a glob. KEY may also be host, program, day, state, python, machine, sampler, path or uuid."
                     " May be repeated."),
        click.option("--scope", default="project", metavar="SCOPE", show_default=True, help="Whose lines are charged:"
                     " project, all, or a glob of paths or folder names."),
        click.option("--index", metavar="URL", help="Where the sums are kept.  [default: .tachograph in URL]"),
        click.option("--cluster", metavar="ADDRESS", help="A scheduler of dask.distributed whose workers read the"
                     " recordings, such as tcp://10.0.0.1:8786."),
        click.option("--workers", metavar="N", type=click.IntRange(1, 256), help="Processes that read recordings"
                     " here.  [default: one for each CPU]"),
        click.option("--storage", metavar="KEY=VALUE", multiple=True, help="What the store is to be told, such as"
                     " endpoint_url=http://localhost:9000. May be repeated."),
        click.option("--json", "target", metavar="FILE|-", help="Write it as JSON to a file, or to standard output."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def metric_options(command: Callable[P, R]) -> Callable[P, R]:
    """The options of questions about one metric."""
    options = (
        click.option("--metric", metavar="METRIC", default="cpu", show_default=True, help="cpu, wait, allocated,"
                     " copied, held (at the end) or peak."),
        click.option("--total", is_flag=True, help="Include callees."),
        click.option("--per", metavar="SPAN", help="Divide by how many named spans with this name there were, and not"
                     " by the whole: CPU time in each request, for example."),
        click.option("--anyway", is_flag=True, help="Take recordings together that were made in different ways."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def opened(url: str, options: dict[str, Any]) -> Fleet:
    """The fleet of the command line."""
    from tachograph.format import FormatError

    from ..fleet.opened_fleet import open as open_fleet

    storage = {}
    for text in options["storage"]:
        key, sign, value = text.partition("=")
        if not sign:
            raise FormatError(f"--storage {text!r} is not KEY=VALUE")
        storage[key] = value
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = options["workers"] or cpus or 1
    with progress() as watcher:
        return open_fleet(
            url,
            index=options["index"],
            scope=options["scope"],
            cluster=options["cluster"],
            workers=workers,
            storage_options=storage,
            watcher=watcher,
        )


def tell(document: dict[str, Any], lines: Iterable[Text], target: str | None) -> None:
    """Write the answer: as JSON to a file or to standard output, or as text."""
    if target is not None:
        from ..recording.output_file import write_text
        from ..render.json_document import pieces

        write_text(pieces(document), target)
        return
    from rich.console import Console

    from ..render.terminal.style import Style

    console = Console(highlight=False, markup=False, emoji=False)
    for line in lines:
        Style.of(console).print(console, line)


@click.command(
    "spans",
    **settings(
        "Show how long named spans take.",
        "Show how long named spans (requests, steps, jobs) take over all recordings, and what one costs.",
        "spans recordings/",
        "spans recordings/ --by version",
    ),
)
@click.argument("url")
@click.option("--by", metavar="LABEL", help="Answer for each value of a label by itself.")
@click.option(
    "--top", "limit", metavar="N", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many rows."
)
@fleet_options
@one_line_errors
def spans_command(url: str, by: str | None, limit: int, **options: Any) -> None:
    """Durations and costs of spans."""
    from ..fleet.show import document, spans_lines

    opened_fleet = opened(url, options)
    frame = opened_fleet.spans(options["where"], by=by, limit=limit)
    query = {"by": by, "where": list(options["where"])}
    tell(
        document("fleet-spans", opened_fleet, query, rows=frame),
        spans_lines(opened_fleet, frame, query),
        options["target"],
    )


@click.command(
    "flame",
    **settings(
        "Show the call tree of all recordings.",
        "Show the call tree of all recordings, with its largest branches; --collapsed writes it for flame graph tools,"
        " and 'fleet html' draws it.",
        "flame recordings/",
        "flame recordings/ --where version=1.5 --collapsed all.txt",
    ),
)
@click.argument("url")
@click.option("--wait", is_flag=True, help="Waiting, not CPU time.")
@click.option("--collapsed", metavar="FILE|-", help="Write it as collapsed stacks, in milliseconds.")
@click.option(
    "--top",
    "limit",
    metavar="N",
    type=click.IntRange(1, 10_000),
    default=40,
    show_default=True,
    help="How many branches are shown.",
)
@fleet_options
@one_line_errors
def flame_command(url: str, *, wait: bool, collapsed: str | None, limit: int, **options: Any) -> None:
    """The merged call tree."""
    from tachograph.format import FormatError

    from ..fleet.questions.flame import collapsed as collapsed_stacks
    from ..fleet.show import document, flame_lines
    from ..recording.output_file import write_text

    if collapsed is not None and options["target"] is not None:
        raise FormatError("--collapsed and --json write the same answer in two ways: choose one")
    opened_fleet = opened(url, options)
    tree = opened_fleet.flame(options["where"])
    measure = "wait_s" if wait else "cpu_s"
    if collapsed is not None:
        write_text(collapsed_stacks(tree, measure), collapsed)
        return
    answer = document("fleet-flame", opened_fleet, {"where": list(options["where"])}, nodes=tree)
    tell(answer, flame_lines(opened_fleet, tree, measure, limit), options["target"])


@click.command(
    "find",
    **settings(
        "Show which recordings have a function or line.",
        "Show the recordings that have the most of a function or line. PLACE is FUNCTION, FILE:FUNCTION or FILE:LINE;"
        " without one, the recordings with the most of all are shown.",
        "find recordings/ parse",
        "find s3://profiles/shop shop/orders.py:42 --fetch here --top 3",
    ),
)
@click.argument("url")
@click.argument("place", required=False)
@metric_options
@click.option(
    "--top", "limit", metavar="N", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many rows."
)
@click.option("--fetch", "folder", metavar="DIR", help="Copy these recordings into a folder, for all other commands.")
@fleet_options
@one_line_errors
def find_command(
    url: str,
    place: str | None,
    *,
    metric: str,
    total: bool,
    per: str | None,
    limit: int,
    folder: str | None,
    anyway: bool,
    **options: Any,
) -> None:
    """The recordings behind a row."""
    from ..fleet.show import document, find_lines

    opened_fleet = opened(url, options)
    where = options["where"]
    frame = opened_fleet.find(place, metric=metric, where=where, total=total, per=per, limit=limit, anyway=anyway)
    copies = [] if folder is None else opened_fleet.fetch(frame["path"].tolist(), folder)
    query = {"place": place, "metric": metric, "where": list(where), "total": total, "per": per}
    answer = document(
        "fleet-find", opened_fleet, query, found=dict(frame.attrs), rows=frame, fetched=list(map(str, copies))
    )
    tell(answer, find_lines(opened_fleet, frame, query), options["target"])
    if copies and options["target"] is None:
        click.echo(f"tachograph: copied {len(copies)} to {folder}; next: tachograph analyze {copies[0]}", err=True)


@click.command(
    "html",
    **settings(
        "Write one page over all recordings.",
        "Write one HTML page over all recordings: lines, functions, a flame graph, spans, memory, and the recordings"
        " with the most of each row. --pages writes the pages of some recordings into a folder beside it, to which"
        " it leads.",
        "html recordings/ fleet.html",
        "html recordings/ fleet.html --pages 20",
        "html s3://profiles/shop fleet.html --where version=1.5",
    ),
)
@click.argument("url")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--pages",
    metavar="N",
    type=click.IntRange(0, 1_000),
    default=0,
    help="Write the pages of N recordings as well: of those with the most of each line.",
)
@click.option("--anyway", is_flag=True, help="Take recordings together that were made in different ways.")
@fleet_options
@one_line_errors
def html_command(url: str, file: Path, *, pages: int, anyway: bool, **options: Any) -> None:
    """The page."""
    from ..fleet.show import document
    from ..report_data.numbers import counted, size

    opened_fleet = opened(url, options)
    where = options["where"]
    with progress() as watcher:
        written = opened_fleet.html(file, where, anyway=anyway, pages=pages, watcher=watcher)
    recordings = len(opened_fleet.select(where))
    if options["target"] is None:
        more = f", and {counted(len(written.recordings), 'pages')} of recordings" if pages else ""
        text = f"{counted(recordings, 'recordings')} on one page: {file} ({size(written.bytes)}){more}"
        click.echo(f"tachograph: {text}", err=True)
        return
    page = {"file": str(file), "bytes": written.bytes, "recordings": recordings, "pages": written.recordings}
    tell(document("fleet-html", opened_fleet, {"where": list(where)}, page=page), (), options["target"])


@click.group(
    context_settings=SETTINGS,
    epilog="\b\nExamples:\n"
    "  tachograph fleet top recordings/\n"
    "  tachograph fleet top s3://profiles/shop --lines --by version\n"
    "  tachograph fleet compare recordings/ version=1.4 version=1.5\n"
    "  tachograph fleet health recordings/ --where service.name=shop",
    help="Answer questions about thousands of recordings at once, in a folder or an object store.\n\nThe first question"
    " sums up each recording, once; later ones read the sums.",
)
def fleet() -> None:
    """Questions about many recordings."""


@fleet.command(
    "top",
    **settings(
        "Show what takes the most time or memory.",
        "Show the functions, lines or call paths with the most time or memory over all recordings.",
        "top recordings/",
        "top recordings/ --lines --metric allocated",
        "top s3://profiles/shop --by version --top 5",
    ),
)
@click.argument("url")
@click.option("--lines", "level", flag_value="lines", help="By line.")
@click.option("--functions", "level", flag_value="functions", default=True, help="By function (the default).")
@click.option("--stacks", "level", flag_value="stacks", help="By call path.")
@metric_options
@click.option("--by", metavar="LABEL", help="Answer for each value of a label by itself.")
@click.option(
    "--top", "limit", metavar="N", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many rows."
)
@fleet_options
@one_line_errors
def top_command(
    url: str,
    level: str,
    metric: str,
    total: bool,  # as click calls it
    per: str | None,
    by: str | None,
    limit: int,
    anyway: bool,
    **options: Any,
) -> None:
    """The rows with the largest amounts."""
    from ..fleet.show import document, top_lines

    opened_fleet = opened(url, options)
    where = options["where"]
    frame = opened_fleet.top(
        level=level, metric=metric, by=by, where=where, total=total, per=per, limit=limit, anyway=anyway
    )
    query = {"level": level, "metric": metric, "by": by, "where": list(where), "total": total, "per": per}
    tell(
        document("fleet-top", opened_fleet, query, rows=frame), top_lines(opened_fleet, frame, query), options["target"]
    )


@fleet.command(
    "health",
    **settings(
        "Show what is there and what was lost.",
        "Show how many recordings there are, what was lost in them, and which cannot be read.",
        "health recordings/",
        "health recordings/ --where service.name=shop",
    ),
)
@click.argument("url")
@fleet_options
@one_line_errors
def health_command(url: str, **options: Any) -> None:
    """The state of the recordings."""
    from ..fleet.questions.health import health
    from ..fleet.show import document, health_lines

    opened_fleet = opened(url, options)
    state = health(opened_fleet.select(options["where"]), opened_fleet.left_out)
    frames = {"left_out": state.left_out, "losses": state.losses, "modes": state.modes, "labels": state.labels}
    answer = document("fleet-health", opened_fleet, {"where": list(options["where"])}, counts=state.counts, **frames)
    tell(answer, health_lines(state), options["target"])


@fleet.command(
    "compare",
    **settings(
        "Show what differs between two groups.",
        "Show what differs between two groups of recordings. A group is what a label says, such as version=1.4; several"
        " conditions of a group are divided by commas.",
        "compare recordings/ version=1.4 version=1.5",
        "compare recordings/ version=1.5,region=eu version=1.5,region=us --lines",
    ),
)
@click.argument("url")
@click.argument("base", metavar="KEY=VALUE")
@click.argument("new", metavar="KEY=VALUE")
@click.option("--lines", "level", flag_value="lines", help="By line.")
@click.option("--functions", "level", flag_value="functions", default=True, help="By function (the default).")
@metric_options
@click.option(
    "--top", "limit", metavar="N", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many rows."
)
@fleet_options
@one_line_errors
def compare_command(
    url: str,
    base: str,
    new: str,
    level: str,
    metric: str,
    total: bool,
    per: str | None,
    limit: int,
    anyway: bool,
    **options: Any,
) -> None:
    """The rows that differ most."""
    from ..fleet.show import compare_lines, document

    opened_fleet = opened(url, options)
    where = options["where"]
    frame = opened_fleet.compare(
        base, new, level=level, metric=metric, where=where, total=total, per=per, limit=limit, anyway=anyway
    )
    query = {"base": base, "new": new, "level": level, "metric": metric, "where": list(where), "total": total}
    query["per"] = per
    tell(
        document("fleet-compare", opened_fleet, query, rows=frame),
        compare_lines(opened_fleet, frame, query),
        options["target"],
    )


@fleet.command(
    "when",
    **settings(
        "Show since when a function takes more or less.",
        "Show since which version or day a function takes more or less. FUNCTION is its name, or FILE:NAME.",
        "when recordings/ parse",
        "when recordings/ shop/orders.py:parse --by day --metric allocated",
    ),
)
@click.argument("url")
@click.argument("function")
@click.option(
    "--by",
    metavar="LABEL",
    default="version",
    show_default=True,
    help="The label whose values are put in order, or day.",
)
@metric_options
@fleet_options
@one_line_errors
def when_command(
    url: str,
    function: str,
    by: str,
    metric: str,
    total: bool,
    per: str | None,
    anyway: bool,
    **options: Any,
) -> None:
    """The step at which a function changed."""
    from ..fleet.questions.when import when
    from ..fleet.show import document, when_lines

    opened_fleet = opened(url, options)
    where = options["where"]
    moved = when(opened_fleet.select(where), function, by=by, metric=metric, total=total, per=per, anyway=anyway)
    query = {"function": function, "by": by, "metric": metric, "where": list(where), "total": total, "per": per}
    step = {name: getattr(moved, name) for name in ("name", "file", "since", "before", "after", "p")}
    answer = document("fleet-when", opened_fleet, query, step=step, groups=moved.groups)
    tell(answer, when_lines(opened_fleet, moved, query), options["target"])


@fleet.command(
    "ranks",
    **settings(
        "Show which rank of a parallel run is late.",
        "Show which rank of a parallel run is late, where, and which ranks wait for it.",
        "ranks runs/ --where run=7",
        "ranks runs/ --where run=7 --function all_reduce",
    ),
)
@click.argument("url")
@click.option("--function", metavar="NAME", help="Where the ranks meet: a part of the function's name.")
@click.option("--anyway", is_flag=True, help="Take recordings together that were made in different ways.")
@fleet_options
@one_line_errors
def ranks_command(url: str, function: str | None, anyway: bool, **options: Any) -> None:
    """The late rank."""
    from ..fleet.show import document, ranks_lines

    opened_fleet = opened(url, options)
    ranking = opened_fleet.ranking(options["where"], function=function, anyway=anyway)
    query = {"function": function, "where": list(options["where"])}
    meeting = {"function": ranking.meeting, "file": ranking.meeting_file}
    late = {
        "rank": ranking.late,
        "last": ranking.last,
        "seconds": ranking.late_s,
        "low": ranking.late_low,
        "high": ranking.late_high,
        "steps": ranking.steps,
        "without_cpu": ranking.without_cpu,
    }
    answer = document(
        "fleet-ranks", opened_fleet, query, meeting=meeting, late=late, ranks=ranking.ranks, spans=ranking.spans
    )
    tell(answer, ranks_lines(opened_fleet, ranking), options["target"])


@fleet.command(
    "memory",
    **settings(
        "Show peaks of memory, and leaks.",
        "Show the peaks of memory over all recordings, and leaks with the number of hosts that have them.",
        "memory recordings/",
        "memory recordings/ --hosts 3",
    ),
)
@click.argument("url")
@click.option(
    "--hosts",
    metavar="N",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="How many hosts must have a leak for it to be certain.",
)
@click.option("--anyway", is_flag=True, help="Take recordings together that were made in different ways.")
@fleet_options
@one_line_errors
def memory_command(url: str, hosts: int, anyway: bool, **options: Any) -> None:
    """Peaks of memory, and leaks."""
    from ..fleet.questions.spans import memory
    from ..fleet.show import document, memory_lines

    opened_fleet = opened(url, options)
    memories = memory(opened_fleet.select(options["where"]), confirmed_on=hosts, anyway=anyway)
    query = {"hosts": hosts, "where": list(options["where"])}
    answer = document("fleet-memory", opened_fleet, query, peaks=memories.peaks, leaks=memories.leaks)
    tell(answer, memory_lines(opened_fleet, memories), options["target"])


for each in (spans_command, flame_command, find_command, html_command):
    fleet.add_command(each)
