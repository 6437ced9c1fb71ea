"""How values of ``record`` are typed: ``--interval 5``, ``--include 'worker*'``, ``--memory-threshold 1M``.

Those of ``--rotate`` and what belongs to it are in ``rotation.rotation_settings``.
"""

from __future__ import annotations

from tachograph.quantities import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DEFAULT_THRESHOLD = 10_485_767
"""Bytes by which the footprint changes from one row to the next: a prime above 10 MiB (Scalene 2023, section 3.2).

A prime, so that a program which allocates round sizes in turn is not met at the same place every time.
"""

SMALLEST_THRESHOLD, LARGEST_THRESHOLD = 64 << 10, 1 << 40

RATES = {
    "block_mean_bytes": 524_288,
    "copies_min_bytes": 512,
    "copies_mean_bytes": 524_288,
}
"""What the native recorder begins with (WRITING.md); kept in step with native/shim by a test."""

SAMPLERS = ("native", "signal")
CALL_CHOICES = ("racing", "rejects")
DEFAULT_CALLS_BUDGET, LARGEST_CALLS_BUDGET = 2.0, 100.0
"""Percent of the time that watching calls may take."""
DEFAULT_BUDGET, LEAST_BUDGET, LARGEST_BUDGET = 6.0, 0.1, 100.0
"""Percent of the program's CPU time that recording memory may take."""
DEFAULT_CALLS_TOP, MOST_CALLS_TOP = 10, 4096
DEFAULT_CALLS_PERIOD_S, SHORTEST_CALLS_PERIOD_S, LONGEST_CALLS_PERIOD_S = 1.0, 0.1, 60.0
ACCESSES = ("loads", "stores", "both")
SHORTEST_MS, LONGEST_MS = 1.0, 1000.0
DEFAULT_NATIVE_DEPTH, DEEPEST_NATIVE = 128, 1000


def parse_threshold(text: str) -> int:
    """The bytes that ``--memory-threshold`` means: ``10485767``, ``64K``, ``10MB``.

    Raises ValueError, with one line for the user, if it is not a size, or not one that can be used.
    """
    size = parse_bytes(text, bare=True)
    if size is None:
        raise ValueError(f"{text!r} is not a number of bytes such as 10485767, 64K or 10MB")
    if not SMALLEST_THRESHOLD <= size <= LARGEST_THRESHOLD:
        raise ValueError(f"{text.strip()} is not between 64K and 1024G")
    return size


def one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """Reads one of these words. It raises ValueError, with one line for the user, if it is another."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is not one of {', '.join(map(repr, choices))}")
        return text

    return parse


def parse_interval(text: str) -> float:
    """Milliseconds. Raises ValueError, with one line for the user, if no timer keeps them or they show too little."""
    value = _number(text)
    if not SHORTEST_MS <= value <= LONGEST_MS:  # nan is not
        raise ValueError(f"{value:g} ms is not between {SHORTEST_MS:g} and {LONGEST_MS:g} ms")
    return value


def parse_native_depth(text: str) -> int:
    """Frames of a native call path. Raises ValueError, one line for the user, if it is not a number from 0 to 1000."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and int(text) <= DEEPEST_NATIVE):
        raise ValueError(f"{text!r} is not a number of frames from 0 (no native call paths) to {DEEPEST_NATIVE}")
    return int(text)


def parse_calls_budget(text: str) -> float:
    """Percent of the time. Raises ValueError, with one line for the user, if it is no share above 0."""
    value = _number(text)
    if not 0.1 <= value <= LARGEST_CALLS_BUDGET:
        raise ValueError(f"{text.strip()} is not between 0.1 and {LARGEST_CALLS_BUDGET:g} percent")
    return value


def parse_budget(text: str) -> float:
    """Percent of the CPU time. Raises ValueError, with one line for the user, if it is no share above 0."""
    value = _number(text)
    if not LEAST_BUDGET <= value <= LARGEST_BUDGET:
        raise ValueError(f"{text.strip()} is not between {LEAST_BUDGET:g} and {LARGEST_BUDGET:g} percent")
    return value


def parse_calls_top(text: str) -> int:
    """A number of functions. Raises ValueError, with one line for the user, if it is none from 1 to 4096."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= MOST_CALLS_TOP):
        raise ValueError(f"{text!r} is not a number of functions from 1 to {MOST_CALLS_TOP}")
    return int(text)


def parse_calls_period(text: str) -> float:
    """Seconds. Raises ValueError, with one line for the user, if they are too few or too many."""
    value = _number(text)
    if not SHORTEST_CALLS_PERIOD_S <= value <= LONGEST_CALLS_PERIOD_S:
        raise ValueError(f"{text.strip()} is not between {SHORTEST_CALLS_PERIOD_S:g} and {LONGEST_CALLS_PERIOD_S:g} s")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None


def parse_pattern(text: str) -> str:
    """A name of programs, or a pattern of them. Raises ValueError, with one line for the user, if it is empty."""
    if not text:
        raise ValueError("name a program, such as worker.py, or a pattern, such as work*")
    return text
