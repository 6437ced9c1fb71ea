"""The style of figures (colours, type, rules, sizes), and saving them.

Readers with any common colour blindness can tell the colours apart; a test checks it. assets/page.css of the HTML
report has the same values; a test compares the two.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...recording.output_file import writing

PYTHON = "#2b6cb0"
NATIVE = "#e0801f"
KERNEL = "#5b2a6e"
UNKNOWN = "#8a8f98"
WAIT = "#b9c0c9"
MEMORY = "#14806a"
COPIES = "#b83a62"
GPU = "#8a7500"

LIGHT = {
    "python": PYTHON,
    "native": NATIVE,
    "kernel": KERNEL,
    "unknown": UNKNOWN,
    "wait": WAIT,
    "memory": MEMORY,
    "copies": COPIES,
    "gpu": GPU,
}
DARK = {
    "python": "#5f9fe3",
    "native": "#f0a04b",
    "kernel": "#e0bff5",
    "unknown": "#7d838d",
    "wait": "#4d5561",
    "memory": "#45b89c",
    "copies": "#ee7a9b",
    "gpu": "#d3c14a",
}

INK, SOFT, FAINT, RULE, WASH, PAPER = "#1b1e23", "#515863", "#686f79", "#e3e4e0", "#f3f3ef", "#ffffff"

SITES = ("#14806a", "#a8d5c5", "#0b4237", "#c9a227", "#7fb069", "#d98c9f", "#56b4c9")
"""For allocation sites side by side, in this order; none is the colour of Python, native code or the kernel."""

WIDTH = 8.0
"""Inches: a slide's, and twice a paper's column."""

DPI = 160

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.monospace": ["DejaVu Sans Mono"],
    "font.size": 9.0,
    "text.color": INK,
    "text.parse_math": False,  # names in a recording are not formulas
    "axes.titlesize": 11.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.edgecolor": RULE,
    "axes.labelcolor": SOFT,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": PAPER,
    "figure.dpi": DPI,
    "svg.fonttype": "none",
    "svg.hashsalt": "tachograph",
}


@contextmanager
def look() -> Iterator[None]:
    """Our settings, for as long as something is drawn."""
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # Names may have characters that no font here has; a box in their place is enough.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(height: float, width: float = WIDTH) -> tuple[Figure, Axes]:
    """An empty figure with one pair of axes; sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def heading(axes: Axes, title: str, note: str = "") -> None:
    """A title, and in smaller type what is shown."""
    axes.set_title(title)
    if note:
        axes.annotate(
            note, (1, 1), (0, 10), xycoords="axes fraction", textcoords="offset points", ha="right", va="baseline",
            color=FAINT, fontsize=8.5, annotation_clip=False,
        )  # fmt: skip


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Writes a figure as PNG and SVG."""
    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    figure.savefig(paths[0], dpi=DPI)
    figure.savefig(paths[1], metadata={"Date": None})
    return paths


def save_all(drawn: Iterable[tuple[str, Figure | None]], folder: Path) -> list[Path]:
    """Writes the figures that there are, each as it is drawn; returns the files.

    Errors:
        FormatError: a file cannot be written.
    """
    written: list[Path] = []
    with writing(f"figures to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
        with look():
            for name, figure in drawn:
                if figure is not None:
                    written += save(figure, folder, name)
    return written


def place_label(row: Any) -> str:
    """Where a row of ``lines`` is: the end of its path and the line, or what it is called if it has none."""
    if not isinstance(row.file, str):
        return str(row.function)
    return short_path(row.file) if row.line is pd.NA else f"{short_path(row.file)}:{row.line}"


def short_path(path: str, parts: int = 2) -> str:
    """The end of a path."""
    if path.startswith("<"):
        return path
    separator = "/" if "/" in path else "\\"
    return "/".join(path.split(separator)[-parts:])


def clipped(text: str, width: int) -> str:
    """A text of at most ``width`` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
