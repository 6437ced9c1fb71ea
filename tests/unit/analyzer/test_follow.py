"""A recording that is still being written, shown until it is complete."""

from __future__ import annotations

import hashlib
import io
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Question
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.commands.follow import EVERY_S, PATIENCE, follow
from tachograph.analyzer.recording.question_options import Sort
from tachograph.format import FormatError

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"


class Program:
    """A recording that is complete after some looks; its ``sleep`` is the time that passes between them."""

    def __init__(self, path: Path, looks: int) -> None:
        self.path, self.looks, self.slept = path, looks, list[float]()
        self.digests = set[str]()
        self._become("memory-killed")

    def _become(self, vector: str) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(VECTORS / f"{vector}.tacho", self.path)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) < self.looks:
            data = b"".join(file.read_bytes() for file in sorted(self.path.rglob("*")) if file.is_file())
            self.digests.add(hashlib.sha256(data).hexdigest())
        else:
            self._become("whole")


def shown(program: Program, *, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(file=file, width=100, height=12, force_terminal=terminal, color_system=None, legacy_windows=False)
    follow(program.path, Question(), console, Sort.CPU, None, sleep=program.sleep)
    return file.getvalue()


def test_on_a_terminal_it_is_shown_again_and_again(tmp_path: Path) -> None:
    program = Program(tmp_path / "r.tacho", 3)
    text = shown(program, terminal=True)
    assert text.count("Ctrl-C ends this view") == 4  # and once more as it is wiped away
    assert len(program.slept) == 3
    assert min(program.slept) >= EVERY_S
    assert len(program.digests) == 1  # looking changes nothing
    assert "never finished" not in text[text.rindex(" tachograph  ") :]


def test_what_is_no_terminal_gets_one_plain_report(tmp_path: Path) -> None:
    text = shown(Program(tmp_path / "r.tacho", 2), terminal=False)
    assert text.count(" tachograph  ") == 1
    assert "\x1b" not in text
    assert "so far" not in text


def test_ctrl_c_shows_what_there_is(tmp_path: Path) -> None:
    program = Program(tmp_path / "r.tacho", 100)

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    program.sleep = interrupted  # type: ignore[method-assign, assignment]
    text = shown(program, terminal=False)
    assert text.count(" tachograph  ") == 1
    assert "never finished" in " ".join(text.split())


def test_it_waits_while_the_recording_is_being_finished(tmp_path: Path) -> None:
    program = Program(tmp_path / "r.tacho", 2)
    (program.path / "spool").rename(tmp_path / "gone")
    assert " tachograph  " in shown(program, terminal=False)
    assert len(program.slept) == 2


def test_it_does_not_wait_for_ever(tmp_path: Path) -> None:
    program = Program(tmp_path / "r.tacho", 100)
    shutil.rmtree(program.path / "spool")
    with pytest.raises(FormatError, match="spool is missing"):
        shown(program, terminal=False)
    assert len(program.slept) == PATIENCE - 1


def test_refusals() -> None:
    missing = CliRunner().invoke(analyze, ["--follow", "nowhere.tacho"])
    assert (missing.exit_code, missing.output.count("\n")) == (2, 1)
    both = CliRunner().invoke(analyze, ["--follow", "--json", "-", str(VECTORS / "whole.tacho")])
    assert (both.exit_code, both.output.count("\n")) == (2, 1)
    assert "--follow" in both.output
