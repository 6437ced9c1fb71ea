"""What of the definitions of a process the next window needs."""

import struct
from collections.abc import Iterable

import pyarrow as pa

from support.spool_builder import SegmentBuilder
from tachograph.format.spool.segment import Segment, bodies_of, read_segment
from tachograph.recorder.rotation.needed_contexts import CONTEXT_KINDS, NeededContexts

NONE = 0xFFFFFFFF
STACK, CODE, MODULE, NATIVE_STACK, GENERATION, KEPT = 6, 5, 7, 22, 25, 26
LATE = 100_000_000_000


def built(*records: tuple[int, bytes]) -> Segment:
    builder = SegmentBuilder()
    for kind, body in records:
        builder.add(kind, body)
    return read_segment(builder.to_bytes())


def stack(number: int, parent: int, code: int) -> tuple[int, bytes]:
    return STACK, struct.pack("<IIIi", number, parent, code, 0)


def path(number: int, parent: int, pc: int, python: int = NONE) -> tuple[int, bytes]:
    return NATIVE_STACK, struct.pack("<IIQI4x", number, parent, pc, python)


def code(number: int) -> tuple[int, bytes]:
    return CODE, struct.pack("<IiIIIBBHII", number, 1, 0, NONE, 0, 1, 1, 0, 0, 0)


def module(number: int, start: int, end: int, time_ns: int) -> tuple[int, bytes]:
    return MODULE, struct.pack("<IIQQQqHHI", number, 0, start, end, 0, time_ns, 0, 0, 0)


def generation(stacks: int, codes: int, paths: int) -> tuple[int, bytes]:
    return GENERATION, struct.pack("<III4x", stacks, codes, paths)


def kept(number: int) -> tuple[int, bytes]:
    return KEPT, struct.pack("<I4x", number)


def blocks(*, stacks: Iterable[int] = (), paths: Iterable[int] = (), pcs: Iterable[int] = ()) -> dict[str, pa.Table]:
    def one(name: str, values: Iterable[int], kind: pa.DataType) -> pa.Table:
        return pa.table({name: pa.array(list(values), kind)})

    return {
        "stacks": one("stack", stacks, pa.uint32()),
        "paths": one("native_stack", paths, pa.uint32()),
        "pcs": one("pc", pcs, pa.uint64()),
    }


def needed(segments: list[Segment], rows: dict[str, pa.Table]) -> dict[int, list[int]]:
    contexts = NeededContexts(segments, rows, LATE)
    found: dict[int, list[int]] = {}
    for segment in segments:
        for kind, body in bodies_of(segment):
            if kind in CONTEXT_KINDS and contexts.needs(kind, body):
                found.setdefault(kind, []).append(int.from_bytes(body[:4], "little"))
    return found


def test_without_generations_all_of_it() -> None:
    segments = [built(code(0), stack(0, NONE, 0), stack(1, 0, 0), path(1, 0, 77))]
    assert needed(segments, blocks()) == {CODE: [0], STACK: [0, 1], NATIVE_STACK: [1]}


OLD = (
    *(code(0), code(1), stack(0, NONE, 0), stack(1, 0, 1), stack(2, 0, 0), path(1, 0, 77, 2), path(2, 1, 78)),
    *(kept(2), generation(0, 0, 1)),
)
NEXT = (code(2), stack(10, NONE, 2), path(10, 0, 79), generation(10, 2, 10))


def test_what_is_older_goes() -> None:
    assert needed([built(*OLD, *NEXT)], blocks()) == {CODE: [2], STACK: [10], NATIVE_STACK: [10]}


def test_what_carried_rows_name_stays_with_its_callers() -> None:
    found = needed([built(*OLD), built(*NEXT)], blocks(stacks=[1, NONE], paths=[0]))
    assert found == {CODE: [0, 1, 2], STACK: [0, 1, 10], NATIVE_STACK: [10]}
    # A native path with the Python stack that one of its frames runs.
    found = needed([built(*OLD), built(*NEXT)], blocks(paths=[2]))
    assert found == {CODE: [0, 2], STACK: [0, 2, 10], NATIVE_STACK: [1, 2, 10]}


def test_kept_stacks_stay_until_the_generation_after_the_next() -> None:
    again = built(code(3), kept(1), stack(20, NONE, 3), generation(10, 2, 10))
    assert needed([built(*OLD, *NEXT[:-1]), again], blocks())[STACK] == [0, 1, 10, 20]
    # They and the generation are told again, for the window after that.
    told = built(*NeededContexts([built(*OLD, *NEXT[:-1]), again], blocks(), LATE).generation())
    carried = built(stack(0, NONE, 0), stack(1, 0, 1), code(0), code(1), code(2), stack(10, NONE, 2))
    assert needed([told, carried], blocks())[STACK] == [0, 1, 10]
    later = built(code(4), generation(20, 3, 20))
    assert needed([told, carried, later], blocks()) == {CODE: [4]}


def test_mappings_that_were_replaced_go() -> None:
    first, second = module(0, 100, 200, 1), module(1, 150, 250, 2)
    third, other = module(2, 150, 250, LATE - 1), module(3, 300, 400, 1)
    segments = [built(first, second, other)]
    assert needed(segments, blocks())[MODULE] == [1, 3]
    assert needed(segments, blocks(pcs=[120]))[MODULE] == [0, 1, 3]
    # One that was replaced a moment ago may still be named.
    assert needed([built(first, second, third)], blocks())[MODULE] == [1, 2]


def test_records_that_are_too_short_are_torn_and_not_carried() -> None:
    segment = built((STACK, b"12345678"), (NATIVE_STACK, b""), (MODULE, b""), (GENERATION, b""), (KEPT, b""))
    assert segment.torn == 5
    assert needed([segment], blocks(stacks=[0], paths=[1])) == {}
