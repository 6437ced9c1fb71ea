from __future__ import annotations

import dis
import random
import textwrap
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from types import CodeType

import numpy as np
import pyarrow as pa
import pytest

from tachograph.analyzer.recording.compat import linetable
from tachograph.analyzer.recording.compat.linetable import MAX_LINE, NO_INSTRUCTION, NO_LINE, lines_of
from unit.analyzer.line_table_reader import read_entries


def ask(tables: Sequence[bytes | None], first: Sequence[int], questions: Sequence[tuple[int, int | None]]) -> list[int]:
    """The lines of (table, instruction)."""
    code = np.array([table for table, _ in questions], np.int64)
    offsets = [NO_INSTRUCTION if offset is None else offset for _, offset in questions]
    chunks = pa.chunked_array([pa.array(tables[:1], pa.binary()), pa.array(tables[1:], pa.binary())])
    found: list[int] = lines_of(chunks, np.array(first, np.int64), code, np.array(offsets, np.int64)).tolist()
    return found


def ask_one(table: bytes | None, first: int, offsets: Sequence[int | None]) -> list[int]:
    return ask([table], [first], [(0, offset) for offset in offsets])


def code_objects(code: CodeType) -> list[CodeType]:
    inner = [each for constant in code.co_consts if isinstance(constant, CodeType) for each in code_objects(constant)]
    return [code, *inner]


SOURCE = textwrap.dedent(
    """
    import sys

    def loops(n):
        total = 0
        while n > 0:
            for i in (
                range(n)
            ):
                if i % 2:
                    total += (lambda x: x
                              + 1)(i)
                else:
                    total -= i
            n -= 1
        return [a + b for a in range(3) if a for b in range(2)]

    async def waits(x):
        async with x as y:
            yield y
        try:
            raise ValueError
        except* ValueError as error:
            print(f"{error!r}" "and a string"
                  f"{total}")

    class Thing:
        value: int = 1
        def method(self, *args, **kwargs):
            with self, self as b:
                return super().method(*args,
                                      **kwargs)
    """
)


def test_agrees_with_the_interpreter_for_every_instruction_of_many_code_objects() -> None:
    codes = code_objects(compile(SOURCE, "x.py", "exec"))
    codes += code_objects(compile(Path(dis.__file__).read_text("utf-8"), "dis.py", "exec"))
    truth = {
        (number, index * 2): line
        for number, code in enumerate(codes)
        for index, (line, *_) in enumerate(code.co_positions())
        if line  # what has no location, or one before the first line, is another test's
    }
    assert len(truth) > 5000
    questions = list(truth)
    random.Random(1).shuffle(questions)
    found = ask([code.co_linetable for code in codes], [code.co_firstlineno for code in codes], questions)
    assert dict(zip(questions, found, strict=True)) == truth


def test_each_form_of_entry() -> None:
    entries = bytes(
        [
            *(0x80 | 2 << 3 | 0, 3 << 4 | 7),  # short form, code 2: columns 19 to 26
            *(0x80 | 11 << 3 | 1, 4, 127),  # one line on, two code units, columns 4 to 127
            *(0x80 | 13 << 3 | 0, 7),  # no columns, -3 lines
            *(0x80 | 14 << 3 | 0, 0x40 | 8, 2, 1, 5, 0),  # long: +68 lines, two lines long, column 4, no end column
            0x80 | 15 << 3 | 7,  # nowhere, eight code units
        ]
    )
    assert ask_one(entries, 10, [0, 2, 4, 6, 8]) == [10, 11, 11, 8, 76]
    assert ask_one(entries, 10, [10, 24]) == [76, 76], "what has no location counts for the instruction before it"
    assert ask_one(entries, 10, [26, 10**9]) == [NO_LINE, NO_LINE], "behind the end"


def test_frames_that_have_not_begun_are_on_the_first_line() -> None:
    assert ask_one(bytes([0xE8, 4]), 7, [-1, None]) == [7, NO_LINE]
    assert ask_one(bytes([0xF8]), 7, [0]) == [7], "nothing before it has a location"


def test_locations_are_looked_for_in_all_entries_before() -> None:
    entries = bytes([0xE8, 4]) + bytes([0xF8]) * 20
    assert ask_one(entries, 7, [15 * 2, 20 * 2]) == [9, 9]
    assert ask([entries, bytes([0xF8])], [7, 30], [(1, 0)]) == [30], "and never in another table"


def test_no_code_and_no_questions() -> None:
    assert ask([b"\xe8\x02"], [1], []) == []
    assert ask([b"\xe8\x02"], [1], [(-1, 0), (0, 0), (-1, -1)]) == [NO_LINE, 2, NO_LINE]


GARBAGE = [None, b"", b"\x00", b"\x7f\x7f", b"\xe8", b"\xf0\x40", b"\xd8\x80", b"\xd0\x05\x80", b"\xf0" + b"\x7f" * 50]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_ends_the_table(garbage: bytes | None) -> None:
    assert ask_one(garbage, 5, [0, -1]) == [NO_LINE, 5]
    whole = b"\xe8\x02"
    assert ask_one(whole + (garbage or b""), 5, [0, 2]) == [6, NO_LINE], "what was before it counts"
    assert ask([whole, garbage, whole], [1, 5, 9], [(0, 0), (1, 0), (2, 0)]) == [2, NO_LINE, 10], "and its neighbours"


def test_lines_that_cannot_be_are_unknown() -> None:
    far = bytes([0xE8, 0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x0F])
    assert ask_one(far, 1, [0]) == [NO_LINE]
    assert ask_one(b"\xe8\x00" + far + b"\xf8", 4, [0, 2, 4]) == [4, NO_LINE, NO_LINE], "nor what belongs to it"
    assert ask_one(bytes([0xE8, 0x0B]), 2, [0]) == [NO_LINE], "line -3"
    assert ask_one(bytes([0xE8, 0x00]), MAX_LINE + 1, [-1]) == [NO_LINE]


OFFSETS = (None, -7, -1, *range(70), 200, 10**9)


@pytest.mark.broad
@pytest.mark.parametrize("piece", [1, 50, 1 << 20])
def test_random_tables_agree_with_a_plain_reader(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linetable, "_PIECE", piece)
    source = random.Random(piece)
    tables = [random_table(source) for _ in range(400)]
    first = [source.choice([source.randrange(-5, 1000), MAX_LINE - 2, MAX_LINE + 1]) for _ in tables]
    questions = [(number, offset) for number in range(len(tables)) for offset in OFFSETS]
    source.shuffle(questions)
    assert ask(tables, first, questions) == [expected(tables[number], first[number], at) for number, at in questions]


def random_table(source: random.Random) -> bytes | None:
    """Random bytes, or entries of which one byte may be wrong."""
    kind = source.randrange(10)
    if kind < 4:
        return source.randbytes(source.randrange(40)) if kind else None
    table = bytearray()
    for _ in range(source.randrange(25)):
        code = source.randrange(16)
        table.append(0x80 | code << 3 | source.randrange(8))
        rest = 1 if code < 10 else 2 if code < 13 else 0
        table += bytes(source.randrange(128) for _ in range(rest))
        for _ in range({13: 1, 14: 4}.get(code, 0)):
            more = source.choice([0, 0, 0, 1, 2, 5, 6])
            table += bytes(0x40 | source.randrange(64) for _ in range(more)) + bytes([source.randrange(64)])
    if table and kind < 7:
        table[source.randrange(len(table))] = source.randrange(256)
    return bytes(table)


def expected(table: bytes | None, first: int, offset: int | None) -> int:
    if offset is None:
        return NO_LINE
    start = first if 0 < first <= MAX_LINE else NO_LINE
    if offset < 0:
        return start
    entries = list(read_entries(table or b"", first))
    ends = list(accumulate(size for size, _ in entries))
    at = next((number for number, end in enumerate(ends) if offset < end), None)
    if at is None:
        return NO_LINE
    lines = [line for _, line in entries[: at + 1] if line is not None]
    if not lines:
        return start
    return lines[-1] if 0 < lines[-1] <= MAX_LINE else NO_LINE


def test_a_huge_table_is_read_in_one_pass() -> None:
    assert ask_one(b"\xd8\x00\x01" * 500_000, 1, [999_998, 1_000_000]) == [500_001, NO_LINE]
