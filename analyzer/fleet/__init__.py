"""Many recordings as one question: index them once, ask often.

>>> import tachograph.analyzer.fleet
>>> fleet = tachograph.analyzer.fleet.open("s3://profiles/shop")
>>> fleet.top(metric="cpu", by="version").head()

It needs ``tachograph[fleet]``. Names are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .opened_fleet import Fleet, open  # noqa: A004

__all__ = ["Fleet", "open"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module(".opened_fleet", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
