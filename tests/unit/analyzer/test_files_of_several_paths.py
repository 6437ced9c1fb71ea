"""A file that code names by several paths is one file in reports and comparisons, if the recording says so."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tachograph.analyzer import diff as comparison
from unit.analyzer.recordings import Builder, table

SOURCE = "def spin():\n    return sum(range(9))\n"
REAL, LINK = "/srv/app/hot.py", "/srv/app/links/hot.py"
SAME: dict[str, Any] = {"disk_file": 0, "sha256": "ab"}


def run(path: Path, files: Sequence[tuple[str, dict[str, Any]]], source: str = SOURCE) -> Builder:
    """100 samples of the same line by each path."""
    builder = Builder(path)
    for name, values in files:
        code = builder.code(builder.file(name, source, **values), "spin", 1)
        for _ in range(100):
            builder.cpu(builder.stack((code, 1)))
    return builder


@pytest.mark.parametrize("order", [(REAL, LINK), (LINK, REAL)])
def test_it_is_one_file(tmp_path: Path, order: Sequence[str]) -> None:
    found = run(tmp_path / "a.tacho", [(path, SAME) for path in order]).answer()
    assert table(found.lines, "file", "line", "cpu_s") == [(REAL, 2, 2.0)]
    assert table(found.functions, "function", "file", "cpu_s") == [("spin", REAL, 2.0)]
    assert table(found.files, "file", "cpu_s") == [(REAL, 2.0)]


@pytest.mark.parametrize(
    "values",
    [{}, {"disk_file": None, "sha256": "ab"}, {"disk_file": 1, "sha256": "ab"}, {"disk_file": 0, "sha256": "cd"}],
    ids=["recorded before 1.5", "unknown", "another file", "changed between"],
)
def test_others_are_two(tmp_path: Path, values: dict[str, Any]) -> None:
    found = run(tmp_path / "a.tacho", [(REAL, SAME if values else {}), (LINK, values)]).answer()
    assert sorted(table(found.lines, "file", "line")) == [(REAL, 2), (LINK, 2)]


@pytest.mark.parametrize(
    ("path", "better"),
    [
        ("/srv/v/lib/python3.11/site-packages/hot.py", "/srv/sources/of/everything/hot.py"),
        ("hot.py", "/srv/app/hot.py"),
        ("/srv/a/../b/hot.py", "/srv/a/deeper/hot.py"),
        ("/srv//b/hot.py", "/srv/a/deeper/hot.py"),
        ("/srv/run.runfiles/app/hot.py", "/srv/app/hot.py"),
        ("/srv/b/hot.py", "/srv/a/hot.py"),
    ],
)
def test_the_path_that_readers_expect(tmp_path: Path, path: str, better: str) -> None:
    found = run(tmp_path / "a.tacho", [(path, SAME), (better, SAME)]).answer(scope="all")
    assert table(found.files, "file") == [(better,)]


@pytest.mark.parametrize("alone", [REAL, LINK])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("edited", [False, True])
def test_a_comparison_with_a_run_that_has_one_of_the_paths(
    tmp_path: Path, alone: str, back: bool, edited: bool
) -> None:
    both = run(tmp_path / "both.tacho", [(LINK, SAME), (REAL, SAME)]).write()
    source, digest = (f"import os\n{SOURCE}", "cd") if edited else (SOURCE, "ab")
    builder = Builder(tmp_path / "one.tacho")
    code = builder.code(builder.file(alone, source, disk_file=0, sha256=digest), "spin", 1 + edited)
    for _ in range(200):
        builder.cpu(builder.stack((code, 1)))
    runs = [both, builder.write()]
    base, new = reversed(runs) if back else runs
    found = comparison.diff([base], [new], spread=0.01)
    sides = (alone, REAL) if back else (REAL, alone)
    for level in (found.lines, found.functions, found.files):
        status = "edited" if edited and level is found.files else "same"
        assert table(level.places, "status", "base_file", "new_file") == [(status, *sides)]
