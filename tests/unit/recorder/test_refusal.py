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


def test_the_log_in_memory(tmp_path: Path) -> None:
    """It is taken if it is the file that it is said to be; else the spool's has to do."""
    memory, log = tmp_path / "memory", tmp_path / LOG_NAME
    for path in (memory, log):
        path.touch()
    status = memory.stat()
    note_refusal(str(tmp_path), Refusal.FAILED, "a", f"{memory}:{status.st_dev}:{status.st_ino}")
    assert [record.arguments for record in decode_log(memory.read_bytes()).records] == [("a",)]
    assert log.read_bytes() == b""
    for other in (f"{memory}:{status.st_dev}:{status.st_ino + 1}", f"{tmp_path}/none:1:1", "", "::"):
        note_refusal(str(tmp_path), Refusal.FAILED, "b", other)
    assert memory.stat().st_size == 512
    assert [record.arguments for record in decode_log(log.read_bytes()).records] == [("b",)] * 4
