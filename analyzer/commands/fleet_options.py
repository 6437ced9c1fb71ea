"""What all questions of ``tachograph fleet`` have in common: options, opening, and how answers are written."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

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
        click.option("--per", metavar="SPAN", help="Divide by how many named spans with this name there were, and not"
                     " by the whole: CPU time in each request, for example."),
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
