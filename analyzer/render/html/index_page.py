"""The index of several recordings, as ``tachograph view`` serves it, and a page that says why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ...report_data.numbers import counted, when
from .pack import Packer
from .report_page import BOX_TREE_SCRIPTS, render

STYLES = ("page.css", "charts.css", "tables.css", "print.css")
SCRIPTS = (*BOX_TREE_SCRIPTS, "index.js")


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A recording. Text is printable; None is unknown."""

    address: str
    """The recording's part of addresses."""
    name: str
    program: str
    created_utc: str | None
    labels: Mapping[str, str]
    bytes: int | None
    being_written: bool = False
    error: str | None = None
    """Why the recording cannot be read."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals of a recording; None is unknown."""

    wall: float | None = None
    cpu: float | None = None
    wait: float | None = None
    """Waiting of the main thread."""
    peak: float | None = None
    """Bytes held at the peak."""


def index_page(rows: Sequence[IndexRow], totals: Mapping[str, Totals]) -> str:
    """The page. ``totals`` are those known by now, by address; the page asks its server for the others."""
    unreadable = sum(row.error is not None for row in rows)
    document = {
        "recordings": [
            {
                **asdict(row),
                "labels": " ".join(f"{key}={value}" for key, value in row.labels.items()),
                "when": when(row.created_utc),
            }
            for row in rows
        ],
        "totals": {address: asdict(each) for address, each in totals.items()},
    }
    facts = [counted(len(rows), "recordings"), *([f"{unreadable} cannot be read"] if unreadable else [])]
    return render("index.html.j2", STYLES, SCRIPTS, asks_server=True, data=Packer().block(document), facts=facts)


def message_page(title: str, text: str, link: tuple[str, str] | None = None) -> str:
    """A page of one sentence, with a link (address, text) where there is a way out."""
    return render("message.html.j2", STYLES, (), data="", heading=title, text=text, link=link)
