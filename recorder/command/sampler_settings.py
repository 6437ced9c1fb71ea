"""How samples are taken and of which processes, as that is typed: ``--interval 5``, ``--include 'worker*'``."""

from __future__ import annotations

SAMPLERS = ("native", "signal")
SHORTEST_MS, LONGEST_MS = 1.0, 1000.0
DEFAULT_NATIVE_DEPTH, DEEPEST_NATIVE = 128, 1000


def parse_sampler(text: str) -> str:
    """A sampler's name. Raises ValueError, with one line for the user, if there is no such sampler."""
    if text not in SAMPLERS:
        raise ValueError(f"{text!r} is not one of {', '.join(map(repr, SAMPLERS))}")
    return text


def parse_interval(text: str) -> float:
    """Milliseconds. Raises ValueError, with one line for the user, if no timer keeps them or they show too little."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not SHORTEST_MS <= value <= LONGEST_MS:  # nan is not
        raise ValueError(f"{value:g} ms is not between {SHORTEST_MS:g} and {LONGEST_MS:g} ms")
    return value


def parse_native_depth(text: str) -> int:
    """Frames of a native call path. Raises ValueError, one line for the user, if it is no number from 0 to 1000."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and int(text) <= DEEPEST_NATIVE):
        raise ValueError(f"{text!r} is not a number of frames from 0 (no native call paths) to {DEEPEST_NATIVE}")
    return int(text)


def parse_pattern(text: str) -> str:
    """A name of programs, or a pattern of them. Raises ValueError, with one line for the user, if it is empty."""
    if not text:
        raise ValueError("name a program, such as worker.py, or a pattern, such as work*")
    return text
