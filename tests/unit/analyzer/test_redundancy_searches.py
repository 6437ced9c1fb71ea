"""Elements that the interpreter goes through again, values that are searched for, and calls with small arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tachograph.analyzer import Profile
from unit.analyzer.judged_line import judged
from unit.analyzer.recordings import OTHER_FRAME, PYTHON_FRAME, Builder

READ = """\
def f(rows, weights, names, wanted):
    for row in rows:
        low = row / sum(weights.values())
        own = sum(row)
        low -= own
        if row in names: pass
        if wanted in row: pass
    for start in range(0, len(weights), 20):
        part = sum(weights[start : start + 20])
    for start in range(len(weights)):
        near = sum(weights[start : start + 20])
    few = ["a", "b"]
    for row in rows:
        if row in few: pass
"""


def of_interpreter(builder: Builder, line: int, function: str) -> tuple[int, dict[str, Any]]:
    """A line of READ, in a built-in function: 100 samples, one second."""
    builder.parameters["redundancy"] = True
    stack = builder.stack((builder.code(builder.file("/srv/read.py", READ), "f"), line - 1))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, stack), builder.native_frame(0, function))
    places = {"native_frame": builder.native_frame(0, "listiter_next"), "native_stack": path}
    for _ in range(100):
        builder.cpu(stack, **places, native_path=1)
    return stack, places


def pairs(builder: Builder, stack: int, places: dict[str, Any], *, equal: bool = True, crossed: bool = True) -> None:
    partner = {f"partner_{name}": value for name, value in places.items()}
    for number in range(40):
        builder.redundancy(stack, 10.0 * number, equal=equal, crossed=crossed, **places, **partner)


def found(profile: Profile) -> list[tuple[int, str | None]]:
    assert profile.redundancies is not None
    return [(row["line"], row["category"]) for row in profile.redundancies.to_dict("records")]


@pytest.mark.parametrize(
    ("line", "function", "category"),
    [
        (3, "builtin_sum", "loop-invariant"),
        (4, "builtin_sum", None),  # of another row each time
        (6, "list_contains", "inefficient-algorithm"),
        (6, "set_contains", None),  # without a search
        (7, "list_contains", None),  # in another list each time
        (14, "list_contains", None),  # in a list of two
    ],
)
def test_elements_that_the_interpreter_loads_again(
    builder: Builder, profile: Callable[..., Profile], line: int, function: str, category: str | None
) -> None:
    pairs(builder, *of_interpreter(builder, line, function))
    assert found(profile()) == ([] if category is None else [(line, category)])


@pytest.mark.parametrize(("equal", "crossed"), [(False, True), (True, False)])
def test_other_values_and_loads_within_one_sum_repeat_nothing(
    builder: Builder, profile: Callable[..., Profile], *, equal: bool, crossed: bool
) -> None:
    pairs(builder, *of_interpreter(builder, 3, "builtin_sum"), equal=equal, crossed=crossed)
    assert found(profile()) == []


def test_a_built_in_function_that_calls_a_library_most_of_the_time_works_for_that(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    stack, places = of_interpreter(builder, 3, "builtin_sum")
    pairs(builder, stack, places)
    path = builder.native_stack(places["native_stack"], OTHER_FRAME)
    pairs(builder, stack, places | {"native_frame": OTHER_FRAME, "native_stack": path}, equal=False)
    assert found(profile()) == []


@pytest.mark.parametrize(("line", "category"), [(11, "inefficient-algorithm"), (9, None)])
def test_a_slice_of_a_list_that_moves_on_by_less_than_its_length(
    builder: Builder, profile: Callable[..., Profile], line: int, category: str | None
) -> None:
    """It is copied each time: blocks of one size, and ever other contents."""
    stack, places = of_interpreter(builder, line, "list_slice")
    for number in range(20):
        values: dict[str, Any] = {
            "block_bytes": 1608,
            "block_hash": number + 1,
            "block_again": False,
            "block_head_hash": None,
        }
        builder.redundancy(stack, 10.0 * number, equal=None, outcome=2, **places, **values)
    assert found(profile()) == ([] if category is None else [(line, category)])


KERNEL = ["DOUBLE_subtract_AVX2", "ufunc_generic_fastcall"]


@pytest.mark.parametrize(
    "body",
    [
        "i = np.argmin(np.abs(grid - x))  #",
        "i = np.abs(x - grid).argmin()  #",
        "i = np.argmin((grid - x) ** 2)  #",
        "d = np.abs(grid - x)  #\n  i = d.argmin()",
        "i = np.argmin(np.linalg.norm(grid - x, axis=1))  #",
        "i = np.argmax(grid > x)  #",
        "i = np.where(grid >= x)[0]  #",
        "hits = grid == x  #\n  i = np.flatnonzero(hits)",
        "price = prices[grid == x][0]  #",
        "row = table[grid == x]  #\n  a, b = row['price'].iloc[0], row.weight.item()",
        "price = float(table.loc[grid == x, 'price'])  #",
    ],
)
def test_a_search_through_all_of_an_array_is_an_algorithm_also_by_steps(body: str) -> None:
    verdict = judged(f"def f(grid, xs):\n for x in xs:\n  {body}", KERNEL)
    assert (verdict.category, verdict.excused) == ("inefficient-algorithm", False), verdict
    assert "grid" in verdict.reason


@pytest.mark.parametrize(
    "body",
    [
        "i = np.argmin(grid - x)  #",  # no distance: what is smallest may be another one each time
        "d = np.abs(grid - x).max()  #",
        "grid = np.abs(grid - x)  #\n  i = grid.argmin()",
        "far = grid > x  #\n  n = far.sum()",
        "i = np.where(grid > x, 1, 0)  #",
        "centre = points[grid == x].mean(axis=0)  #",  # of many
        "few = points[grid == x]  #\n  a, b = few[0], len(few)",
        "first = points[grid > x][0]  #",
    ],
)
def test_work_with_all_of_an_array_is_no_search(body: str) -> None:
    assert judged(f"def f(grid, xs):\n for x in xs:\n  {body}", KERNEL).category != "inefficient-algorithm"


SELECTOR = ["PyUFunc_DefaultLegacyInnerLoopSelector", "ufunc_generic_fastcall"]


@pytest.mark.parametrize(
    ("operator", "category"), [("array_negative", None), ("array_add", None), ("double_negative", "api-misuse")]
)
@pytest.mark.parametrize("kind", ["load", "store"])
def test_functions_of_small_arrays_have_no_other_way(operator: str, category: str | None, kind: Any) -> None:
    """The operators beside a call show whether it got arrays, or single numbers."""
    source = "def f(z):\n  return 1.0 / (1.0 + np.exp(-z))  #\nfor z in zs:\n  f(z)"
    verdict = judged(source, [*SELECTOR, operator], kind=kind, callers=(4,))
    assert (verdict.category, verdict.excused) == (category, category is None)


@pytest.mark.parametrize(
    ("line", "category"), [("rows.append(np.eye(n)[k])", "loop-invariant"), ("rows.append(np.eye(n))", None)]
)
def test_a_row_of_a_matrix_that_is_made_for_it(line: str, category: str | None) -> None:
    source = f"def f(n, ks):\n rows = []\n for k in ks:\n  {line}  #"
    assert judged(source, ["iter_ass_subscript"], kind="result").category == category


@pytest.mark.parametrize(
    "source",
    [
        "def f(xs):\n level = 0.5\n for x in xs:\n  i = np.argmax(x > level)  #",
        "def f(xs, level):\n for x in xs:\n  i = np.argmax(x > level)  #\nf(traces, 3 * 0.5)",
        "def f(xs, level=0.5):\n for x in xs:\n  i = np.argmin(np.abs(x - level))  #\nf(traces)",
        "def f(xs, y):\n high = y.max() / 2\n for x in xs:\n  i = np.where(x >= high)[0]  #",
        "class D:\n def __init__(self, level):\n  self.level = level\n def f(self, xs):\n  for x in xs:\n"
        "   i = np.argmax(x > self.level)  #\nD(0.5).f(traces)",
    ],
)
def test_a_level_that_arrays_are_compared_with_is_not_searched(source: str) -> None:
    assert judged(source, KERNEL).category != "inefficient-algorithm"


@pytest.mark.parametrize(
    ("work", "category"),
    [
        ("mean = window.mean()", "inefficient-algorithm"),
        ("high = np.max(window)", "inefficient-algorithm"),
        ("power = np.fft.rfft(window)", None),  # it has no running form
    ],
)
def test_a_name_that_stands_for_a_slice_is_that_slice(work: str, category: str | None) -> None:
    source = f"def f(x, n):\n for i in range(n, len(x)):\n  window = x[i - n : i]\n  {work}  #"
    assert judged(source, SELECTOR).category == category
