"""Compares recordings, or groups of them: what became slower, faster, more or less, and how sure that is.

>>> from tachograph.analyzer.diff import diff
>>> result = diff([Path("old.tacho")], [Path("new.tacho")])
>>> result.lines.metric("cpu")[["file", "line", "difference", "low", "high", "verdict"]].head()
"""

from ..report_data.difference import DiffResult, Level
from .compare import diff

__all__ = ["DiffResult", "Level", "diff"]
