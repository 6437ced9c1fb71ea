"""Which kind of repetition a line is, told from its source and from the native functions that were repeated."""

from __future__ import annotations

import pytest

from tachograph.analyzer.conclusions.redundancy.candidates import (
    ALGORITHM,
    INVARIANT,
    MISUSE,
    REMEDIES,
    SAME_CALL,
    SLICE,
    Evidence,
    Kind,
)
from tachograph.analyzer.conclusions.redundancy.categories import categorise
from tachograph.analyzer.source_code.source import parse
from unit.analyzer.judged_line import COPY, GENERIC, INDEX, POWER, PRODUCT, judged


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
        (INVARIANT, POWER, "k = np.arange(9)\nfor i in range(n):\n    t += np.sum(a ** k * np.cos(b * k * x[i]))  #"),
        (INVARIANT, POWER, "def f(n):\n  for i in range(9):\n    t += np.sqrt(1 - np.power(0.9, n)) * i  #"),
        (INVARIANT, PRODUCT, "def f(D, E, X, A):\n  for _ in range(9):\n    A = D @ (X - E @ A)  #"),
        (INVARIANT, PRODUCT, "def f(D, X, y, w):\n  for _ in range(9):\n    w = w - D @ (X @ w - y)  #"),
        (INVARIANT, PRODUCT, "def f(D, X, A):\n  for _ in range(9):\n    A = D @ X - (D @ D) @ A  #"),
        (INVARIANT, COPY, "def f(A, x, y):\n  for _ in range(9):\n    x[:] = A[:, :4].T  #\n    y = x @ y"),
        (SLICE, POWER, "A = np.ones((3, 4))\nfor row, mean in zip(A, means):\n    row -= mean  #"),
        (SLICE, POWER, "A = np.ones(9)\nfor i, x in enumerate(A):\n    t += 2 * x  #"),
        (SLICE, POWER, "A, m = np.ones((3, 4)), 1\nfor row in A:\n    row -= m  #"),
        (SLICE, POWER, "A = np.ones(9)\nfor x in A:\n    t.append(np.sqrt(x))  #"),
        (MISUSE, POWER, "for i, x in enumerate(xs):\n    t += np.sqrt(i) * x  #"),
        (MISUSE, POWER, "for i, _ in pairs:\n    t += np.sqrt(x[i])  #"),
        (SLICE, ["array_item"], "A = np.ones((3, 4))\nfor row in A:  #\n    t += f(row)"),
        (
            ALGORITHM,
            ["cdist"],
            "kept = [0]\nwhile len(kept) < 9:\n    gaps = cdist(x, x[kept])  #\n    kept.append(f(gaps))",
        ),
        # An element of another library, of which the line does nothing else: what is no kernel is for it.
        (SLICE, ["call_thunk", "csr_row_slice"], "for i, j in zip(a, b):\n    t += weights[i, j]  #"),
        (ALGORITHM, ["copy"], "for i in range(9):\n    X[[i, i + 1]] = X[[i + 1, i]]  #"),
        (ALGORITHM, ["swap"], "for i in range(9):\n    X.T[i], X.T[i + 1] = swap(X.T[i], X.T[i + 1])  #"),
    ],
)
def test_each_kind_is_told(category: str, path: list[str], source: str) -> None:
    verdict = judged(source, path)
    assert verdict.category == category, verdict
    assert category in REMEDIES


@pytest.mark.parametrize(
    ("line", "kind", "category"),
    [
        ("y = np.fft.rfft(x, 8) * np.fft.rfft(room, 8)  #", "result", INVARIANT),
        ("y = np.fft.rfft(x, 8) * np.fft.rfft(room, 8)  #", "load", None),  # which of them loads it is not known
        ("y = np.fft.rfft(x, 8) * room  #", "result", None),  # a table that is made for each of others
        ("y = np.sort(np.fft.rfft(x, 8)) * np.fft.irfft(room, 8)  #", "result", None),
    ],
)
def test_a_result_that_is_the_same_beside_others_of_the_same_function(
    line: str, kind: Kind, category: str | None
) -> None:
    path = ["rfftp_exec", "rfft_impl", "ufunc_generic_fastcall"]
    assert judged(f"def f(xs, room):\n for x in xs:\n  {line}", path, kind=kind).category == category


def test_the_call_of_one_number_is_named_and_not_the_one_of_all() -> None:
    source = "for i in range(n):\n    t = np.sum([np.power(2, j) * x[i] for j in range(9)])  #"
    verdict = judged(source, POWER)
    assert verdict.category == MISUSE
    assert verdict.reason.startswith("np.power(2, j) ")


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


TURN = """\
class Turned:
    def rotate(self, theta, scale=1.0):
        a = np.cos(theta)
        turn = np.array([[a, 0.0], [0.0, a]], float)
        self.matrix = np.dot(turn, np.identity(2))  #
    def both(self, angle):
        self.rotate(angle)
{caller}
"""


@pytest.mark.parametrize(
    ("caller", "callers"),
    [
        ("for _ in range(9):\n    turned.rotate(0.5)", (9,)),
        ("for _ in range(9):\n    turned.rotate(scale=2.0, theta=0.5)", (9,)),
        ("half = 0.5\nfor _ in range(9):\n    turned.rotate(half)", (10,)),
        ("for _ in range(9):\n    turned.both(0.5)", (7, 9)),
        ("def f():\n    turned.both(0.5)\nwhile True:\n    f()", (7, 9, 11)),
    ],
)
def test_a_function_that_its_callers_give_the_same_arguments(caller: str, callers: tuple[int, ...]) -> None:
    verdict = judged(TURN.format(caller=caller), PRODUCT, callers=callers)
    assert verdict.category == SAME_CALL, verdict
    assert f"line {callers[-1]}" in verdict.reason.replace(f"line {callers[-1] + 1}", f"line {callers[-1]}")


@pytest.mark.parametrize(
    ("caller", "callers"),
    [
        ("for angle in angles:\n    turned.rotate(angle)", (9,)),
        ("for i in range(9):\n    turned.rotate(angles[i])", (9,)),
        ("turned.rotate(0.5)", (8,)),
        ("for _ in range(9):\n    turned.rotate(*arguments)", (9,)),
        ("for _ in range(9):\n    turned.rotate(0.5), turned.rotate(0.6)", (9,)),
        ("for angle in angles:\n    turned.both(angle)", (7, 9)),
        ("for _ in range(9):\n    turned.rotate(0.5)", ()),  # it is not known from where
    ],
)
def test_a_function_whose_arguments_differ_or_are_not_known(caller: str, callers: tuple[int, ...]) -> None:
    verdict = judged(TURN.format(caller=caller), PRODUCT, callers=callers)
    assert verdict.category is None


@pytest.mark.parametrize(
    ("caller", "callers", "excused"),
    [
        ("for angle in angles:\n    turned.rotate(angle)", (9,), True),
        ("for angle in angles:\n    turned.both(angle)", (7, 9), True),
        # It is not known from where: that a kernel reads an operand again is no repetition of work.
        ("for angle in angles:\n    turned.rotate(angle)", (), True),
        ("turned.rotate(0.5)", (8,), True),
    ],
)
def test_arguments_that_differ_are_no_repetition(caller: str, callers: tuple[int, ...], *, excused: bool) -> None:
    source = TURN.replace(", np.identity(2))", ", turn)").format(caller=caller)
    verdict = judged(source, PRODUCT, callers=callers)
    assert (verdict.category, verdict.excused) == (None, excused)


PULLED = """\
class Pool:
    def weakest(self):
        return np.argmin(self.rows)  #
    def retire(self, spot):
        rows, last = self.rows, self.last
        rows[spot] = rows[last]
    def count(self):
        self.calls += 1
def shrink(pool):
    while pool.active:
        pool.{other}(pool.weakest())
"""


@pytest.mark.parametrize(("other", "category"), [("retire", None), ("count", SAME_CALL), ("unknown", INVARIANT)])
def test_what_another_method_changes_is_not_the_same(other: str, category: str | None) -> None:
    """``retire`` stores into the rows by another name; ``count`` changes what ``weakest`` does not read."""
    assert judged(PULLED.format(other=other), ["argmin"], callers=(11,)).category == category


HOISTED = """class Web:
    def flow(self):
        return self.links / np.sum(self.links)  #
    def ranks(self, rank):
        for _ in range(9):
            {statement}
"""


@pytest.mark.parametrize(
    ("statement", "category"), [("rank = self.flow() @ rank", INVARIANT), ("self.flow()", SAME_CALL)]
)
def test_a_call_for_its_result_can_be_moved_out_of_the_loop(statement: str, category: str) -> None:
    source = HOISTED.format(statement=statement)
    assert judged(source, ["PyUFunc_GenericReduction"], callers=(6,)).category == category


SUMMED = "    return np.sum(self.x)  #\n"


@pytest.mark.parametrize(
    ("methods", "line", "called"),
    [
        (f"  @property\n  def f(self):\n{SUMMED}  def g(self):\n    return self.f\n", 6, "d.g()"),
        (f"  def __call__(self, y):\n{SUMMED}\n\n\n", 0, "d(y)"),
        (f"  def f(self, y):\n{SUMMED}def h(d, ys):\n  return list(map(d.f, ys))\n\n", 5, "h(d, ys)"),
    ],
)
def test_properties_and_objects_that_are_called(methods: str, line: int, called: str) -> None:
    source = f"class D:\n{methods}d = D()\nfor y in ys:\n  {called}"
    lines = source.split("\n")
    callers = tuple(each for each in (line, len(lines)) if each)
    assert judged(source, ["PyUFunc_GenericReduction"], callers=callers).category == SAME_CALL


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("def f(x):\n  return np.exp(x) / np.sqrt(2 * np.pi)  #\nfor x in xs:\n  f(x)", GENERIC),
        ("def f(A, x, d, n):\n  for _ in range(9):\n    x = A @ x + (1.0 - d) / n  #", PRODUCT),
        ("def f(x):\n  return np.log(table @ x)  #\nfor x in xs:\n  f(x)", PRODUCT),
    ],
)
def test_a_trifle_that_stays_the_same_does_not_explain_what_changes_beside_it(source: str, path: list[str]) -> None:
    verdict = judged(source, path, callers=(4,) if "for x in" in source else ())
    assert verdict.category is None or verdict.by_paths, verdict
    assert verdict.excused or verdict.by_paths


def test_stores_of_dispatch_are_misuse_and_those_of_kernels_a_state_that_has_settled() -> None:
    source = "for x in xs:\n    if np.isnan(x):  #\n        n += 1"
    verdict = judged(source, ["get_wrapped_legacy_ufunc_loop", "ufunc_generic_fastcall"], kind="store")
    assert (verdict.category, verdict.by_paths) == (MISUSE, True)
    for settled in (source, "for _ in range(9):\n    x = A @ x + 1  #"):
        verdict = judged(settled, ["DOUBLE_isnan", "array_matrix_multiply"], kind="store")
        assert (verdict.category, verdict.excused) == (None, True)
    # What comes before work with other operands each time stores what it finds of their kind.
    verdict = judged("for _ in range(9):\n    x -= x.mean()  #", ["get_wrapped_legacy_ufunc_loop"], kind="store")
    assert (verdict.category, verdict.excused) == (None, True)
    # A function of the program's own library chooses what it stores.
    verdict = judged("for x in xs:\n    library.store(cells, x)  #", ["store"], kind="store")
    assert (verdict.category, verdict.excused) == (None, False)


def test_what_goes_through_all_elements_of_the_interpreters_is_known_by_its_results() -> None:
    source = "def f(limits):\n  for limit in limits:\n    order = sorted(scores.values())  #"
    assert judged(source, ["merge_at", "builtin_sorted"], kind="result").category == INVARIANT
    assert judged(source, ["merge_at", "builtin_sorted"]).category != INVARIANT


def test_what_is_not_an_operators_is_the_calls_beside_it() -> None:
    source = "def f(n):\n  for i in range(9):\n    t += i / np.power(n, 1.2)  #"
    assert judged(source, [*GENERIC, "PyObject_Vectorcall"]).category == INVARIANT
    assert judged(source, [*GENERIC, "array_true_divide", "PyNumber_TrueDivide"]).category != INVARIANT


def test_one_draw_at_a_time_is_known_by_the_native_functions() -> None:
    source = (
        "class S:\n  def draws(self, count):\n    for _ in range(count):\n      yield self.rng.choice(9, p=self.p)  #"
    )
    drawn = ["DOUBLE_divide", "__pyx_pf_5numpy_6random_10_generator_9Generator_26choice"]
    assert judged(source, drawn, kind="result").category == MISUSE
    assert judged(source, ["DOUBLE_divide"], kind="result").category is None


@pytest.mark.parametrize(("body", "category"), [("return 2 * n", SAME_CALL), ("return rng.normal(0, 1, n)", None)])
def test_results_of_own_functions_are_the_same_unless_they_draw(body: str, category: str | None) -> None:
    source = f"def made(n):\n  {body}\ndef f():\n  return np.sort(made(9))  #"
    assert judged(source, ["sort"], kind="result").category == category


@pytest.mark.parametrize(
    ("before", "number", "category"),
    [
        ("", "0.5", SAME_CALL),
        ("", "2 * np.pi", SAME_CALL),
        ("theta = 0.5", "theta", SAME_CALL),
        ("theta = -0.5", "theta", SAME_CALL),
        ("theta = float(text)", "theta", SAME_CALL),
        ("theta = 0.5\ntheta = 0.6", "theta", None),
        ("theta = 0.5\ndef g():\n    global theta\n    theta = 0.6", "theta", None),
        ("theta = 0.5\nfor theta in angles:\n    f()", "theta", None),
        ("while True:\n    theta = float(text)", "theta", None),
        # Measurements say that its elements do not change.
        ("theta = [0.5]", "theta", SAME_CALL),
        ("theta = found()", "theta", SAME_CALL),
        ("import settings", "settings.theta", SAME_CALL),
        ("", "unknown", None),
    ],
)
def test_a_function_of_one_number_that_is_always_the_same(before: str, number: str, category: str | None) -> None:
    source = f"{before}\ndef f():\n    np.cos({number})  #\nfor _ in range(9):\n    f()"
    assert judged(source, POWER, callers=(source.count("\n") + 1,)).category == category


@pytest.mark.parametrize(
    "body",
    [
        "def f(x):\n    return np.dot(x, np.random.random(3))  #",
        "def f(x):\n    return np.dot(x, table)  #",
        "def f(x):\n    y = 1\n    y = x\n    return np.dot(x, y)  #",
        "def f(x):\n    x[0] = 1\n    return np.dot(x, x)  #",
    ],
)
def test_what_is_made_of_more_than_arguments_may_differ(body: str) -> None:
    source = f"{body}\nfor _ in range(9):\n    f(1.0)"
    assert judged(source, PRODUCT, callers=(source.count("\n") + 1,)).category is None


@pytest.mark.parametrize(
    "body",
    [
        "\n".join(f"    x{n + 1} = x{n}" for n in range(3000)) + "\n    return np.dot(x3000, x3000)  #",
        "    x1 = x2\n    x2 = x1\n    return np.dot(x1, x2)  #",
    ],
)
def test_of_long_chains_nothing_is_proved(body: str) -> None:
    source = f"def f(x0):\n{body}\nfor _ in range(9):\n    f(1.0)"
    assert judged(source, PRODUCT, callers=(source.count("\n") + 1,)).category is None


@pytest.mark.parametrize(
    ("source", "excused"),
    [
        ("def f():\n    state['x'] = np.sqrt(state['x'] + 1)  #", True),
        ("def f():\n    columns[:-1] = columns[1:]  #", True),
        ("class C:\n    def f(self):\n        self.x = np.sqrt(self.x)  #", True),
        ("def f():\n    state['x'] = np.sqrt(values + 1)  #", True),
        ("def f():\n    own = np.zeros(9)\n    own[1:] = np.sqrt(own[1:])  #", False),
    ],
)
def test_a_function_that_changes_what_it_reads_repeats_nothing(source: str, *, excused: bool) -> None:
    verdict = judged(source, ["copy"])
    assert verdict.category is None
    assert verdict.excused == excused


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


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (PRODUCT, "def f(D, E, X, A):\n  for _ in range(9):\n    A = D @ (A - A @ X)  #"),
        (PRODUCT, "def f(D, E, X, A):\n  for _ in range(9):\n    A = D @ (X - A @ E)  #"),
        (COPY, "def f(A, x):\n  for _ in range(9):\n    x[:] = A  #\n    A = A + x"),
        (POWER, "for row, mean in zip(rows, means):\n    row -= mean  #"),  # it may be a list of arrays
        (POWER, "A = [np.ones(3), np.ones(4)]\nfor row in A:\n    row -= 1  #"),
        (PRODUCT, "A = np.ones((3, 4))\nfor row in A:\n    t = row @ t  #"),
        (POWER, "for weights, slope in zip(parameters, slopes):\n    weights -= np.sqrt(slope)  #"),  # so may these
    ],
)
def test_what_may_change_has_no_kind(path: list[str], source: str) -> None:
    assert judged(source, path).category is None


def test_a_sum_of_many_numbers_is_looked_at() -> None:
    terms = " + ".join(["n"] * 900)
    source = f"def f(n):\n  for i in range(9):\n    t += np.sqrt({terms} + np.exp(n)) * i  #"
    assert judged(source, ["DOUBLE_sqrt", "ufunc_generic_fastcall"]).category == INVARIANT
    source = "def f(x):\n    return np.dot(x, " + " + ".join(["x"] * 900) + ")  #\nfor _ in range(9):\n    f(1.0)"
    assert judged(source, PRODUCT, callers=(4,)).category == SAME_CALL


@pytest.mark.broad
@pytest.mark.parametrize(
    ("line", "again", "deepest"),
    [
        ("t += np.sqrt({} + np.exp(n)) * i  #", " + n", 1800),
        ("a, b = np.dot({}, i), np.dot({}, i)  #", ".m()", 450),  # two levels of the tree each
        ("a[i], a[i - 1] = a[i - 1] + ({}), a[i]  #", "[0]", 1800),
    ],
)
def test_an_expression_may_be_of_any_depth(line: str, again: str, deepest: int) -> None:
    """Python's own functions for syntax trees go down some hundred levels, its parser some thousand."""
    lines = (line.replace("{}", "n" + again * levels) for levels in (1800, 900, 450) if levels <= deepest)
    sources = (f"def f(n):\n  for i in range(9):\n    {text}" for text in lines)
    judged(next(source for source in sources if parse(source) is not None), POWER)


def test_paths_that_no_expression_runs_decide_nothing() -> None:
    source = "for i in range(9):\n    w[i] = load(i)  #"
    assert judged(source, INDEX).category == SLICE
    assert judged(source, ["inflate_fast", "inflate"]).category is None


def test_without_source_nothing_is_told() -> None:
    verdict = categorise(None, Evidence("load", [INDEX], [INDEX[0]], 1, 1))
    assert verdict.category is None
    assert "source" in verdict.reason
    assert not verdict.excused


DESCENT = "for i in range(9):\n    r = y - X @ w  #\n    w[i] = r[0]"


@pytest.mark.parametrize(
    ("source", "category"),
    [
        (DESCENT, ALGORITHM),
        (DESCENT.replace("X @ w", "X.dot(w)"), ALGORITHM),
        (DESCENT.replace("X @ w", "np.linalg.norm(w)"), ALGORITHM),
        (DESCENT.replace("w[i] = r[0]", "w[:i] = r[0]"), None),
        (DESCENT.replace("w[i] = r[0]", "w[i] = r[0]\n    w *= 2"), None),
        (DESCENT.replace("w[i] = r[0]", "w[i] = r[0]\n    w.sort()"), None),
        (DESCENT.replace("w[i] = r[0]", "w = r"), None),
        (DESCENT.replace("X @ w", "X[i] @ w"), None),  # another row each time: nothing of it is known from before
        (DESCENT.replace("    w[i] = r[0]", "    for j in range(9):\n        w[j] = r[0]"), None),
    ],
)
def test_work_with_all_of_what_changed_in_one_element(source: str, category: str | None) -> None:
    verdict = judged(source, ["dgemv_kernel_4x4", "dgemv_t", "cblas_matrixproduct"])
    assert verdict.category == category
    assert category is not None or verdict.excused


@pytest.mark.parametrize(
    ("source", "category"),
    [
        ("for i in range(9):\n    text = json.loads(RULES)  #", INVARIANT),
        ("for i in range(9):\n    text = json.loads(RULES) + other(i)  #", None),
    ],
)
def test_where_all_of_a_line_gets_the_same_the_names_below_it_do_not_matter(source: str, category: str | None) -> None:
    assert judged(source, ["scan_once_unicode"]).category == category


def test_filling_memory_with_constants_is_no_work_to_keep() -> None:
    assert judged("for i in range(9):\n    x = np.arange(9000)  #", ["LONG_fill"], kind="result").category is None


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("level = np.clip(gain * error, low, high)", MISUSE),
        ("slope = gram.dot(weights) - goal", None),
        ("self.total += position - self.recent[self.spot]", None),
    ],
)
def test_dispatch_of_operators_and_methods_has_no_other_way(line: str, category: str | None) -> None:
    """Of a function there is one for all elements, or for one number."""
    source = f"def f(self, error, weights, position):\n  for error, weights, position in steps:\n    {line}  #"
    verdict = judged(source, GENERIC)
    assert (verdict.category, verdict.excused) == (category, category is None)
