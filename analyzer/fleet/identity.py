"""Which code is the same in recordings of other hosts, folders and versions.

Code is told by its file's path, made free of what differs from host to host, and by its qualified name. Stacks are told
by a hash that is folded from the root: of the caller's hash and of the function.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ..recording.call_tree import CallTree
from ..recording.tree import NOTHING
from ..samples.scope import Scope
from .store import key_of

_INSTALLED = re.compile(r".*(?:^|/)(?:site|dist)-packages/(.+)")
_STANDARD = re.compile(r".*(?:^|/)(?:lib|lib64|Lib)/(?:python|pypy)\d+\.\d+t?/(.+)")
_HOME = re.compile(r"^/(?:home|Users)/[^/]+(?=/)|^/root(?=/)")
# A folder that is named after a version, a day, a number or a commit: releases/20261101/app.py.
_VERSION = re.compile(r"(?<=/)(?:v?\d[\w.+-]*|[0-9a-f]{7,40})(?=/)")


def common_path(path: str, root: str | None) -> str:
    """The path of a source file as it is the same on every host; ``root`` is the folder of the program."""
    path = path.replace("\\", "/")
    if (found := _INSTALLED.fullmatch(path)) is not None:
        return f"site-packages/{found[1]}"
    if (found := _STANDARD.fullmatch(path)) is not None:
        return f"python/{found[1]}"
    if root is not None and path.startswith(f"{root}/"):
        return path[len(root) + 1 :]
    return _VERSION.sub("*", _HOME.sub("~", path))


def program_root(tree: CallTree, project: Scope) -> str | None:
    """The folder of the script or module that was run: that of the outermost module code of the project.

    None where no stack begins in one.
    """
    if not len(tree):
        return None
    inside = np.array([project.includes(path) and not path.startswith("<") for path in tree.paths] or [False], np.bool_)
    modules = np.array([name == "<module>" for name in tree.function_names] or [False], np.bool_)
    in_project = (tree.file != NOTHING) & inside[tree.file]
    below = np.zeros(len(tree), np.bool_)
    for node, parent in enumerate(tree.parent.tolist()):  # parents come first
        below[node] = parent != NOTHING and (below[parent] or in_project[parent])
    first = in_project & ~below & (tree.function != NOTHING) & modules[tree.function]
    folders = {tree.paths[file].replace("\\", "/").rpartition("/")[0] for file in np.unique(tree.file[first]).tolist()}
    return min(folders, key=lambda folder: (folder.count("/"), len(folder), folder), default=None)


def function_keys(tree: CallTree, paths: list[str]) -> NDArray[np.int64]:
    """A number for each function of the tree; ``paths`` are its files' paths, made common."""
    names, files = tree.function_names, tree.function_files.tolist()
    return np.array([key_of(paths[file], name) for name, file in zip(names, files, strict=True)], np.int64)


def stack_hashes(tree: CallTree, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each node: equal for equal paths of functions from the root."""
    own = np.append(keys, key_of("<unknown code>"))[tree.function].view(np.uint64)
    hashes = [0] * len(tree)
    parents = tree.parent.tolist()
    mask = (1 << 64) - 1
    for node, key in enumerate(own.tolist()):
        above = hashes[parents[node]] if parents[node] != NOTHING else 0x9E3779B97F4A7C15
        # The finalizer of SplitMix64 (Steele, Lea and Flood 2014), over the caller's hash and this function's.
        mixed = (above * 0xBF58476D1CE4E5B9 + key) & mask
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & mask
        hashes[node] = mixed ^ mixed >> 31
    return np.array(hashes, np.uint64).view(np.int64)
