"""What a million code objects and contexts take, and what stands for them in memory."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pyarrow as pa
import pytest

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.traced_memory import traced_assembly
from tachograph.format import SpoolDirectory, load_specification, read_segment, write_part
from tachograph.format.spool.arrow_columns import Pieces
from tachograph.format.spool.codes_table import instructions_by_code
from tachograph.format.spool.id_numbers import CloseNumbers, first_places, numbers_for, pairs_of
from tachograph.format.spool.process_definitions import Mentions
from unit.format.test_assembly import assembled, of, rows

SPEC = load_specification()
SIZE = 1 << 20


def many(path: Path, count: int, what: str) -> None:
    """Parts of a process with so many contexts that were sampled once, each with code or native frames of its own."""
    codes, native = what == "codes", what == "native"
    number = sequence = 0
    while number < count:
        segment = SegmentBuilder(sequence, size=SIZE)
        while number < count and len(segment) < SIZE - 512:
            if codes or not number:
                segment.code(number, f"<made {number}>", f"made_{number}", 1, bytes(range(0x80, 0xA0)))
            segment.stack(number, number - 1 if number % 50 else NONE, number if codes else 0, 2 * number)
            if native:
                segment.native_stack(number + 1, number if number % 50 else 0, 0x1000, number)
            segment.cpu(number, 1, stack=number, native=(number + 1, 1) if native else None)
            number += 1
        write_spool(path, [], control(seq=sequence))
        write_part(SpoolDirectory(path), "4242-1000000000", [read_segment(segment.to_bytes())])
        sequence += 1


@pytest.mark.broad
@pytest.mark.parametrize(
    ("what", "most"), [("codes", 750), pytest.param("native", 450, marks=pytest.mark.slow), ("stacks", 250)]
)
def test_what_one_takes(tmp_path: Path, what: str, most: int) -> None:
    """Python objects for each of them took 1.6 KB for a code object and 600 bytes for a context."""
    count = 20_000
    many(tmp_path, count, what)
    result, _, peak = traced_assembly(tmp_path)
    assert result.table("stacks").num_rows == count
    assert result.table("codes").num_rows == (count if what == "codes" else 1)
    assert result.table("native_stacks").num_rows == (count if what == "native" else 0)
    assert peak / count < most


def test_code_objects_differ_by_each_of_their_facts(tmp_path: Path) -> None:
    segment = SegmentBuilder(0)
    facts = [
        ("a", "bc", 1, b"\x80", 3, ""),
        ("ab", "c", 1, b"\x80", 3, ""),
        ("a", "bc", 2, b"\x80", 3, ""),
        ("a", "bc", 1, b"\x81", 3, ""),
        ("a", "bc", 1, None, 3, ""),
        ("a", "bc", 1, b"", 3, ""),
        ("a", "bc", 1, b"\x80", 4, ""),
        ("a", "bc", 1, b"\x80", 3, "1"),
        ("a", "b", 1, b"\x80", 3, "c"),
        ("a\ud800", "bc", 1, b"\x80", 3, ""),
    ]
    for number, (file, name, line, table, flags, template) in enumerate([*facts, *facts]):
        segment.code(number, file, name, line, table, flags, template)
        segment.stack(number, NONE, number, 0)
        segment.cpu(number, 1, stack=number)
    write_spool(tmp_path, of(segment), control())
    result = assembled(tmp_path)
    assert [
        (row["qualname"], row["first_line"], row["flags"], row["template_lines"]) for row in rows(result, "codes")
    ] == [(name, line, flags, template or None) for _, name, line, _, flags, template in facts]
    assert [row["line_table"] is None for row in rows(result, "codes")] == [
        table is None for _, _, _, table, _, _ in facts
    ]
    assert [row["path"] for row in rows(result, "files")] == ["a", "ab", "a\\ud800"]
    assert result.table("cpu").column("stack").to_pylist() == [*range(len(facts))] * 2


@pytest.mark.parametrize(("count", "spread", "close"), [(400, 1, False), (30_000, 3, True), (30_000, 1000, False)])
def test_numbers_by_ids(count: int, spread: int, close: bool) -> None:
    chance = random.Random(spread)
    ids = array("I", chance.sample(range(5, 5 + count * spread), count))
    numbers = numbers_for(ids)
    assert isinstance(numbers, CloseNumbers) == close
    known = {key: chance.randrange(NONE) for key in [*ids[: count // 2], 0, 4, 5 + count * spread, NONE - 1]}
    for key, number in known.items():
        numbers[key] = number
    assert {key: numbers.get(key) for key in known} == known
    assert all(numbers.get(key) is None for key in (*ids[count // 2 :], 1, NONE, NONE - 2) if key not in known)
    keys, values = pairs_of(numbers)
    assert dict(zip(keys.to_pylist(), values.to_pylist(), strict=True)) == known
    places = first_places(ids + ids)
    assert [places.get(key) for key in ids] == [*range(count)]


def test_no_numbers() -> None:
    assert [array.to_pylist() for array in pairs_of(numbers_for(array("I")))] == [[], []]


@pytest.mark.parametrize("code", ["I", "Q"])
def test_what_is_mentioned_again_and_again(code: str) -> None:
    most = (1 << 8 * array(code).itemsize) - 1
    mentions = Mentions(code)
    assert list(mentions.rising()) == []
    mentions.note([most, 3, 3])
    assert list(mentions.rising()) == [3, most]
    for first in range(0, 200_000, 10_000):
        mentions.note(range(first, first + 20_000))
        mentions.note({most})
    assert list(mentions.rising()) == [*range(210_000), most]
    assert len(mentions.noted) < 3 * 210_000
    mentions.clear()
    assert list(mentions.rising()) == []


def test_texts_that_grow() -> None:
    pieces = Pieces()
    assert pieces.column(pa.string()).to_pylist() == []
    pieces = Pieces()
    texts = [b"a", None, b"", "ä".encode(), None]
    for text in texts:
        pieces.append(text)
    assert [pieces[place] for place in range(len(pieces))] == texts
    found = pieces.column(pa.string())
    found.validate(full=True)
    assert found.to_pylist() == ["a", None, "", "ä", None]


def test_instructions_of_each_code_object() -> None:
    codes, instructions = array("I", [2, 0, 2, NONE, 2, 0, 4]), array("i", [6, 0, 4, 8, 6, -1, (1 << 31) - 1])
    assert list(instructions_by_code(codes, instructions, 5)) == [[0], [], [4, 6], [], [(1 << 31) - 1]]
