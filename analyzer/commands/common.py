"""What both commands share: finding the recording, and ending with one line instead of a traceback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from tachograph.format import FormatError

P = ParamSpec("P")
R = TypeVar("R")

RECORDING_HELP = (
    "RECORDING is a .tacho directory or a zip archive of one; without it, the newest *.tacho in this folder."
)


EXTRA = ("pandas", "rich", "numpy", "pyarrow", "jinja2", "markupsafe", "matplotlib")
"""Modules that an installation without ``[analyze]`` lacks."""


class Failure(click.ClickException):
    """Bad input: one line on standard error, exit status 2."""

    exit_code = 2

    def show(self, file: object = None) -> None:
        """Prints the line."""
        click.echo(f"tachograph: {self.format_message()}", err=True)


def one_line_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turns what may go wrong with a recording, and a missing extra, into one line and exit status 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except FormatError as error:
            raise Failure(str(error)) from None
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in EXTRA:
                raise
            raise Failure(f"this needs {error.name}, which is missing: pip install 'tachograph[analyze]'") from None
        except BrokenPipeError:
            # The reader (head, less) has seen enough.
            raise SystemExit(0) from None

    return wrapped


def find_recording(given: str | None) -> Path:
    """The recording that was named, or the newest in the current folder.

    Errors:
        FormatError: none was named, and there is none.
    """
    if given is not None:
        return Path(given)
    found = [path for path in Path().glob("*.tacho") if (path / "manifest.json").is_file()]
    found += [path for path in Path().glob("*.tacho.zip") if path.is_file()]
    if not found:
        raise FormatError(
            "there is no *.tacho recording in this folder: name one, or make one with 'tachograph record'"
        )
    return max(found, key=lambda path: path.stat().st_mtime_ns)
