"""The one way in which the recording commands refuse: one clear line and exit status 2."""

from __future__ import annotations

import sys
from typing import IO, Any

import click


class Refused(click.ClickException):
    """Bad input. ``message`` is one line that names what was wrong and what to do."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line on the standard error."""
        click.echo(f"tachograph: {one_line(self.message)}", file=file or sys.stderr)


def one_line(text: str) -> str:
    """``text`` without line breaks and control characters, which names of files may hold."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def reason(error: OSError) -> str:
    """The system's words for ``error``, without numbers and file names, beginning in lower case."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]
