"""The formats that ``tachograph export`` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from ..recording.question_options import ExportFormat
from . import callgrind, collapsed, csv_table, firefox, perfetto, pprof, speedscope
from .choice import Choice, Options


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the usual end of its files' names, and the function that writes it."""

    suffix: str
    write: Callable[[Choice, Options, BinaryIO], list[str]]
    """Writes a choice; returns remarks for the user."""


FORMATS: Mapping[str, Format] = {
    ExportFormat.SPEEDSCOPE: Format(".speedscope.json", speedscope.write),
    ExportFormat.COLLAPSED: Format(".collapsed.txt", collapsed.write),
    ExportFormat.PPROF: Format(".pb.gz", pprof.write),
    ExportFormat.FIREFOX: Format(".firefox.json.gz", firefox.write),
    ExportFormat.PERFETTO: Format(".pftrace", perfetto.write),
    ExportFormat.CALLGRIND: Format(".callgrind", callgrind.write),
    ExportFormat.CSV: Format(".csv", csv_table.write),
}
