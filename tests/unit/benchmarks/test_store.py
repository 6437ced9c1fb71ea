"""Results survive an interruption, and are not mixed with those of another setup."""

from pathlib import Path

import pytest

from harness.errors import BenchmarkError
from harness.store import Row, Store

ROWS = [
    Row(0, "mdp", "bare", 3, 1.5, 1.25, 2.0, 1.75, 4096, 2048, None, 0.5, None),
    Row(1, "mdp", "peer", 0, None, None, 300.0, 299.0, 4096, None, 12, None, 0.125, "status 1: no, it said"),
]


def test_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    for row in ROWS:
        Store(tmp_path).append(row)
    assert Store(tmp_path).rows() == ROWS


def test_results_of_another_setup_are_refused_until_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.agree({"seconds": 3})
    store.agree({"seconds": 3})
    with pytest.raises(BenchmarkError, match="another setup"):
        store.agree({"seconds": 10})
    store.clear()
    store.agree({"seconds": 10})
