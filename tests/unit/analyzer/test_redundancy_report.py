"""Repeated work in the terminal, on the page and in a diff."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tachograph.analyzer import Profile, Question, Recording
from tachograph.analyzer import diff as comparison
from tachograph.analyzer.render.html.page import report as page
from tachograph.analyzer.render.json_difference import document
from tachograph.analyzer.render.terminal import difference
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.report_data import build_report_data
from unit.analyzer.recordings import OTHER_FRAME, PYTHON_FRAME, Builder
from unit.report import block

SOURCE = "def f(x, g):\n    for i in range(9):\n        x[i] += g[i]\n"


def built(folder: Path, pairs: int, *, redundancy: bool = True) -> Path:
    """A recording of SOURCE's loop, whose indexes loaded the same in so many pairs of calls."""
    builder = Builder(folder)
    builder.parameters["redundancy"] = redundancy
    stack = builder.stack((builder.code(builder.file("/srv/a.py", SOURCE)), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    library = builder.module("/usr/lib/umath.so")
    frame = builder.native_frame(library, "array_subscript")
    places: dict[str, Any] = {"native_frame": frame, "native_stack": path}
    for _ in range(100):
        builder.cpu(stack, **places, native_path=1)
    for number in range(pairs):
        partner = {f"partner_{name}": value for name, value in places.items()}
        builder.redundancy(stack, number, equal=True, **places, **partner)
    # What tells that watchpoints were there, in a recording without a finding.
    if redundancy:
        builder.redundancy(stack, 1000, equal=None, outcome=9, access=None, **places)
    builder.write()
    return folder


def printed(profile: Profile, width: int = 120) -> str:
    file = io.StringIO()
    show(profile, Console(file=file, width=width, markup=False))
    return file.getvalue()


@pytest.fixture
def found(tmp_path: Path) -> Path:
    return built(tmp_path / "found.tacho", 60)


@pytest.fixture
def gone(tmp_path: Path) -> Path:
    return built(tmp_path / "gone.tacho", 0)


def test_the_terminal_tells_place_kind_reason_and_remedy(found: Path, gone: Path) -> None:
    with Recording.open(found) as recording:
        text = printed(recording.profile())
    section = text[text.index("Repeated work") : text.index("Functions")]
    assert "slice-underutilization, loads  /srv/a.py:3" in section
    assert "x[i] is looked up each time round the loop" in section
    assert "Usually helps: Take whole slices" in section
    assert "both times in array_subscript < list_sort" in section
    with Recording.open(gone) as recording:
        assert "none above what is usual" in printed(recording.profile())


def test_the_terminal_says_nothing_where_it_was_not_looked_for(tmp_path: Path) -> None:
    with Recording.open(built(tmp_path / "run.tacho", 0, redundancy=False)) as recording:
        assert "Repeated work" not in printed(recording.profile())


def test_the_page_has_both_paths(found: Path) -> None:
    with Recording.open(found) as recording:
        document = block.read_block(page(build_report_data(recording, Question())))[0]
    (row,) = document["redundancies"]
    assert (row["file"], row["line"], row["category"]) == ("/srv/a.py", 3, "slice-underutilization")
    assert row["native_path"] == row["partner_native_path"] == ["array_subscript", "list_sort"]
    assert row["source"] == "x[i] += g[i]"


def test_a_diff_tells_what_is_gone_and_what_is_new(found: Path, gone: Path) -> None:
    result = comparison.diff([found], [gone])
    (change,) = json.loads(json.dumps(document(result)["redundancies"]))
    assert (change["verdict"], change["base_line"], change["new_line"]) == ("gone", 3, None)
    assert change["base_s"] > 0
    assert change["new_s"] == 0
    back = document(comparison.diff([gone], [found]))["redundancies"]
    assert [each["verdict"] for each in back] == ["new"]
    same = document(comparison.diff([found], [found]))["redundancies"]
    assert [each["verdict"] for each in same] == ["stays"]
    file = io.StringIO()
    difference.show(result, Console(file=file, width=120, markup=False))
    assert "Repeated work" in file.getvalue()
    assert "gone" in file.getvalue()


def test_a_diff_with_a_side_that_did_not_look_tells_nothing(tmp_path: Path, found: Path) -> None:
    other = built(tmp_path / "other.tacho", 0, redundancy=False)
    assert document(comparison.diff([other], [found], anyway=True))["redundancies"] is None
