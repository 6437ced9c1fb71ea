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
_TYPED = "<ipython-input-"
"""How the name of a cell in IPython's terminal begins; the number follows. ``%run other.ipynb`` compiles each cell with
a compiler of its own, so the shell's knows no name of these."""


def write_cells(spool: str, place: str = "") -> None:
    """Write the texts of the cells that ran here; nothing where IPython did not run. Never fails.

    ``place`` is which folder the spool is. The file has the process's id for its number: each writes its own.
    """
    ipython, json = sys.modules.get("IPython"), sys.modules.get("json")
    ask, dumps = getattr(ipython, "get_ipython", None), getattr(json, "dumps", None)
    if not callable(ask) or not callable(dumps):
        return
    try:
        rows = [
            dumps({"path": path, "text": text} if cell is None else {"path": path, "text": text, "cell": cell})
            for path, text, cell in _cells(ask())
        ]
        if rows and is_the_spool(spool, place):
            _write(f"{spool}/texts.{os.getpid():06}.jsonl", "\n".join([*rows, ""]).encode("ascii"))
    except Exception:  # noqa: BLE001  # whatever a library does at the program's end: then the texts are not known
        return


def _cells(shell: object) -> "Iterator[tuple[str, str, int | None]]":
    """``co_filename``, text and number of the cells that a shell has run, the newest first, as far as there is room.

    The number is None of a cell that a kernel ran of a file (``%run other.ipynb``): its name has none.
    """
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    lines = getattr(sys.modules.get("linecache"), "cache", None)
    if not callable(name_of) or not isinstance(lines, dict):
        return
    room, of_files = MOST, (_TYPED, _kernel_folder())
    for path, entry in reversed(list(lines.items())):
        # Size, time of the file, lines, full name; the time is None where there is no file.
        if not isinstance(path, str) or len(entry) != 4 or entry[1] is not None:
            continue
        named = name_of(path)
        number = _digits(named[1]) if named is not None else ""
        other = not number and path.startswith(of_files)
        if other and path.startswith(_TYPED):
            number = _digits(path[len(_TYPED) :].partition("-")[0])
        text = "".join(entry[2])
        room -= len(text)
        if room < 0:
            return
        if number or other:
            yield path, text, int(number[:9]) if number else None


def _digits(text: str) -> str:
    return "".join(each for each in text if each in "0123456789")


def _kernel_folder() -> str:
    """Where the cells of this kernel have their names; there are no files."""
    folder = getattr(sys.modules.get("ipykernel.compiler"), "get_tmp_directory", None)
    return f"{folder()}/" if callable(folder) else _TYPED


def _write(path: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)
