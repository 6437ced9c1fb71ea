"""Reduced line tables still say of the instructions that were seen what the whole ones said."""

from __future__ import annotations

import ast
import asyncio
import random
import textwrap
from types import CodeType, ModuleType

import pytest

from tachograph.format.spool.codes_table import reduce_line_table


def codes_of(module: ModuleType) -> list[CodeType]:
    """All code objects of a module's source."""
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as source:
        pending = [compile(source.read(), module.__file__, "exec")]
    found: list[CodeType] = []
    while pending:
        code = pending.pop()
        found.append(code)
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


@pytest.mark.parametrize("module", [ast, random, textwrap, asyncio.base_events], ids=lambda module: module.__name__)
def test_seen_instructions_keep_their_positions(module: ModuleType) -> None:
    chance = random.Random(7)
    for code in codes_of(module):
        whole = list(code.co_positions())
        seen = {2 * chance.randrange(len(whole)) for _ in range(3)}
        reduced = reduce_line_table(code.co_linetable, seen)
        assert len(reduced) <= len(code.co_linetable)
        positions = list(code.replace(co_linetable=reduced).co_positions())
        for offset in seen:
            assert positions[offset // 2] == whole[offset // 2], (code.co_qualname, offset)


def test_the_fallback_of_an_instruction_without_location_stays() -> None:
    # one unit on the first line (short form), one without location, one more on the next line
    table = bytes([0x80 | 0 << 3, 0x12, 0x80 | 15 << 3, 0x80 | 11 << 3, 3, 4])
    assert reduce_line_table(table, {2}) == table[:3]


def test_what_is_not_seen_becomes_blank() -> None:
    code = codes_of(ast)[0]
    assert set(reduce_line_table(code.co_linetable, {len(code.co_code) - 2})[:20]) == {0xFF}
    assert reduce_line_table(code.co_linetable, set()) == b""
    assert reduce_line_table(code.co_linetable, {-1}) == b""


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_broken_table_stays_as_it_is(cut: int) -> None:
    broken = bytes([0x80 | 14 << 3, 0x02, 0x00, 0x05, 0x46, 0x01, 0x80 | 10 << 3, 1, 2, 0x80 | 14 << 3, 0x42, 0x7F])[
        :cut
    ]
    reduced = reduce_line_table(broken, {0, 2, 4, 6})
    assert reduced in (broken, broken[:6], broken[:9])


def test_garbage_neither_fails_nor_grows() -> None:
    chance = random.Random(3)
    for _ in range(500):
        garbage = chance.randbytes(chance.randrange(60))
        assert len(reduce_line_table(garbage, {0, 8, 40})) <= len(garbage)
