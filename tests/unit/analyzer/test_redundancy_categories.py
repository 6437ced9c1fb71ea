"""Which kind of repetition a line is, told from its source and from the native functions that were repeated."""

from __future__ import annotations

import textwrap

import pytest

from tachograph.analyzer.conclusions.redundancy.categories import (
    ALGORITHM,
    INVARIANT,
    MISUSE,
    REMEDIES,
    SAME_CALL,
    SLICE,
    Evidence,
    Verdict,
    categorise,
)
from tachograph.analyzer.recording.syntax.names import Names
from tachograph.analyzer.recording.syntax.source import parse
from tachograph.format.enumerations import Access

INDEX = ["prepare_index", "array_subscript"]
POWER = ["DOUBLE_power", "ufunc_generic_fastcall"]
PRODUCT = ["dgemm_kernel", "DOUBLE_matmul_matrixmatrix"]


def judged(
    source: str,
    path: list[str],
    *,
    kind: Access = Access.LOAD,
    share: float = 1.0,
    partner: int | None = None,
) -> Verdict:
    """The verdict on the line with a ``#`` at its end, all pairs of which were in one native path."""
    text = "import numpy as np\n" + textwrap.dedent(source)
    line = next(number for number, each in enumerate(text.split("\n"), 1) if each.endswith("#"))
    module = parse(text)
    assert module is not None
    return categorise(Names(module), Evidence(kind, [path] * 20, share, line, line if partner is None else partner))


@pytest.mark.parametrize(
    ("category", "path", "source"),
    [
        (SLICE, INDEX, "for i in range(n):\n    for j in range(m):\n        w[i, j] += rate * g[i, j]  #"),
        (SLICE, INDEX, "i = 0\nwhile i < n:\n    x[i] = 1  #\n    i += 1"),
        (INVARIANT, POWER, "def f(n):\n  for i in range(n):\n    t += i / np.power(n, 1.2)  #"),
        (INVARIANT, POWER, "def f(n, x):\n  for i in range(n):\n    t += x[i] / np.power(n, 1.2)  #"),
        (INVARIANT, PRODUCT, "def f(D, X, A):\n  for _ in range(9):\n    A = D @ X - A  #"),
        (MISUSE, POWER, "for j in range(9):\n    t += np.abs(np.power(2, j) * x)  #"),
        (MISUSE, POWER, "t = np.power(2, k) * x - round(np.power(2, k) * x)  #"),
        (ALGORITHM, ["copy"], "for i in range(9):\n    X[[i, i + 1]] = X[[i + 1, i]]  #"),
        (ALGORITHM, ["swap"], "for i in range(9):\n    X.T[i], X.T[i + 1] = swap(X.T[i], X.T[i + 1])  #"),
    ],
)
def test_each_kind_is_told(category: str, path: list[str], source: str) -> None:
    verdict = judged(source, path)
    assert verdict.category == category, verdict
    assert category in REMEDIES


def test_the_same_call_on_two_lines() -> None:
    source = """
    def fit(x, y, theta):
        for _ in range(9):
            a = np.sum(x.dot(theta) - y)  #
            b = np.sum(np.square(x.dot(theta) - y))
            theta = theta - a - b
    """
    assert judged(source, PRODUCT, partner=6).category == SAME_CALL
    assert judged(source, PRODUCT).category is None


def test_a_function_that_stores_what_it_stored_before() -> None:
    source = "def rotate(theta):\n    a = np.cos(theta)  #\n    return a"
    path = ["DOUBLE_cos", "ufunc_generic_fastcall"]
    assert judged(source, path, kind=Access.STORE).category == SAME_CALL
    assert judged(source, path, kind=Access.STORE, share=0.5).category is None
    assert judged(source, path).category is None  # loads alone do not tell


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("for i in range(9):\n    A = D @ A  #", PRODUCT),
        ("for i in range(9):\n    x[i] = np.sin(y)  #\n    y = y + 1", ["DOUBLE_sin"]),
        ("for i in range(9):\n    D.append(1)\n    A = D @ X - D  #", PRODUCT),
    ],
)
def test_operands_that_change_are_no_repetition(source: str, path: list[str]) -> None:
    verdict = judged(source, path)
    assert verdict.category is None
    assert verdict.excused


def test_paths_that_no_expression_runs_decide_nothing() -> None:
    source = "for i in range(9):\n    w[i] = load(i)  #"
    assert judged(source, INDEX).category == SLICE
    assert judged(source, ["inflate_fast", "inflate"]).category is None


def test_without_source_nothing_is_told() -> None:
    verdict = categorise(None, Evidence(Access.LOAD, [INDEX], 1.0, 1, 1))
    assert verdict.category is None
    assert "source" in verdict.reason
    assert not verdict.excused
