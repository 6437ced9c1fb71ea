"""Spans: nothing at all outside of a recording, and every one of them within."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context

import numpy as np
import pytest

from tachograph.recorder import span
from tachograph.recorder.inprocess.open_spans import LONGEST_FIELDS, RecordedSpan, fields_text, name_text
from tachograph.recorder.inprocess.spool_layout import NONE

Written = list[tuple[str, str, int, int, int, int]]


@pytest.fixture
def written() -> Written:
    return []


@pytest.fixture
def make(written: Written) -> Callable[..., RecordedSpan]:
    def record(*span: object) -> None:
        written.append(span)  # type: ignore[arg-type]

    return lambda name, **fields: RecordedSpan(record, name, fields)


def test_outside_of_a_recording_it_is_nothing() -> None:
    @span("decorated")
    def function(a: int) -> int:
        return a + 1

    with span("outer", n=3) as outer, span("inner"):
        assert function(1) == 2
    assert outer is span("another")
    with pytest.raises(KeyError), span("failing"):
        raise KeyError
    assert function.__name__ == "function"


def test_it_imports_next_to_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from tachograph.recorder import span\n"
        "with span('epoch', n=3): pass\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, timeout=60)
    if found.returncode:  # without site there may be no tachograph to import
        code = code.replace("import sys;", f"import sys; sys.path[:0] = {sys.path!r};")
        found = subprocess.run(
            [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, timeout=60
        )
    if "ImportError" in found.stderr and "unknown location" in found.stderr:
        pytest.skip("an editable installation cannot be imported without site")
    assert found.returncode == 0, found.stderr
    assert set(found.stdout.split()) <= {
        "__future__",
        "tachograph",
        "tachograph.recorder",
        "tachograph.recorder.inprocess",
        "tachograph.recorder.inprocess.named_spans",
        "tachograph.recorder.inprocess.watched_loop",
    }


def test_nesting_and_exceptions(make: Callable[..., RecordedSpan], written: Written) -> None:
    def nest() -> None:
        with suppress(KeyError), make("outer", n=3):
            with make("inner"):
                pass
            raise KeyError
        with make("alone"):
            pass

    Context().run(nest)  # another test of the same run may have left a span in this one
    (inner, _, _, _, inner_id, inner_parent), (outer, fields, start, end, outer_id, outer_parent), alone = written
    assert (inner, outer, fields, inner_parent, outer_parent) == ("inner", "outer", '{"n": 3}', outer_id, NONE)
    assert start <= end
    assert outer_id < inner_id < alone[4]
    assert alone[5] == NONE


def test_tasks_that_take_turns_keep_their_own_parents(make: Callable[..., RecordedSpan], written: Written) -> None:
    @make("step")
    async def step() -> None:
        await asyncio.sleep(0)

    async def task(name: str) -> None:
        with make(name):
            await step()
            await step()

    async def both() -> None:
        await asyncio.gather(task("a"), task("b"))

    # In a thread of its own: a browser test of the same run may have left its event loop in this one.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, both()).result()
    ids = {name: number for name, _, _, _, number, _ in written if name in "ab"}
    parents = [parent for name, *_, parent in written if name == "step"]
    assert sorted(parents) == sorted([ids["a"], ids["b"]] * 2)


def test_decorated_functions_of_every_kind(make: Callable[..., RecordedSpan], written: Written) -> None:
    @make("generator")
    def generator() -> Iterator[int]:
        yield 1
        yield 2

    @make("recursive")
    def recursive(n: int) -> int:
        """Counts."""
        return n and 1 + recursive(n - 1)

    assert list(generator()) == [1, 2]
    assert recursive(2) == 2
    assert (recursive.__name__, recursive.__doc__) == ("recursive", "Counts.")
    assert [name for name, *_ in written] == ["generator", "recursive", "recursive", "recursive"]
    assert len({number for *_, number, _ in written}) == 4


def test_an_async_generator_is_refused_recorded_or_not(make: Callable[..., RecordedSpan]) -> None:
    async def endless():  # type: ignore[no-untyped-def]
        yield 1

    for each in (make("x"), span("x")):
        with pytest.raises(TypeError, match="inside of it"):
            each(endless)


class Hostile(str):
    """A text that fails when it is asked anything."""

    def __str__(self) -> str:
        raise ValueError

    __repr__ = __len__ = encode = __format__ = __str__  # type: ignore[assignment]


class Unspeakable:
    def __repr__(self) -> str:
        raise ValueError

    __str__ = __repr__


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (True, True),
        (None, None),
        (-1.5, -1.5),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ('a\n"\0\ud800', 'a\n"\0\ud800'),
        ("x" * 1000, "x" * 200),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.arange(3), "ndarray"),
        ([1, 2], "list"),
        (Unspeakable(), "Unspeakable"),
    ],
)
def test_fields_are_json(value: object, expected: object) -> None:
    assert json.loads(fields_text({"key": value})) == {"key": expected}


def test_fields_of_hostile_kinds() -> None:
    assert json.loads(fields_text({"key": 10**5000, Hostile("a"): Hostile("b")})) == {"key": "int", "a": "b"}


def test_fields_have_a_limit_and_names_too() -> None:
    text = fields_text({f"key {number}": "x" * 200 for number in range(1000)})
    assert LONGEST_FIELDS * 0.9 < len(text) <= LONGEST_FIELDS
    assert 10 < len(json.loads(text)) < 30
    assert fields_text({}) == ""
    assert len(name_text("😀" * 1000).encode()) == 500
    assert name_text("\ud800\0") == "\\ud800\\0"
    assert name_text(3) == "int"


def test_more_can_be_told_before_the_end(make: Callable[..., RecordedSpan], written: Written) -> None:
    with make("load", n=1) as load:
        load.tell(rows=3)
        load.tell()
    with make("bare") as bare:
        bare.tell(rows=4)
    assert [json.loads(row[1]) for row in written] == [{"n": 1, "rows": 3}, {"rows": 4}]


def test_what_is_told_has_a_limit(make: Callable[..., RecordedSpan], written: Written) -> None:
    with make("load", n=1) as load:
        for _ in range(100):
            load.tell(text="x" * 200)
    assert len(written[0][1]) <= LONGEST_FIELDS
    assert json.loads(written[0][1])["n"] == 1


def test_a_span_that_ends_after_the_one_around_it_leaves_none_behind(
    make: Callable[..., RecordedSpan], written: Written
) -> None:
    """So does a generator that is resumed when its caller's span is over."""

    @make("generator")
    def generator() -> Iterator[int]:
        yield 1

    def run() -> None:
        with make("caller"):
            left = generator()
            next(left)
        list(left)
        with make("later"):
            pass

    Context().run(run)
    assert [(name, parent) for name, *_, parent in written if name == "later"] == [("later", NONE)]


def test_what_outlives_its_span_holds_no_chain_of_spans(make: Callable[..., RecordedSpan]) -> None:
    """Each span begins in the context of the one before, as tasks do that start one another."""
    context = Context()
    for _ in range(10):
        each = make("link")
        context.run(each.__enter__)
        after = context.copy()
        context.run(each.__exit__, None, None, None)
        context = after
    del each, after
    gc.collect()
    kept = sum(type(each) is RecordedSpan and each._name == "link" for each in gc.get_objects())
    assert kept <= 2
