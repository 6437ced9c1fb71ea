"""The package without its native parts, as on a laptop: it analyzes, and says in one line why it does not record."""

import json
import zipfile
from pathlib import Path

from installation.support import ROOT, run

GOLDEN = ROOT / "format-spec" / "vectors"


def test_the_wheel_has_what_is_needed_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    needed = {
        "tachograph/__init__.py",
        "tachograph/py.typed",
        "tachograph/format/tables.toml",
        "tachograph/format/tables.json",
        "tachograph/format/opcodes.json",
        "tachograph.pth",
    }
    assert needed <= set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"tachograph", "tachograph.pth"}
    assert [
        name for name in names if name.endswith((".so", "conftest.py")) or {"tests", "vectors"} & set(name.split("/"))
    ] == []


def test_it_analyzes_a_recording_from_elsewhere(programs: Path, tmp_path: Path) -> None:
    answer = run(programs / "tachograph", "analyze", GOLDEN / "whole.tacho", "--json", "-", cwd=tmp_path)
    assert json.loads(answer.stdout)["lines"]


def test_recording_is_refused_in_one_line(programs: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('ran')\n", encoding="utf-8")
    done = run(programs / "tachograph", "record", script, cwd=tmp_path, status=2)
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "without its native parts" in done.stderr
