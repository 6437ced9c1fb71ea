"""The calling context tree of a recording as arrays: where each node is in the source, and what lies below it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from .compat.linetable import NO_INSTRUCTION, NOT_BEGUN, lines_of
from .opened import Recording
from .sources import shown_paths
from .template_lines import TemplateLines
from .tree import NOTHING, Tree


@dataclass(frozen=True)
class CallTree(Tree):
    """One entry per node of ``stacks`` in every array; parents come before their children."""

    file: NDArray[np.int64]
    """File id of the node's code, NOTHING where the code is not known."""
    function: NDArray[np.int64]
    """Function: equal for all code objects of the same file, name and first line; NOTHING where unknown."""
    line: NDArray[np.int64]
    """Line number, NOTHING where it is not known; of generated code that of its template."""
    function_names: list[str]
    function_files: NDArray[np.int64]
    function_lines: NDArray[np.int64]
    """First line of each function."""
    paths: list[str]
    """Of the files by id, as they are shown: cells of a notebook by their numbers."""


def load_tree(recording: Recording) -> CallTree:
    """Reads stacks, codes and files of a recording and finds the line of every node."""
    stacks, codes, files = (recording.table(name) for name in ("stacks", "codes", "files"))
    parent, code = (ids(stacks.column(name)) for name in ("parent", "code"))
    code_file, first_line = (ids(codes.column(name)) for name in ("file", "first_line"))
    # Functions are numbered in the order in which their first code object comes.
    numbers: dict[tuple[int, str, int], int] = {}
    keys = zip(code_file.tolist(), codes.column("qualname").to_pylist(), first_line.tolist(), strict=True)
    function_of_code = [numbers.setdefault(key, len(numbers)) for key in keys]
    files_of, names, lines_of_functions = zip(*numbers, strict=True) if numbers else ((), (), ())
    instruction = ids(stacks.column("instruction"), NO_INSTRUCTION)
    instruction[(instruction == NO_INSTRUCTION) & (parent >= 0)] = NOT_BEGUN
    lines = lines_of(codes.column("line_table"), first_line, code, instruction)
    templates = TemplateLines(codes)
    _, function_code = np.unique(np.array(function_of_code, np.int64), return_index=True)
    return CallTree(
        parent=parent,
        file=np.append(code_file, NOTHING)[code],
        function=np.array([*function_of_code, NOTHING], np.int64)[code],
        line=templates.of(code, lines),
        function_names=list(names),
        function_files=np.array(files_of, np.int64),
        function_lines=templates.of(function_code, np.array(lines_of_functions, np.int64)),
        paths=shown_paths(files),
    )
