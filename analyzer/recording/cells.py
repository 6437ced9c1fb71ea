"""Cells of a notebook: the names under which reports show them."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa


def shown_paths(files: pa.Table) -> list[str]:
    """The paths of the table ``files``, by row; those of cells are their numbers, ``In [3]``.

    Several texts may have the number of one cell: what a magic of it has run, for example. The first has the plain
    name, and the others are counted: ``In [3] (2)``.
    """
    paths: list[str] = files.column("path").to_pylist()
    taken: Counter[int] = Counter()
    shown = []
    for path, cell in zip(paths, files.column("cell").to_pylist(), strict=True):
        if cell is None:
            shown.append(path)
            continue
        taken[cell] += 1
        shown.append(f"In [{cell}]" + (f" ({taken[cell]})" if taken[cell] > 1 else ""))
    return shown
