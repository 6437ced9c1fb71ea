"""Reads back what was written into a spool, with the decoders of tachograph.format; rows too, one by one."""

import os
import struct
from array import array
from collections import defaultdict, namedtuple
from pathlib import Path
from typing import Any

from tachograph import format as spec
from tachograph.format.spool.directory import decode_control
from tachograph.format.spool.layout import GPU_ROWS, SEGMENT_MAGIC
from tachograph.format.spool.records import LEAST_LENGTHS, ROW_KINDS, ROW_LENGTHS, decode_definition
from tachograph.format.spool.segment import Segment, lengthened, read_segment

ROWS: dict[int, Any] = {
    each.kind: namedtuple(each.name.capitalize(), [name for name, _, _ in each.fields])
    for each in (*ROW_KINDS.values(), GPU_ROWS)
}
"""The rows by kind, with a field for each of the record's."""

_LAYOUTS = {each.kind: each for each in (*ROW_KINDS.values(), GPU_ROWS)}

TEST_KIND = 200
"""Kind of the records of spool_test.cpp: 8 u32 thread, 12 u32 number, then bytes that all are thread + number."""


def control(folder: Path) -> spec.ControlFile:
    """The control file of the one process that wrote into ``folder``."""
    (path,) = folder.glob("*.ctl")
    return decode_control(path.read_bytes())


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
    names = [loss.name for loss in spec.load_specification().counters]
    return dict(zip(names, control(folder).losses, strict=False))


def read(folder: Path) -> list[Segment]:
    """All segments, in the order of their numbers; not one that was just being made when its process was killed."""
    files = [path.read_bytes() for path in sorted(folder.glob("*.seg"))]
    made = [data for data in files if data[:8] == SEGMENT_MAGIC]
    assert len(files) - len(made) <= 1
    return [read_segment(data) for data in made]


def torn(folder: Path) -> int:
    """Runs of bytes that are no records."""
    return sum(segment.torn for segment in read(folder))


def records(folder: Path) -> list[tuple[int, Any]]:
    """(kind, decoded fields) of all records that are of a known kind, in order."""
    return [found for segment in read(folder) for found in decoded(segment)]


def decoded(segment: Segment) -> list[tuple[int, Any]]:
    """(kind, decoded fields) of all records of a segment that can be understood, in order."""
    rows = [(kind, at, ROW_LENGTHS[kind]) for kind, offsets in segment.row_offsets.items() for at in offsets]
    found: list[tuple[int, Any]] = []
    for kind, at, length in sorted(rows + segment.others, key=lambda item: item[1]):
        data = segment.data[at : at + length]
        if kind not in ROWS:
            definition = decode_definition(kind, data)
            if definition is not None:
                found.append((kind, definition))
        elif len(data) >= LEAST_LENGTHS[kind]:
            whole = lengthened(segment.data, at, ROW_LENGTHS[kind])
            found.append((kind, ROWS[kind](*_LAYOUTS[kind].fixed.unpack_from(whole, 8))))
    return found


def contents(segment: Segment) -> list[Any]:
    """The same without the kinds."""
    return [each for _, each in decoded(segment)]


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
