"""Hostile recordings, through every reader: refused in one line or read, nothing else. `make soak` has many more."""

from pathlib import Path

import pytest

from fuzz.mutation import MARK
from fuzz.readers import fault
from fuzz.reading import read_hostile

MOST_RESIDENT_MB = 1500
"""The vectors have some kilobytes: what reads them stays far below this, whatever they say of themselves."""


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_hostile_recordings(tmp_path: Path, first: int) -> None:
    words = read_hostile(tmp_path, first, 60, 500)
    assert words["done"] == 60
    assert words["peak_mb"] < MOST_RESIDENT_MB


def test_the_fuzzer_sees_what_it_looks_for(tmp_path: Path) -> None:
    """Each alarm goes off where there is something: an exception, a marked page, a foreign text, an escape sequence."""
    assert fault(["--version"], tmp_path, "canary") is None
    assert fault(["--version"], tmp_path, "tachograph") == "a file outside was read"
    (tmp_path / "a.html").write_text(f"<p>{MARK}", encoding="utf-8")
    assert "injected" in str(fault(["--version"], tmp_path, "canary"))
    (tmp_path / "a.html").unlink()
    (tmp_path / "b.json").write_text("canary", encoding="utf-8")
    assert "outside" in str(fault(["--version"], tmp_path, "canary"))
