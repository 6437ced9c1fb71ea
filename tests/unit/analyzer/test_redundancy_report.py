"""Repeated work in the terminal, on the page and in a diff."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Profile, Question, Recording
from tachograph.analyzer import diff as comparison
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.conclusions.redundancy import COLUMNS
from tachograph.analyzer.render.html.report_page import report as page
from tachograph.analyzer.render.json_difference import document
from tachograph.analyzer.render.terminal import diff_lines
from tachograph.analyzer.render.terminal.report import show
from tachograph.analyzer.report_data.report_data import build_report_data
from unit.analyzer.recordings import OTHER_FRAME, PYTHON_FRAME, Builder
from unit.report import block

SOURCE = "def f(x, g):\n    for i in range(9):\n        x[i] += g[i]\n"


def fill(
    builder: Builder, pairs: int, samples: int = 100, source: str | None = SOURCE, path: str = "/srv/a.py"
) -> tuple[int, dict[str, Any]]:
    """Pairs of the third line of a source, with the samples of its time; its stack, and where in native code it was."""
    stack = builder.stack((builder.code(builder.file(path, source)), 2))
    below = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    frame = builder.native_frame(builder.module("/usr/lib/umath.so"), "array_subscript")
    places: dict[str, Any] = {"native_frame": frame, "native_stack": below}
    for _ in range(samples):
        builder.cpu(stack, **places, native_path=1)
    for number in range(pairs):
        partner = {f"partner_{name}": value for name, value in places.items()}
        builder.redundancy(stack, number, equal=True, **places, **partner)
    return stack, places


def built(folder: Path, pairs: int, *, redundancy: bool = True) -> Path:
    """A recording of SOURCE's loop, whose indexes loaded the same in so many pairs of calls."""
    builder = Builder(folder)
    builder.parameters["redundancy"] = redundancy
    stack, places = fill(builder, pairs)
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
    assert "• /srv/a.py:3" in section
    assert re.search(r"at least 0\.\d+ s of the line's 1\.00 s of CPU time, slice-underutilization, loads", section)
    assert "g[i] is looked up each time round the loop" in section
    assert "Usually helps: Take whole slices" in section
    assert "both times in array_subscript < list_sort" in section
    with Recording.open(gone) as recording:
        assert "none above what is usual" in printed(recording.profile())


def test_the_terminal_says_nothing_where_it_was_not_looked_for(tmp_path: Path) -> None:
    with Recording.open(built(tmp_path / "run.tacho", 0, redundancy=False)) as recording:
        assert "Repeated work" not in printed(recording.profile())


CATEGORIES = {
    *("slice-underutilization", "repeated-call-same-arguments", "inefficient-algorithm", "api-misuse"),
    *("loop-invariant", None),
}
CONTRACT: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("file", "function", "partner_file", "kind", "category", "why", "remedy"), (str, type(None))),
    **dict.fromkeys(("line", "partner_line"), (int, type(None))),
    **dict.fromkeys(("quantity_s", "quantity_s_low", "quantity_s_high", "redundant_share", "base_rate"), (float,)),
    "line_cpu_s": (float,),
    "score": (float,),
    "witnesses": (list,),
    "traps": (int,),
    "native_path": (list,),
    "partner_native_path": (list,),
}
"""Names that programs rely on, with their types."""


def in_json(recording: Path) -> Any:
    """``redundancies`` of ``analyze --json``."""
    done = CliRunner().invoke(analyze, ["--json", "-", str(recording)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["redundancies"]


def test_the_names_in_json_are_a_contract(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "two.tacho")
    fill(builder, 60, samples=100)
    fill(builder, 40, samples=300, source=None, path="/srv/b.py")
    builder.parameters["redundancy"] = True
    builder.write()
    rows = in_json(tmp_path / "two.tacho")
    assert [row["file"] for row in rows] == ["/srv/b.py", "/srv/a.py"]
    assert rows[0]["quantity_s"] > rows[1]["quantity_s"]
    assert [(row["category"], row["remedy"] is None) for row in rows] == [
        (None, True),
        ("slice-underutilization", False),
    ]
    for row in rows:
        assert {name: type(value) for name, value in row.items() if not isinstance(value, CONTRACT[name])} == {}
        assert list(row) == [*COLUMNS]
        assert row["score"] == pytest.approx(sum(weight for _, weight, _, _ in row["witnesses"]))
        assert ("loads", True) in {(text, met == count) for text, _, met, count in row["witnesses"]}
        assert row.keys() == CONTRACT.keys()
        assert row["kind"] in ("load", "store")
        assert row["category"] in CATEGORIES
        assert row["quantity_s_low"] <= row["quantity_s"] <= row["quantity_s_high"]
        assert 0 <= row["base_rate"] < row["redundant_share"] <= 1


def test_none_found_is_empty_and_not_looked_for_is_null(tmp_path: Path, gone: Path) -> None:
    assert in_json(gone) == []
    assert in_json(built(tmp_path / "run.tacho", 0, redundancy=False)) is None


def test_the_page_has_both_paths(found: Path) -> None:
    with Recording.open(found) as recording:
        document = block.read_block(page(build_report_data(recording, Question())))[0]
    (row,) = document["tables"]["redundancies"]
    assert (row["file"], row["line"], row["category"]) == ("/srv/a.py", 3, "slice-underutilization")
    assert row["native_path"] == row["partner_native_path"] == ["array_subscript", "list_sort"]
    assert row["source"] == "x[i] += g[i]"


@pytest.mark.broad
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
    diff_lines.show(result, Console(file=file, width=120, markup=False))
    assert "Repeated work" in file.getvalue()
    assert "gone" in file.getvalue()


def test_a_diff_with_a_side_that_did_not_look_tells_nothing(tmp_path: Path, found: Path) -> None:
    other = built(tmp_path / "other.tacho", 0, redundancy=False)
    assert document(comparison.diff([other], [found], anyway=True))["redundancies"] is None
