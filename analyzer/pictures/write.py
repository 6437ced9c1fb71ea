"""Writes what is drawn of a profile: the HTML report, the figures, or both from one reading."""

from __future__ import annotations

from pathlib import Path

import click

from ..profile import Profile
from ..recording import Recording
from .picture import draw_up


def write_pictures(recording: Recording, profile: Profile, html: str | None, figures: str | None) -> None:
    """Writes the report to the file ``html`` and the figures into the folder ``figures``, and says where they are.

    Errors:
        FormatError: the recording is damaged, or something cannot be written.
    """
    picture = draw_up(recording, profile)
    if html is not None:
        from ..render.html.page import write_report

        size = write_report(picture, Path(html))
        click.echo(f"{html}: {size / 1e6:.1f} MB", err=True)
    if figures is not None:
        from ..figures.write import write_figures

        written = write_figures(picture, Path(figures))
        click.echo(f"{figures}: {', '.join(path.name for path in written)}", err=True)
