"""Functions that were sent to another process by value, as cloudpickle does it for joblib, Ray, Dask and Spark.

There they name no file, and keep their names and lines. So a file is theirs if its text alone defines such a function
at that line, and the sampled lines are within it. Functions of installed packages are sent by name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from ..source_code.source import parse
from .compat.linetable import NO_LINE
from .sources import INSTALLED

_Ids = NDArray[np.int64]
_FROZEN = "<frozen "
_LOCALS = ".<locals>."
_DEFINES = re.compile(r"\bdef[ \t]+(\w+)")


class _Function(NamedTuple):
    """A function of a text: its file, its qualified name, its first line, a decorator's if it has one, and its last."""

    file: int
    name: str
    first: int
    last: int


def files_of_codes(codes: pa.Table, files: pa.Table, code: _Ids, line: _Ids) -> _Ids:
    """The file of each code object: of a function that was sent by value the one that defines it.

    ``code`` and ``line`` are those of the nodes of ``stacks``.
    """
    result = ids(codes.column("file"))
    paths = [path or "" for path in files.column("path").to_pylist()]
    texts = files.column("source")
    nowhere = [
        path.startswith("<") and not path.startswith(_FROZEN) and not text.is_valid
        for path, text in zip(paths, texts, strict=True)
    ]
    sent = np.flatnonzero(np.append(nowhere, [False])[result]).tolist()
    if not sent:
        return result
    own = [file for file, path in enumerate(paths) if not path.startswith("<") and not INSTALLED.search(path)]
    defining = _definitions({file: texts[file].as_py() for file in own})
    lines_of = _grouped(code, line, len(codes))
    names = codes.column("qualname").to_pylist()
    first = ids(codes.column("first_line")).tolist()
    homes: dict[tuple[int, str], _Function] = {}
    changed = result.copy()
    for each in sorted(sent, key=lambda each: len(names[each])):  # a function before those within it
        outer, _, inner = names[each].partition(f"{_LOCALS}<")  # a lambda, or a comprehension
        home = homes.get((int(result[each]), outer))
        if inner:
            candidates = [] if home is None else [home]
        else:
            candidates = [function for function in defining(outer) if function.first == first[each]]
        if len(candidates) != 1:
            continue
        (function,) = candidates
        if all(function.first <= number <= function.last for number in (first[each], *lines_of(each))):
            changed[each] = function.file
            if not inner:
                homes[int(result[each]), outer] = function
    return changed


def _grouped(code: _Ids, line: _Ids, count: int) -> Callable[[int], list[int]]:
    """The lines of each code object's nodes."""
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(-1, count), side="right")

    def lines_of(each: int) -> list[int]:
        lines = np.unique(line[order[ends[each] : ends[each + 1]]])
        return [number for number in lines.tolist() if number != NO_LINE]

    return lines_of


def _definitions(texts: dict[int, str | None]) -> Callable[[str], list[_Function]]:
    """Functions by their qualified names. Only texts with a function of such a name are parsed."""
    files: dict[str, list[int]] = {}
    for file, text in texts.items():
        for name in set(_DEFINES.findall(text or "")):
            files.setdefault(name, []).append(file)

    @cache
    def of_file(file: int) -> dict[str, list[_Function]]:
        functions: dict[str, list[_Function]] = {}
        for function in _functions(file, texts[file] or ""):
            functions.setdefault(function.name, []).append(function)
        return functions

    def defining(name: str) -> list[_Function]:
        some = files.get(name.rpartition(".")[2], [])
        return [function for file in some for function in of_file(file).get(name, [])]

    return defining


def _functions(file: int, text: str) -> Iterator[_Function]:
    module = parse(text.replace("\r\n", "\n").replace("\r", "\n"))
    waiting: list[tuple[ast.AST, str]] = [] if module is None else [(module.tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for child in ast.iter_child_nodes(node):
            within = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                yield _Function(file, f"{prefix}{child.name}", first, child.end_lineno or child.lineno)
                within = f"{prefix}{child.name}{_LOCALS}"
            elif isinstance(child, ast.ClassDef):
                within = f"{prefix}{child.name}."
            waiting.append((child, within))
