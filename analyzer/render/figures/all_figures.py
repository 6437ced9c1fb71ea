"""Draws all figures of a report into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from ...report_data.report_data import ReportData
from .charts import draw_copies, draw_footprint, draw_gpu, draw_lines, draw_threads, draw_where
from .figure_style import save_all
from .flame_figure import draw_flame, draw_live

FIGURES: Mapping[str, Callable[[ReportData], Figure | None]] = {
    "lines": draw_lines,
    "flame": draw_flame,
    "flame-live": draw_live,
    "footprint": draw_footprint,
    "where": draw_where,
    "threads": draw_threads,
    "copies": draw_copies,
    "gpu": draw_gpu,
}
"""The figures by file name. A figure of something that was not recorded is not drawn."""


def write_figures(data: ReportData, folder: Path) -> list[Path]:
    """Writes every figure that there is something to draw for; returns the files.

    Errors:
        FormatError: a file cannot be written.
    """
    return save_all(((name, draw(data)) for name, draw in FIGURES.items()), folder)
