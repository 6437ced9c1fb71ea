"""Writes the analyzer's output to a file or standard output; one line of error where it cannot be written.

``uncollected`` pauses the garbage collector where many objects are made and all of them stay.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tachograph.format import FormatError
from tachograph.format.atomic import ReplacingFile


@contextmanager
def writing(target: str | Path) -> Iterator[None]:
    """Turn errors of the system within the block into a FormatError that names ``target``, in one line."""
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
    with writing(target), private_file(Path(target)) as file:
        for piece in text:
            file.write(piece.encode("utf-8"))


def write_page(text: str, target: Path) -> int:
    """Writes an HTML page to a file; returns its size in bytes.

    Errors:
        FormatError: the file cannot be written.
    """
    data = text.encode("utf-8")
    with writing(target), private_file(target) as file:
        file.write(data)
    return len(data)


@contextmanager
def private_file(path: Path) -> Iterator[Any]:
    """A file that only its owner can read and that appears when it is whole; a device or a pipe is written as it is.

    Reports hold source text, command lines and names, as exports do.

    Errors:
        OSError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    with ReplacingFile(path) as replacing:
        yield replacing.stream


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collections in the block: they would look through all that was made, and find nothing to free."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
