"""Sizes and times as they are typed: ``10m``, ``1.5 s``, ``64K``, ``200MB``, ``24 MiB``.

One grammar for the command line, ``pyproject.toml`` and the marks of tests. It is read before a recorded program
starts, and therefore imports nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS: Mapping[str, float] = {
    "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip
"""The units of times."""

BYTES: Mapping[str, int] = {
    "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
"""The units of sizes, as they can be typed next to times: ``10m`` are minutes."""

LETTERS: Mapping[str, int] = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
"""Short units of sizes; small letters will do."""

_MOST_DIGITS = 15


def parse_seconds(text: str, *, bare: bool = False) -> float | None:
    """The seconds that a text such as ``500 ms`` or ``1.5h`` means; None if it is no time.

    ``bare``: a number without a unit are seconds.
    """
    parts = _parts(text)
    if parts is None:
        return None
    number, unit = parts
    factor = SECONDS.get(unit, 1.0 if bare and not unit else None)
    return None if factor is None else float(number) * factor


def parse_bytes(text: str, *, bare: bool = False, letters: bool = True) -> int | None:
    """The bytes that a text such as ``200MB``, ``1.5 GiB`` or ``64K`` means; None if it is no size.

    ``bare``: a number without a unit are bytes. ``letters``: those of LETTERS are units.
    """
    parts = _parts(text)
    if parts is None:
        return None
    number, unit = parts
    factor = BYTES.get(unit) or (LETTERS.get(unit.upper()) if letters else None) or (1 if bare and not unit else None)
    if factor is None:
        return None
    whole, _, fraction = number.partition(".")
    scale: int = 10 ** len(fraction)
    return int(whole + fraction) * factor // scale


def _parts(text: str) -> tuple[str, str] | None:
    """The number and the unit; None if there is no number."""
    text = text.strip()
    unit = text.lstrip("0123456789.")
    number = text[: len(text) - len(unit)]
    whole, point, fraction = number.partition(".")
    digits = (whole, fraction) if point else (whole,)
    if not all(each.isdecimal() and len(each) <= _MOST_DIGITS for each in digits):
        return None
    return number, unit.lstrip(" ")
