"""Suggestions about functions called for each value, group or row, recursion and sorting, with twins that have none."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import Builder
from unit.report.suggested import SITE, Answer, found, hot, library, likely, rules

NUMPY, AXIS = f"{SITE}/numpy/lib/_function_base_impl.py", f"{SITE}/numpy/lib/_shape_base_impl.py"
GROUPS, CELLS = f"{SITE}/pandas/core/groupby/generic.py", f"{SITE}/pandas/core/indexing.py"
MODEL = f"{SITE}/sklearn/linear_model/_logistic.py"

SPARSE = f"{SITE}/scipy/sparse/_compressed.py"

EACH = """import numpy as np
import scipy
import pandas as pd
def work(table, rows, model):
    for row in rows:
        {line}
def tone(value):
    return 0.0 if value < 0.1 else min(1.0, value * 2)
def parsed(value):
    return lookup(value)
def share(group):
    return group / group.sum()
"""


@pytest.mark.parametrize(
    ("line", "path", "name", "expected"),
    [
        ("np.vectorize(tone)(row)", NUMPY, "vectorize.__call__", "function-for-each-value"),
        ("np.vectorize(parsed)(row)", NUMPY, "vectorize.__call__", None),  # it may have no form for arrays
        ("np.vectorize(tone)(row)", NUMPY, "average", None),
        ("np.apply_along_axis(np.mean, 1, row)", AXIS, "apply_along_axis", None),  # no function of the file
        (
            "np.apply_along_axis(lambda r: r.max() - r.min(), 1, row)",
            AXIS,
            "apply_along_axis",
            "function-for-each-value",
        ),
        (
            "row.groupby('a').transform(lambda g: g / g.sum())",
            GROUPS,
            "SeriesGroupBy.transform",
            "function-of-each-group",
        ),
        ("row.groupby('a').apply(share)", GROUPS, "SeriesGroupBy.apply", "function-of-each-group"),
        ("row.groupby('a').transform('sum')", GROUPS, "SeriesGroupBy.transform", None),
        ("row.groupby('a').apply(parsed)", GROUPS, "SeriesGroupBy.apply", None),
        ("table.loc[len(table)] = [row]", CELLS, "_LocIndexer._setitem_with_indexer_missing", "row-by-row"),
        ("table.loc[row] = 3", CELLS, "_LocIndexer._setitem_with_indexer", None),
        ("model.predict(row.reshape(1, -1))", MODEL, "LogisticRegression.predict", "one-row-each-time"),
        ("model.predict([row])", MODEL, "LogisticRegression.predict", "one-row-each-time"),
        ("model.predict(row)", MODEL, "LogisticRegression.predict", None),
        ("table[row, 3] = 1.0", SPARSE, "_cs_matrix._set_many", "sparse-by-element"),
        ("table[row, 3] = 1.0", SPARSE, "_cs_matrix.tocsr", None),
        ("print(table[row, 3])", SPARSE, "_cs_matrix._set_many", None),
        ("model.predict([table])", MODEL, "LogisticRegression.predict", None),
    ],
)
def test_for_each(builder: Builder, answer: Answer, line: str, path: str, name: str, expected: str | None) -> None:
    hot(builder, EACH.format(line=line), 6, library(builder, path, name))
    assert rules(answer) == ([(expected, 6)] if expected else [])


def test_groups_are_told_the_method_that_they_have(builder: Builder, answer: Answer) -> None:
    hot(builder, EACH.format(line="row.groupby('a').apply(share)"), 6, library(builder, GROUPS, "SeriesGroupBy.apply"))
    assert found(answer)[0].instead.startswith('names of methods, groups.agg("sum")')


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return ways(a - 1, b) + ways(a, b - 1)", True),
        ("x = ways(a - 1, b)\n    y = ways(a, b - 2)\n    return max(x, y)", True),
        ("return ways(a - 1, b)", False),
        ("return ways(a - 1, b) + ways(a - 1, b)", False),  # the same call: not this rule's
        ("return ways(a - 1, b) if a > b else ways(a, b - 1)", False),  # one of them alone runs
        ("if a > b:\n        return ways(a - 1, b)\n    return ways(a, b - 1)", False),
        ("return ways(a // 2, b) + ways(a - a // 2, b)", False),  # halves
        ("return ways(a.left, b) + ways(a.right, b)", False),
        ("print(a)\n    return ways(a - 1, b) + ways(a, b - 1)", False),
        ("if a in kept:\n        return kept[a]\n    return ways(a - 1, b) + ways(a, b - 1)", False),
    ],
)
def test_recursion(builder: Builder, answer: Answer, body: str, expected: bool) -> None:
    hot(builder, f"def ways(a, b):\n    if a == 0:\n        return b\n    {body}\n", 2)
    assert rules(answer) == ([("recursive-again", 2)] if expected else [])


SORTED = """def work(values, more):
    for each in more:
        {line}
        {then}
"""


@pytest.mark.parametrize(
    ("line", "then", "said"),
    [
        ("values.sort()", "values.append(values.pop() + each)", "heapq"),
        ("values.sort(reverse=True)", "values.append(each)", "bisect"),
        ("values = sorted(values)", "values.append(each)", "bisect"),
        ("values.sort()", "print(values[0])", None),
        ("each.sort()", "each.append(3)", "bisect"),
        ("values.sort()", "values.extend(each)", None),
    ],
)
def test_sorting_in_a_loop(builder: Builder, answer: Answer, line: str, then: str, said: str | None) -> None:
    module = builder.module("/usr/lib/libpython3.13.so")
    frame = builder.native_frame(module, "list_sort_impl")
    hot(builder, SORTED.format(line=line, then=then), 3, native_frame=frame)
    suggestions = found(answer)
    assert [each.rule for each in suggestions] == (["sorted-again"] if said else [])
    assert said is None or said in suggestions[0].instead


@pytest.mark.parametrize("change", ['options["a"]["b"] = each', 'options["a"].append(each)'])
def test_a_result_that_a_round_changes_inside_is_its_own(builder: Builder, answer: Answer, change: str) -> None:
    source = f"def work(many):\n    for each in many:\n        options = made()\n        {change}\n"
    hot(builder, source, 3, library(builder, f"{SITE}/made.py", "made"))
    assert likely(answer) == []


@pytest.mark.parametrize(
    ("call", "expected"),
    [("sum(rows, [])", True), ("sum(rows, start=())", True), ("sum(rows)", False), ("sum(rows, [0])", False)],
)
def test_lists_that_sum_joins(builder: Builder, answer: Answer, call: str, expected: bool) -> None:
    frame = builder.native_frame(builder.module("/usr/lib/libpython3.13.so"), "builtin_sum")
    hot(builder, f"def work(rows):\n    return {call}\n", 2, native_frame=frame)
    assert rules(answer) == ([("lists-summed", 2)] if expected else [])
