"""Numbers as people read them."""

from __future__ import annotations

import math


def seconds(value: float | None) -> str:
    """A time in about three digits: ``1.25 s``, ``340 ms``, ``2 min 05 s``; ``?`` if it is not known."""
    if value is None or math.isnan(value):
        return "?"
    if value == 0:
        return "0 s"
    if value < 0.0995:
        return f"{value * 1e3:.3g} ms" if value >= 0.001 else f"{value * 1e6:.0f} µs"
    if value < 9.95:
        return f"{value:.2f} s"
    if value < 119.5:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 120:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def short_seconds(value: float | None) -> str:
    """A time for a narrow column, at most 6 characters; empty for nothing, ``?`` if it is not known."""
    if value is None or math.isnan(value):
        return "?"
    if value < 0.0005:
        return ""
    if value < 0.9995:
        return f"{value * 1e3:.0f}ms"
    if value < 9.995:
        return f"{value:.2f}s"
    if value < 999.5:
        return f"{value:.1f}s"
    return f"{value / 60:.0f}m" if value < 59_970 else f"{value / 3600:.0f}h"


def percent(share: float | None) -> str:
    """A share (0..1) in percent without its sign; empty for less than 0.05 %, ``?`` if it is not known."""
    if share is None or math.isnan(share):
        return "?"
    if share < 0.0005:
        return ""
    return "100" if share >= 0.9995 else f"{share * 100:.1f}"


def margin(low: float, high: float) -> str:
    """Half the width of an interval of shares, as ``±1.2`` in percentage points."""
    if math.isnan(low) or math.isnan(high):
        return ""
    half = (high - low) * 50
    return f"±{half:.1f}" if half < 9.95 else f"±{half:.0f}"


def size(count: int) -> str:
    """Bytes as ``48.2 KB`` (1000 bytes to the KB, as disks have them)."""
    value = float(count)
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{count} bytes" if unit == "bytes" else f"{value:.3g} {unit}"


def short_size(value: float | None, unknown: str = "?") -> str:
    """Bytes for a narrow column, at most 5 characters (``512M`` is 512 MB); empty for less than 1 KB."""
    if value is None or math.isnan(value):
        return unknown
    if value < 1000:
        return ""
    for unit in "KMGT":
        value /= 1000
        if value < 999.5 or unit == "T":
            break
    return f"{value:.2f}{unit}" if value < 9.995 else f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"


def counted(number: int, plural: str) -> str:
    """A count with a text that begins with what is counted, in the plural; its noun is among the first three words."""
    words = plural.split(" ")
    noun = next((place for place, word in enumerate(words[:3]) if word.endswith("s") and word[-3:] != "ous"), None)
    if number == 1 and noun is not None:
        words[noun] = "process" if words[noun] == "processes" else words[noun].removesuffix("s")
    return f"{number:,} {' '.join(words)}"
