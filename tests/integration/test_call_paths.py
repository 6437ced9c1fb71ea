"""Python and native frames, interleaved, in recordings of real programs whose nesting is known."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from integration import support
from tachograph.analyzer.recording.call_tree import load_tree
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.samples.call_paths import CallPaths
from tachograph.analyzer.samples.stream import Stream
from tachograph.format.enumerations import NativePath

pytestmark = pytest.mark.native

NUMPY = """
import sys
import time
import numpy as np


def double(value):
    total = 0
    for number in range(120):
        total += number
    return value + total


def apply(array):
    return np.frompyfunc(double, 1, 1)(array)


def order(array):
    return np.sort(array)


array, end = np.random.default_rng(1).random(200_000), time.process_time() + 2.0
while time.process_time() < end:
    apply(array[:4000])
    for _ in range(4):  # with AVX-512 one sort takes little time
        order(array)
"""


def paths_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """How each path was got, and its names from the outside in: Python functions as they are, native ones in < >."""
    with Recording(path) as recording:
        calls, stream = load_tree(recording), Stream(recording)
        paths = CallPaths(recording, calls)
        assert paths.recorded
        for batch in stream.cpu(times=False):
            stack = np.where(batch.stack == stream.nodes, -1, batch.stack.astype(np.int64))
            found = paths.nodes(stack, batch.state, batch.native, batch.native_stack, batch.native_path)
            tree = paths.tree()
            for node, how in zip(found.tolist(), batch.native_path.tolist(), strict=True):
                names, at = [], node
                while at >= 0:
                    if tree.stack[at] >= 0:
                        names.append(calls.function_names[calls.function[tree.stack[at]]])
                    elif tree.native[at] >= 0:
                        names.append(f"<{paths.functions.names[tree.native[at]]}>")
                    at = tree.parent[at]
                yield how, names[::-1]


def between(names: list[str], caller: str, called: str) -> list[str] | None:
    """What stands between two Python functions in a path; None where they are not both there."""
    if caller not in names or called not in names:
        return None
    last = len(names) - 1 - names[::-1].index(caller)
    first = names.index(called, last) if called in names[last:] else None
    return None if first is None else names[last + 1 : first]


def test_c_stands_where_python_called_it_and_it_called_python(tmp_path: Path) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    done = support.record([support.PROGRAMS / "native_paths.py", "2.5"], tmp_path, "--interval", "1", "--cpu-only")
    assert (done.status, done.stderr) == (0, "")
    seen = {"c_key": 0, "c_compare": 0, "c_generate": 0}
    named = "builtin_sorted" in {row["symbol"] for row in support.rows(tmp_path / "run.tacho", "native_frames")}
    for how, names in paths_of(tmp_path / "run.tacho"):
        if how != NativePath.WHOLE:
            continue  # a guess may be wrong
        # Where C stands between Python functions it is folded only if it does nothing but pass on calls.
        # Functions of an interpreter without symbols are folded, too.
        for caller, called, through in (
            ("by_sorting", "c_key", "<builtin_sorted>"),
            ("by_callback", "c_compare", "<PyCFuncPtr_call>"),
            ("by_generator", "c_generate", "<builtin_sum>"),
        ):
            middle = between(names, caller, called)
            if (
                middle == []
                and called == "c_generate"
                and all(each.startswith("<") for each in names[names.index(called) + 1 :])
            ):
                continue  # Python makes the generator, before C runs it
            if middle is not None:
                assert middle[:1] == [through] or not named, names
                assert all(each.startswith("<") for each in middle), names
                seen[called] += 1
        for caller, called in (("work", "by_sorting"), ("c_key", "burn"), ("recursive", "by_sorting")):
            assert not any(each.startswith("<") for each in between(names, caller, called) or []), names
    assert min(seen.values()) > 5, seen


def test_numpy_calls_python_and_sorts(tmp_path: Path) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    pytest.importorskip("numpy")
    program = tmp_path / "arrays.py"
    program.write_text(NUMPY)
    done = support.record([program], tmp_path, "--interval", "2", "--cpu-only")
    assert (done.status, done.stderr) == (0, "")
    through = sorting = 0
    for how, names in paths_of(tmp_path / "run.tacho"):
        if how != NativePath.WHOLE:
            continue
        middle = between(names, "apply", "double")
        if middle is not None:
            assert any("ufunc" in each for each in middle), names
            through += 1
        sorting += "order" in names and "<array_sort>" in names[names.index("order") :]
    assert through > 50
    assert sorting > 50
