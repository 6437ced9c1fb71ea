"""What a process that is not recorded writes into the process log is what the format reads."""

import os
from pathlib import Path

from tachograph.format.spool.layout import Refusal
from tachograph.format.spool.process_log import BOUND, LOG_NAME, Event, decode_log
from tachograph.recorder.inprocess.refusal import note_refusal


def test_a_refusal_is_read_back(tmp_path: Path) -> None:
    log = tmp_path / LOG_NAME
    note_refusal(str(tmp_path), Refusal.FAILED, "there is no log")
    assert not log.exists()
    log.touch()
    note_refusal(str(tmp_path), Refusal.EXCLUDED, "excluded\0 ü" + "x" * 1000)
    note_refusal(str(tmp_path), Refusal.FAILED, "no room")
    first, second = decode_log(log.read_bytes()).records
    assert (first.event, first.status, first.pid, first.parent_pid) == (
        Event.REFUSED,
        Refusal.EXCLUDED,
        os.getpid(),
        os.getppid(),
    )
    assert "".join(first.arguments).startswith("excluded  üxxx")
    assert (second.status, second.arguments) == (Refusal.FAILED, ("no room",))
    assert 0 < first.time_ns <= second.time_ns


def test_a_full_log_gets_one_byte(tmp_path: Path) -> None:
    log = tmp_path / LOG_NAME
    with log.open("wb") as file:
        file.truncate(BOUND)
    note_refusal(str(tmp_path), Refusal.FAILED, "no room")
    assert log.stat().st_size == BOUND + 1


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    (tmp_path / LOG_NAME).symlink_to(tmp_path / "other")
    note_refusal(str(tmp_path), Refusal.FAILED, "x")
    assert (tmp_path / "other").stat().st_size == 0
