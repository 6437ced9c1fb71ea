"""Numbers, amounts, differences and times as people read them."""

from __future__ import annotations

import math
from datetime import datetime


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


def short_time(value: float | None) -> str:
    """A time of any length for a narrow column, at most 6 characters: ``41ns``, ``1.3µs``, ``250ms``, ``3.1s``."""
    if value is None or math.isnan(value):
        return "?"
    for limit, scale, unit in ((9.995e-7, 1e9, "ns"), (9.995e-4, 1e6, "µs"), (0.9995, 1e3, "ms"), (999.5, 1.0, "s")):
        if value < limit:
            return f"{value * scale:.1f}{unit}" if 0 < value * scale < 9.95 else f"{value * scale:.0f}{unit}"
    return f"{value / 60:.0f}m" if value < 59_970 else f"{value / 3600:.0f}h"


def short_count(value: float | None) -> str:
    """A count for a narrow column, at most 6 characters: ``812``, ``1.2k``, ``35M``; ``?`` if it is not known."""
    if value is None or math.isnan(value):
        return "?"
    if value < 9999.5:
        return f"{value:.0f}"
    for unit in "kMGT":
        value /= 1000
        if value < 999.5 or unit == "T":
            break
    return f"{value:.1f}{unit}" if value < 99.95 else f"{value:.0f}{unit}"


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


def calls_margin(calls: float, low: float, high: float) -> str:
    """The part by which a number of calls may be off, as ``±12%``; empty where it is exact, ``?`` if it is unknown."""
    if math.isnan(calls) or math.isnan(high):
        return "?"
    if low == high or calls <= 0:
        return ""
    share = max(high - calls, calls - low) / calls
    return f"±{share:.0%}" if share < 9.995 else "?"


def size(count: int) -> str:
    """Bytes as ``48.2 KB`` (1000 bytes to the KB, as disks have them)."""
    value = float(count)
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{count} bytes" if unit == "bytes" else f"{value:.3g} {unit}"


def rounded_size(value: float | None) -> str:
    """An estimate of bytes as ``size`` has it; ``?`` if it is not known, or has no limit."""
    return size(round(value)) if value is not None and math.isfinite(value) else "?"


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


def short_mean(value: float) -> str:
    """A number of things that is a mean, for a narrow column: ``0.4``, ``58``, ``1.2k``."""
    return f"{value:.1f}" if value < 9.95 else short_count(value)


def amount(value: float, unit: str) -> str:
    """An amount: ``1.24 s``, ``310 ms``, ``48.2 MB``, ``12.3 %`` (unit ``share``); ``?`` if it is unknown."""
    if not math.isfinite(value):
        return "?"
    if unit == "share":
        return f"{value * 100:.1f} %"
    if unit == "calls":
        return short_count(value)
    if unit == "mean":
        return short_mean(value)
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


_SCALES = {
    "s": ((119.5, 60.0, "min"), (0.0995, 1.0, "s"), (0.000995, 1e-3, "ms"), (0.0, 1e-6, "µs")),
    "bytes": ((999.5e9, 1e12, "TB"), (999.5e6, 1e9, "GB"), (999.5e3, 1e6, "MB"), (999.5, 1e3, "KB"), (0.0, 1.0, "B")),
    "share": ((0.0, 0.01, "%"),),
    "calls": ((999.5e6, 1e9, "G"), (999.5e3, 1e6, "M"), (9999.5, 1e3, "k"), (0.0, 1.0, "calls")),
}


def span(low: float, high: float, unit: str) -> str:
    """An interval of differences, both ends in the unit of the larger: ``+1.01 .. +1.48 s``, ``-0.02 .. +1.40 s``."""
    if math.isnan(low) or math.isnan(high):
        return "?"
    most = max(abs(low), abs(high))
    _, scale, name = next(each for each in _SCALES[unit.removesuffix("/s")] if most >= each[0])
    places = max(0, min(2, 2 - math.floor(math.log10(most / scale)))) if most > 0 and name != "B" else 0
    first, second = (f"{end / scale:+.{places}f}" for end in (low, high))
    return f"{first} .. {second} {name}{'/s' if unit.endswith('/s') else ''}"


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
    if high >= 9:
        return f"x {low + 1:.3g} .. {change(high)}"
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
