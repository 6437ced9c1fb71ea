"""Texts of notebook cells, which no file has, written into the spool at the interpreter's end (SPOOL.md, "Told texts").

A kernel that runs under ``record`` has its cells in Python's ``linecache``, for tracebacks. What IPython itself has
loaded is used, and nothing is imported: a program may have taken modules and paths away by then.
"""

import os
import sys

from tachograph.recorder.inprocess.refusal import is_the_spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 16 << 20
"""Characters of all texts that are written."""


def write_cells(spool: str, place: str = "") -> None:
    """Write the texts of the cells that ran here; nothing where IPython did not run. Never fails.

    ``place`` is which folder the spool is. The file has the process's id for its number: each writes its own.
    """
    ipython, json = sys.modules.get("IPython"), sys.modules.get("json")
    ask, dumps = getattr(ipython, "get_ipython", None), getattr(json, "dumps", None)
    if not callable(ask) or not callable(dumps):
        return
    try:
        rows = [dumps({"path": path, "text": text, "cell": cell}) for path, text, cell in _cells(ask())]
        if rows and is_the_spool(spool, place):
            _write(f"{spool}/texts.{os.getpid():06}.jsonl", "\n".join([*rows, ""]).encode("ascii"))
    except Exception:  # noqa: BLE001  # whatever a library does at the program's end: then the texts are not known
        return


def _cells(shell: object) -> "Iterator[tuple[str, str, int]]":
    """``co_filename``, text and number of the cells that a shell has run, the newest first, as far as there is room."""
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    lines = getattr(sys.modules.get("linecache"), "cache", None)
    if not callable(name_of) or not isinstance(lines, dict):
        return
    room = MOST
    for path, entry in reversed(list(lines.items())):
        # Size, time of the file, lines, full name; the time is None where there is no file.
        if not isinstance(path, str) or len(entry) != 4 or entry[1] is not None:
            continue
        named = name_of(path)
        number = "".join(each for each in named[1] if each in "0123456789") if named is not None else ""
        text = "".join(entry[2])
        room -= len(text)
        if room < 0:
            return
        if number:
            yield path, text, int(number[:9])


def _write(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
