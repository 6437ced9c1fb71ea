"""Writes reports: the HTML page, the figures, or both from the same data."""

from __future__ import annotations

from pathlib import Path

from tachograph.format import FormatError

from ..recording.opened import Recording
from ..report_data.advice.table import Advice
from ..report_data.report_data import ReportData


def write_reports(
    recording: Recording,
    data: ReportData,
    html: str | None,
    figures: str | None,
    sort: str = "cpu",
    advice: Advice | None = None,
) -> list[str]:
    """Writes the report to the file ``html`` and the figures into the folder ``figures``; says where they are.

    Errors:
        FormatError: something cannot be written, or matplotlib finds no folder for temporary files.
    """
    written = []
    if html is not None:
        from ..report_data.report_data import build_views
        from .html.report_page import write_report

        views = build_views(recording, data.profile.question, data)
        recording.step("writing the report")
        written.append(f"{html}: {write_report(data, Path(html), views, sort, advice) / 1e6:.1f} MB")
    if figures is not None:
        try:
            from .figures.all_figures import write_figures
        except OSError as problem:  # matplotlib has fonts to remember, and begins with that
            raise FormatError(
                "the figures need a folder for temporary files, and none can be written to: set MPLCONFIGDIR to one"
            ) from problem

        recording.step("writing the figures")
        paths = write_figures(data, Path(figures))
        written.append(f"{figures}: {', '.join(path.name for path in paths)}")
    return written
