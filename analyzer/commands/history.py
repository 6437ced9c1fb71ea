"""``tachograph history``: when a program's time or memory changed, over all recordings in a folder or store."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from tachograph.grouped_help import GroupedCommand

from .common import FILTERS, OUTPUT, SHOW, one_line_errors, option
from .fleet import opened, tell

STORE = "Store"
"""A further group of options in ``--help``."""


@click.command(
    cls=GroupedCommand,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph history nightly/\n"
    "  tachograph history nightly/ --by version --metric allocated\n"
    "  tachograph history s3://profiles/shop --where host=ci-1 --function parse\n"
    "  tachograph history nightly/ --json - | jq '.points[-1].sentence'",
    help="Show when a program's time or memory changed, and what changed there.\n\n"
    "URL is a folder with recordings, at any depth (experiments of 'compare' too), or a URL of fsspec, such as"
    " s3://bucket/shop. Each change point has a probability, the change with its interval, and the diff of the"
    " recordings on both sides. Exit status: 1 with --fail if the last segment is worse than the one before it.",
)
@click.argument("url")
@option("--metric", group=SHOW, default="cpu", metavar="METRIC", help="cpu, wall, wait, allocated, peak, resident.")
@option("--function", group=SHOW, metavar="NAME", help="Follow one function: NAME or FILE:NAME.")
@option("--by", group=SHOW, default="time", metavar="time|LABEL", help="Order: by time, or by a label as version.")
@option("--runs", group=SHOW, type=click.IntRange(1, 100), default=5, metavar="N", help="Recordings a side of a diff.")
@option("--diffs", group=SHOW, type=click.IntRange(0, 100), default=3, metavar="N", help="Newest points with a diff.")
@option("--where", group=FILTERS, multiple=True, metavar="KEY=VALUE", help="Only with this label; may be repeated.")
@option("--anyway", group=FILTERS, is_flag=True, help="Take those together that were made in different ways.")
@option("--scope", group=STORE, default="project", metavar="SCOPE", help="Whose lines are charged, as in 'fleet'.")
@option("--index", group=STORE, metavar="URL", help="Where the sums are kept. [default: in URL]")
@option("--workers", group=STORE, type=click.IntRange(1, 256), metavar="N", help="Processes that read recordings.")
@option("--cluster", group=STORE, metavar="ADDRESS", help="A scheduler of dask.distributed that reads them.")
@option("--storage", group=STORE, multiple=True, metavar="KEY=VALUE", help="An option of the store.")
@option("--json", "target", group=OUTPUT, metavar="FILE|-", help="Write it as JSON.")
@option("--fail", group=OUTPUT, is_flag=True, help="Exit status 1 if the last change is for the worse.")
@one_line_errors
def history(
    url: str,
    metric: str,
    function: str | None,
    by: str,
    runs: int,
    diffs: int,
    anyway: bool,
    fail: bool,
    **options: Any,
) -> None:
    """Change points."""
    from ..fleet.show import document, history_lines, history_points

    fleet = opened(url, options)
    where = options["where"]
    answer = fleet.history(where, metric=metric, function=function, by=by, runs=runs, diffs=diffs, anyway=anyway)
    query = {"metric": metric, "function": function, "by": by, "where": list(where)}
    segments = [asdict(each) for each in answer.segments]
    counts = {"recordings": answer.recordings, "older": answer.left_out}
    written = document("history", fleet, query, points=history_points(answer), segments=segments, counts=counts)
    tell(written, history_lines(fleet, answer, query), options["target"])
    if fail and answer.points and answer.points[-1].change > 0:
        click.get_current_context().exit(1)
