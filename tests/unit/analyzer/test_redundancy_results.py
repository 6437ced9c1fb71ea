"""Results that were computed again, and functions that read the same memory by turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tachograph.analyzer import Profile
from tachograph.analyzer.conclusions.redundancy.cycles import in_cycles
from tachograph.analyzer.conclusions.redundancy.results import are_repeated, sizes_vary
from unit.analyzer.recordings import OTHER_FRAME, PYTHON_FRAME, Builder

RELEASED = 2
NONE = -1
SOURCE = """\
import numpy as np
def spectrum(frame):
    window = np.hanning(2048)
    return frame * window
for frame in frames:
    spectrum(frame)
"""
GROWING = """\
import numpy as np
def collect(values):
    kept = np.array([])
    for value in values:
        kept = np.append(kept, value)
    return kept
"""


def repeated(*blocks: tuple[int, int, int, int]) -> list[bool]:
    found: list[bool] = are_repeated(*(np.array(each, np.int64) for each in zip(*blocks, strict=True))).tolist()
    return found


@pytest.mark.parametrize(
    ("blocks", "found"),
    [
        ([(2048, 7, NONE, 1), (2048, 7, NONE, 1), (2048, 8, NONE, 2)], [True, True, False]),
        ([(2048, 7, NONE, 1), (4096, 7, NONE, 3)], [False, False]),  # of another size
        ([(2048, 7, 1, 1), (2048, 8, 0, 2)], [True, False]),  # the next one in its place
        ([(2048, NONE, NONE, NONE), (2048, NONE, NONE, NONE)], [False, False]),  # zeros, or not read
        ([(2048, 7, NONE, 5), (2064, 8, NONE, 5), (2080, 9, NONE, 5)], [False, True, True]),  # copied to add to it
        ([(2080, 9, NONE, 5), (2064, 8, NONE, 5)], [False, False]),
    ],
)
def test_blocks_that_hold_the_same(blocks: list[tuple[int, int, int, int]], found: list[bool]) -> None:
    assert repeated(*blocks) == found


def test_sizes_that_vary() -> None:
    assert sizes_vary(np.arange(2048, 2148))
    assert sizes_vary(np.repeat(np.arange(2048, 2148), 9))  # the more are met the more have the same size by chance
    assert not sizes_vary(np.repeat(np.arange(2048, 2058), 9))
    assert not sizes_vary(np.full(100, 2048))
    assert not sizes_vary(np.arange(5))


def cycles(*steps: tuple[int, int, bool], within: tuple[tuple[int, int], ...] = ()) -> list[bool]:
    """``within``: the steps that are within one call."""
    first, again = (np.array([each[place] for each in steps], np.int64) for place in (0, 1))
    line = np.zeros(len(steps), np.int64)
    equal = np.array([each[2] for each in steps])
    inner = np.array([each[:2] in within for each in steps])
    found: list[bool] = in_cycles((line, first), (line, again), ~inner, equal, inner).tolist()
    return found


def test_two_functions_by_turns() -> None:
    assert cycles(*[(1, 2, True), (2, 1, True)] * 5) == [True] * 10


def test_three_functions_by_turns() -> None:
    assert cycles(*[(1, 2, True), (2, 3, True), (3, 1, True)] * 5) == [True] * 15


def test_what_goes_through_two_functions_once_is_no_cycle() -> None:
    assert not any(cycles(*[(1, 2, True)] * 9, *[(2, 1, False)] * 9))
    assert not any(cycles(*[(1, 2, True)] * 9, (2, 1, True), (2, 1, True)))


def test_a_call_may_read_the_memory_in_several_functions() -> None:
    """Its own steps lead on, and are no repetition themselves."""
    steps = [(1, 2, True), (2, 3, True), (3, 1, True)]
    assert cycles(*steps * 5, within=((1, 2),)) == [False, True, True] * 5
    assert not any(cycles(*steps * 5, within=((1, 2), (2, 3), (3, 1))))


def test_a_function_on_its_own_is_no_cycle() -> None:
    assert not any(cycles(*[(1, 1, True)] * 9))


def line_of(builder: Builder, source: str, line: int, caller: int | None = None) -> tuple[int, dict[str, Any]]:
    """A stack on a line of a source and the path of what it called: 100 samples, one second."""
    builder.parameters["redundancy"] = True
    file = builder.file("/srv/blocks.py", source)
    frames = [(builder.code(file, "<module>"), caller - 1)] if caller else []
    stack = builder.stack(*frames, (builder.code(file, "f"), line - 1))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    places = {"native_frame": builder.native_frame(builder.module("/usr/lib/umath.so"), "DOUBLE_divide")}
    places["native_stack"] = path
    for _ in range(100):
        builder.cpu(stack, **places, native_path=1)
    return stack, places


def released(builder: Builder, line: tuple[int, dict[str, Any]], ms: float, size: int, content: int | None) -> None:
    stack, places = line
    blocks: dict[str, Any] = {"block_bytes": size, "block_hash": content, "block_head_hash": content}
    builder.redundancy(stack, ms, equal=None, outcome=RELEASED, access=1, **places, **blocks)


def rows(answer: Profile) -> list[dict[str, Any]]:
    assert answer.redundancies is not None
    found: list[dict[str, Any]] = answer.redundancies.to_dict("records")
    return found


def test_a_result_that_is_the_same_in_each_block(builder: Builder, profile: Callable[..., Profile]) -> None:
    line = line_of(builder, SOURCE, 3, caller=6)
    for number in range(20):
        released(builder, line, number, 16392, 2**63 + 5)  # hashes have 64 bits
    (row,) = rows(profile())
    assert (row["line"], row["kind"], row["category"]) == (3, "result", "repeated-call-same-arguments")
    assert (row["traps"], row["redundant_share"]) == (20, 1.0)
    assert "np.hanning(2048)" in row["why"]


@pytest.mark.parametrize(
    ("function", "count"),
    [("DOUBLE_divide", 1), ("dgemm_oncopy_HASWELL", 0), ("inner_thread", 0), ("exec_blas_async", 0)],
)
def test_buffers_of_a_library_are_no_results(
    builder: Builder, profile: Callable[..., Profile], function: str, count: int
) -> None:
    stack, places = line_of(builder, SOURCE, 3, caller=6)
    places["native_frame"] = builder.native_frame(builder.module("/usr/lib/umath.so"), function)
    for number in range(20):
        released(builder, (stack, places), number, 524296, 5)
    assert len(rows(profile())) == count


@pytest.mark.parametrize(
    ("function", "size", "count"),
    [("NpyIter_AdvancedNew", 1128, 0), ("NpyIter_AdvancedNew", 2128, 1), ("DOUBLE_multiply", 1128, 1)],
)
def test_the_state_of_an_iterator_is_no_result(
    builder: Builder, profile: Callable[..., Profile], function: str, size: int, count: int
) -> None:
    """Other functions load what is in it as well: it is known by its size, on the same line."""
    stack, places = line_of(builder, SOURCE, 3, caller=6)
    other = {**places, "native_frame": builder.native_frame(builder.module("/usr/lib/umath.so"), function)}
    for number in range(20):
        released(builder, (stack, places), number, 1128, 5)
    for number in range(3):
        released(builder, (stack, other), 20 + number, size, 5)
    assert len(rows(profile())) == count


@pytest.mark.parametrize(
    ("contents", "count"),
    [((5, 5, 5), 1), ((5, 5), 1), ((5, 6), 0), ((5,), 0)],  # a kilobyte is not the same by chance
)
def test_few_blocks_are_enough_where_the_source_shows_the_same_arguments(
    builder: Builder, profile: Callable[..., Profile], contents: tuple[int, ...], count: int
) -> None:
    line = line_of(builder, SOURCE, 3, caller=6)
    for number, content in enumerate(contents):
        released(builder, line, number, 16392, content)
    found = [(row["kind"], row["category"]) for row in rows(profile())]
    assert found == [("result", "repeated-call-same-arguments")] * count


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("def gray(frame):\n  return np.dot(frame, WEIGHTS)", "repeated-call-same-arguments"),
        ("def gray(frames):\n  for _ in range(9): np.dot(frames.current(), WEIGHTS)", "loop-invariant"),
        ("def gray(frame):\n  return frame @ WEIGHTS", None),
    ],
)
def test_results_alone_say_what_it_is_where_the_source_does_not(
    builder: Builder, profile: Callable[..., Profile], text: str, category: str | None
) -> None:
    """It is not known what calls the function, and with what."""
    line = line_of(builder, f"import numpy as np\n{text}\n", 3)
    for number in range(20):
        released(builder, line, number, 16392, 5)
    (row,) = rows(profile())
    assert (row["kind"], row["category"]) == ("result", category)


@pytest.mark.parametrize(("size", "content"), [(16392, None), (512, 5)])
def test_cleared_arrays_and_small_objects_do_not_count(
    builder: Builder, profile: Callable[..., Profile], size: int, content: int | None
) -> None:
    line = line_of(builder, SOURCE, 3, caller=6)
    for number in range(20):
        released(builder, line, number, size, content)
    assert rows(profile()) == []


@pytest.mark.parametrize(("every", "count"), [(2, 1), (4, 0)])
def test_results_that_differ_may_be_beside_the_one_that_is_the_same(
    builder: Builder, profile: Callable[..., Profile], every: int, count: int
) -> None:
    line = line_of(builder, SOURCE, 3, caller=6)
    for number in range(40):
        released(builder, line, number, 16392, 7 if number % every == 0 else number + 9)
    assert len(rows(profile())) == count


def test_results_that_differ_do_not_count(builder: Builder, profile: Callable[..., Profile]) -> None:
    line = line_of(builder, SOURCE, 3, caller=6)
    for number in range(20):
        released(builder, line, number, 16392, number + 1)
    assert rows(profile()) == []


@pytest.mark.parametrize("function", ["append", "union1d"])
def test_an_array_that_is_copied_to_add_to_it(builder: Builder, profile: Callable[..., Profile], function: str) -> None:
    line = line_of(builder, GROWING.replace("append", function), 5)
    for number in range(20):
        released(builder, line, number, 8008 + 8 * number, number + 1)
    (row,) = rows(profile())
    assert (row["line"], row["kind"], row["category"]) == (5, "result", "inefficient-algorithm")
    assert "20 different sizes, from 8,008 to 8,160 bytes" in row["why"]
    assert row["remedy"].startswith("Collect the pieces in a list")


ADDING = """\
import numpy as np
class Leaders:
    def feed(self, batch):
        self.seen = np.concatenate([self.seen, batch])
        order = np.argsort({of})
board = Leaders()
for batch in batches:
    board.feed(batch)
"""


@pytest.mark.parametrize(("of", "count"), [("self.seen", 1), ("batch", 0)])
def test_all_that_a_method_has_added_to(builder: Builder, profile: Callable[..., Profile], of: str, count: int) -> None:
    line = line_of(builder, ADDING.format(of=of), 5, caller=8)
    for number in range(20):
        released(builder, line, number, 8008 + 800 * number, number + 1)
    found = [(row["line"], row["category"], row["remedy"][:15]) for row in rows(profile())]
    assert found == [(5, "inefficient-algorithm", "Keep the result")] * count


MOVING = """\
import numpy as np
class Last:
    def put(self, value, step):
        self.recent = {call}
        self.recent[-1] = value
"""


@pytest.mark.parametrize(
    ("call", "count"),
    [
        ("np.roll(self.recent, -1)", 1),
        ("np.roll(self.recent, shift=1)", 1),
        ("np.vstack((self.recent[1:, :], value))", 1),
        ("np.append(self.recent[1:], value)", 1),
        ("np.concatenate(([value], self.recent[:-1]))", 1),
        ("np.roll(self.recent, step)", 0),  # it may be by many places
        ("np.roll(self.other, -1)", 0),
        ("np.append(self.recent[1:5], value)", 0),
        ("self.recent * 0.9", 0),
    ],
)
def test_an_array_that_is_moved_by_one_place(
    builder: Builder, profile: Callable[..., Profile], call: str, count: int
) -> None:
    """Its blocks have one size, and ever other contents."""
    line = line_of(builder, MOVING.format(call=call), 4)
    for number in range(20):
        released(builder, line, number, 8008, number + 1)
    found = rows(profile())
    assert [(row["line"], row["category"]) for row in found] == [(4, "inefficient-algorithm")] * count
    assert all("20 blocks of memory that umath filled had 8,008 bytes each" in row["why"] for row in found)


def test_few_or_different_blocks_are_not_moved(builder: Builder, profile: Callable[..., Profile]) -> None:
    line = line_of(builder, MOVING.format(call="np.roll(self.recent, -1)"), 4)
    for number in range(20):
        released(builder, line, number, 8008 if number % 2 else 4008, number + 1)
    assert rows(profile()) == []


ADDED = """\
class Log:
    def add(self, line):
        self.text = line + self.text
    def note(self, line):
        whole = self.text + line
def collect(parts):
    out = b""
    for part in parts:
        out += part
    return out
def row(frame, values):
    frame.loc[len(frame)] = values
def drain(waiting):
    while waiting:
        waiting = waiting[1:]
def ranked(limits, scores):
    for limit in limits:
        order = sorted(scores)
        other = sorted(limit)
"""


def of_interpreter(builder: Builder, line: int, function: str) -> tuple[int, dict[str, Any]]:
    """A line of ADDED, in a function of the interpreter: 100 samples, one second."""
    builder.parameters["redundancy"] = True
    stack = builder.stack((builder.code(builder.file("/srv/added.py", ADDED), "f"), line - 1))
    inner = builder.native_frame(0, function)
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), inner)
    copying = builder.native_frame(builder.module("/lib/x86_64-linux-gnu/libc.so.6"), "__memmove_avx_unaligned_erms")
    places = {"native_frame": copying, "native_stack": path}
    for _ in range(100):
        builder.cpu(stack, **places, native_path=1)
    return stack, places


@pytest.mark.parametrize(
    ("line", "function"),
    [(3, "PyUnicode_Concat"), (9, "bytes_concat"), (9, "tupleconcat"), (15, "list_slice")],
)
def test_objects_of_the_interpreter_that_are_copied_to_add_to_them(
    builder: Builder, profile: Callable[..., Profile], line: int, function: str
) -> None:
    place = of_interpreter(builder, line, function)
    for number in range(20):
        released(builder, place, number, 8008 + 400 * number, number + 1)
    (row,) = rows(profile())
    assert (row["line"], row["kind"], row["category"]) == (line, "result", "inefficient-algorithm")
    assert "that the interpreter filled had 20 different sizes" in row["why"]
    assert row["line_cpu_s"] == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(
    ("line", "function"),
    [
        (5, "PyUnicode_Concat"),  # of two others
        (9, "PyUnicode_Append"),  # in its own place, most often
        (9, "PyBytes_FromStringAndSize"),
    ],
)
def test_objects_that_are_not_copied_to_add_to_them(
    builder: Builder, profile: Callable[..., Profile], line: int, function: str
) -> None:
    place = of_interpreter(builder, line, function)
    for number in range(20):
        released(builder, place, number, 8008 + 400 * number, number + 1)
    assert rows(profile()) == []


def test_objects_of_the_interpreter_that_hold_the_same_do_not_count(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    place = of_interpreter(builder, 3, "PyUnicode_Concat")
    for number in range(20):
        released(builder, place, number, 8008, 7)
    assert rows(profile()) == []


@pytest.mark.parametrize(("line", "count"), [(18, 1), (19, 0)])
def test_all_elements_that_the_interpreter_goes_through_again(
    builder: Builder, profile: Callable[..., Profile], line: int, count: int
) -> None:
    """Of what does not change; the same pointers of other operands are no work of their own."""
    place = of_interpreter(builder, line, "builtin_sorted")
    for number in range(20):
        released(builder, place, number, 24008, 7)
    assert [row["category"] for row in rows(profile())] == ["loop-invariant"] * count


def test_a_table_that_gets_one_row_after_another(builder: Builder, profile: Callable[..., Profile]) -> None:
    line = line_of(builder, ADDED, 12)
    for number in range(20):
        released(builder, line, number, 8008 + 8 * number, number + 1)
    (row,) = rows(profile())
    assert row["category"] == "inefficient-algorithm"
    assert row["why"].startswith("frame.loc[len(frame)] copies all that is there each time")
