"""``tachograph fleet``: questions about thousands of recordings in a folder or an object store."""

from __future__ import annotations

from typing import Any

import click

from .common import one_line_errors
from .fleet_options import SETTINGS, fleet_options, metric_options, opened, settings, tell
from .fleet_views import find_command, flame_command, html_command, spans_command


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

    found = opened(url, options)
    where = options["where"]
    frame = found.top(level=level, metric=metric, by=by, where=where, total=total, per=per, limit=limit, anyway=anyway)
    asked = {"level": level, "metric": metric, "by": by, "where": list(where), "total": total, "per": per}
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
    per: str | None,
    limit: int,
    anyway: bool,
    **options: Any,
) -> None:
    """The rows that differ most."""
    from ..fleet.show import compare_lines, document

    found = opened(url, options)
    where = options["where"]
    frame = found.compare(
        base, new, level=level, metric=metric, where=where, total=total, per=per, limit=limit, anyway=anyway
    )
    asked = {"base": base, "new": new, "level": level, "metric": metric, "where": list(where), "total": total}
    asked["per"] = per
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
    per: str | None,
    anyway: bool,
    **options: Any,
) -> None:
    """Where a function moved."""
    from ..fleet.questions.when import when
    from ..fleet.show import document, when_lines

    found = opened(url, options)
    where = options["where"]
    moved = when(found.select(where), function, by=by, metric=metric, total=total, per=per, anyway=anyway)
    asked = {"function": function, "by": by, "metric": metric, "where": list(where), "total": total, "per": per}
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
    answer = document("fleet-ranks", found, asked, meeting=meeting, late=late, ranks=told.ranks, spans=told.spans)
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


for each in (spans_command, flame_command, find_command, html_command):
    fleet.add_command(each)
