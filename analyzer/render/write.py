"""Writes what is drawn of a profile: the HTML report, the figures, or both from one reading."""

from __future__ import annotations

from pathlib import Path

from ..profile.profile import Profile
from ..recording.opened import Recording
from ..report_data.report_data import draw_up


def write_pictures(recording: Recording, profile: Profile, html: str | None, figures: str | None) -> list[str]:
    """Writes the report to the file ``html`` and the figures into the folder ``figures``; says where they are.

    Errors:
        FormatError: the recording is damaged, or something cannot be written.
    """
    recording.step("drawing")
    picture = draw_up(recording, profile)
    written = []
    if html is not None:
        from .html.page import write_report

        recording.step("writing the report")
        written.append(f"{html}: {write_report(picture, Path(html)) / 1e6:.1f} MB")
    if figures is not None:
        from .figures.write import write_figures

        recording.step("writing the figures")
        paths = write_figures(picture, Path(figures))
        written.append(f"{figures}: {', '.join(path.name for path in paths)}")
    return written
