from __future__ import annotations

import dis
import random
import sys
import textwrap
from pathlib import Path
from types import CodeType

import pytest

from tachograph.analyzer.compat.linetable import MAX_LINE, Location, decode


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


@pytest.mark.parametrize("code", code_objects(compile(SOURCE, "x.py", "exec")), ids=lambda code: code.co_qualname)
def test_agrees_with_the_interpreter_for_every_instruction(code: CodeType) -> None:
    table = decode(code.co_linetable, code.co_firstlineno)
    positions = list(code.co_positions())
    assert len(positions) * 2 == table.end
    for index, (line, end_line, column, end_column) in enumerate(positions):
        if line is not None and line > 0:
            assert table.locate(index * 2) == Location(line, end_line, column, end_column)


def test_agrees_with_the_standard_library() -> None:
    for code in code_objects(compile(Path(dis.__file__).read_text("utf-8"), "dis.py", "exec")):
        table = decode(code.co_linetable, code.co_firstlineno)
        for start, end, line in code.co_lines():
            if line:
                assert {table.locate(offset).line for offset in range(start, end, 2)} == {line}


def test_each_form_of_entry() -> None:
    entries = bytes(
        [
            *(0x80 | 2 << 3 | 0, 3 << 4 | 7),  # short form, code 2: columns 19 to 26
            *(0x80 | 11 << 3 | 1, 4, 200),  # one line on, two code units, columns 4 to 200
            *(0x80 | 13 << 3 | 0, 7),  # no columns, -3 lines
            *(0x80 | 14 << 3 | 0, 0x40 | 8, 2, 1, 5, 0),  # long: +68 lines, two lines long, column 4, no end column
            0x80 | 15 << 3 | 7,  # nowhere, eight code units
        ]
    )
    table = decode(entries, 10)
    assert table.starts == [0, 2, 6, 8, 10]
    assert table.end == 26
    assert table.locations == [
        Location(10, 10, 19, 26),
        Location(11, 11, 4, 200),
        Location(8, 8),
        Location(76, 77, 4, None),
        Location(None),
    ]
    assert table.locate(4) == table.locate(2)
    assert table.locate(12) == Location(76, 77, 4, None), "an instruction without a location counts for the one before"
    assert table.locate(26) == Location(None)


def test_frames_that_have_not_begun_are_on_the_first_line() -> None:
    assert decode(bytes([0xE8, 4]), 7).locate(-1).line == 7
    assert decode(bytes([0xE8, 4]), 7).locate(None).line is None
    assert decode(bytes([0xF8]), 7).locate(0).line == 7, "nothing before it has a location"


@pytest.mark.parametrize(
    "line_table", [None, b"", b"\x00", b"\x7f\x7f", b"\xe8", b"\xf0\x40", b"\xd8\x80", b"\xf0" + b"\x7f" * 50]
)
def test_garbage_ends_the_table(line_table: bytes | None) -> None:
    table = decode(line_table, 5)
    assert table.end == 0
    assert table.locate(0).line is None
    assert table.locate(-1).line == 5


def test_lines_that_cannot_be_are_unknown() -> None:
    far = bytes([0xE8, 0x7E, 0x7F, 0x7F, 0x7F, 0x7F, 0x0F])
    assert decode(far, 1).locations[0].line is None
    assert decode(bytes([0xE8, 0x0B]), 2).locations[0].line is None, "line -3"
    assert decode(bytes([0xE8, 0x00]), MAX_LINE + 1).locate(-1).line is None


def test_random_bytes_never_raise_and_never_run_away() -> None:
    random_source = random.Random(1)
    for _ in range(2000):
        data = random_source.randbytes(random_source.randrange(200))
        table = decode(data, random_source.randrange(-5, 1000))
        assert len(table.locations) == len(table.starts) <= len(data)
        for offset in (-1, 0, 7, 100, 10**9):
            line = table.locate(offset).line
            assert line is None or 0 < line <= MAX_LINE


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the table is of 3.11 and later")
def test_huge_tables_take_linear_time() -> None:
    assert decode(b"\xd8\x00\x01" * 500_000, 1).end == 1_000_000
