"""Finds the records of one spool segment, whatever state a killed process or a bad disk left it in."""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field

from ..errors import FormatError
from .layout import (
    ABANDONED,
    DEFINITIONS_SEQUENCE,
    SEGMENT_FIELDS,
    SEGMENT_HEADER,
    SEGMENT_MAGIC,
    Definition,
)
from .records import LEAST_LENGTHS, ROW_LENGTHS, SOUND_LENGTHS, contradicts_itself, decode_definition

_WORD = struct.Struct("<Q")
_MOST_TORN = 0xFFFFFFFF
_NEVER = 1 << 32
_PAGE = 4096
_ZEROS = bytes(_PAGE)


@dataclass
class Segment:
    """One segment: its bytes, and where its valid records lie.

    ``row_offsets`` holds the offsets of the rows by kind, ``others`` (kind, offset, length) of all other records, in
    the order of the segment. ``torn`` counts the runs of bytes that are neither records nor unused, and records whose
    length denies what they say.
    """

    data: bytes
    seq: int
    pid: int
    start_ns: int
    row_offsets: dict[int, list[int]] = field(default_factory=lambda: {kind: [] for kind in ROW_LENGTHS})
    others: list[tuple[int, int, int]] = field(default_factory=list)
    torn: int = 0

    def definitions(self, without: Container[int] = ()) -> Iterator[Definition]:
        """All records that can be understood and are no rows, nor of the kinds ``without``, decoded."""
        for kind, offset, length in self.others:
            if kind in without:
                continue
            record = decode_definition(kind, self.data[offset : offset + length])
            if record is not None:
                yield record

    def rows(self, kind: int) -> bytes:
        """The records of a kind of ROW_LENGTHS, joined; each has the length given there."""
        data, length = self.data, ROW_LENGTHS[kind]
        if length == LEAST_LENGTHS[kind]:
            return b"".join([data[at : at + length] for at in self.row_offsets[kind]])
        return b"".join([lengthened(data, at, length) for at in self.row_offsets[kind]])


def lengthened(data: bytes, at: int, length: int) -> bytes:
    """A record as one of ``length`` bytes: what an earlier version did not write is 0."""
    own = int.from_bytes(data[at : at + 4], "little")
    return data[at : at + length] if own >= length else data[at : at + own].ljust(length, b"\0")


def read_segment(data: bytes) -> Segment:
    """Find the records of a segment.

    Errors:
        FormatError: the bytes do not begin with the header of a segment. Nothing else is an error.
    """
    if len(data) < SEGMENT_HEADER or data[:8] != SEGMENT_MAGIC:
        raise FormatError("not a spool segment: it does not begin with TACHSEG1")
    _, seq, _, pid, start_ns, _ = SEGMENT_FIELDS.unpack_from(data)
    segment = Segment(data, seq, pid, start_ns)
    _scan(segment)
    return segment


def used_length(data: bytes) -> int:
    """The length without the zero bytes at the end, which are most of a short-lived segment."""
    end = len(data)
    # In steps that get smaller: bytes.rstrip looks at each byte by a call.
    for step in (_PAGE, 512, 64, 8, 1):
        while end >= step and data[end - step : end] == _ZEROS[:step]:
            end -= step
    return end


def end_of_records(data: bytes, size: int) -> int:
    """The length of a segment without its unused tail; all of its ``size`` where a record was not finished.

    ``data`` may be without zero bytes at the end. The last record may end with some, which ``used_length`` leaves out.
    """
    at, used = SEGMENT_HEADER, used_length(data)
    while at < used:
        length = int.from_bytes(data[at : at + 4], "little")
        if length < 8 or length & 7:
            return size
        at += length
    return min(at, size)


def _scan(segment: Segment) -> None:
    data, seq = segment.data, segment.seq
    size = len(data) & ~7
    # No header lies behind the last byte that is not zero: the unused tail costs nothing.
    end = (used_length(data[:size]) + 7) // 8
    words = array("Q", data[: 8 * end])
    if sys.byteorder == "big":
        words.byteswap()
    rows = {kind: (LEAST_LENGTHS[kind], offsets.append) for kind, offsets in segment.row_offsets.items()}
    others, whole = segment.others.append, SOUND_LENGTHS
    salt = 0xA5C3 ^ (seq * 0x3D4D)
    index = SEGMENT_HEADER // 8
    skipping = False
    while index < end:
        header = words[index]
        length = header & 0xFFFFFFFF
        kind = header >> 32 & 0xFF
        offset = index << 3
        if (
            header >> 48 == (salt ^ (length >> 3) ^ (kind * 0x1F35) ^ (index * 0x2545)) & 0xFFFF
            and kind
            and length >= 8
            and not length & 7
            and offset + length <= size
        ):
            if skipping:
                segment.torn += 1
                skipping = False
            row = rows.get(kind)
            if row is not None and length >= row[0]:
                row[1](offset)
            elif length >= whole.get(kind, _NEVER) or not contradicts_itself(kind, data, offset, length):
                others((kind, offset, length))
            else:
                segment.torn += 1
            index += length >> 3
        else:
            skipping = True
            index += 1
    segment.torn += skipping


def rows_until(rows: bytes, kind: int, time_ns: int) -> bytes:
    """Of joined rows of a kind that begin with a time, those that are not later."""
    length = ROW_LENGTHS[kind]
    records = (rows[at : at + length] for at in range(0, len(rows), length))
    return b"".join(record for record in records if int.from_bytes(record[8:16], "little", signed=True) <= time_ns)


def bodies_of(segment: Segment) -> Iterator[tuple[int, bytes]]:
    """The kinds of the records of a segment that are no rows, and their bytes after the header."""
    for kind, offset, length in segment.others:
        if kind != ABANDONED and kind not in ROW_LENGTHS:
            yield kind, segment.data[offset + 8 : offset + length]


class DefinitionsWriter:
    """A segment file that has the records that are no rows, for a part. It takes no more memory than their bytes."""

    def __init__(self) -> None:
        self._out = bytearray(SEGMENT_HEADER)

    def add(self, bodies: Iterable[tuple[int, bytes]]) -> None:
        """Append records that are given by their kinds and their bytes after the header (a multiple of 8)."""
        out, pack = self._out, _WORD.pack
        salt = 0xA5C3 ^ (DEFINITIONS_SEQUENCE * 0x3D4D)
        for kind, body in bodies:
            length = 8 + len(body)
            # As record_header has it, without a call for each of what may be a million.
            check = (salt ^ (length >> 3) ^ (kind * 0x1F35) ^ ((len(out) >> 3) * 0x2545)) & 0xFFFF
            out += pack(check << 48 | kind << 32 | length)
            out += body

    def file(self, pid: int, start_ns: int, torn: int) -> bytearray:
        """The whole of it, of a process and with a number of records that were torn."""
        header = (SEGMENT_MAGIC, DEFINITIONS_SEQUENCE, len(self._out), pid, start_ns, min(torn, _MOST_TORN))
        SEGMENT_FIELDS.pack_into(self._out, 0, *header)
        return self._out


def definitions_of(pid: int, start_ns: int, bodies: Iterable[tuple[int, bytes]], torn: int = 0) -> bytes:
    """The segment of definitions that a ``DefinitionsWriter`` makes of these records."""
    writer = DefinitionsWriter()
    writer.add(bodies)
    return bytes(writer.file(pid, start_ns, torn))


def carried_torn(segment: Segment) -> int:
    """Torn records that were counted when the segments of a part were read (only in a part's definitions)."""
    return int(SEGMENT_FIELDS.unpack_from(segment.data)[-1]) if segment.seq == DEFINITIONS_SEQUENCE else 0
