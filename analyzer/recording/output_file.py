"""Writing what the analyzer makes: to a file or to standard output, with one line where it cannot be written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tachograph.format import FormatError


@contextmanager
def writing(target: str | Path) -> Iterator[None]:
    """What the system refuses in here is a FormatError that names ``target``, in one line."""
    try:
        yield
    except OSError as error:
        raise FormatError(f"cannot write {target}: {error.strerror or error}") from None


def write_text(text: Iterable[str], target: str) -> None:
    """Writes the pieces of a text to a file, or to standard output if ``target`` is ``-``.

    Errors:
        FormatError: the file cannot be written.
    """
    if target == "-":
        sys.stdout.writelines(text)
        return
    with writing(target), Path(target).open("w", encoding="utf-8") as file:
        file.writelines(text)


def write_page(text: str, target: Path) -> int:
    """Writes an HTML page to a file; returns its size in bytes.

    Errors:
        FormatError: the file cannot be written.
    """
    data = text.encode("utf-8")
    with writing(target):
        target.write_bytes(data)
    return len(data)
