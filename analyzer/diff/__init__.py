"""Compares recordings, or groups of them: what became slower, faster, more or less, and how sure that is.

>>> from tachograph.analyzer.diff import diff
>>> result = diff([Path("old.tacho")], [Path("new.tacho")])
>>> result.lines.metric("cpu")[["file", "line", "difference", "low", "high", "verdict"]].head()

Names are imported when they are used: the statistics alone load little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..report_data.difference import DiffResult, Level
    from .comparison import diff

__all__ = ["DiffResult", "Level", "diff"]

_PLACES = {"DiffResult": "..report_data.difference", "Level": "..report_data.difference", "diff": ".comparison"}


def __getattr__(name: str) -> object:
    if name in _PLACES:
        return getattr(import_module(_PLACES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
