"""A spool leaves room for the tables that are made of it."""

import errno
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tachograph.recorder.collect import room as room_module
from tachograph.recorder.collect.room import LEAST, OF_PLAIN, SpoolRoom, bytes_of_tables

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's holes in files")

MIB = 1 << 20


def put(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes([1]) * size)


def leave_free(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=size // 4096, f_frsize=4096))


def test_what_the_tables_take(tmp_path: Path) -> None:
    """As much as the rows of parts, and part of what is not compressed."""
    assert bytes_of_tables(tmp_path / "missing") == LEAST
    put(tmp_path / "1-2.000000.seg", MIB)
    put(tmp_path / "parts" / "1-2.000001-000004" / "cpu.parquet", 1 << 16)
    put(tmp_path / "parts" / "1-2.000001-000004" / "definitions.seg", MIB)
    assert bytes_of_tables(tmp_path) == LEAST + (1 << 16) + 2 * MIB // OF_PLAIN


def test_no_segment_takes_the_room_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "parts" / "1-2.000000-000003" / "cpu.parquet", 4 * MIB)
    room = SpoolRoom(tmp_path)
    leave_free(monkeypatch, 20 * MIB)
    for sequence in range(4):
        room.check(MIB, sequence)
    leave_free(monkeypatch, 6 * MIB)
    room.check(MIB, 4)
    monkeypatch.setattr(room_module, "MADE_ANEW_S", 0)
    leave_free(monkeypatch, 5 * MIB)
    with pytest.raises(OSError, match="tables need the room") as raised:
        room.check(MIB, 5)
    assert raised.value.errno == errno.ENOSPC
    room.check(1 << 16, 0)  # the first one of a process is small
    leave_free(monkeypatch, 6 * MIB)
    room.check(MIB, 5)  # there is room again


def test_the_size_of_a_spool_is_looked_at_only_where_it_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on a large disk, nor again and again in a spool of thousands of files."""
    looks = 0

    def look(spool: Path) -> int:
        nonlocal looks
        looks += 1
        time.sleep(0.01)
        return LEAST

    monkeypatch.setattr(room_module, "bytes_of_tables", look)
    room = SpoolRoom(tmp_path)
    leave_free(monkeypatch, 100 * MIB)
    for sequence in range(50):
        room.check(MIB, sequence)
    assert looks == 0
    leave_free(monkeypatch, 20 * MIB)
    for sequence in range(50, 100):
        room.check(MIB, sequence)
    assert looks == 1
