"""Leaks: sites that keep allocating memory and never release it.

``cases`` judges each process by itself, ``leak_definitions`` defines a leak (it can be replaced: see
``LeakDefinition``), ``leak_report`` makes the list that is shown. docs/explanation/leaks.md explains them.
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
