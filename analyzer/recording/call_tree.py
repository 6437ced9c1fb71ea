"""The calling context tree of a recording as arrays: where each node is in the source, and which nodes lie below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tachograph.format.arrays import ids

from .compat.linetable import NO_INSTRUCTION, NOT_BEGUN, lines_of
from .opened import Recording
from .sent_functions import files_of_codes
from .sources import TemplateLines, shown_paths

NOTHING = -1
"""Stands for "none" in every array of ids."""


class Branching:
    """A node of a tree that is made for a report."""

    __slots__ = ()
    children: list[Any]

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Self]]:
        """This branch and all below, each before its children, with their depths."""
        waiting = [(depth, self)]
        while waiting:
            at, branch = waiting.pop()
            yield at, branch
            waiting += [(at + 1, child) for child in reversed(branch.children)]


@dataclass(frozen=True)
class Tree:
    """One entry per node in every array; parents come before their children."""

    parent: NDArray[np.int64]
    """NOTHING at roots."""

    def __len__(self) -> int:
        return len(self.parent)

    @cached_property
    def spans(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Numbers of the nodes in depth-first order, and one more than the last number in the tree below each node."""
        # Plain loops over lists: a tree may be as deep as it is large, and then a pass per level would never end.
        parents: list[int] = self.parent.tolist()
        sizes = [1] * len(parents)
        for node in range(len(parents) - 1, -1, -1):
            if parents[node] >= 0:
                sizes[parents[node]] += sizes[node]
        first = [0] * len(parents)
        free = [0] * len(parents)
        roots = 0
        for node, above in enumerate(parents):
            if above < 0:
                first[node] = roots
                roots += sizes[node]
            else:
                first[node] = free[above]
                free[above] += sizes[node]
            free[node] = first[node] + 1
        start = np.array(first, np.int64)
        return start, start + np.array(sizes, np.int64)

    def below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each node the sum of ``values`` (nodes by columns) over the node and everything below it."""
        start, end = self.spans
        ordered = np.empty_like(values)
        ordered[start] = values
        sums = np.zeros((len(values) + 1, values.shape[1]))
        np.cumsum(ordered, axis=0, out=sums[1:])
        return sums[end] - sums[start]

    def outermost(self, keys: NDArray[np.int64]) -> NDArray[np.bool_]:
        """True for nodes with a key that no node above them has: each stack counts once for each key in it."""
        start, end = self.spans
        order = np.lexsort((start, keys))
        order = order[keys[order] != NOTHING]
        # In depth-first order a node lies below an earlier one of the same key if it begins before that one ends.
        # The running maximum is kept apart for each key by an offset that grows with the key.
        _, rank = np.unique(keys[order], return_inverse=True)
        offset = rank * (len(keys) + 1)
        furthest = np.maximum.accumulate(end[order] + offset) if len(order) else np.zeros(0, np.int64)
        before = np.concatenate(([-1], furthest[:-1])) if len(order) else furthest
        result = np.zeros(len(keys), np.bool_)
        result[order] = start[order] + offset >= before
        return result

    def nearest(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each node the nearest of ``mask`` among itself and its callers, NOTHING where there is none."""
        end = len(self)
        jump = np.append(np.where(mask, np.arange(end), self.parent), end)
        jump[jump == NOTHING] = end
        while True:
            further = jump[jump]
            if np.array_equal(further, jump):
                break
            jump = further
        return np.where(jump[:-1] == end, NOTHING, jump[:-1])


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
    first_line = ids(codes.column("first_line"))
    instruction = ids(stacks.column("instruction"), NO_INSTRUCTION)
    instruction[(instruction == NO_INSTRUCTION) & (parent >= 0)] = NOT_BEGUN
    lines = lines_of(codes.column("line_table"), first_line, code, instruction)
    code_file = files_of_codes(codes, files, code, lines)
    # Functions are numbered in the order in which their first code object comes.
    numbers: dict[tuple[int, str, int], int] = {}
    keys = zip(code_file.tolist(), codes.column("qualname").to_pylist(), first_line.tolist(), strict=True)
    function_of_code = [numbers.setdefault(key, len(numbers)) for key in keys]
    files_of, names, lines_of_functions = zip(*numbers, strict=True) if numbers else ((), (), ())
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
