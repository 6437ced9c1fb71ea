"""The report as a page: template, styles, scripts and data in one file, reduced until it fits."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tachograph.format import FormatError

from ...recording.output_file import write_page
from ...report_data.advice.table import Advice
from ...report_data.report_data import ReportData, View, coarser
from .pack import choose_texts, joined_texts
from .page_head import head
from .payload import payload

FOLDER = Path(__file__).parent

BOX_TREE_SCRIPTS = (
    "format.js",
    "frame.js",
    "data.js",
    "tables.js",
    "syntax.js",
    "box_tree.js",
)
"""Of pages with tables and a flame graph of boxes: those of a diff and of a fleet begin with them."""

MAX_BYTES = 10_000_000
"""A page is never larger; it is reduced until it fits."""


def render(
    template: str, styles: Sequence[str], scripts: Sequence[str], *, asks_server: bool = False, **values: Any
) -> str:
    """A template with its style and script, and with the policy that allows these two and nothing else.

    They are made of ``styles`` and ``scripts``, names of our own files (``asset``). ``asks_server`` lets the script ask
    the server that the page comes from.
    """
    style = "\n".join(asset(name) for name in styles)
    script = "\n".join(_dense(asset(name)) for name in scripts)
    script = f'(() => {{\n"use strict";\n{script}\n}})();'
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    policy += "; connect-src 'self'" if asks_server else ""
    # Our own files, and the only text that is not escaped.
    return environment.get_template(template).render(
        policy=policy, style=Markup(style), script=Markup(script), **values
    )


def asset(name: str) -> str:
    """The text of one of our own style sheets or scripts."""
    return (FOLDER / "assets" / name).read_text("utf-8").strip()


def _dense(script: str) -> str:
    """A script without indentation and comments, for which a page has no use. No text in ours spans lines."""
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


STYLES = ("page.css", "charts.css", "tables.css", "print.css")
SCRIPTS = (
    "format.js",
    "frame.js",
    "data.js",
    "state.js",
    "timeline.js",
    "cells.js",
    "tables.js",
    "syntax.js",
    "source.js",
    "lines.js",
    "box_tree.js",
    "flame.js",
    "sections.js",
    "main.js",
)
"""In the order in which they are put into one script."""

REDUCTIONS = 5

VIEW_TEXTS = 0.25
"""The part of the room for source text that each view may fill in addition."""


def write_report(
    picture: ReportData, target: Path, views: Sequence[View] = (), sort: str = "cpu", advice: Advice | None = None
) -> int:
    """Writes the report to a file; returns its size in bytes.

    Errors:
        FormatError: the file cannot be written.
    """
    return write_page(report(picture, views=views, sort=sort, advice=advice), target)


def report(
    picture: ReportData,
    limit: int = MAX_BYTES,
    views: Sequence[View] = (),
    sort: str = "cpu",
    advice: Advice | None = None,
) -> str:
    """The page, reduced until it has at most ``limit`` bytes; it says itself what was left out.

    ``views`` can be chosen on it; a page that is too large goes without them first.
    """
    advice = advice or Advice()
    if views:
        text = _page(picture, 0, advice, views, sort=sort)
        if len(text.encode("utf-8")) <= limit:
            return text
    text = ""
    for level in range(REDUCTIONS + 1):
        if level:
            picture = coarser(picture)
        left_out = ["single threads, processes and other scopes"] if views else []
        text = _page(picture, level, advice, left_out=left_out, sort=sort)
        if len(text.encode("utf-8")) <= limit:
            return text
    raise FormatError(f"the report would have {len(text):,} bytes: choose a part with --from, --to or --thread")


def _page(
    picture: ReportData,
    level: int,
    advice: Advice,
    views: Sequence[View] = (),
    left_out: Sequence[str] = (),
    sort: str = "cpu",
) -> str:
    profile = picture.profile
    texts = choose_texts(picture.lines.frame, profile.sources, 0.5**level)
    remarks = [*_left_out(picture, texts.cut, texts.missing, level), *left_out]
    others = (choose_texts(view.data.lines.frame, profile.sources, VIEW_TEXTS) for view in views)
    return render(
        "report.html.j2",
        STYLES,
        SCRIPTS,
        data=payload(picture, joined_texts(texts, others), remarks, advice, views, sort),
        **head(profile, remarks),
    )


def _left_out(picture: ReportData, cut: int, missing: int, level: int) -> list[str]:
    """Remarks on the parts of the profile that the page does not show."""
    remarks = [
        f"{part.left_out:,} {name} that matter least"
        for name, part in (
            ("lines", picture.lines),
            ("functions", picture.functions),
            ("files", picture.files),
            ("threads", picture.threads),
            ("names of spans", picture.spans),
        )
        if part is not None and part.left_out
    ]
    if picture.flame.folded:
        remarks.append(f"{picture.flame.folded:,} smallest boxes of the flame graph are drawn together")
    if cut:
        remarks.append(f"{cut:,} files have source text only around the lines that are shown")
    if missing:
        remarks.append(f"{missing:,} files have no source text here")
    if level:
        remarks.append(f"time is divided into {picture.bins.count} spans only, to keep the page small")
    return remarks
