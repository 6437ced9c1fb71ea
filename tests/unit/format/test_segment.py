"""Whatever happened to a segment, reading it finds what is whole and never fails."""

from __future__ import annotations

import random

import pytest

from support.spool_builder import FLOWS, NONE, SegmentBuilder, control
from support.spools import ROWS, contents
from tachograph.format import FormatError, decode_control, read_segment
from tachograph.format.spool.layout import (
    BLOCK,
    COPY,
    CPU,
    FREED,
    MEMORY,
    WAIT,
    Code,
    Meta,
    Module,
    Stack,
    State,
    ThreadEnd,
    ThreadName,
    ThreadStart,
)
from tachograph.format.spool.segment import Segment, bodies_of, carried_torn, definitions_of


def full_segment(size: int = 2048) -> SegmentBuilder:
    segment = SegmentBuilder(3, size=size)
    segment.meta("executable", "/usr/bin/python")
    segment.thread_start(0, 77, 5, main=True)
    segment.thread_name(0, "Main\u00e9", source=1)
    segment.code(0, "a.py", "f", 1, b"\x80\0")
    segment.code(1, "\u4e2d.py", "\U0001f40d.g", -1, None, template_lines="2=5&4=9")
    segment.stack(0, NONE, 0, 10)
    segment.module(0, "/lib/x.so", 0x1000, 0x2000, 0x10, build_id=b"\xab\xcd", interpreter=True)
    segment.cpu(100, 0, 0, pc=0x1100, system_ns=-1, overruns=3, gil=2, opcode=4, origin=1, state=2)
    segment.wait(200, 300, 0, 0, syscall=7, target=2)
    segment.state(400, 3, 55)
    segment.thread_end(0, 500, 499)
    flows = {name: 20 + index for index, name in enumerate(FLOWS)}
    segment.memory(
        600, flows, footprint=-1, peak=2, resident=3, faults=(4, 5), pc=6, thread=7, stack=8, kept=9, event=1
    )
    segment.block(
        700, 3, 64, requested=56, mean=9, weight=99, pc=10, thread=11, stack=12, domain=4, state=2, followed=1
    )
    segment.freed(800, 3, 13)
    segment.copy(900, 3000, 600, mean=14, pc=15, thread=16, stack=17, state=3)
    return segment


def kept_of(segment: Segment) -> bytes:
    """What a part keeps of it beside rows."""
    return definitions_of(segment.pid, segment.start_ns, bodies_of(segment), segment.torn)


def test_every_kind_of_record() -> None:
    segment = read_segment(full_segment().to_bytes())
    assert contents(segment) == [
        Meta("executable", "/usr/bin/python"),
        ThreadStart(0, 77, 5, 1),
        ThreadName(0, 1, "Main\u00e9"),
        Code(0, 1, 3, "a.py", "f", b"\x80\0", ""),
        Code(1, -1, 3, "\u4e2d.py", "\U0001f40d.g", None, "2=5&4=9"),
        Stack(0, NONE, 0, 10),
        Module(0, 1, 0x1000, 0x2000, 0x10, 0, "abcd", "/lib/x.so"),
        ROWS[CPU](100, 10_000_000, -1, 0x1100, 0, 0, 3, 2, 4, 1, 2, 0, 0, 0, 0),
        ROWS[WAIT](200, 300, 100, 0, 0, 0, 7, 2, 0, 0, 0, 0),
        State(400, 3, 55),
        ThreadEnd(0, 500, 499),
        ROWS[MEMORY](600, -1, 2, *range(20, 30), 3, 4, 5, 6, 7, 8, 9, 1, 5),
        ROWS[BLOCK](700, 64, 56, 9, 99, 10, 3, 11, 12, 4, 2, 1, 0, 0, 0),
        ROWS[FREED](800, 3, 13),
        ROWS[COPY](900, 3000, 600, 14, 15, 16, 17, 3, 0, 0, 0),
    ]
    assert (segment.seq, segment.pid, segment.torn) == (3, 4242, 0)


def test_truncation_at_every_byte() -> None:
    data = bytes(full_segment().data)
    whole = contents(read_segment(data))
    for length in range(len(data)):
        if length < 64:
            with pytest.raises(FormatError):
                read_segment(data[:length])
            continue
        segment = read_segment(data[:length])
        records = contents(segment)
        assert records == whole[: len(records)]
        assert segment.torn <= 1
    assert len(whole) == 15


@pytest.mark.parametrize("seed", range(500))
def test_random_corruption(seed: int) -> None:
    chance = random.Random(seed)
    builder = full_segment()
    data = bytearray(builder.to_bytes())
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(64, len(builder))
        length = chance.choice([1, 1, 2, 8, 64])
        data[at : at + length] = chance.choice([bytes(length), chance.randbytes(length), b"\xff" * length])
    segment = read_segment(bytes(data))
    assert len(contents(segment)) <= 20
    assert segment.torn <= 12
    contents(read_segment(kept_of(segment)))


@pytest.mark.parametrize("seed", range(20))
def test_garbage(seed: int) -> None:
    data = b"TACHSEG1" + random.Random(seed).randbytes(4096)
    contents(read_segment(data))


def test_lengths_that_reach_too_far_are_contradictions() -> None:
    import struct

    builder = SegmentBuilder(0)
    builder.add(1, struct.pack("<HHI", 5000, 0, 3) + b"ab")
    builder.add(3, struct.pack("<IHH", 0, 1, 60000))
    builder.add(5, struct.pack("<IiIIIBBHII", 0, 1, 0, 9, NONE, 4, 1, 0, 4, 0) + b"abcd")
    builder.add(5, struct.pack("<IiIIIBBHII", 0, 1, 0, 0, 1, 3, 1, 0, 1, 0) + b"abcd")  # three bytes for a character
    builder.add(7, struct.pack("<IIQQQqHHI", 0, 0, 0, 0, 0, 0, 65535, 65535, 0))
    builder.add(6, b"")  # too short
    builder.add(8, b"1234567")  # too short for a row
    for kind in (11, 12, 13, 14):
        builder.add(kind, b"12345678")
    builder.stack(1, NONE, NONE, -1)
    segment = read_segment(builder.to_bytes())
    assert contents(segment) == [Stack(1, NONE, NONE, -1)]
    assert segment.torn == 11, "each of them counts: what it would have said is missing"
    builder.add(77, b"12345678")
    builder.add(255, b"")
    assert read_segment(builder.to_bytes()).torn == 11, "but not what a later version may have written"


def test_records_that_grew_are_read_as_far_as_they_are_known() -> None:
    builder = SegmentBuilder(0)
    builder.add(6, (1).to_bytes(4, "little") + bytes(40))
    assert contents(read_segment(builder.to_bytes())) == [Stack(1, 0, 0, 0)]


def test_torn_records_are_counted_by_runs() -> None:
    builder = SegmentBuilder(1)
    builder.stack(0, NONE, 0, 0)
    builder.gap(bytes(56))
    builder.stack(1, 0, 0, 0)
    builder.gap(b"\1" * 56 + bytes(8))
    builder.stack(2, 0, 0, 0)
    assert read_segment(builder.to_bytes()).torn == 2
    builder.gap(bytes(8) + b"\1" * 8)
    segment = read_segment(builder.to_bytes())
    assert segment.torn == 3
    carried = read_segment(kept_of(segment))
    assert (carried_torn(carried), carried.torn) == (3, 0)
    assert contents(carried) == contents(segment)


def test_a_record_of_another_segment_is_not_one_of_this() -> None:
    """Left behind in a file that is used again: the check tells by the number of the segment and by the place."""
    builder, other = SegmentBuilder(1), SegmentBuilder(2)
    other.stack(0, NONE, 0, 0)
    builder.gap(bytes(other.data[64:]))
    assert contents(read_segment(builder.to_bytes())) == []


def test_strings_that_are_no_text() -> None:
    import struct

    builder = SegmentBuilder(0)
    head = struct.pack("<IiIIIBBHII", 0, 1, 0, 0, 2, 4, 2, 0, 2, 0)
    builder.add(5, head + b"\xff" * 8 + struct.pack("<HH", 0xDC80, 0x41))
    (code,) = contents(read_segment(builder.to_bytes()))
    assert isinstance(code, Code)
    assert code.qualname == "\udc80A"
    assert "\ufffd" in code.filename


def test_control_file() -> None:
    data = control(seq=4, state=3, error=28, paused=1, end_ns=9, samples=7, ticks=8, losses={0: 1, 63: 2})
    found = decode_control(data)
    assert (found.pid, found.parent_pid, found.current_segment, found.state, found.stop_errno) == (4242, 4200, 4, 3, 28)
    assert (found.paused, found.end_ns, found.samples, found.wait_ticks) == (True, 9, 7, 8)
    assert (found.helper_cpu_ns, found.handler_cpu_ns, found.losses[0], found.losses[63]) == (
        5_000_000,
        7_000_000,
        1,
        2,
    )
    for bad in (data[:100], b"X" + data[1:], b""):
        with pytest.raises(FormatError):
            decode_control(bad)
    with pytest.raises(FormatError, match=r"version 2\.0.*newer tachograph"):
        decode_control(control(major=2))
