"""What children do while their parent waits, against programs in which both clock it."""

from __future__ import annotations

from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.support import marked

pytestmark = pytest.mark.native

ENDS = 0.03
"""Of a share: what a child does between its clock and the parent's, such as sending the result."""


def row_of(run: support.Run, name: str) -> dict[str, Any] | None:
    lines = marked(run.program, name)
    found = [row for row in run.report["parent_waits"] if row["line"] in lines]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize(
    "how", ["pool", "pipes", "programs", *(pytest.param(how, marks=pytest.mark.slow) for how in ("executor", "queues"))]
)
def test_the_parent_waits_for_what_its_children_do(how: str, recorded: Recorder) -> None:
    run = recorded("parent_waits.py", how)
    row, truth = row_of(run, how), run.truth
    assert row is not None
    assert row["child_function"] == "transform"
    assert row["children"] == 2
    assert row["wait_s"] == pytest.approx(truth["wait_s"], rel=0.1)
    assert row["share_low"] - ENDS < truth["share"] < row["share_high"] + ENDS
    assert row["share_low"] < row["share"] < row["share_high"]


def test_it_is_silent_where_the_parent_waits_for_something_else(recorded: Recorder) -> None:
    run = recorded("parent_waits.py", "unclear")
    for name in ("sleeps", "socket"):
        assert row_of(run, name) is None, name
    row = row_of(run, "thread")
    assert row is None or row["share"] is None
