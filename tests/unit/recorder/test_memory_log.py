"""The process log in memory: what is appended to it is copied into the spool, once, and its memory is freed."""

import errno
import os
import sys
from pathlib import Path

import pytest

from tachograph.format.spool.process_log import BOUND, LOG_NAME, Event, decode_log, encode_record
from tachograph.recorder.collect.memory_files import FREED_AT_ONCE, MemoryLog
from tachograph.recorder.fd_broker.socket_name import open_log, place_of_log

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's memory files")

RECORD = 512


class Log:
    """A log and what appends to it, as a process does."""

    def __init__(self, spool: Path) -> None:
        descriptor = open_log()
        assert descriptor is not None
        self.descriptor, self.path = descriptor, spool / LOG_NAME
        self.copies = MemoryLog(spool, descriptor)
        self.number = 0

    def append(self, count: int = 1, event: Event = Event.START) -> None:
        place, device, inode = place_of_log(self.descriptor).split(":")
        file = os.open(place, os.O_WRONLY | os.O_APPEND)
        status = os.fstat(file)
        assert (status.st_dev, status.st_ino) == (int(device), int(inode))
        for _ in range(count):
            self.number += 1
            os.write(file, encode_record(event, self.number, 1, self.number))
        os.close(file)

    def pids(self) -> list[int]:
        return [record.pid for record in decode_log(self.path.read_bytes()).records]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_each_record_once(log: Log) -> None:
    log.copies.copy()
    assert not log.path.exists()
    for count in (1, 3, 1000):
        log.append(count)
        log.copies.copy()
        log.copies.copy()
    assert log.pids() == list(range(1, 1005))
    assert log.path.stat().st_mode & 0o777 == 0o600


def test_a_record_that_is_not_whole_yet_waits(log: Log) -> None:
    log.append(2)
    whole = encode_record(Event.END, 3, 1, 3)
    os.pwrite(log.descriptor, whole[:100], 2 * RECORD)
    log.copies.copy()
    assert log.pids() == [1, 2]
    os.pwrite(log.descriptor, whole[100:], 2 * RECORD + 100)
    log.copies.copy()
    assert log.pids() == [1, 2, 3]


def test_a_log_that_was_moved_away_begins_anew(log: Log) -> None:
    """As where windows are rotated."""
    log.append(2)
    log.copies.copy()
    log.path.rename(log.path.with_name("processes.cut.log"))
    log.append(2)
    log.copies.copy()
    assert log.pids() == [3, 4]


def test_copied_memory_is_freed(log: Log) -> None:
    """A recording of weeks does not grow with it."""
    for _ in range(8):
        log.append(FREED_AT_ONCE // RECORD)
        log.copies.copy()
        assert os.fstat(log.descriptor).st_blocks * 512 <= FREED_AT_ONCE
    assert log.pids() == list(range(1, log.number + 1))


def test_an_hour_of_forks_finds_room(log: Log) -> None:
    """In the spool a record takes what it holds: a hundred children a second, each with two records."""
    log.append(100, Event.FORK)
    log.append(100, Event.END)
    log.copies.copy()
    assert log.path.stat().st_size * 3600 < BOUND
    assert log.pids() == list(range(1, 201))


def test_what_a_full_disk_cut_short_is_gone_on_with(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = os.write, [100]

    def written(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "full")
        count = write(descriptor, data[: room[0]])
        room[0] -= count
        return count

    log.append(5)
    monkeypatch.setattr(os, "write", written)
    with pytest.raises(OSError, match="full"):
        log.copies.copy()
    monkeypatch.undo()
    log.append(2)
    log.copies.copy()
    assert log.pids() == list(range(1, 8))
    assert decode_log(log.path.read_bytes()).torn == 0


def test_a_full_log_counts(log: Log) -> None:
    log.append()
    log.copies.copy()
    os.truncate(log.path, BOUND)
    log.append(2, Event.START)
    log.append(3, Event.END)
    log.copies.copy()
    assert log.path.read_bytes()[BOUND:] == bytes([Event.START] * 2 + [Event.END] * 3)


def test_no_room(tmp_path: Path) -> None:
    """What could not be copied is copied when that is possible."""
    log = Log(tmp_path / "spool")
    log.append(2)
    with pytest.raises(FileNotFoundError):
        log.copies.copy()
    (tmp_path / "spool").mkdir()
    log.append()
    log.copies.copy()
    assert log.pids() == [1, 2, 3]
