"""Checks the direction of includes in native/shim: a room includes what is left of it, and files form no circle.

A file's unit is its path without the ending, so that ``spool/spool.h`` and ``spool/spool.cpp`` are one. What is wrong
is printed, one line each, and the exit status is 1. Usage: ``check_includes.py [FOLDER]``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SHIM = Path(__file__).resolve().parents[1] / "native" / "shim"

MAY_INCLUDE: Mapping[str, frozenset[str]] = {
    "base": frozenset(),
    "spool": frozenset({"base"}),
    "unwind": frozenset({"base", "spool"}),
    "stacks": frozenset({"base", "spool", "unwind"}),
    "cpu": frozenset({"base", "spool", "unwind", "stacks"}),
    "waits": frozenset({"base", "spool", "stacks"}),
    "memory": frozenset({"base", "spool", "stacks"}),
    "copies": frozenset({"base", "spool", "stacks", "memory"}),
    "calls": frozenset({"base", "spool", "stacks"}),
    "redundancy": frozenset({"base", "spool", "unwind", "stacks", "memory"}),
    # It starts and stops the sources through their table in stacks/; what is not a source is used by name.
    "process": frozenset({"base", "spool", "unwind", "stacks", "waits", "memory"}),
    # A hook may call any room; nothing calls a hook.
    "hooks": frozenset({"base", "spool", "unwind", "stacks", "cpu", "waits", "memory", "copies", "process"}),
}
"""Each room of the shim, and the others that its files may include."""

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
PUBLIC = ("tachograph/", "arch/")
"""Open to all: the interface between shim and extension, and what is written for one processor (native/arch)."""


def read_includes(shim: Path) -> dict[str, set[str]]:
    """What each header and source includes of the shim, by path below it."""
    files = sorted(path for path in shim.rglob("*") if path.suffix in {".h", ".cpp"})
    found = {
        path.relative_to(shim).as_posix(): set(INCLUDE.findall(path.read_text(encoding="utf-8"))) for path in files
    }
    return {path: {name for name in names if not name.startswith(PUBLIC)} for path, names in found.items()}


def forbidden(includes: Mapping[str, set[str]]) -> Iterator[str]:
    """One line for each include that the table does not allow, or that names no file by its room."""
    for path, names in includes.items():
        room = path.partition("/")[0]
        if room not in MAY_INCLUDE:
            yield f"{path}: the room {room} is not in the table"
            continue
        for name in sorted(names):
            if name not in includes:
                yield f'{path}: "{name}" is not a file of the shim'
            elif name.partition("/")[0] not in {room, *MAY_INCLUDE[room]}:
                yield f'{path}: {room} must not include "{name}"'


def circles(includes: Mapping[str, set[str]]) -> Iterator[str]:
    """One line for each circle of units that a walk along the includes meets."""
    graph: dict[str, set[str]] = {}
    for path, names in includes.items():
        unit = path.rpartition(".")[0]
        graph.setdefault(unit, set()).update(name.rpartition(".")[0] for name in names if name in includes)
    done: set[str] = set()
    for start in sorted(graph):
        yield from _walk(graph, start, [], done)


def _walk(graph: Mapping[str, set[str]], unit: str, path: list[str], done: set[str]) -> Iterator[str]:
    if unit in path:
        yield "circle: " + " -> ".join([*path[path.index(unit) :], unit])
        return
    if unit in done:
        return
    for other in sorted(graph.get(unit, set()) - {unit}):
        yield from _walk(graph, other, [*path, unit], done)
    done.add(unit)


def main(arguments: Sequence[str]) -> int:
    """Print what is wrong in the folder of ``arguments``, or in native/shim; the exit status."""
    includes = read_includes(Path(arguments[0]) if arguments else SHIM)
    wrong = [*forbidden(includes), *circles(includes)]
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
