"""Writes recordings in the formats of other tools: speedscope, collapsed, pprof, firefox, perfetto, callgrind, csv.

``prepare`` chooses what is exported (metric, window, threads, scope); every format is one module with a function
``write`` that turns the choice into bytes. Formats draw no conclusions, and none of them holds all that a recording
does: each takes one metric at a time.
"""

from __future__ import annotations

from .choice import Choice, Options, prepare
from .formats import FORMATS, Format
from .metrics import Metric

__all__ = ["FORMATS", "Choice", "Format", "Metric", "Options", "prepare"]
