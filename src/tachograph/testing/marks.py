"""The marks of tests that limit what these use, and how their values are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tachograph.quantities import parse_bytes, parse_seconds


class Mark(NamedTuple):
    """A mark: the field of the span of the call, its argument's name, its default, and how its value is read."""

    field: str
    argument: str
    default: float | None
    read: Callable[[object], float]
    help: str


def read_time(value: object) -> float:
    """Seconds, from a number of them or a text such as ``500 ms``.

    Errors:
        ValueError: it is neither.
    """
    return _read(value, parse_seconds, "a number of seconds, or a text such as '500 ms'")


def read_size(value: object) -> float:
    """Bytes, from a number of them or a text such as ``24 MB`` (1000 to the KB) or ``24 MiB`` (1024 to the KiB).

    Errors:
        ValueError: it is neither.
    """
    return _read(value, parse_bytes, "a number of bytes, or a text such as '24 MB' or '24 MiB'")


def _read(value: object, parse: Callable[..., float | None], wanted: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and 0 <= value < 1e18:
        return float(value)
    read = parse(value, bare=True) if isinstance(value, str) and len(value) < 50 else None
    if read is None:
        raise ValueError(f"{value!r:.80} is not {wanted}")
    return float(read)


MARKS = {
    "limit_cpu": Mark("limit_cpu_s", "time", None, read_time, "the call of the test may take so much CPU time"),
    "limit_memory": Mark(
        "limit_memory_bytes", "size", None, read_size, "the call may hold so much at once of what it allocates"
    ),
    "limit_copies": Mark("limit_copies_bytes", "size", None, read_size, "the call may copy so many bytes"),
    "no_leaks": Mark(
        "no_leaks_bytes", "above", 100_000.0, read_size, "what the call allocates must not be held to the end"
    ),
}
"""By name. They count only in runs with ``--tachograph``."""


def read_mark(name: str, args: tuple[object, ...], kwargs: Mapping[str, object]) -> float:
    """The value of a mark with these arguments.

    Errors:
        ValueError: they are not what it takes.
    """
    mark = MARKS[name]
    given = [*args, *(value for key, value in kwargs.items() if key == mark.argument)]
    unknown = [key for key in kwargs if key != mark.argument]
    if unknown or len(given) > 1 or (not given and mark.default is None):
        raise ValueError(f"it takes one argument, {mark.argument}")
    if not given:
        assert mark.default is not None
        return mark.default
    return mark.read(given[0])
