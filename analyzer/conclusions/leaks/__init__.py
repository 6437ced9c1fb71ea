"""Leaks: what sites keep getting memory and never give it back.

``evidence`` gathers the histories of the followed blocks by site, ``definitions`` says what a leak is (it can be
replaced: see ``LeakDefinition``), ``report`` makes the list that is shown. docs/explanation/leaks.md explains them.
"""

from __future__ import annotations

from .leak_definitions import DEFINITIONS, Growth, Histories, LeakDefinition, PaperScore, Verdicts, definition_named
from .leak_report import LeakColumns, Leaks, find_leaks

__all__ = [
    "DEFINITIONS",
    "Growth",
    "Histories",
    "LeakColumns",
    "LeakDefinition",
    "Leaks",
    "PaperScore",
    "Verdicts",
    "definition_named",
    "find_leaks",
]
