"""``tachograph fleet``: questions about thousands of recordings in a folder or an object store."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from .common import one_line_errors
from .progress import progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from ..fleet.fleet import Fleet

P = ParamSpec("P")
R = TypeVar("R")

SETTINGS = {"help_option_names": ["-h", "--help"]}
URL_HELP = "URL is a folder with recordings, at any depth, or a URL of fsspec, such as s3://bucket/shop."


def settings(short: str, about: str, *examples: str) -> dict[str, Any]:
    """What a question is declared with: its line in the list of questions, its help, and examples."""
    return {
        "context_settings": SETTINGS,
        "short_help": short,
        "help": f"{about}\n\n{URL_HELP}",
        "epilog": "\b\nExamples:\n" + "\n".join(f"  tachograph fleet {each}" for each in examples),
    }


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


def fleet_options(command: Callable[P, R]) -> Callable[P, R]:
    """The options of all questions: where the index is, which recordings are meant, who does the work."""
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
        click.option("--total", is_flag=True, help="Count what was called from there as well."),
        click.option("--anyway", is_flag=True, help="Take recordings together that were made in different ways."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def opened(url: str, options: dict[str, Any]) -> Fleet:
    """The fleet that was typed."""
    from tachograph.format import FormatError

    from ..fleet.fleet import open as open_fleet

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
    """Writes the answer: as JSON to a file or to standard output, or for people."""
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
    by: str | None,
    limit: int,
    anyway: bool,
    **options: Any,
) -> None:
    """The rows with the largest amounts."""
    from ..fleet.show import document, top_lines

    found = opened(url, options)
    where = options["where"]
    frame = found.top(level=level, metric=metric, by=by, where=where, total=total, limit=limit, anyway=anyway)
    asked = {"level": level, "metric": metric, "by": by, "where": list(where), "total": total}
    tell(document("fleet-top", found, asked, rows=frame), top_lines(found, frame, asked), options["target"])


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

    found = opened(url, options)
    told = health(found.select(options["where"]), found.left_out)
    frames = {"left_out": told.left_out, "losses": told.losses, "modes": told.modes, "labels": told.labels}
    answer = document("fleet-health", found, {"where": list(options["where"])}, counts=told.counts, **frames)
    tell(answer, health_lines(told), options["target"])


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
    limit: int,
    anyway: bool,
    **options: Any,
) -> None:
    """The rows that differ most."""
    from ..fleet.show import compare_lines, document

    found = opened(url, options)
    where = options["where"]
    frame = found.compare(base, new, level=level, metric=metric, where=where, total=total, limit=limit, anyway=anyway)
    asked = {"base": base, "new": new, "level": level, "metric": metric, "where": list(where), "total": total}
    tell(document("fleet-compare", found, asked, rows=frame), compare_lines(found, frame, asked), options["target"])


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
    anyway: bool,
    **options: Any,
) -> None:
    """Where a function moved."""
    from ..fleet.questions.when import when
    from ..fleet.show import document, when_lines

    found = opened(url, options)
    where = options["where"]
    moved = when(found.select(where), function, by=by, metric=metric, total=total, anyway=anyway)
    asked = {"function": function, "by": by, "metric": metric, "where": list(where), "total": total}
    step = {name: getattr(moved, name) for name in ("name", "file", "since", "before", "after", "p")}
    answer = document("fleet-when", found, asked, step=step, groups=moved.groups)
    tell(answer, when_lines(found, moved, asked), options["target"])


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
    """Who is late."""
    from ..fleet.questions.ranks import ranks
    from ..fleet.show import document, ranks_lines

    found = opened(url, options)
    told = ranks(found.select(options["where"]), function=function, anyway=anyway)
    asked = {"function": function, "where": list(options["where"])}
    meeting = {"function": told.meeting, "file": told.meeting_file}
    late = {"rank": told.late, "seconds": told.late_s, "steps": told.steps}
    answer = document("fleet-ranks", found, asked, meeting=meeting, late=late, ranks=told.ranks)
    tell(answer, ranks_lines(found, told), options["target"])


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
    """Who holds memory."""
    from ..fleet.questions.memory import memory
    from ..fleet.show import document, memory_lines

    found = opened(url, options)
    told = memory(found.select(options["where"]), confirmed_on=hosts, anyway=anyway)
    asked = {"hosts": hosts, "where": list(options["where"])}
    answer = document("fleet-memory", found, asked, peaks=told.peaks, leaks=told.leaks)
    tell(answer, memory_lines(found, told), options["target"])
