"""`tachograph diff` of programs that did not change: real recordings, half of them on a loaded machine."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import diff_calibration as calibration

pytestmark = [pytest.mark.native, pytest.mark.slow]


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> calibration.Pool:
    folder = tmp_path_factory.mktemp("pool")
    result = CliRunner().invoke(calibration.main, ["record", str(folder), "--rounds", "2"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return calibration.Pool(folder)


@pytest.mark.parametrize(("runs", "turns"), [(1, False), (3, False), (3, True), (5, True)])
def test_programs_that_did_not_change_have_no_verdict(pool: calibration.Pool, runs: int, turns: bool) -> None:
    """At most 5 pairs in 200 have a verdict anywhere, or fail a condition of a build."""
    pairs = [
        pair for kind in calibration.KINDS for pair in calibration.identical(pool.names(kind), runs, 40, turns=turns)
    ]
    count = pool.count(pairs)
    assert count.pairs >= 15
    assert count.verdicts <= max(1, 5 * count.pairs // 200)
    assert count.alarms <= max(1, 5 * count.pairs // 200)


def test_one_run_a_side_never_judges_times(pool: calibration.Pool) -> None:
    count = pool.count(calibration.different(pool, 1, 12))
    assert (count.cpu, count.alarms) == (0, 0)
