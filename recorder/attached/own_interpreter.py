"""An interpreter that can be started from inside a program: never the program itself.

``sys.executable`` is the program in an application that embeds Python as CPython's documentation shows, and in what
PyInstaller and its like make: started with ``-c``, it would run a second time.
"""

from __future__ import annotations

import os
import sys

from tachograph.recorder.problems import RecordingError, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_PROGRAM = "/proc/self/exe"
_ELF_64 = b"\x7fELF\x02"
_MAIN = b"Py_BytesMain"
"""What the main function of ``python`` calls, and that of a program which embeds it with a configuration does not."""

_ENDINGS = ("", "d", "t", "td", "-dbg")
"""Of names such as python3.13t, after the version."""


def own_interpreter() -> str:
    """The path of an interpreter of this version. RecordingError, in one line, if none is known for sure."""
    if is_frozen():
        raise RecordingError(
            "this program is a frozen application, which has no interpreter that could write the recording beside it:"
            " 'tachograph attach' brings its own"
        )
    for path in dict.fromkeys(_candidates()):
        if is_interpreter(path):
            return path
    raise RecordingError(
        "no interpreter is known here that could write the recording beside this program (sys.executable is"
        f" {one_line(sys.executable) if sys.executable else 'empty'}): 'tachograph attach' brings its own"
    )


def is_frozen() -> bool:
    """True if this program was made of Python code by PyInstaller, cx_Freeze, PyOxidizer or Nuitka."""
    return bool(getattr(sys, "frozen", False)) or hasattr(sys.modules.get("__main__"), "__compiled__")


def _candidates() -> Iterator[str]:
    yield sys.executable or ""
    yield getattr(sys, "_base_executable", None) or ""
    # Of the Python that is embedded.
    yield os.path.join(sys.base_exec_prefix, "bin", "python{}.{}{}".format(*sys.version_info[:2], sys.abiflags))


def is_interpreter(path: str) -> bool:
    """True if the file at ``path`` is ``python``: by its name and that of what it links to, and by what is in it."""
    if not path or not _has_name(path) or not _has_name(os.path.realpath(path)):
        return False
    try:
        if not os.access(path, os.X_OK):
            return False
        with open(path, "rb") as file:
            if file.read(len(_ELF_64)) != _ELF_64:
                return False
        # A file of that name which is this very program has shown what it is; a launcher of python, as Nix has, is not.
        return not os.path.samefile(path, OWN_PROGRAM) or _has(path, _MAIN)
    except OSError:
        return False


def _has_name(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith("python") and name.removeprefix("python").lstrip("0123456789.") in _ENDINGS


def _has(path: str, text: bytes) -> bool:
    with open(path, "rb") as file:
        before = b""
        while part := file.read(1 << 20):
            if text in before + part:
                return True
            before = part[-len(text) :]
    return False
