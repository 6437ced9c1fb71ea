"""Whether a function became slower per call, or is called more often, from rows whose truth is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tachograph.analyzer.diff import diff
from tachograph.analyzer.render.json_difference import document
from tachograph.analyzer.render.terminal.diff_lines import call_change_lines
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.report_data.difference_sections import calls_verdict_text
from unit.analyzer.recordings import MS, Builder
from unit.analyzer.test_calls import period

SOURCE = "def often():\n    pass\n\n\ndef slow():\n    pass\n\n\ndef same():\n    pass\n"


def recording(folder: Path, name: str, calls: dict[str, tuple[int, int]]) -> Path:
    """Functions with so many calls, all watched, of so many ns each."""
    builder = Builder(folder / f"{name}.tacho")
    file = builder.file("/srv/app.py", SOURCE)
    for line, (function, (count, each_ns)) in zip((1, 5, 9), calls.items(), strict=True):
        stack = builder.stack((builder.code(file, function, line), None))
        builder.cpu(stack)
        total = count * each_ns
        squared = float(count) * each_ns**2
        period(
            builder, stack, 10, 10, calls=count, ended=count, total_ns=total, longest_ns=each_ns, total_squared=squared
        )
    builder.write()
    return builder.path


@pytest.mark.broad
def test_more_calls_are_told_from_slower_ones(tmp_path: Path) -> None:
    base, new = (
        [recording(tmp_path, f"{side}{run}", {name: (count, each + run) for name, (count, each) in calls.items()})
         for run in range(3)]
        for side, calls in (
            ("base", {"often": (1000, MS), "slow": (8, 10 * MS), "same": (500, MS)}),
            ("new", {"often": (3000, MS), "slow": (8, 300 * MS), "same": (500, MS)}),
        )
    )  # fmt: skip
    rows = {row["function"]: row for row in document(diff(base, new))["functions"]}
    told = {name: row["calls_verdict"] for name, row in rows.items() if name in ("often", "slow", "same")}
    assert told == {"often": "called more often", "slow": "slower per call", "same": None}
    calls, per_call = (rows["often"]["metrics"][name] for name in ("calls", "call_mean"))
    assert (calls["base"], calls["new"], calls["verdict"]) == (1000, 3000, "more")
    assert per_call["verdict"] == "no evidence"
    assert rows["slow"]["metrics"]["call_mean"]["new"] == pytest.approx(0.3)
    json.dumps(told)


def test_words() -> None:
    assert calls_verdict_text("more", "slower") == "slower per call, called more often"
    assert calls_verdict_text("less", "no evidence") == "called less often"
    assert calls_verdict_text(None, None) is None


@pytest.mark.broad
def test_functions_without_a_verdict_are_shown_beside_those_with_one(tmp_path: Path) -> None:
    # A difference of 3 % has no verdict, and is more than a hundredth of the time.
    base, new = (
        [recording(tmp_path, f"{side}{run}", calls) for run in range(3)]
        for side, calls in (
            ("base", {"often": (1000, MS), "slow": (8, 10 * MS), "same": (5000, MS)}),
            ("new", {"often": (3000, MS), "slow": (8, 10 * MS), "same": (5000, MS + MS * 3 // 100)}),
        )
    )
    text = "\n".join(line.plain for line in call_change_lines(diff(base, new), Style(colour=False, unicode=True), 100))
    assert "often  called more often" in text
    assert "same    /srv/app.py:9" in text
