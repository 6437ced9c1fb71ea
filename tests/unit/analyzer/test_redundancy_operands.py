"""Whether an expression gets the same operands when it runs again: one function decides it, and this is its table."""

from __future__ import annotations

import ast
import textwrap

import pytest

from tachograph.analyzer.conclusions.redundancy.operands import Operands, Runs
from tachograph.analyzer.source_code.names import Names
from tachograph.analyzer.source_code.source import parse

SAME, OVERLAPPING, OTHER, UNKNOWN = Operands.SAME, Operands.OVERLAPPING, Operands.OTHER, Operands.UNKNOWN
HEAD = """\
import ctypes, datetime, io, math, os, random, time
import numpy as np
rng = np.random.default_rng(3)
lib = ctypes.CDLL("libown.so")
table = rng.random((9, 9))
"""


def of(expression: str, before: str, after: str = "", callers: tuple[int, ...] = ()) -> Operands:
    """The operands of an expression on a line of its own, after ``before`` and before ``after``."""
    last = before.rstrip("\n").split("\n")[-1]
    indent = len(last) - len(last.lstrip()) + (4 if last.rstrip().endswith(":") else 0)
    text = HEAD + before + " " * indent + expression + "\n" + after
    module = parse(text)
    assert module is not None, text
    line = text.split("\n").index(" " * indent + expression) + 1
    node = next(each for each in ast.walk(module.statements[line][0]) if isinstance(each, ast.expr))
    names = Names(module)
    return Runs(names, [(names, line) for line in callers]).operands(node)


@pytest.mark.parametrize(
    ("found", "expression"),
    [
        (SAME, "np.sum(x)"),
        (SAME, "x.mean(axis=0)"),
        (SAME, "x['value'].sort_values()"),
        (SAME, "np.hanning(512)"),
        (SAME, "lib.norm(x.ctypes.data, len(x))"),
        (SAME, "np.zeros(row.shape)"),
        (OTHER, "np.sum(row)"),
        (OTHER, "np.dot(x, row)"),
        (OTHER, "lib.run(x.ctypes.data, row, len(row))"),
        (OTHER, "x[i]"),
        (OTHER, "i * 2"),
        (OTHER, "acc"),
        (OTHER, "total"),
        (OTHER, "np.exp(total)"),
        (OTHER, "np.sum(drawn)"),
        (SAME, "np.sum(steady)"),
        # A slice of what does not change: the same elements again, unless the loop goes on by whole slices.
        (OVERLAPPING, "np.sum(x[: i + 1])"),
        (OVERLAPPING, "x[i - 5 : i].mean()"),
        (OVERLAPPING, "x[i:].max()"),
        (OTHER, "acc[: i + 1].sum()"),
        # Random numbers, the clock, the next item: other ones each time, whatever they get.
        (OTHER, "rng.standard_normal(9)"),
        (OTHER, "rng.zipf(1.4, 40)"),
        (OTHER, "rng.logistic(0.0, 1.0, 40)"),  # whatever it is called: its object is a generator
        (SAME, "other.logistic(0.0, 1.0, 40)"),
        (OTHER, "np.random.normal(0, 1, 9)"),
        (OTHER, "random.randbytes(500)"),
        (OTHER, "x @ rng.random(9)"),
        (OTHER, "next(x)"),
        (OTHER, "time.time()"),
        (SAME, "np.random.default_rng(3)"),
        (SAME, "np.load(io.BytesIO(x))"),
        (SAME, "np.load(os.path.join(x, 'a'))"),
        (OTHER, "np.load(os.read(x, 9))"),
        (SAME, "np.sum(x, datetime.timedelta(days=1))"),
        (OTHER, "np.sum(x, datetime.datetime.now())"),
        # What only grows: all that was there, again; its last element is another one.
        (OVERLAPPING, "np.min(x[kept])"),
        (OVERLAPPING, "np.mean(kept)"),
        (OVERLAPPING, "max(abs(x - each) for each in kept)"),
        (OTHER, "np.dot(x, row - kept[-1])"),
        (OTHER, "np.sum(x[kept[-1]])"),
        (OTHER, "kept + x"),
        (OTHER, "kept.append(x)"),
        # Of methods that change what has them and give nothing back, a result that is used is another method's.
        (SAME, "np.sum(x.resize((48, 48)))"),
        (SAME, "np.sum(x.partition(' ')[0])"),
        (OTHER, "x.resize((48, 48))"),
        (OTHER, "x.append(3) or np.sum(x)"),
        (OTHER, "np.mean(emptied)"),
    ],
)
def test_each_round_of_a_loop(found: Operands, expression: str) -> None:
    before = textwrap.dedent("""\
        def f(x, rows, acc):
            for i, row in enumerate(rows):
                acc[i] = 1
                total += i
                drawn = rng.random(9)
                steady = np.sort(x)
                kept.append(row)
                emptied.append(row)
                emptied.clear()
    """)
    assert of(expression, before) is found


def test_slices_one_after_another_have_nothing_in_common() -> None:
    assert of("np.sum(x[i : i + 9])", "def f(x):\n    for i in range(0, 900, 9):\n") is OTHER


@pytest.mark.parametrize(
    ("found", "body"),
    [
        (OTHER, "[table @ rng.random(9) for _ in range(n)]"),
        (SAME, "[np.sum(table) for _ in range(n)]"),
        (OTHER, "[np.sqrt(a * a) for a in table]"),
    ],
)
def test_each_round_of_a_comprehension(found: Operands, body: str) -> None:
    module = parse(f"{HEAD}def f(n):\n    return {body}\n")
    assert module is not None
    element = next(each.elt for each in ast.walk(module.tree) if isinstance(each, ast.ListComp))
    assert Runs(Names(module)).operands(element) is found


@pytest.mark.parametrize(
    ("found", "expression", "argument"),
    [
        (SAME, "np.cos(x)", "0.5"),
        (SAME, "np.cos(x)", "table"),
        (OTHER, "np.cos(x)", "angle"),
        (OTHER, "lib.run(table, x, len(x))", "angle"),
        (OTHER, "np.cos(x)", "rng.random(9)"),
        (SAME, "np.hanning(512)", "angle"),
        (SAME, "np.hanning(len(x))", "angle"),
        (SAME, "np.sum(table)", "angle"),
        (OTHER, "rng.standard_normal(9)", "0.5"),
        (OTHER, "table @ f(x)", "angle"),  # what the program's own function does with it does not matter
        (UNKNOWN, "np.sum(missing)", "0.5"),
    ],
)
def test_each_call_of_a_function(found: Operands, expression: str, argument: str) -> None:
    after = f"for angle in table:\n    f({argument})\n"
    line = HEAD.count("\n") + 4
    assert of(expression, "def f(x):\n", after, callers=(line,)) is found


@pytest.mark.parametrize("operator", ["x += table", "x *= 2", "x[:] += table"])
def test_what_is_added_to_is_another_each_time(operator: str) -> None:
    module = parse(f"{HEAD}def f(x):\n    for _ in range(9):\n        {operator}\n")
    assert module is not None
    target = next(each.target for each in ast.walk(module.tree) if isinstance(each, ast.AugAssign))
    assert Runs(Names(module)).operands(target) is OTHER


def test_a_function_whose_callers_are_not_known() -> None:
    assert of("np.cos(x)", "def f(x):\n") is UNKNOWN
    assert of("np.cos(0.5)", "def f(x):\n") is SAME


KEEPING = """\
class Kept:
    def __init__(self):
        self.seen = np.empty(0)
        self.rows, self.n = np.empty((99, 3)), 0
    def begin(self):
        self.seen = np.empty(0)
        self.n = 0
    def put(self, x, scale):
        self.seen = np.concatenate([self.seen, x])
        self.rows[self.n] = x
        self.n += 1
        X = self.rows[:self.n]
"""


def test_the_length_of_what_grows_is_another_one_each_time() -> None:
    before = "def f(n):\n  done = []\n  for i in range(n):\n    done.append(i)\n"
    assert of("np.zeros(len(done) * 7)", before) is OTHER


@pytest.mark.parametrize(("found", "body"), [(OTHER, "self.rng.normal(0, 1, 9)"), (SAME, "self.base * 2")])
def test_a_method_that_draws(found: Operands, body: str) -> None:
    before = f"class City:\n  def traffic(self):\n    return {body}\ncity = City()\nfor _ in range(9):\n"
    assert of("np.sort(city.traffic())", before) is found


@pytest.mark.parametrize(("found", "argument"), [(SAME, "frame"), (OTHER, "measure")])
def test_a_function_that_is_called_by_another_name(found: Operands, argument: str) -> None:
    before = "def gray(x):\n"
    after = f"def inspect(frame, measures):\n    for measure in measures:\n        measure({argument})\n"
    line = HEAD.count("\n") + 5
    assert of("np.dot(x, table)", before, after, callers=(line,)) is found


LISTED = """\
class Watch:
    def __init__(self):
        self.past = []
    def reset(self):
        self.past = []
    def note(self, x):
        self.past.append(x)
"""


@pytest.mark.parametrize(
    ("found", "expression", "instead"),
    [
        (OVERLAPPING, "np.array(self.past)", None),
        (OVERLAPPING, "np.mean(self.past[5:])", None),
        (OTHER, "np.mean(self.past[-5:])", None),  # a window: all of it is another one in the end
        (OTHER, "np.sum(self.past[-1])", None),
        (OTHER, "np.sum(self.past)", ("[]\n    def note", "self.past[5:]\n    def note")),
        (OTHER, "np.sum(self.past)", ("self.past = []\n    def note", "self.past.pop()\n    def note")),
        (OTHER, "np.sum(self.past)", ("self.past = []\n    def note", "del self.past[0]\n    def note")),
        (OTHER, "np.sum(self.past)", ("self.past = []\n    def note", "np.put(self.past, 0, 1)\n    def note")),
        (OTHER, "np.sum(self.past)", ("[]\n    def reset", "deque(maxlen=9)\n    def reset")),
    ],
)
def test_what_each_call_of_a_method_appends_to(
    found: Operands, expression: str, instead: tuple[str, str] | None
) -> None:
    before = LISTED if instead is None else LISTED.replace(*instead)
    assert instead is None or before != LISTED
    assert of(expression, before) is found


@pytest.mark.parametrize(
    ("found", "expression", "instead"),
    [
        (OVERLAPPING, "np.argsort(self.seen)", None),
        (OVERLAPPING, "np.linalg.solve(X.T @ X, X.T @ self.rows[:self.n])", None),
        (OTHER, "np.linalg.norm(X - x)", None),  # a new one is compared with all: the program may need that
        (OTHER, "np.sort(x)", None),
        (OTHER, "np.sum(self.rows[self.n:])", None),
        # What takes some of it off again does not grow.
        (OTHER, "np.sort(self.seen)", ("x])\n", "x])[-50:]\n")),
        (OTHER, "np.sort(self.seen)", ("        X = self", "        self.seen = self.seen[5:]\n        X = self")),
        (OTHER, "np.sort(self.seen)", ("self.n = 0", "self.seen = self.seen[5:]")),
        (OTHER, "np.sum(X)", ("self.n += 1", "self.n = (self.n + 1) % 99")),
        (OTHER, "np.sum(X)", ("self.rows[self.n] = x", "self.rows[:] = x")),
        (OTHER, "np.sum(X)", ("self.rows[self.n] = x", "self.rows *= scale")),
    ],
)
def test_what_each_call_of_a_function_adds_to(
    found: Operands, expression: str, instead: tuple[str, str] | None
) -> None:
    before = KEEPING if instead is None else KEEPING.replace(*instead)
    assert instead is None or before != KEEPING
    head = f"{HEAD}{before}".count("\n") + 4
    after = f"kept = Kept()\nfor row in table:\n    kept.put(row, {expression.count('n')})\n"
    assert of(expression, before, after, callers=(head,)) is found


STEPPING = """\
class Model:
    def __init__(self, graph):
        self.graph, self.count = graph, 0
    def step(self, x):
        self.count += 1
        EXPRESSION
    def run(self, x):
        for _ in range(9):
            x = self.step(x)
model = Model(table)
for row in table:
    model.step(row)
for row in table:
    other.step(row)
"""


@pytest.mark.parametrize("caller", [9, 12])
@pytest.mark.parametrize(
    ("found", "expression", "change"),
    [
        (SAME, "np.sqrt(self.graph)", "self.count += 1"),  # whatever is called a step in other programs
        (OTHER, "np.sqrt(self.count)", "self.count += 1"),
        (OTHER, "np.sqrt(self.graph)", "self.graph = self.graph + 1"),
    ],
)
def test_a_method_of_the_file_is_known_by_its_text_and_not_by_its_name(
    found: Operands, expression: str, change: str, caller: int
) -> None:
    before, after = STEPPING.replace("self.count += 1", change).split("        EXPRESSION\n")
    line = HEAD.count("\n") + caller
    assert of(expression, before, after, callers=(line,)) is found


def test_a_method_of_another_file_is_known_by_its_name() -> None:
    before, after = STEPPING.split("        EXPRESSION\n")
    assert of("np.sqrt(self.graph)", before, after, callers=(HEAD.count("\n") + 14,)) is OTHER
