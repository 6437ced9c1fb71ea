"""Call paths as a frame: one row per distinct path through Python and native code.

It stands alone since it needs pandas, which a report in the terminal does not load.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ..recording.call_tree import NOTHING
from ..recording.text import printable
from ..samples.call_paths import PATH_MEASURES, PathFacts, labels
from ..samples.summary import UNKNOWN_CODE
from .call_branches import HELD

COLUMNS = {
    "function": "the innermost function, Python or native; a label such as ``<no Python stack>`` where there is none",
    "language": "its language, ``python`` or ``native``; null for a label",
    "library": "of a native function, the file name of the module that holds it",
    "python_function": "the innermost Python function of the path, null where there is none",
    "file": "its source file",
    "line": "the line in it that was being executed",
    "depth": "the number of frames",
    "samples": "CPU samples that ended here",
    "cpu_s": "their CPU time",
    "python_s": "the part that counts as Python's",
    "native_s": "as native",
    "kernel_s": "in the kernel; 0 where it was not recorded",
    "unknown_s": "Python or native, it is not known which",
    "wait_s": "waiting here",
    "guessed_s": "the part of cpu_s whose native path is a guess",
    "allocated_bytes": "what was allocated here; this and the next are null where memory was not recorded",
    "live_at_peak_bytes": "what was held of it when the footprint was highest",
    "live_at_end_bytes": "and at the end",
    "copied_bytes": "what was copied here",
    "path": "the names of all functions, the outermost first, as a tuple",
}


def path_frame(facts: PathFacts, *, waits_known: bool) -> pd.DataFrame:
    """The paths with any measure, the most CPU time first: ``COLUMNS``.

    Memory without a Python stack is not in it.
    """
    tree, calls, functions = facts.tree, facts.calls, facts.functions
    states, names, paths = labels(), [], list[tuple[str, ...]]()
    python = np.full(len(tree), NOTHING, np.int64)
    shown = [*map(printable, calls.function_names), UNKNOWN_CODE]
    columns = (tree.parent, tree.stack, tree.native, tree.label)
    for node, (parent, stack, native, label) in enumerate(zip(*(each.tolist() for each in columns), strict=True)):
        if stack != NOTHING:
            name = shown[calls.function[stack]]  # the last one is that of NOTHING
        else:
            name = functions.names[native] if native != NOTHING else states[label]
        python[node] = stack if stack != NOTHING else python[parent] if parent != NOTHING else NOTHING
        names.append(name)
        paths.append((*paths[parent], name) if parent != NOTHING else (name,))
    seconds = dict(zip(PATH_MEASURES, facts.sums.T / 1e9, strict=True))
    held = {name: facts.held.get(name, np.full(len(tree), np.nan)) for name in HELD}
    something = (seconds["cpu_ns"] > 0) | (seconds["wait_ns"] > 0)
    for values in held.values():
        something |= np.nan_to_num(values) > 0
    used = np.flatnonzero(something)
    by = (np.nan_to_num(held["live_at_peak_bytes"]), seconds["wait_ns"], seconds["cpu_ns"])
    used = used[np.lexsort([-values[used] for values in by])]
    inner, native = python[used], tree.native[used]
    function = np.append(calls.function, NOTHING)[inner]
    file = np.append(calls.file, NOTHING)[inner]
    line = np.append(calls.line, NOTHING)[inner]
    language = np.where(native != NOTHING, "native", np.where(tree.stack[used] != NOTHING, "python", ""))
    frame = {
        "function": [names[node] for node in used.tolist()],
        "language": [each or None for each in language.tolist()],
        "library": [functions.libraries[each] if each != NOTHING else None for each in native.tolist()],
        "python_function": [shown[each] if each != NOTHING else None for each in function.tolist()],
        "file": [printable(calls.paths[each], 4096) if each != NOTHING else None for each in file.tolist()],
        "line": pd.array([each if each != NOTHING else None for each in line.tolist()], "Int64"),
        "depth": [len(paths[node]) for node in used.tolist()],
        "samples": np.rint(seconds["samples"][used] * 1e9).astype(np.int64),
        **{
            f"{name}_s": seconds[f"{name}_ns"][used]
            for name in ("cpu", "python", "native", "kernel", "unknown", "wait", "guessed")
        },
        **{name: values[used] for name, values in held.items()},
        "path": [paths[node] for node in used.tolist()],
    }
    if not waits_known:
        frame["wait_s"] = np.full(len(used), np.nan)
    return pd.DataFrame(frame, columns=list(COLUMNS))
