"""Work that is repeated for one element, row or mask after another, told from the source of its line."""

from __future__ import annotations

import pytest

from tachograph.analyzer.conclusions.redundancy.candidates import (
    INVARIANT,
    MISUSE,
    SAME_CALL,
    SLICE,
)
from tachograph.analyzer.conclusions.redundancy.elements import is_lookup
from unit.analyzer.judged_line import COPY, INDEX, PRODUCT, judged


@pytest.mark.parametrize(
    ("path", "named"), [(INDEX, "signal[i - 1] "), (["prepare_index", "array_assign_subscript"], "out[i] ")]
)
def test_the_element_that_is_named_is_the_one_that_is_read_or_stored_into(path: list[str], named: str) -> None:
    verdict = judged("for i in range(1, n):\n    out[i] = 0.5 * signal[i - 1]  #", path)
    assert (verdict.category, verdict.reason.startswith(named)) == (SLICE, True), verdict.reason


def test_a_kernel_is_not_for_an_element() -> None:
    source = "for i in range(9):\n    t += weights[i]  #"
    assert judged(source, ["DOUBLE_add", "ufunc_generic_fastcall"]).category is None
    assert judged(source, ["call_thunk"]).category == SLICE
    assert judged(source.replace("weights[i]", "weights[i] * other"), ["call_thunk"]).category is None


IN_TABLES = "def f(image, tables, t, j):\n  for i in range(9):\n    frame = tables[i]\n"


@pytest.mark.parametrize(
    ("category", "line"),
    [
        (SLICE, "t += frame['a'].iloc[i] * frame['b'].iloc[i]  #"),
        (SLICE, "t += image.getpixel((i, j))  #"),
        (MISUSE, "t += frame.apply(lambda row: row['a'] * row['b'], axis=1)  #"),
        (None, "t += frame.apply(lambda column: column.sum())  #"),
        (INVARIANT, "t += image.getpixel((9, 9))  #"),
    ],
)
def test_elements_and_rows_that_a_library_makes_objects_of_need_few_pairs(category: str | None, line: str) -> None:
    verdict = judged(f"{IN_TABLES}    {line}", ["?", "PyObject_Vectorcall"])
    assert (verdict.category, verdict.by_source) == (category, category is not None)


IN_SPARSE = """\
import itertools
from scipy import sparse, stats
def f(frame, names, points, other):
  m = sparse.{made}
  for i, a in enumerate(names):
    for b in names[i + 1 :]:
"""


@pytest.mark.parametrize(
    ("category", "made", "line"),
    [
        (MISUSE, "csr_matrix((9, 9))", "    m[a, b] += 1  #"),
        (MISUSE, "csc_array(points)", "    t += m[i, b]  #"),
        (SLICE, "lil_matrix((9, 9))", "    t += m[i, b]  #"),  # it is made for elements
        (MISUSE, "csr_matrix((9, 9))", "    r = frame[a].corr(frame[b])  #"),
        (MISUSE, "csr_matrix((9, 9))", "    r = stats.spearmanr(points[:, i], points[:, b])  #"),
        (MISUSE, "csr_matrix((9, 9))", "r = [frame[a].cov(frame[b]) for a, b in itertools.combinations(names, 2)]  #"),
        (None, "csr_matrix((9, 9))", "    r = frame[a].corr(other[b])  #"),  # of two tables
        (None, "csr_matrix((9, 9))", "    r = frame[b].corr(frame['target'])  #"),
        (None, "csr_matrix((9, 9))", "r = [frame[a].cov(frame[b]) for a, b in other]  #"),  # of some pairs
    ],
)
def test_elements_of_sparse_matrices_and_pairs_of_columns(category: str | None, made: str, line: str) -> None:
    indent = "    " if line.startswith(" ") else "  "
    source = IN_SPARSE.format(made=made) if indent == "    " else IN_SPARSE.format(made=made).partition("  for")[0]
    path = ["?", "PyObject_Vectorcall", "array_subscript" if category == SLICE else "?"]
    assert judged(f"{source}{indent}{line}", path).category == category


def test_rows_that_a_function_of_the_program_gets_one_by_one() -> None:
    source = "def f(row):\n  return row['a'] * row['b']  #\ndef g(frame):\n  return frame.apply(f, axis=1)"
    verdict = judged(source, ["?", "PyObject_Vectorcall"], callers=(4,))
    assert (verdict.category, verdict.by_source) == (MISUSE, True)


def test_an_element_that_is_stored_once_in_each_call_has_no_other_way() -> None:
    source = "class R:\n  def push(self, value):\n    self.recent[self.spot] = value  #"
    verdict = judged(source, ["array_assign_subscript"])
    assert (verdict.category, verdict.excused) == (None, True)


@pytest.mark.parametrize(
    ("source", "category"),
    [
        ("for i in range(9):\n    g[i] += s[i] * x  #", SLICE),
        ("for i in range(9):\n    g = np.sign(s[i]) * x  #", MISUSE),  # the call is what costs
    ],
)
def test_dispatch_of_elements_that_a_loop_takes(source: str, category: str) -> None:
    assert judged(source, ["ufunc_generic_fastcall", "PyNumber_Multiply"]).category == category


@pytest.mark.parametrize(
    "source",
    [
        "for k in range(9):\n    means = points[labels == k].mean()  #",
        "means = [points[labels == k].mean() if some[0] else centers[k] for k in range(9)]  #",
        "for k in range(9):\n    mine = labels == k\n    means[k] = points[mine].mean()  #",
        "for k in range(9):\n    means = np.append(means, points[labels == k, 0] - centers[k, 0])  #",
    ],
)
def test_a_mask_takes_more_than_an_element_and_hides_an_element_beside_it(source: str) -> None:
    """What indexing loads again is then of the mask."""
    assert judged(source, INDEX).category != SLICE


@pytest.mark.parametrize("line", ["some = labels == k\n    total += points[k]", "x = points[labels[k]]"])
def test_an_element_that_no_mask_is_beside(line: str) -> None:
    assert judged(f"for k in range(9):\n    {line}  #", INDEX).category == SLICE


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("from collections import Counter; votes = Counter(labels)", "np.unique(labels, return_counts=True)"),
        ("import math; total = math.fsum(parts)", "np.sum(parts)"),
        ("import collections; last = collections.deque(values, 9)", "values.tolist()"),
    ],
)
def test_what_the_standard_library_iterates_over(line: str, remedy: str) -> None:
    path = ["PyArray_Scalar", "iter_iternext", "math_fsum" if "fsum" in line else "_collections__count_elements"]
    verdict = judged(f"{line}  #", path)
    assert verdict.category == MISUSE
    assert verdict.remedy is not None
    assert remedy in verdict.remedy


KEYED = """\
def density(x, noise):
  return x @ np.linalg.inv(noise)  #
def nearest(marks, noise):
  return max(marks, key=lambda mark: density(mark, {noise}))
"""


@pytest.mark.parametrize(("noise", "category"), [("noise", SAME_CALL), ("mark", None), ("rng.normal()", None)])
def test_a_function_that_a_lambda_calls_for_one_element_after_another(noise: str, category: str | None) -> None:
    assert judged(KEYED.format(noise=noise), ["inv", "PyObject_Vectorcall"], callers=(4,)).category == category


@pytest.mark.parametrize(
    ("source", "category"),
    [
        (
            "from scipy.spatial import distance\nfor e in errors:\n    d = distance.mahalanobis(e, mean, inverse)  #",
            MISUSE,
        ),
        ("from scipy.spatial import distance\nfor e in errors:\n    d = distance.cdist(e, mean)  #", None),
        ("import pandas as pd\nstamps = [pd.to_datetime(text) for text in texts]  #", MISUSE),
        ("import pandas as pd\nfor column in columns:\n    t = pd.to_datetime(frame[column])  #", None),
        ("import pandas as pd\nfor each in (begins, ends):\n    t = pd.to_datetime(each)  #", None),
    ],
)
def test_functions_for_many_that_get_one(source: str, category: str | None) -> None:
    verdict = judged(source, ["?", "_npy_parse_arguments", "array_asarray"])
    assert (verdict.category, verdict.by_paths) == (category, False)


VECTORIZED = """\
class Bill:
  def __init__(self):
    self.rate = {made}
  def month(self, uses):
    return self.rate(uses)  #
"""


@pytest.mark.parametrize(
    ("made", "within"),
    [("np.vectorize(tariff)", True), ("np.frompyfunc(tariff, 1, 1)", True), ("other(tariff)", False), ("f", False)],
)
def test_a_python_function_for_each_element(made: str, *, within: bool) -> None:
    verdict = judged(VECTORIZED.format(made=made), ["PyArray_Pack", "strided_to_strided_object_to_any"])
    assert (verdict.category == MISUSE and not verdict.by_paths, verdict.within) == (within, within)


@pytest.mark.parametrize(
    ("category", "source"),
    [
        (MISUSE, "for row in rows:\n    t += model.predict(row.reshape(1, -1))[0]  #"),
        (MISUSE, "t = [model.predict([row])[0] for row in rows]  #"),
        (MISUSE, "for row in rows:\n    z = scaler.transform(row[None, :])\n    t += model.predict(z)  #"),
        (None, "for batch in batches:\n    t += model.predict(batch)  #"),
        (None, "for a, b in pairs:\n    t += model.predict([a, b])  #"),
        (None, "for _ in range(9):\n    t += model.predict([rng.random(4)])  #"),
        (None, "while True:\n    t += model.predict([next(rows)])  #"),  # there is no more of them yet
        (None, "for row in rows:\n    t += np.sum([row])  #"),
    ],
)
def test_a_model_that_gets_one_row_each_time(category: str | None, source: str) -> None:
    assert judged(f"import numpy as np\n{source}", ["?", "PyObject_Vectorcall"]).category == category


def test_a_model_that_a_function_gives_one_row_each_time() -> None:
    source = "def label(model, row):\n  return model.predict([row])[0]  #\nfor row in rows:\n  label(model, row)"
    verdict = judged(source, ["?", "PyObject_Vectorcall"], callers=(4,))
    assert (verdict.category, verdict.by_source) == (MISUSE, True)


def test_a_python_function_for_each_row() -> None:
    source = "def f(table):\n  return np.apply_along_axis(norm, 1, table)  #"
    assert judged(source, ["PyArray_Pack"]).within


@pytest.mark.parametrize(
    ("source", "path", "category"),
    [
        ("codes = [int(level) for level in levels]", ["array_item", "iter_iternext"], MISUSE),
        ("codes = [int(level) for level in levels]", ["PyArray_Scalar", "iter_iternext"], MISUSE),
        ("codes = [int(level) for level in levels]", ["next_row", "rows_iternext"], None),  # no array's
        ("codes = [f(level) for level in levels]", ["array_item", "iter_iternext"], None),
        ("codes = [int(other) for level in levels]", ["array_item", "iter_iternext"], None),
    ],
)
def test_elements_of_an_array_that_python_converts(source: str, path: list[str], category: str | None) -> None:
    verdict = judged(f"def g(levels, other):\n  {source}  #", path)
    assert (verdict.category, verdict.by_source) == (category, category is not None)


@pytest.mark.parametrize(
    ("call", "within"),
    [
        ("frame['net'].apply(lambda net: net * 1.19 if net > 1.0 else net)", True),
        ("column.map(lambda x: round(x, 2))", True),
        ("frame.apply(lambda column: column.sum())", False),
        ("groups.apply(lambda group: len(group))", False),
        ("frame.apply(lambda row: row['a'] * 2)", False),
        ("column.map(prices)", False),
    ],
)
def test_a_lambda_that_a_column_applies_to_numbers(call: str, *, within: bool) -> None:
    source = f"import pandas as pd\ndef f(frame, column, groups, prices):\n  return {call}  #"
    assert judged(source, ["array_subscript", "?"]).within is within


@pytest.mark.parametrize(
    ("work", "category"),
    [
        ("y = x.T @ np.diag(d) @ x  #", MISUSE),
        ("scale = np.diag(d)\n  y = np.dot(scale, x)  #", MISUSE),
        ("y = x.T @ np.linalg.inv(d) @ x  #", None),
        ("y = np.diag(x @ d)  #", SLICE),  # the diagonal of a product
        ("y = np.dot(x, np.diag(weights))  #", INVARIANT),  # whatever it is made of, it stays the same
    ],
)
def test_a_product_with_a_matrix_of_zeros_but_for_its_diagonal(work: str, category: str | None) -> None:
    verdict = judged(f"def f(x, ds):\n for d in ds:\n  {work}", PRODUCT)
    assert verdict.category == category
    if category == MISUSE:
        assert verdict.spends is not None
        of_vector = ["dgemv_t", "DOUBLE_matmul", "ufunc_generic_fastcall"]
        assert [verdict.spends(path) for path in (PRODUCT, INDEX, of_vector)] == [True, False, False]


@pytest.mark.parametrize(
    ("path", "is_element"),
    [
        (INDEX, True),
        (["scalar_value", "GetScalar", "__pyx_f_ChunkedArray_getitem"], True),
        (["mapiter_trivial_get", "array_subscript"], False),  # as many as an array of indexes says
        (["cpu_index_kernel", "THPVariable_getitem"], False),
        (COPY, False),
        (["double_add", "binary_op1"], True),  # it computes with the object that the lookup has made
        (["DOUBLE_add", "ufunc_generic_fastcall"], False),
    ],
)
def test_the_native_paths_of_one_element(path: list[str], *, is_element: bool) -> None:
    assert is_lookup(path) is is_element


@pytest.mark.parametrize(
    ("body", "call", "expected"),
    [
        ("return x[i][j]  #", "at(x, i, j)", "slice-underutilization"),
        ("return x[i - 1, j] + x[i + 1, j]  #", "at(x, i, j)", "slice-underutilization"),
        ("x[i, j] = 0  #", "at(x, i, j + 1)", "slice-underutilization"),
        ("return x[i][j]  #", "at(x, pair, 1)", None),  # what a loop takes may be an array
        ("return x[i][j]  #", "at(x, 1, 2)", None),
        ("return x[a][b]  #", "at(x, i, j)", None),
        ("kept = x[i, j] == 1; return x[kept]  #", "at(x, i, j)", None),  # by a mask
    ],
)
def test_elements_of_a_function_that_a_loop_calls(body: str, call: str, expected: str | None) -> None:
    source = (
        f"def at(x, i, j):\n {body}\n"
        f"def outer(x, pairs):\n for i in range(9):\n  for j, pair in enumerate(pairs):\n   {call}"
    )
    path = ["array_assign_subscript"] if " = 0" in body else INDEX
    assert judged(source, path, callers=(6,)).category == expected


@pytest.mark.parametrize(
    ("between", "expected"), [("at(x, i, 1)", "slice-underutilization"), ("at(x, x.size, 1)", None)]
)
def test_elements_of_a_function_that_is_called_by_another(between: str, expected: str | None) -> None:
    source = (
        "def at(x, i, j):\n return x[i][j]  #\n"
        f"def near(x, i):\n return {between}\n"
        "def outer(x):\n for i in range(9):\n  near(x, i)"
    )
    assert judged(source, INDEX, callers=(4, 7)).category == expected
