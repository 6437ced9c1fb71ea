"""Views of all recordings, and the way to each: ``tachograph fleet spans``, ``flame``, ``find`` and ``html``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .common import one_line_errors
from .fleet_options import fleet_options, metric_options, opened, settings, tell
from .progress import progress


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
    """What spans cost."""
    from ..fleet.show import document, spans_lines

    found = opened(url, options)
    frame = found.spans(options["where"], by=by, limit=limit)
    asked = {"by": by, "where": list(options["where"])}
    tell(document("fleet-spans", found, asked, rows=frame), spans_lines(found, frame, asked), options["target"])


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
    found = opened(url, options)
    tree = found.flame(options["where"])
    measure = "wait_s" if wait else "cpu_s"
    if collapsed is not None:
        write_text(collapsed_stacks(tree, measure), collapsed)
        return
    answer = document("fleet-flame", found, {"where": list(options["where"])}, nodes=tree)
    tell(answer, flame_lines(found, tree, measure, limit), options["target"])


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

    found = opened(url, options)
    where = options["where"]
    frame = found.find(place, metric=metric, where=where, total=total, per=per, limit=limit, anyway=anyway)
    copies = [] if folder is None else found.fetch(frame["path"].tolist(), folder)
    asked = {"place": place, "metric": metric, "where": list(where), "total": total, "per": per}
    answer = document("fleet-find", found, asked, found=dict(frame.attrs), rows=frame, fetched=list(map(str, copies)))
    tell(answer, find_lines(found, frame, asked), options["target"])
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

    found = opened(url, options)
    where = options["where"]
    with progress() as watcher:
        written = found.html(file, where, anyway=anyway, pages=pages, watcher=watcher)
    recordings = len(found.select(where))
    if options["target"] is None:
        more = f", and {counted(len(written.recordings), 'pages')} of recordings" if pages else ""
        said = f"{counted(recordings, 'recordings')} on one page: {file} ({size(written.bytes)}){more}"
        click.echo(f"tachograph: {said}", err=True)
        return
    page = {"file": str(file), "bytes": written.bytes, "recordings": recordings, "pages": written.recordings}
    tell(document("fleet-html", found, {"where": list(where)}, page=page), (), options["target"])
