"""What a process is called: the script, the module or the program that it runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import pyarrow as pa

from .text import printable

_PYTHON = re.compile(r"(python|pypy)[\d.]*t?(\.exe)?$")
_WITH_VALUE = ("--check-hash-based-pycs",)
_MULTIPROCESSING = re.compile(r"from (multiprocessing\.\w+) import ")
"""What multiprocessing runs its own processes with: ``-c 'from multiprocessing.spawn import spawn_main; ...'``."""

MAX_NAME = 60
MAX_COMMAND = 4000
"""Characters read of a command, which has at most 400 (SPEC.md, "processes")."""


def process_names(processes: pa.Table, argv: Sequence[str]) -> list[str]:
    """A name for each process, printable; ``argv`` is what the recording command was asked to run."""
    columns = (processes.column(name).to_pylist() for name in ("parent", "command", "executable", "origin"))
    names: list[str] = []
    for number, (parent, command, executable, origin) in enumerate(zip(*columns, strict=True)):
        words = _words(command[:MAX_COMMAND]) if command else []
        if not words and (origin == "first" or (origin is None and number == 0)):
            words = list(argv)
        name = name_of(words) if words else None
        if name is None and origin in ("fork", None) and parent is not None and parent < number:
            name = names[parent]
        names.append(printable(name or _base(executable or "") or "unnamed", MAX_NAME))
    return names


def name_of(words: Sequence[str]) -> str | None:
    """The name of a command: of an interpreter's the script or module, of any other its program's; None for nothing."""
    if not words:
        return None
    if not (_PYTHON.search(_base(words[0])) or words[0].startswith("-")):
        return _base(words[0])
    rest = iter(words if words[0].startswith("-") else words[1:])
    for option in rest:
        if not option.startswith("-") or option == "-":
            return _base(option)
        if option.startswith("--"):
            if option in _WITH_VALUE:
                next(rest, None)
            continue
        run = re.match(r"-[^cmWX]*(?:([WX])|([cm]))(.*)", option, re.DOTALL)
        if run is None:
            continue
        value = run[3] or next(rest, "")
        if run[2] is not None:
            return (value or None) if run[2] == "m" else _of_code(value)
    return "python"


def _of_code(text: str) -> str:
    found = _MULTIPROCESSING.match(text)
    return found[1] if found else "-c"


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # it was cut in the middle of a quoted word
        return command.replace("'", "").split()


def _base(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]
