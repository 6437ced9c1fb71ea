"""``tachograph view``: recordings in the browser.

One recording becomes a page, a file that stays. Several, or a folder, are served to this user's browser (``pages``)
until Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

import click

from tachograph.format import FormatError

from ..profile.question import Question
from .common import Failure, find_recording, one_line_errors, progress
from .shelf import Shelf, without_end

MARK = b" \xc2\xb7 tachograph</title>"
"""The end of the title of each page that tachograph writes."""

HEAD_BYTES = 1 << 16
"""Bytes of a file that are looked through for it."""


@click.command(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  tachograph view                        the newest recording here\n"
    "  tachograph view run.tacho -o run.html\n"
    "  tachograph view .                      all recordings below this folder\n"
    "  tachograph view before.tacho after.tacho\n"
    "  tachograph view --no-browser --port 8000 /srv/recordings",
    help="Open recordings in the browser.\n\n"
    "RECORDING is a .tacho directory or a zip archive of one: its page is written to NAME.html in this folder, and"
    " opened. Several recordings, or a folder, have an index page, which leads to the page of each and to the diff of"
    " any two. They are served on 127.0.0.1, at an address that has a secret in it, until Ctrl-C.",
)
@click.argument("recordings", nargs=-1, metavar="[RECORDING...]", type=click.Path())
@click.option("-o", "--output", metavar="FILE", type=click.Path(), help="Page to write. [default: NAME.html]")
@click.option("--scope", metavar="project|all|GLOB", help="Code to attribute time to. [default: project]")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Port. [default: any free one]")
@one_line_errors
def view(recordings: tuple[str, ...], output: str | None, scope: str | None, no_browser: bool, port: int) -> None:
    """Opens recordings in the browser."""
    question = Question(scope)
    places = [find_recording(each) for each in recordings or (None,)]
    if len(places) > 1 or is_folder_of_recordings(places[0]):
        if output is not None:
            raise Failure("--output is the page of one recording: leave it out, or name one")
        serve(Shelf([place.absolute() for place in places]), question, port, no_browser=no_browser)
        return
    if port:
        raise Failure("--port is for several recordings: one recording has a page of its own, and nothing is served")
    page = Path(output) if output is not None else default_page(places[0])
    write(places[0], question, page)
    click.echo(page)
    if not no_browser:
        open_browser(page.absolute().as_uri())


def is_folder_of_recordings(place: Path) -> bool:
    """True of a folder that is no recording itself."""
    return place.is_dir() and place.suffix != ".tacho" and not (place / "manifest.json").exists()


def default_page(recording: Path) -> Path:
    """The file NAME.html in this folder.

    Errors:
        FormatError: there is another file of that name.
    """
    page = Path(f"{without_end(recording.absolute().name)}.html")
    if page.exists():
        with page.open("rb") as file:
            if MARK not in file.read(HEAD_BYTES):
                raise FormatError(f"{page} is no page of tachograph: name another file with --output")
    return page


def write(place: Path, question: Question, page: Path) -> None:
    """Writes the page of a recording."""
    from ..recording.opened import Recording
    from ..render.write import write_reports
    from ..report_data.report_data import build_report_data

    with progress() as watcher, Recording.open(place) as recording:
        recording.watcher = watcher
        write_reports(recording, build_report_data(recording, question), str(page), None)


def serve(shelf: Shelf, question: Question, port: int, *, no_browser: bool) -> None:
    """Serves the recordings until Ctrl-C.

    Errors:
        FormatError: there is none, or the port cannot be had.
    """
    from .page_server import PageServer
    from .pages import Pages

    pages = Pages(shelf, question)
    names = pages.names()
    if not names:
        raise FormatError("there is no recording in this folder: make one with 'tachograph record'")
    try:
        server = PageServer(pages, port)
    except OSError as error:
        raise FormatError(f"cannot serve on port {port}: {error.strerror or error}") from None
    with server:
        click.echo(server.url)
        click.echo(f"{len(names):,} recordings; Ctrl-C ends this.", err=True)
        pages.begin()
        if not no_browser:
            open_browser(server.one_time_url(), server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo(err=True)  # behind the terminal's ^C
        finally:
            pages.end()


def open_browser(url: str, shown: str | None = None) -> None:
    """Opens the browser; where there is none, says which address to open: ``shown``, or ``url`` itself."""
    if not has_browser() or not webbrowser.open(url):
        click.echo(f"No browser can be opened here: give one this address: {shown or url}", err=True)


def has_browser() -> bool:
    """True if a browser has a window to show: one that runs in the terminal would take the place of the command."""
    if sys.platform != "linux" or os.environ.get("BROWSER"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("WSL_DISTRO_NAME"))
