"""What of the memory that a program allocates it has touched, against programs that know it."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import line_bytes, rows
from oracle.test_native import needs_numpy

pytestmark = pytest.mark.native

MB = 1 << 20
PAGES = 2 * 4096


@pytest.fixture(scope="module")
def blocks(recorded: Recorder) -> support.Run:
    return recorded("touched.py")


@pytest.mark.parametrize("name", ["untouched", "zeros", "half", "filled", "later"])
def test_lines_have_what_they_touched_at_the_resident_peak(blocks: support.Run, name: str) -> None:
    """malloc, calloc, a block that is half filled, one that is filled and freed again, and mappings touched later."""
    found = line_bytes(blocks, "live_at_resident_peak_bytes", name)
    assert found == pytest.approx(blocks.truth["sizes"][name], rel=0.02, abs=PAGES)


def test_the_resident_peak_is_where_most_is_touched(blocks: support.Run) -> None:
    memory = blocks.report["memory"]
    start_ns = min(row["start_ns"] for row in rows(blocks.recording, "processes"))
    first, last = ((at - start_ns) / 1e9 for at in blocks.truth["facts"]["touched"])
    assert first < memory["resident_peak_s"] < last
    assert memory["peak_s"] < first
    touched = sum(blocks.truth["sizes"].values())
    assert memory["resident_peak_bytes"] == pytest.approx(touched, abs=64 * MB)


def test_the_peak_says_what_of_it_was_touched(blocks: support.Run) -> None:
    """When ``filled`` was allocated: half of ``half`` was touched, and nothing of the others."""
    for name, held, touched in (("untouched", 1024, 0), ("zeros", 256, 0), ("half", 512, 256), ("later", 192, 0)):
        assert line_bytes(blocks, "live_at_peak_bytes", name) == pytest.approx(held * MB, rel=0.001), name
        assert line_bytes(blocks, "touched_at_peak_bytes", name) <= touched * MB + PAGES, name


@needs_numpy
@pytest.mark.parametrize("name", ["empty", "zeros", "half"])
def test_arrays_have_what_they_touched(recorded: Recorder, name: str) -> None:
    run = recorded("empty_arrays.py")
    found = line_bytes(run, "live_at_resident_peak_bytes", name)
    assert found == pytest.approx(run.truth["sizes"][name], rel=0.02, abs=PAGES)


@needs_numpy
def test_importing_numpy_holds_what_the_kernel_says(recorded: Recorder, tmp_path: Path) -> None:
    """What numpy adds to the interpreter's anonymous memory; OpenBLAS maps 32 MiB for each thread, and touches little.

    The kernel counts pages of libraries that the loader changed as well, and all of a page that is used in part.
    """
    bare, numpy = (
        support.run_bare(tmp_path, "anonymous.py", what)["sizes"]["anonymous"] for what in ("nothing", "numpy")
    )
    held = [
        run.report["totals"]["live_at_resident_peak_bytes"]
        for run in (recorded("anonymous.py", what) for what in ("nothing", "numpy"))
    ]
    assert held[1] - held[0] == pytest.approx(numpy - bare, rel=0.25)
