"""The calling context tree of a recording as arrays: where each node is in the source, and what lies below it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .compat.linetable import NO_INSTRUCTION, lines_of
from .opened import Recording
from .tree import NOTHING, Tree


@dataclass(frozen=True)
class CallTree(Tree):
    """One entry per node of ``stacks`` in every array; parents come before their children."""

    file: NDArray[np.int64]
    """File id of the node's code, NOTHING where the code is not known."""
    function: NDArray[np.int64]
    """Function: equal for all code objects of the same file, name and first line; NOTHING where unknown."""
    line: NDArray[np.int64]
    """Line number, NOTHING where it is not known."""
    function_names: list[str]
    function_files: NDArray[np.int64]
    function_lines: NDArray[np.int64]
    """First line of each function."""
    paths: list[str]


def load_tree(recording: Recording) -> CallTree:
    """Reads stacks, codes and files of a recording and finds the line of every node."""
    stacks, codes, files = (recording.table(name) for name in ("stacks", "codes", "files"))
    parent, code = (_ids(stacks.column(name)) for name in ("parent", "code"))
    names: list[str] = codes.column("qualname").to_pylist()
    code_file, first_line = codes.column("file").to_numpy().astype(np.int64), codes.column("first_line").to_numpy()
    functions = pd.DataFrame({"file": code_file, "name": names, "line": first_line})
    function_of_code = functions.groupby(["file", "name", "line"], sort=False).ngroup().to_numpy()
    first = functions[~functions.duplicated()]
    return CallTree(
        parent=parent,
        file=np.append(code_file, NOTHING)[code],
        function=np.append(function_of_code, NOTHING)[code].astype(np.int64),
        line=lines_of(codes.column("line_table"), first_line, code, _ids(stacks.column("instruction"), NO_INSTRUCTION)),
        function_names=first["name"].tolist(),
        function_files=first["file"].to_numpy(),
        function_lines=first["line"].to_numpy().astype(np.int64),
        paths=files.column("path").to_pylist(),
    )


def _ids(column: object, otherwise: int = NOTHING) -> NDArray[np.int64]:
    filled = column.cast("int64").fill_null(otherwise)  # type: ignore[attr-defined]
    return np.asarray(filled.to_numpy(), np.int64).copy()
