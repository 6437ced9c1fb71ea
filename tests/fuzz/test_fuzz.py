"""Hostile recordings, through every reader: refused in one line or read, nothing else. `make soak` has many more."""

import json
import shutil
import tempfile
import time
from pathlib import Path

import pytest

from fuzz.mutation import MARK, Mutator
from fuzz.readers import fault
from fuzz.reading import VECTORS, read_hostile
from tachograph.recorder.collect.running import boot_id

MOST_RESIDENT_MB = 1500
"""The vectors have some kilobytes: what reads them stays far below this, whatever they say of themselves."""


@pytest.mark.parametrize(("first", "count"), [(0, 24), pytest.param(1_000_000, 60, marks=pytest.mark.slow)])
def test_hostile_recordings(tmp_path: Path, first: int, count: int) -> None:
    words = read_hostile(tmp_path, first, count, 500)
    assert words["done"] == count
    assert words["peak_mb"] < MOST_RESIDENT_MB


def test_the_fuzzer_plants_a_recording_that_recover_would_be_taken_in_by(tmp_path: Path) -> None:
    """With the one thing that a forger cannot know, its recordings do bring a file in: the alarm rings."""
    canary = tmp_path / "canary.py"
    canary.write_text("# not for any recording\n")
    recording = tmp_path / "a.tacho"
    shutil.copytree(VECTORS / "killed.tacho", recording)
    recording.chmod(0o700)
    (recording / "spool").chmod(0o700)
    mutator = Mutator(7, canary)
    mutator._sources(recording)
    shutil.copytree(recording, tmp_path / "b.tacho")
    out = tmp_path / "out"
    assert fault(["recover", str(tmp_path / "b.tacho")], out, "not for any") is None
    note = json.loads((recording / "spool" / "recorder.json").read_text())
    note |= {"boot": boot_id(), "inode": (recording / "spool").stat().st_ino, "time_ns": time.time_ns()}
    (recording / "spool" / "recorder.json").write_text(json.dumps(note))
    temporary = Path(tempfile.gettempdir())
    for folder in (tmp_path, *tmp_path.parents):
        if temporary in folder.parents:
            folder.chmod(0o755)
    assert fault(["recover", str(recording)], out, "not for any") == "a file outside is in the recording"


def test_the_fuzzer_sees_what_it_looks_for(tmp_path: Path) -> None:
    """Each alarm goes off where there is something: an exception, a marked page, a foreign text, an escape sequence."""
    assert fault(["--version"], tmp_path, "canary") is None
    assert fault(["--version"], tmp_path, "tachograph") == "a file outside was read"
    (tmp_path / "a.html").write_text(f"<p>{MARK}", encoding="utf-8")
    assert "injected" in str(fault(["--version"], tmp_path, "canary"))
    (tmp_path / "a.html").unlink()
    (tmp_path / "b.json").write_text("canary", encoding="utf-8")
    assert "outside" in str(fault(["--version"], tmp_path, "canary"))
