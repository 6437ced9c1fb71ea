"""A source text that is shown is that of the code that ran, as far as names, first lines and line tables tell."""

from types import CodeType

import pytest

from tachograph.format.spool.codes_table import CodeLines
from tachograph.recorder.collect.source_fit import Changed, fits

TEXT = """\
import functools
TABLE = {"a": 1}

@functools.cache
def first(n):
    return sum(i for i in range(n))

class Thing:
    async def method(self):
        key = lambda x: x + 1
        return key

    @property
    def \\
        split(self):
        return 1
def last(n): return n % 7
"""
AFTER = Changed(compiled_from_another=False, may_compile=True)
CHANGES = {
    "lines before it": "# a\n# b\n" + TEXT,
    "a line within": TEXT.replace("TABLE =", "OTHER = 1\nTABLE ="),
    "one definition moved": TEXT.replace("def last", "\ndef last"),
}
SMALL_CHANGES = {
    "a definition gone": TEXT.replace("def last", "def latest"),
    "another expression": TEXT.replace("% 7", "% 777"),
    "a statement more": TEXT.replace("return n % 7", "n += 1; return n % 7"),
    "no code any more": "def (",
    "another file": "x = 1\n" * 40,
}


def codes_of(text: str, optimize: int = 0) -> list[CodeLines]:
    found = []
    pending = [compile(text, "a.py", "exec", dont_inherit=True, optimize=optimize)]
    while pending:
        code = pending.pop()
        found.append(CodeLines(code.co_qualname, code.co_firstlineno, code.co_linetable, is_generated=False))
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


@pytest.mark.parametrize("changed", [None, AFTER])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_the_text_that_ran_fits(changed: Changed | None, ends: str) -> None:
    content = TEXT.replace("\n", ends).encode()
    assert fits(content, "a.py", codes_of(TEXT), changed)
    assert fits(content, "script", codes_of(TEXT), changed)
    assert fits(TEXT.encode("utf-8-sig"), "a.py", codes_of(TEXT), changed)


@pytest.mark.parametrize("change", CHANGES)
def test_what_moved_does_not_fit(change: str) -> None:
    """Whenever the file was changed."""
    assert CHANGES[change] != TEXT
    for changed in (None, AFTER):
        assert not fits(CHANGES[change].encode(), "a.py", codes_of(TEXT), changed)


@pytest.mark.parametrize("change", SMALL_CHANGES)
def test_smaller_changes_of_a_file_that_was_changed_while_it_ran(change: str) -> None:
    assert SMALL_CHANGES[change] != TEXT
    assert not fits(SMALL_CHANGES[change].encode(), "a.py", codes_of(TEXT), AFTER)


def test_a_file_that_was_compiled_before_it_was_changed() -> None:
    """A digit for a digit leaves lines and columns as they were; the compiled file has the old time or size."""
    changed = TEXT.replace("% 7", "% 8").encode()
    assert fits(changed, "a.py", codes_of(TEXT), AFTER)
    assert not fits(changed, "a.py", codes_of(TEXT), AFTER._replace(compiled_from_another=True))


def test_code_of_another_compiler_fits_by_its_lines() -> None:
    """Assertions that are left out, tables without columns or of another version."""
    checked = "def f(n):\n    assert n > 1\n    return n\n"
    assert fits(checked.encode(), "a.py", codes_of(checked, optimize=1), AFTER)
    moved = checked.replace("    return", "    n += 1\n    return")
    others = [code._replace(line_table=other_table(code.line_table or b"")) for code in codes_of(checked)]
    assert fits(checked.encode(), "a.py", others, AFTER)
    assert not fits(moved.encode(), "a.py", others, AFTER)


def other_table(table: bytes) -> bytes:
    """The table with locations of lines alone, as with PYTHONNODEBUGRANGES."""
    made = bytearray()
    code = compile("", "a.py", "exec").replace(co_linetable=table, co_firstlineno=1, co_code=b"\x09\x00" * 512)
    before = 1
    for start, end, line in code.co_lines():
        units = min((end - start) // 2, 8)
        step, before = (0, before) if line is None else (line - before, line)
        made += bytes([0x80 | 13 << 3 | (units - 1), (abs(step) << 1) | (step < 0)])
    return bytes(made)


@pytest.mark.parametrize("table", [b"", b"\x00", b"\xff" * 40, b"\x80" * 300, bytes(range(256))])
def test_tables_that_make_no_sense_fit_nothing(table: bytes) -> None:
    codes = [code._replace(line_table=table) for code in codes_of(TEXT)]
    assert not fits(TEXT.encode(), "a.py", codes, AFTER)


def test_what_cannot_be_judged_is_shown() -> None:
    """Templates, code with names that no text has in a file from before, and text that is none."""
    generated = [CodeLines("root", 40, None, is_generated=True)]
    assert fits(b"{{ x }}", "a.html", generated, AFTER)
    assert fits(b"def f(): pass", "page.py", generated, AFTER)
    made = [("resume_in_first_at_6", 5), ("made", 400)]
    codes = [*codes_of(TEXT), *(CodeLines(*each, b"", is_generated=False) for each in made)]
    assert fits(TEXT.encode(), "a.py", codes, None)
    assert fits(b"\xff\xfe\x00", "a.py", codes_of(TEXT), None)


def test_text_of_others_is_not_compiled() -> None:
    """A program that has given up rights has them run nothing of its own, not even a compiler."""
    unsafe = AFTER._replace(may_compile=False)
    assert fits(SMALL_CHANGES["another expression"].encode(), "a.py", codes_of(TEXT), unsafe)
    assert not fits(CHANGES["lines before it"].encode(), "a.py", codes_of(TEXT), unsafe)
