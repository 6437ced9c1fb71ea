"""Reads back what the C++ tests wrote, with the decoder of tachograph.format."""

import os
import struct
from array import array
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tachograph import format as spec
from tachograph.format.spool import records as kinds
from tachograph.format.spool import segment as reader

META, STATE, CPU, WAIT = kinds.META, kinds.STATE, kinds.CPU, kinds.WAIT
CODE, STACK, MODULE = kinds.CODE, kinds.STACK, kinds.MODULE
TASK_STACK = kinds.TASK_STACK
MEMORY, BLOCK, FREED, COPY = kinds.MEMORY, kinds.BLOCK, kinds.FREED, kinds.COPY
THREAD_START, THREAD_NAME, THREAD_END = kinds.THREAD_START, kinds.THREAD_NAME, kinds.THREAD_END
RECORDING, ENDED, STOPPED = 1, 2, 3
TEST_KIND = 200
"""Kind of the records of spool_test.cpp: 8 u32 thread, 12 u32 number, then bytes that all are thread + number."""


@dataclass(frozen=True)
class Control:
    """What the tests need of a control file."""

    state: int
    error: int
    samples: int
    losses: tuple[int, ...]


def control(folder: Path) -> Control:
    """The control file of the one process that wrote into ``folder``."""
    (path,) = folder.glob("*.ctl")
    data = path.read_bytes()
    assert data[:8] == b"TACHCTL1"
    state, error = struct.unpack_from("<II", data, 52)
    (samples,) = struct.unpack_from("<Q", data, 88)
    return Control(state, error, samples, struct.unpack_from("<64Q", data, 128))


def by_process(folder: Path) -> list[Path]:
    """What ``folder`` holds of each process, in a folder of its own each, by pid."""
    found = []
    for control_file in sorted(folder.glob("*.ctl")):
        own = folder / f"of-{control_file.stem}"
        own.mkdir()
        for path in folder.glob(f"{control_file.stem}.*"):
            os.link(path, own / path.name)
        found.append(own)
    return found


def losses(folder: Path) -> dict[str, int]:
    """What was lost, by name."""
    names = [loss.name for loss in spec.load_specification().losses]
    return dict(zip(names, control(folder).losses, strict=False))


def read(folder: Path) -> list[reader.Segment]:
    """All segments, in the order of their numbers; not one that was just being made when its process was killed."""
    files = [path.read_bytes() for path in sorted(folder.glob("*.seg"))]
    made = [data for data in files if data[:8] == kinds.SEGMENT_MAGIC]
    assert len(files) - len(made) <= 1
    return [reader.read_segment(data) for data in made]


def torn(folder: Path) -> int:
    """Runs of bytes that are no records."""
    return sum(segment.torn for segment in read(folder))


def records(folder: Path) -> list[tuple[int, Any]]:
    """(kind, decoded fields) of all records that are of a known kind, in order."""
    found: list[tuple[int, Any]] = []
    for segment in read(folder):
        for kind, at, length in segment.located():
            fields = kinds.decode_record(kind, segment.data[at : at + length])
            if fields is not None:
                found.append((kind, fields))
    return found


def appended(folder: Path) -> dict[int, list[int]]:
    """Numbers of the test records by thread; their filling is checked."""
    found: dict[int, list[int]] = defaultdict(list)
    for segment in read(folder):
        for kind, at, length in segment.others:
            if kind != TEST_KIND:
                continue
            thread, number = struct.unpack_from("<II", segment.data, at + 8)
            filling = segment.data[at + 16 : at + length].rstrip(b"\0")
            assert filling.strip(bytes([thread + number & 0xFF])) == b"", (thread, number)
            found[thread].append(number)
    return found


def words(path: Path) -> list[int]:
    """A file of 64-bit numbers."""
    return array("Q", path.read_bytes()).tolist()
