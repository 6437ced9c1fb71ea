"""Redundant loads and stores: what is found, and what is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tachograph.analyzer import Profile
from unit.analyzer.recordings import NATIVE_FRAME, OTHER_FRAME, PYTHON_FRAME, Builder

STORE = 1
RELEASED = 2
HEADER = 7


@pytest.fixture
def native(builder: Builder) -> tuple[int, int]:
    """A stack on line 3 of /srv/a.py, and the path of native code that it called: 100 samples, one second."""
    builder.parameters["redundancy"] = True
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    for _ in range(100):
        builder.cpu(stack, native_frame=NATIVE_FRAME, native_stack=path, native_path=1)
    return stack, path


def add(builder: Builder, native: tuple[int, int], count: int, *, equal: bool | None, **values: Any) -> None:
    """Pairs of accesses of that code."""
    stack, path = native
    places = {"native_frame": NATIVE_FRAME, "native_stack": path}
    for number in range(count):
        partner = {f"partner_{name}": value for name, value in places.items()} if equal is not None else {}
        builder.redundancy(stack, 10.0 * number, equal=equal, **{**places, **partner, **values})


def test_a_line_whose_calls_load_the_same_again(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    add(builder, native, 60, equal=True)
    add(builder, native, 20, equal=None, outcome=RELEASED)
    answer = profile()
    assert answer.redundancies is not None
    (found,) = answer.redundancies.to_dict("records")
    assert (found["file"], found["line"], found["partner_line"]) == ("/srv/a.py", 3, 3)
    assert (found["kind"], found["category"], found["traps"]) == ("load", None, 60)
    # Of 80 watched accesses 60 were repeated: so is that part of a second.
    assert found["quantity_s"] == pytest.approx(0.75)
    assert found["quantity_s_low"] < 0.75 < found["quantity_s_high"]
    assert found["line_cpu_s"] == pytest.approx(1.0)
    assert (found["redundant_share"], found["base_rate"]) == (1.0, pytest.approx(0.8))
    assert found["native_path"] == found["partner_native_path"] == ["deflate", "list_sort"]
    assert "calls of libz met" in found["why"]
    json.dumps(found["native_path"])


def test_the_time_of_a_line_has_the_weights_of_all_other_figures(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    """On a stationary schedule the first sample of a thread stands for one interval, whatever its clock."""
    builder.parameters["schedule"] = "stationary"
    builder.rows["cpu"][0] |= {"cpu_ns": 400 * 1_000_000}
    add(builder, native, 60, equal=True)
    add(builder, native, 20, equal=None, outcome=RELEASED)
    answer = profile()
    (line,) = answer.lines.to_dict("records")
    assert answer.redundancies is not None
    (found,) = answer.redundancies.to_dict("records")
    assert line["cpu_s"] == pytest.approx(1.0)
    assert found["quantity_s"] == pytest.approx(0.75 * line["cpu_s"])


def test_repeated_work_is_held_against_the_time_in_question(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    """What is less than 1 % of the recording may be most of what was asked for."""
    elsewhere = builder.stack((builder.code(builder.file("/srv/b.py")), 1))
    for second in range(2, 10):
        builder.cpu(elsewhere, 40_000, time_ns=builder.rows["cpu"][0]["time_ns"] + second * 1_000_000_000)
    add(builder, native, 60, equal=True)
    add(builder, native, 20, equal=None, outcome=RELEASED)
    of_all, of_a_part = profile().redundancies, profile(end_s=1.5).redundancies
    assert of_all is not None
    assert of_a_part is not None
    assert len(of_all) == 0
    (found,) = of_a_part.to_dict("records")
    assert found["quantity_s"] == pytest.approx(0.75)


def test_what_is_usual_is_nothing(builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]) -> None:
    add(builder, native, 80, equal=True)
    add(builder, native, 20, equal=False)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies.empty


@pytest.mark.parametrize(
    ("kernel", "found"), [("dgemm_kernel_HASWELL", [3]), ("dgemm_small_kernel_nn_SKYLAKEX", []), ("multiply", [])]
)
def test_loads_from_a_copy_of_the_operands_tell_nothing(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile], kernel: str, found: list[int]
) -> None:
    """The buffer has other values in each call, also where the operands are the same."""
    library = builder.rows["native_frames"][NATIVE_FRAME]["module"]
    frame = builder.native_frame(library, kernel)
    add(builder, native, 60, equal=True)
    add(builder, native, 100, equal=False, native_frame=frame, partner_native_frame=frame)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["line"].tolist() == found


def test_stores_are_held_against_stores(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    add(builder, native, 98, equal=True, access=STORE)
    add(builder, native, 2, equal=False, access=STORE)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["kind"].tolist() == ["store"]


@pytest.mark.parametrize("crossed", [False, None])
def test_what_a_library_repeats_within_a_call_is_its_own(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile], crossed: bool | None
) -> None:
    add(builder, native, 90, equal=True, crossed=crossed)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies.empty


def more_lines(builder: Builder, count: int, pairs: int, *, source: int | None = None) -> None:
    """Further lines that call the same library, all pairs of which are equal."""
    for line in range(10, 10 + count):
        other = builder.stack((builder.code(builder.file("/srv/a.py") if source is None else source), line))
        below = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, other), OTHER_FRAME)
        add(builder, (other, below), pairs, equal=True)


@pytest.mark.parametrize(
    ("lines", "pairs", "raised"),
    [
        (9, 40, True),  # at least 91 % on most lines
        (9, 12, False),  # at least 76 %: fewer than in ordinary code, as far as so few pairs tell
        (5, 40, False),  # of five lines it is not beyond doubt that most are so
    ],
)
def test_a_library_that_repeats_more_on_most_lines_has_a_higher_base_rate(
    builder: Builder,
    native: tuple[int, int],
    profile: Callable[..., Profile],
    lines: int,
    pairs: int,
    raised: bool,
) -> None:
    more_lines(builder, lines, pairs)
    add(builder, native, 60, equal=True)
    answer = profile()
    assert answer.redundancies is not None
    assert (3 not in answer.redundancies["line"].tolist()) == raised


def test_the_place_of_lines_together_is_where_most_of_the_time_is(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    text = "\n" * 7 + "def f(x, y):\n  for i in range(9):\n" + "    total += x[i] * y[i]\n" * 20
    code = builder.code(builder.file("/srv/b.py", text))
    frame = builder.native_frame(builder.rows["native_frames"][NATIVE_FRAME]["module"], "array_subscript")
    for line, samples, pairs in ((10, 5, 9), (11, 20, 8), (12, 30, 0)):
        stack = builder.stack((code, line - 1))
        below = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
        for _ in range(samples):
            builder.cpu(stack, native_frame=frame, native_stack=below, native_path=1)
        add(builder, (stack, below), pairs, equal=True, native_frame=frame, partner_native_frame=frame)
        add(builder, (stack, below), 20, equal=None, outcome=HEADER)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["line"].tolist() == [11]


@pytest.mark.parametrize(
    ("body", "listed"),
    [
        ("total += m.getrow(i).dot(y)", True),  # what belongs to a row differs from row to row
        ("total += m[i].dot(y)", False),
    ],
)
def test_loads_that_differ_say_little_against_elements(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile], body: str, *, listed: bool
) -> None:
    text = f"def f(m, y):\n  for i in range(9):\n    {body}\n"
    code = builder.code(builder.file("/srv/b.py", text))
    frame = builder.native_frame(builder.rows["native_frames"][NATIVE_FRAME]["module"], "call_thunk")
    stack = builder.stack((code, 2))
    below = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    for _ in range(200):
        builder.cpu(stack, native_frame=frame, native_stack=below, native_path=1)
    each = {"native_frame": frame, "partner_native_frame": frame}
    add(builder, (stack, below), 9, equal=True, **each)
    add(builder, (stack, below), 3, equal=False, **each)
    add(builder, (stack, below), 2, equal=False, access=1, **each)  # no store leads where loads repeat
    answer = profile()
    assert answer.redundancies is not None
    assert (3 in answer.redundancies["line"].tolist()) == listed


def test_lines_that_repeat_themselves_for_a_reason_do_not_raise_the_base_rate(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    text = "\n" * 9 + "for i in range(9):\n" + "    x[[i, i + 1]] = x[[i + 1, i]]\n" * 20
    more_lines(builder, 9, 40, source=builder.file("/srv/b.py", text))
    add(builder, native, 60, equal=True)
    answer = profile()
    assert answer.redundancies is not None
    assert 3 in answer.redundancies["line"].tolist()


@pytest.mark.parametrize(
    ("pairs", "body", "found"),
    [
        (8, "total += x[i] * y[i]", [10, 11, 12]),
        (3, "total += x[i] * y[i]", []),  # 9 pairs together are no more than nothing
        (8, "total += found(i)", []),  # without a reason in the source each line is on its own
    ],
)
def test_lines_of_a_function_that_repeat_themselves_for_one_reason_count_together(
    builder: Builder,
    native: tuple[int, int],
    profile: Callable[..., Profile],
    pairs: int,
    body: str,
    found: list[int],
) -> None:
    text = "\n" * 7 + "def f(x, y):\n  for i in range(9):\n" + f"    {body}\n" * 20
    source = builder.file("/srv/b.py", text)
    module = builder.rows["native_frames"][NATIVE_FRAME]["module"]
    frame = builder.native_frame(module, "array_subscript")
    code = builder.code(source)
    for line in (10, 11, 12):
        stack = builder.stack((code, line - 1))
        below = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
        for _ in range(10):
            builder.cpu(stack, native_frame=frame, native_stack=below, native_path=1)
        add(builder, (stack, below), pairs, equal=True, native_frame=frame, partner_native_frame=frame)
        add(builder, (stack, below), 20, equal=None, outcome=HEADER)  # its time goes to other work
    answer = profile()
    assert answer.redundancies is not None
    if not found:
        assert answer.redundancies.empty
        return
    (row,) = answer.redundancies.to_dict("records")
    assert (row["line"] in found, row["traps"], row["category"]) == (True, 3 * pairs, "slice-underutilization")
    assert "Lines 10, 11, 12 of the function do so together" in row["why"]
    assert row["quantity_s"] == pytest.approx(0.3)  # all of their time


def test_few_pairs_say_nothing(builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]) -> None:
    add(builder, native, 9, equal=True, access=STORE)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies.empty


PIXELS = """\
def inverted(picture):
  for x in range(64):
    value = picture.getpixel((x, 9))
    other = picture.around((x, 9))
    picture.putpixel((x, 9), 255 - value)
"""


def sampled(builder: Builder, code: int, line: int) -> tuple[int, int]:
    """A line with 100 samples: its stack, and the native path below it."""
    stack = builder.stack((code, line - 1))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    for _ in range(100):
        builder.cpu(stack, native_frame=NATIVE_FRAME, native_stack=path, native_path=1)
    return stack, path


@pytest.mark.parametrize(
    ("lines", "equal", "count"),
    [((3, 3), True, 1), ((3, 5), True, 2), ((3, 3), False, 0), ((4, 4), True, 0), ((3,), True, 1), ((3,), False, 0)],
)
def test_few_pairs_are_enough_where_the_source_shows_single_elements(
    builder: Builder, profile: Callable[..., Profile], lines: tuple[int, ...], *, equal: bool, count: int
) -> None:
    """A library that takes an element by Python code of its own has little that can be watched."""
    builder.parameters["redundancy"] = True
    code = builder.code(builder.file("/srv/pixels.py", PIXELS), "inverted")
    for line in lines:
        add(builder, sampled(builder, code, line), 1, equal=equal)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["category"].tolist() == ["slice-underutilization"] * count


def test_stores_of_other_values_leave_few_loads_what_they_say(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """Most stores are of other values, also where the same is done again."""
    builder.parameters["redundancy"] = True
    code = builder.code(builder.file("/srv/pixels.py", PIXELS), "inverted")
    element = sampled(builder, code, 3)
    add(builder, element, 3, equal=True)
    add(builder, element, 4, equal=False, access=STORE)
    answer = profile()
    assert answer.redundancies is not None
    found = answer.redundancies[["kind", "traps", "category"]].to_dict("records")
    assert found == [{"kind": "load", "traps": 3, "category": "slice-underutilization"}]


def test_one_pair_of_other_values_among_few_elements_says_nothing(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """A table makes new objects of its own for each element."""
    builder.parameters["redundancy"] = True
    code = builder.code(builder.file("/srv/pixels.py", PIXELS), "inverted")
    element = sampled(builder, code, 3)
    add(builder, element, 2, equal=True)
    add(builder, element, 1, equal=False)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["category"].tolist() == ["slice-underutilization"]


@pytest.mark.parametrize(("pairs", "equal", "count"), [(3, True, 1), (2, True, 0), (3, False, 0)])
def test_three_pairs_are_enough_where_the_source_shows_the_same_arguments(
    builder: Builder, profile: Callable[..., Profile], pairs: int, *, equal: bool, count: int
) -> None:
    builder.parameters["redundancy"] = True
    source = "import scipy.linalg\ndef scale(noise):\n  return scipy.linalg.det(noise)\nwhile True:\n  scale(0.5)\n"
    file = builder.file("/srv/scale.py", source)
    stack = builder.stack((builder.code(file, "<module>"), 4), (builder.code(file, "scale"), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    for _ in range(100):
        builder.cpu(stack, native_frame=NATIVE_FRAME, native_stack=path, native_path=1)
    add(builder, (stack, path), pairs, equal=equal)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["category"].tolist() == ["repeated-call-same-arguments"] * count


def test_the_interpreter_itself_is_no_library(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.parameters["redundancy"] = True
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 2))
    outer = builder.stack((builder.code(builder.file("/srv/b.py")), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, outer), NATIVE_FRAME)
    builder.cpu(stack, native_stack=path, native_path=1)
    # The evaluation loop of a.py's line, which native code of b.py's line has called; and a sort by the interpreter.
    for frame, below in ((PYTHON_FRAME, path), (OTHER_FRAME, builder.native_stack(None, PYTHON_FRAME, stack))):
        add(builder, (stack, below), 90, equal=True, native_frame=frame)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies.empty


def test_what_was_not_watched_is_not_known(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    assert profile().redundancies is None  # the kernel gave no watchpoints


def test_without_the_option_nothing_is_known(builder: Builder, profile: Callable[..., Profile]) -> None:
    assert profile().redundancies is None


def test_only_what_was_asked_for_counts(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile]
) -> None:
    add(builder, native, 60, equal=True)
    answer = profile(end_s=0.05)
    assert answer.redundancies is not None
    assert answer.redundancies.empty


ROTATE = """\
import numpy as np
def rotate(theta):
    a = np.cos(theta)
    b = np.sin(theta)
    return a + b
for _ in range(1000):
    rotate({argument})
"""


@pytest.mark.parametrize(
    ("argument", "category"), [("0.5", "repeated-call-same-arguments"), ("angles.pop()", "api-misuse")]
)
def test_what_two_calls_share_is_met_again_on_the_next_line(
    builder: Builder, profile: Callable[..., Profile], argument: str, category: str
) -> None:
    """What cos loads at each call is loaded by sin next: that the caller passes the same is told all the same.

    If it passes something else each time, what repeats comes before the work: one call of one number.
    """
    builder.parameters["redundancy"] = True
    file = builder.file("/srv/turn.py", ROTATE.format(argument=argument))
    frame = builder.native_frame(builder.module("/usr/lib/umath.so"), "ufunc_generic_fastcall")
    main = (builder.code(file, "<module>"), 6)
    rotate = builder.code(file, "rotate")
    lines = [builder.stack(main, (rotate, line)) for line in (2, 3)]
    paths = [builder.native_stack(builder.native_stack(None, PYTHON_FRAME, each), OTHER_FRAME) for each in lines]
    for stack, path in zip(lines, paths, strict=True):
        for _ in range(50):
            builder.cpu(stack, native_frame=frame, native_stack=path, native_path=1)
    partner = {"partner_stack": lines[1], "partner_native_frame": frame, "partner_native_stack": paths[1]}
    add(builder, (lines[0], paths[0]), 60, equal=True, native_frame=frame, **partner)
    answer = profile()
    assert answer.redundancies is not None
    found = [(row["line"], row["partner_line"], row["category"]) for row in answer.redundancies.to_dict("records")]
    assert found == [(3, 4, category)]


def test_the_path_that_is_shown_is_of_the_element_that_is_named(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """More pairs store into ``y[i]`` by one path than read ``x[i - 1]`` by each of its own."""
    builder.parameters["redundancy"] = True
    source = "def f(x, y):\n  for i in range(9):\n    y[i] = 2 * x[i - 1]\n"
    stack = builder.stack((builder.code(builder.file("/srv/b.py", source)), 2))
    below = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    module = builder.module("/usr/lib/umath.so")
    for function, count in (("array_assign_subscript", 12), ("array_subscript", 8), ("array_item", 8)):
        frame = builder.native_frame(module, function)
        for _ in range(40):
            builder.cpu(stack, native_frame=frame, native_stack=below, native_path=1)
        add(builder, (stack, below), count, equal=True, native_frame=frame, partner_native_frame=frame)
    answer = profile()
    assert answer.redundancies is not None
    (found,) = answer.redundancies.to_dict("records")
    assert found["why"].startswith("x[i - 1] is looked up")
    assert found["native_path"] == ["array_subscript", "list_sort"]


@pytest.mark.parametrize(("in_dispatch", "count"), [(90, 1), (20, 0)])
def test_calls_that_do_little_work_are_known_by_their_time_in_dispatch(
    builder: Builder, profile: Callable[..., Profile], in_dispatch: int, count: int
) -> None:
    """A fifth of the accesses is met again in dispatch; the rest was not watched to its end."""
    builder.parameters["redundancy"] = True
    source = "import numpy as np\ndef f(a):\n    return np.clip(a, 0, 1)\nfor a in range(9):\n    f(a)\n"
    file = builder.file("/srv/clip.py", source)
    stack = builder.stack((builder.code(file, "<module>"), 4), (builder.code(file, "f"), 2))
    umath = builder.module("/usr/lib/umath.so")
    dispatch = builder.native_frame(umath, "ufunc_generic_fastcall")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    places: dict[str, Any] = {"native_frame": dispatch, "native_stack": path}
    other: dict[str, Any] = {"native_frame": builder.native_frame(umath, "DOUBLE_clip"), "native_stack": path}
    for _ in range(100):
        builder.cpu(stack, **places, native_path=1)
    partner: dict[str, Any] = {f"partner_{name}": value for name, value in places.items()}
    for number in range(20):
        builder.redundancy(stack, 10.0 * number, equal=True, **places, **partner)
    for number in range(60):
        builder.redundancy(stack, 500.0 + number, equal=None, outcome=RELEASED, **places)
    for number in range(100):
        where = places if number < in_dispatch else other
        builder.redundancy(stack, 600.0 + number, equal=None, outcome=HEADER, **where)
    answer = profile()
    assert answer.redundancies is not None
    assert len(answer.redundancies) == count


@pytest.mark.parametrize(
    ("made", "equal", "count"), [("vectorize", True, 1), ("vectorize", False, 0), ("add", True, 0)]
)
def test_a_call_that_calls_back_for_each_element_repeats_work_within_it(
    builder: Builder, native: tuple[int, int], profile: Callable[..., Profile], made: str, *, equal: bool, count: int
) -> None:
    builder.parameters["redundancy"] = True
    file = builder.file(
        "/srv/tariff.py", f"import numpy as np\nrate = np.{made}(tariff, 1)\ntotal = rate(uses).sum()\n"
    )
    stack = builder.stack((builder.code(file, "<module>"), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    for _ in range(100):
        builder.cpu(stack, native_frame=NATIVE_FRAME, native_stack=path, native_path=1)
    add(builder, (stack, path), 40, equal=equal, crossed=False)
    answer = profile()
    assert answer.redundancies is not None
    found = answer.redundancies.to_dict("records")
    assert [row["category"] for row in found] == ["api-misuse"] * count
    assert all("pairs of loads in a call of libz" in row["why"] for row in found)


@pytest.mark.parametrize(("text", "count"), [("self.ends = {**self.ends, job: 1}", 1), ("ends = dict(job)", 0)])
def test_time_alone_shows_what_needs_no_pairs(
    builder: Builder, profile: Callable[..., Profile], text: str, count: int
) -> None:
    builder.parameters["redundancy"] = True
    source = f"class Jobs:\n  def end(self, job):\n    {text}\n"
    stack = builder.stack((builder.code(builder.file("/srv/jobs.py", source), "end"), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    frame = builder.native_frame(builder.module("/usr/lib/libz.so"), "dict_merge")
    for number in range(100):
        builder.cpu(stack, native_frame=frame, native_stack=path, native_path=1)
        builder.redundancy(stack, 10.0 * number, equal=None, outcome=HEADER, native_frame=frame, native_stack=path)
    answer = profile()
    assert answer.redundancies is not None
    found = answer.redundancies.to_dict("records")
    assert [(row["category"], row["traps"]) for row in found] == [("inefficient-algorithm", 0)] * count
    assert all(np.isnan(row["redundant_share"]) and row["quantity_s_low"] > 0.5 for row in found)


@pytest.mark.parametrize(
    ("in_lookups", "equal", "text", "category"),
    [
        (90, True, "total += x[i]", "slice-underutilization"),
        (90, True, "total[code] += 1", "api-misuse"),  # no slice would do it
        (90, True, "x = np.diag(d) @ x", None),  # lookups are no products
        (55, True, "total += x[i]", None),  # the lower end is less than most
        (90, False, "total += x[i]", None),  # other values: each lookup is of another array
    ],
)
def test_lookups_of_elements_are_known_by_the_time_in_them(
    builder: Builder, profile: Callable[..., Profile], in_lookups: int, *, equal: bool, text: str, category: str | None
) -> None:
    """Four pairs alone would be too few."""
    builder.parameters["redundancy"] = True
    source = f"def f(x, codes, total):\n  for i, code in enumerate(codes):\n    {text}\n"
    stack = builder.stack((builder.code(builder.file("/srv/add.py", source), "f"), 2))
    umath = builder.module("/usr/lib/umath.so")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), OTHER_FRAME)
    places: dict[str, Any] = {"native_frame": builder.native_frame(umath, "array_subscript"), "native_stack": path}
    other: dict[str, Any] = {"native_frame": builder.native_frame(umath, "DOUBLE_add"), "native_stack": path}
    for _ in range(100):
        builder.cpu(stack, **places, native_path=1)
    for number in range(4):
        partner = {f"partner_{name}": value for name, value in places.items()}
        builder.redundancy(stack, 10.0 * number, equal=equal, **places, **partner)
    for number in range(96):
        where = places if number < in_lookups - 4 else other
        builder.redundancy(stack, 600.0 + number, equal=None, outcome=HEADER, **where)
    answer = profile()
    assert answer.redundancies is not None
    assert answer.redundancies["category"].tolist() == ([] if category is None else [category])
    assert [row["quantity_s_low"] > 0.5 for row in answer.redundancies.to_dict("records")] == [True] * (
        category is not None
    )
