"""Writes recordings in the formats of other tools, and sends them to servers.

``prepare`` says what is exported (metric, window, threads, scope); every format is one module with a function
``write`` that turns it into bytes. Formats draw no conclusions, and none of them holds all that a recording
does: each takes one metric at a time, or a heap. ``push`` sends what two of them write. ``scrub`` writes a copy of a
recording without what is private.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from ..recording.question_options import ExportFormat, Metric
from . import callgrind, firefox, otlp, perfetto, pprof, speedscope, text_tables
from .extract import Extract, Options, prepare

__all__ = ["FORMATS", "Extract", "Format", "Metric", "Options", "prepare"]


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the usual end of its files' names, and the function that writes it."""

    suffix: str
    write: Callable[[Extract, Options, BinaryIO], list[str]]
    """Writes an extract; returns remarks for the user."""
    several: bool = False
    """True if it holds several values for each stack, as a heap has."""


FORMATS: Mapping[str, Format] = {
    ExportFormat.SPEEDSCOPE: Format(".speedscope.json", speedscope.write),
    ExportFormat.COLLAPSED: Format(".collapsed.txt", text_tables.write),
    ExportFormat.PPROF: Format(".pb.gz", pprof.write, several=True),
    ExportFormat.OTLP: Format(".otlp.pb", otlp.write, several=True),
    ExportFormat.FIREFOX: Format(".firefox.json.gz", firefox.write),
    ExportFormat.PERFETTO: Format(".pftrace", perfetto.write),
    ExportFormat.CALLGRIND: Format(".callgrind", callgrind.write),
    ExportFormat.CSV: Format(".csv", text_tables.write_csv),
}
