"""When a metric changed: change points of series with a known truth, and of fleets with the diff at the point."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import tachograph.analyzer.fleet as fleets
from tachograph.analyzer.commands.history import history as command
from tachograph.analyzer.statistics.change_points import change_points
from tachograph.format import FormatError
from unit.analyzer.fleet.fleets import one

pytestmark = pytest.mark.broad


def test_series_with_known_steps() -> None:
    chance = np.random.default_rng(3)
    steps = np.concatenate([np.full(20, 1.0), np.full(15, 1.2), np.full(25, 1.1)])
    found = change_points(steps + chance.normal(0, 0.02, 60))
    assert [each.at for each in found] == pytest.approx([20, 35], abs=1)
    assert all(each.p <= 0.01 for each in found)


def test_series_without_a_step_hardly_have_one() -> None:
    """One wrong point in a hundred series, also where one observation is far off, and where times have a long tail."""
    chance = np.random.default_rng(4)
    wrong = 0
    for number in range(200):
        values = chance.lognormal(0, 0.1, 24) if number % 2 else chance.normal(1, 0.05, 24)
        values[number % 24] *= 3
        wrong += bool(change_points(values))
    assert wrong <= 7  # with 1 % each, 8 or more of 200 have a probability of 0.1 %


def test_what_came_together_is_not_divided() -> None:
    values = np.array([1.0, 1.01, 0.99, 1.0, 1.5, 1.51, 1.49, 1.5, 1.5, 1.52])
    begins = np.array([True, False, False, False, False, False, True, False, False, False])
    assert {each.at for each in change_points(values, begins)} <= {6}
    assert [each.at for each in change_points(values)] == [4]
    assert change_points(np.ones(3)) == []


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen nights, versions 1.8 to 1.10; from 1.10 on line 3 takes half as long again."""
    folder = tmp_path_factory.mktemp("nightly") / "runs"
    for number in range(18):
        version = ("1.8", "1.9", "1.10")[number // 6]
        query = 300 if number >= 12 else 200
        one(
            folder,
            number,
            {2: 100, 3: query + 10 * (number % 3)},
            labels={"version": version},
            host="ci-1",
            created_utc=f"2026-11-{number + 1:02}T04:00:00+00:00",
        )
    return folder


def test_the_change_and_its_diff(nightly: Path) -> None:
    found = fleets.open(str(nightly))
    for by, at in (("time", "2026-11-13 04:00:00"), ("version", "1.10")):
        (point,) = found.history(by=by).points
        assert point.at == at
        assert point.p == pytest.approx(0.005)
        assert (point.before, point.after) == pytest.approx((0.31, 0.41))
        assert point.low < point.change < point.high
        assert list(point.base) == [f"run-{number:03}.tacho" for number in range(7, 12)]
        assert point.difference is not None
        assert point.difference.summary.verdict == "slower"
    segments = found.history(by="version", diffs=0).segments
    assert [(each.first, each.last, each.recordings) for each in segments] == [("1.8", "1.9", 12), ("1.10", "1.10", 6)]
    assert found.history(function="handle", diffs=0).points[0].after == pytest.approx(0.41)


def test_command(nightly: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(command, [str(nightly), "--by", "version", "--workers", "1", "--fail"])
    assert result.exit_code == 1, result.output
    assert "version 1.10: 310 ms -> 410 ms, +32.3 % (" in result.output
    assert "slower: CPU +30.8 %" in result.output
    assert "because of shop.py:3" in result.output
    written = CliRunner().invoke(command, [str(nightly), "--workers", "1", "--json", "-", "--metric", "wall"])
    document = json.loads(written.stdout)
    assert (document["tachograph"]["document"], document["points"]) == ("history", [])
    assert document["counts"]["recordings"] == 18


def test_bad_input(nightly: Path, tmp_path: Path) -> None:
    found = fleets.open(str(nightly))
    for more, message in (
        ({"metric": "speed"}, "there is no metric 'speed'; there are: cpu, wall"),
        ({"by": "colour"}, "no recording has the label 'colour'; there are: version"),
        ({"metric": "allocated"}, "a history needs 4 recordings that know the metric; there are 0"),
        ({"function": "nothing"}, "nothing"),
    ):
        with pytest.raises(FormatError, match=message):
            found.history(**more)  # type: ignore[arg-type]
    assert CliRunner().invoke(command, [str(tmp_path / "no"), "--workers", "1"]).exit_code == 2
