"""When a recording is rotated and what is kept of it, as that is typed: ``--rotate 10m``, ``--keep 6`` and so on."""

from __future__ import annotations

from tachograph.format.plain_records import record_class
from tachograph.quantities import parse_bytes, parse_seconds

DEFAULT_KEEP = 10
SHORTEST_S, LONGEST_S = 1.0, 30 * 86400.0
SMALLEST_BYTES, LARGEST_BYTES = 100_000, 10**12
MOST_KEPT = 9999

_SIGNAL = r"(?:SIG)?(USR1|USR2|RTMIN)(?:(?<=RTMIN)\+([0-9]{1,2}))?"


@record_class
class Rotate:
    """A window is closed after so many seconds, or when so many bytes were written in it; one of the two is None."""

    seconds: float | None
    size: int | None
    typed: str


def parse_rotate(text: str) -> Rotate:
    """Parses ``--rotate``: a time (``30s``, ``10m``, ``1h``, ``1d``) or a size (``500KB``, ``200MB``, ``1GB``).

    A size needs its B: ``10M`` may be meant to be minutes.
    Raises ValueError, with one line for the user, if it is neither or cannot be used.
    """
    text = text.strip()
    seconds, size = parse_seconds(text), parse_bytes(text, letters=False)
    if seconds is None and size is None:
        raise ValueError(
            f"{text!r} is neither a time such as 30s, 10m, 1h or 1d, nor a size such as 500KB, 200MB or 1GB"
        )
    if seconds is not None:
        if not SHORTEST_S <= seconds <= LONGEST_S:
            raise ValueError(f"{text} is not between 1s and 30d")
        return Rotate(seconds, None, text)
    assert size is not None
    if not SMALLEST_BYTES <= size <= LARGEST_BYTES:
        raise ValueError(f"{text} is not between 100KB and 1000GB")
    return Rotate(None, size, text)


def parse_keep(text: str) -> int:
    """The number of windows to keep. Raises ValueError, with one line for the user, if it is no such number."""
    text = text.strip()
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= MOST_KEPT and len(text) < 9):
        raise ValueError(f"{text!r} is not a number between 1 and {MOST_KEPT}")
    return int(text)


def parse_signal(text: str) -> int:
    """The number of the signal that asks for a snapshot, from its name (``USR1``, ``SIGUSR2``, ``RTMIN+3``).

    Raises ValueError, with one line for the user, if that is none, or one that says something of its own.
    """
    import re
    import signal

    text = text.strip()
    match = re.fullmatch(_SIGNAL, text.upper())
    first = None if match is None else getattr(signal, f"SIG{match[1]}", None)
    if match is not None and first is not None:
        number = int(first) + int(match[2] or 0)
        if number in signal.valid_signals():
            return number
    raise ValueError(f"{text!r} is not a signal that can be taken: name USR1, USR2, RTMIN or RTMIN+1 and so on")
