"""Programs of a recording that are not recorded themselves: they hardly notice it."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

NATIVE = Path(__file__).parent / "native"
BLOCKS = "1000000"
MOST = 1.6
"""Times bare, for a loop that does nothing but allocate and free: what is left is a jump through each hook.

It was 5 and more while every thread added to one counter.
"""


@pytest.mark.quiet
def test_a_child_that_allocates_in_two_threads(tmp_path: Path) -> None:
    program = support.compile_program(NATIVE / "two_threads.c", tmp_path)
    if program is None:
        pytest.skip("no C compiler")
    ran = f"import subprocess; subprocess.run([{str(program)!r}, {BLOCKS!r}], check=True)"
    bare, recorded = [], []
    for _ in range(7):
        bare.append(float(support.bare(["-c", ran], tmp_path).stdout))
        recorded.append(float(support.record(["-f", "-c", ran], tmp_path).stdout))
    assert min(recorded) <= MOST * min(bare), (min(bare), min(recorded))
