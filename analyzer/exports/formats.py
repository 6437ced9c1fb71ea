"""The formats that ``tachograph export`` writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from . import callgrind, collapsed, csv_table, firefox, perfetto, pprof, speedscope
from .choice import Choice, Options


@dataclass(frozen=True, slots=True)
class Format:
    """One format: the usual end of its files' names, and the function that writes it."""

    suffix: str
    write: Callable[[Choice, Options, BinaryIO], list[str]]
    """Writes a choice; returns remarks for the user."""


FORMATS = {
    "speedscope": Format(".speedscope.json", speedscope.write),
    "collapsed": Format(".collapsed.txt", collapsed.write),
    "pprof": Format(".pb.gz", pprof.write),
    "firefox": Format(".firefox.json.gz", firefox.write),
    "perfetto": Format(".pftrace", perfetto.write),
    "callgrind": Format(".callgrind", callgrind.write),
    "csv": Format(".csv", csv_table.write),
}
