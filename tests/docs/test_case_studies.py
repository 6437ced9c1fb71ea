"""The case studies of the Scalene papers: their recordings show what the papers say they show."""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from support.warm_command import run_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "case-studies"
TIMEOUT_S = 60

Entry = dict[str, Any]


def analysis(folder: Path, program: str, *arguments: str) -> dict[str, Any]:
    """What ``analyze --json`` says of one run of a program of the case studies."""
    pytest.importorskip("tachograph.recorder._native", reason="recording is not supported here")
    scripts = sysconfig.get_path("scripts")
    environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    def tachograph(*line: str | Path) -> str:
        done = run_command([*map(str, line)], folder, environment, TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tachograph("record", "-q", "-o", "run.tacho", PAGES / program, *arguments)
    found: dict[str, Any] = json.loads(tachograph("analyze", "--json", "-", "run.tacho"))
    return found


def line_with(found: dict[str, Any], text: str) -> Entry:
    """The one line whose source has ``text`` in it."""
    (line,) = [line for line in found["lines"] if text in (line["source"] or "")]
    return line  # type: ignore[no-any-return]


def function_named(found: dict[str, Any], name: str) -> Entry:
    """The one function of this name."""
    (function,) = [function for function in found["functions"] if function["function"] == name]
    return function  # type: ignore[no-any-return]


def test_chained_indexing_copies_and_hoisting_ends_it(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the program of this case study needs pandas")
    hours, columns, rows = 1000, 4, 8760
    found = analysis(tmp_path, "chained_indexing.py", str(hours))
    # Each look-up copies the columns of one station.
    copied = hours * columns * rows * 8
    line = line_with(found, 'table[station]["temperature"][hour]')
    assert line["copied_bytes"] == pytest.approx(copied, rel=0.1)
    assert line["copied_bytes"] == max(each["copied_bytes"] or 0 for each in found["lines"])
    assert line["copied_bytes"] > 0.7 * found["totals"]["copied_bytes"]
    assert line["allocated_bytes"] > copied
    assert (line["live_at_end_bytes"] or 0) < copied / 20


@pytest.mark.slow
def test_hoisted_indexing_copies_once(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the program of this case study needs pandas")
    found = analysis(tmp_path, "chained_indexing.py", "1000", "--hoisted")
    assert found["totals"]["copied_bytes"] < 100e6
    hoisted = [line for line in found["lines"] if (line["function"] or "").startswith("temperatures_hoisted")]
    assert sum(line["copied_bytes"] or 0 for line in hoisted) < 5e6


def test_concat_doubles_what_is_held(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the program of this case study needs pandas")
    rows = 100_000
    year = 12 * rows * 8 * 8
    found = analysis(tmp_path, "concat.py", str(rows))
    line = line_with(found, "pd.concat(")
    assert function_named(found, "read_month")["live_at_peak_bytes"] == pytest.approx(year, rel=0.05)
    assert line["live_at_peak_bytes"] == pytest.approx(year, rel=0.05)
    assert line["copied_bytes"] == pytest.approx(year, rel=0.05)


@pytest.mark.slow
def test_without_concat_one_month_is_held(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the program of this case study needs pandas")
    rows = 400_000  # a month is above the threshold, so that the counters have a row where it is held
    month = rows * 8 * 8
    found = analysis(tmp_path, "concat.py", str(rows), "--by-month")
    reading = function_named(found, "read_month")
    assert 0.9 * month < reading["live_at_peak_bytes"] < 2.5 * month
    assert reading["allocated_bytes"] > 12 * 0.9 * month


def test_groups_are_a_copy_of_the_table(tmp_path: Path) -> None:
    pytest.importorskip("pandas", reason="the program of this case study needs pandas")
    rows = 300_000
    sensors = rows * 16 * 8
    groups = line_with(analysis(tmp_path, "groupby.py", str(rows)), "list(table.groupby(")
    assert groups["live_at_peak_bytes"] > 0.98 * sensors
    (tmp_path / "run.tacho").rename(tmp_path / "slow.tacho")
    found = analysis(tmp_path, "groupby.py", str(rows), "--column")
    column = line_with(found, 'table.groupby("station")[3].max()')
    assert column["allocated_bytes"] < groups["allocated_bytes"] / 2


def test_the_ratio_of_growing_numbers_allocates(tmp_path: Path) -> None:
    found = analysis(tmp_path, "decimal_exp.py", "3000")
    line = line_with(found, "s += num / fact")
    whole = function_named(found, "exp")
    # The paper's 81 %, by about 90 sampled blocks; all of it by Python's own allocators, and none of it kept.
    assert 0.6 < line["allocated_bytes"] / whole["allocated_bytes"] < 0.95
    assert line["python_fraction"] > 0.95
    assert line["cpu_share"] > 0.9
    assert abs(line["net_bytes"] or 0) < line["allocated_bytes"] / 100


def test_the_programs_agree_with_themselves() -> None:
    pytest.importorskip("pandas", reason="the programs of the case studies need pandas")
    for program, size, better in (
        ("chained_indexing.py", "20", "--hoisted"),
        ("concat.py", "1000", "--by-month"),
        ("groupby.py", "1000", "--column"),
        ("decimal_exp.py", "100", "--small"),
    ):
        command = [sys.executable, str(PAGES / program), size]
        said = [
            subprocess.run([*command, *more], capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
            for more in ([], [better])
        ]
        assert said[0] == said[1] != "", program


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_the_pages_show_what_runs(page: Path) -> None:
    programs = [path.read_text(encoding="utf-8") for path in PAGES.glob("*.py")]
    excerpts = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [excerpt for excerpt in excerpts if not any(excerpt in program for program in programs)] == []
