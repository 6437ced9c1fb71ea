"""Recordings that are still being written, and recordings with other names; files that only their owner can read."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from tachograph.analyzer import Recording
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.commands.common import find_recording
from tachograph.analyzer.recording.quality import read_quality
from tachograph.analyzer.recording.unfinished import is_being_written
from tachograph.format import FormatError, open_container
from tachograph.recorder.collect.running import note_recorder
from unit.analyzer.recordings import Builder


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def written(path: Path, program: int) -> bool:
    """What is said of a recording whose note was made for ``program``; this process is taken out of the note."""
    (path / "spool").mkdir(parents=True)
    (path / "manifest.json").write_text("{}")
    note_recorder(path / "spool", program)
    note = path / "spool" / "recorder.json"
    told = json.loads(note.read_text())
    told["processes"] = [entry for entry in told["processes"] if entry[0] != os.getpid()]
    note.write_text(json.dumps(told))
    with open_container(path) as container:
        return is_being_written(container)


def test_a_recording_whose_program_lives_is_being_written(tmp_path: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert written(tmp_path / "live.tacho", sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    with open_container(tmp_path / "live.tacho") as container:
        assert not is_being_written(container)


def test_the_last_second_of_a_running_program_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are copied a moment later; those of a program that was killed with its recorder are not."""
    builder = Builder(tmp_path / "run.tacho")
    builder.quality.append({"process": 0, "loss": "ends_uncopied", "count": 1})
    path = builder.write()
    for running in (True, False):
        with Recording.open(path) as recording:
            monkeypatch.setattr(recording, "being_written", running)
            assert [loss.loss for loss in read_quality(recording).losses] == ([] if running else ["ends_uncopied"])


@pytest.mark.parametrize("note", ["", "[]", '{"boot": ""}', '{"boot": 1, "processes": [[1, 2]]}', "x" * 70_000])
def test_a_note_that_is_not_ours_says_nothing(tmp_path: Path, note: str) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "spool" / "recorder.json").write_text(note)
    with open_container(tmp_path) as container:
        assert not is_being_written(container)


def built(path: Path) -> Path:
    builder = Builder(path)
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)))
    return builder.write()


def test_a_recording_of_any_name_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "manifest.json").write_text("{}")  # of a web application
    with pytest.raises(FormatError, match="there is no recording in this folder"):
        find_recording(None)
    built(tmp_path / "night")
    assert find_recording(None) == Path("night")
    built(tmp_path / "day.tacho")
    os.utime(tmp_path / "night", (1, 1))
    assert find_recording(None) == Path("day.tacho")
    assert find_recording("day") == Path("day.tacho")
    assert find_recording("night") == Path("night")
    assert find_recording("noon") == Path("noon")  # and the reader says that it is missing


@pytest.mark.parametrize("option", ["--html", "--json"])
def test_reports_are_readable_by_their_owner_only(tmp_path: Path, option: str) -> None:
    built(tmp_path / "run.tacho")
    target = tmp_path / "report"
    target.write_text("an older one")
    target.chmod(0o644)
    before = os.umask(0o022)
    try:
        result = CliRunner().invoke(analyze, [str(tmp_path / "run.tacho"), option, str(target)])
    finally:
        os.umask(before)
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"run.tacho", "report"}


def test_a_report_can_go_to_a_device(tmp_path: Path) -> None:
    built(tmp_path / "run.tacho")
    assert CliRunner().invoke(analyze, [str(tmp_path / "run.tacho"), "--html", "/dev/null"]).exit_code == 0
    assert not Path("/dev/null").is_file()
