"""The one way in which the recording commands refuse: one clear line and exit status 2.

No click here: `record` starts its program before it would be imported.
"""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 - it is not an error of ours
    """Bad input. ``message`` is one line that names what was wrong and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RecordingError(Exception):
    """A recording from inside a program could not be begun or ended; one line says why."""


def one_line(text: str) -> str:
    """``text`` without line breaks and control characters, which names of files may hold."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def reason(error: OSError) -> str:
    """The system's words for ``error``, without numbers and file names, beginning in lower case."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
