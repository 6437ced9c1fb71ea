"""Amounts and their differences as people read them, in a few characters."""

from __future__ import annotations

import math
from datetime import datetime

from ..report_data.numbers import size


def amount(value: float, unit: str) -> str:
    """An amount: ``1.24 s``, ``310 ms``, ``48.2 MB``, ``12.3 %`` (unit ``share``); ``?`` if it is unknown."""
    if math.isnan(value):
        return "?"
    if unit == "share":
        return f"{value * 100:.1f} %"
    if unit.startswith("bytes"):
        return size(round(value)).replace("bytes", "B") + unit.removeprefix("bytes")
    if value == 0:
        return "0 s"
    if value < 0.9995:
        return f"{value * 1e3:.0f} ms" if value >= 0.00095 else f"{value * 1e6:.0f} µs"
    if value < 9.995:
        return f"{value:.2f} s"
    return f"{value:.1f} s" if value < 9999.5 else f"{value / 3600:.2f} h"


def signed(value: float, unit: str) -> str:
    """A difference: ``+1.24 s``; shares in percentage points (``+1.2 pp``)."""
    text = amount(abs(value), unit)
    if unit == "share":
        text = text.replace(" %", " pp")
    return text if math.isnan(value) or value == 0 else f"{'+' if value > 0 else '-'}{text}"


def span(low: float, high: float, unit: str) -> str:
    """An interval of differences: ``+1.01 .. +1.48 s``."""
    if math.isnan(low) or math.isnan(high):
        return "?"
    first, second = signed(low, unit), signed(high, unit)
    head, _, end = first.rpartition(" ")
    return f"{head if second.endswith(f' {end}') else first} .. {second}"


def change(value: float) -> str:
    """A relative change: ``+12.3 %``, ``x 25`` from 10 times on; empty where it is unknown or from nothing."""
    if not math.isfinite(value):
        return ""
    if value >= 9:
        return f"x {value + 1:.3g}" if value < 998.5 else f"x {value + 1:.0f}"
    digits = 1 if abs(value) < 0.9995 else 0
    return f"{value * 100:+.{digits}f} %"


def changes(low: float, high: float) -> str:
    """An interval of relative changes: ``+8.1 .. +16.5 %``."""
    if math.isnan(low) or math.isnan(high):
        return "?"
    if math.isinf(high):
        return f"{change(low)} or more" if low > -0.9995 else "anything"
    first, second = change(low), change(high)
    return f"{first.removesuffix(' %') if second.endswith('%') else first} .. {second}"


def when(created_utc: str | None) -> str | None:
    """The time of a recording, as it is in the manifest if it is no time."""
    if created_utc is None:
        return None
    try:
        return datetime.fromisoformat(created_utc).strftime("%d %b %Y %H:%M UTC").lstrip("0")
    except ValueError:
        return created_utc
