"""Suggestions about what a line or a loop says: rules that read the source, on recordings whose numbers are known."""

from __future__ import annotations

from typing import Any

import pytest

from unit.analyzer.recordings import MS, NATIVE_FRAME, PYTHON_FRAME, START, Builder
from unit.report.suggested import APPLY, SITE, Answer, found, hot, library, rules

pytestmark = pytest.mark.broad

LOOP = """import numpy as np

def smooth(a, b):
    for i in range(1, a.shape[0]):
        b[i] = a[i] + b[i - 1]
    return np.sum(b)
"""


def test_a_loop_over_an_array(builder: Builder, answer: Answer) -> None:
    hot(builder, LOOP, 5)
    assert rules(answer) == [("element-by-element", 5)]


@pytest.mark.parametrize(
    ("source", "line", "native"),
    [
        (LOOP, 5, True),  # the time is not Python's
        (LOOP, 6, False),  # not in the loop
        (LOOP.replace("import numpy as np", ""), 5, False),  # no arrays in sight
        (LOOP.replace("a.shape[0]", "len(a)"), 5, False),  # may be a list
        (LOOP.replace("def", "de f"), 5, False),  # cannot be parsed
        ("import numpy\n" + "(" * 5_000 + "\n" * 5, 5, False),
    ],
)
def test_no_suggestion_where_it_is_not_certain(
    builder: Builder, answer: Answer, source: str, line: int, native: bool
) -> None:
    hot(builder, source, line, **({"native_frame": NATIVE_FRAME} if native else {}))
    assert rules(answer) == []


NESTED = """import numpy as np

def smooth(image, out):
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            out[y, x] = np.hypot(image[y, x], 1)
"""


@pytest.mark.parametrize(
    ("source", "expected"), [(NESTED, [("element-by-element", 6)]), (NESTED.replace("y, x]", "y, :]"), [])]
)
def test_single_elements_are_slow_in_native_code_too(
    builder: Builder, answer: Answer, source: str, expected: list[Any]
) -> None:
    hot(builder, source, 6, native_frame=NATIVE_FRAME)
    assert rules(answer) == expected


@pytest.mark.parametrize(("source", "said"), [(LOOP, "Numba"), (LOOP.replace("b[i - 1]", "a[i - 1]"), "an expression")])
def test_what_needs_the_element_before_cannot_be_an_expression(
    builder: Builder, answer: Answer, source: str, said: str
) -> None:
    hot(builder, source, 5)
    (suggestion,) = found(answer)
    assert said in suggestion.instead


def test_the_time_of_a_loop_is_that_of_all_its_lines(builder: Builder, answer: Answer) -> None:
    body = "".join(f"            out[y, x] += image[y, x] * {number}\n" for number in range(15))
    for number in range(300):
        hot(builder, NESTED + body, 6 + number % 15, samples=1)
    (suggestion,) = found(answer)
    assert "lines 4 to 21" in suggestion.text
    assert suggestion.figure == "100 % of the CPU time (3.00 s)"


GROWING = "def collect(pieces, {name}):\n    {made}\n    for piece in pieces:\n        {statement}\n"


@pytest.mark.parametrize(
    ("made", "statement", "rule"),
    [
        ("lines = ''", "lines = lines + piece + end", "text-grown-in-loop"),
        ("lines = ''", "lines += piece", "text-grown-in-loop"),
        ("data = b''", "data += piece", "text-grown-in-loop"),
        ("pass", "lines = lines + piece", "text-grown-in-loop"),
        ("pass", "self.log = self.log[4:]", "cut-from-front"),
        ("import numpy as np; a = np.zeros(0)", "a = np.concatenate([a, piece])", "array-grown-in-loop"),
        ("import numpy as np; a = np.zeros(0)", "a = np.append(a, piece)", "array-grown-in-loop"),
        ("import pandas as pd; t = pd.DataFrame()", "t = pd.concat([t, piece])", "array-grown-in-loop"),
        ("import pandas as pd", "t = load(piece); t = pd.concat([t, piece])", None),  # made anew each time round
        ("pass", "lines = ''; lines = lines + piece", None),
        ("lines = []", "lines += piece", None),  # adds in place
        ("data = bytearray()", "data += piece", None),
        ("pass", "lines += piece", None),  # of what, is not known
        ("import numpy as np", "image = image + piece", None),  # an array, for all that is known
        ("pass", "lines = other[4:]", None),
        ("pass", "head = log[:4]", None),
        ("import numpy as np; a = np.zeros(9)", "a = a[1:]", None),
    ],
)
def test_what_is_copied_whole_again_and_again(
    builder: Builder, answer: Answer, made: str, statement: str, rule: str | None
) -> None:
    f = builder.code(builder.file("/srv/a.py", GROWING.format(made=made, statement=statement, name="end")), "collect")
    for number in range(100):
        builder.copy(builder.stack((f, 3)), 100_000_000, 100 + number * 50)
    assert rules(answer) == ([(rule, 4)] if rule else [])


def test_what_an_attribute_is_follows_from_all_that_it_is_assigned(builder: Builder, answer: Answer) -> None:
    source = "class Log:\n    def __init__(self):\n        self.text = ''\n"
    source += "    def add(self, lines):\n        for line in lines:\n            self.text = self.text + f'{line}'\n"
    f = builder.code(builder.file("/srv/a.py", source), "Log.add")
    for number in range(100):
        builder.copy(builder.stack((f, 5)), 100_000_000, 100 + number * 50)
    (suggestion,) = found(answer)
    assert "''.join(pieces)" in suggestion.instead


def test_little_is_copied(builder: Builder, answer: Answer) -> None:
    """A tenth of what is copied is not enough where hardly anything is."""
    source = GROWING.format(made="lines = ''", statement="lines = lines + piece", name="end")
    f = builder.code(builder.file("/srv/a.py", source), "collect")
    builder.copy(builder.stack((f, 3)), 100_000_000, 100)
    hot(builder, source, 2, samples=300)
    assert rules(answer) == []


@pytest.mark.parametrize(
    ("source", "inside", "expected"),
    [
        (APPLY, "pandas/core/apply.py", [("apply-rows", 3)]),
        (APPLY.replace("axis=1", "axis='columns'"), "pandas/core/apply.py", [("apply-rows", 3)]),
        (APPLY.replace("axis=1", "axis=0"), "pandas/core/apply.py", []),
        (APPLY.replace(", axis=1", ""), "pandas/core/apply.py", []),
        (APPLY, "other/apply.py", []),
        (APPLY.replace("import pandas as pd", "import polars"), "pandas/core/apply.py", []),
    ],
)
def test_rows_by_apply(builder: Builder, answer: Answer, source: str, inside: str, expected: list[Any]) -> None:
    hot(builder, source, 3, library(builder, f"{SITE}/{inside}", "FrameApply.apply_standard"))
    assert rules(answer) == expected


def test_the_applied_function_has_the_time(builder: Builder, answer: Answer) -> None:
    """What is slow is not that rows are made."""
    apply = library(builder, f"{SITE}/pandas/core/apply.py", "FrameApply.apply_standard")
    loads = library(builder, "/usr/lib/python3.13/json/decoder.py", "JSONDecoder.decode")
    hot(builder, APPLY, 3, apply, samples=100)
    hot(builder, APPLY, 3, apply, loads, samples=200)
    assert rules(answer) == []


@pytest.mark.parametrize(("name", "expected"), [("DataFrame.iterrows", [("iterrows", 3)]), ("DataFrame.merge", [])])
def test_rows_by_iterrows(builder: Builder, answer: Answer, name: str, expected: list[Any]) -> None:
    source = "import pandas\ndef work(table):\n    for i, row in table.iterrows():\n        print(row)\n"
    hot(builder, source, 3, library(builder, f"{SITE}/pandas/core/frame.py", name))
    assert rules(answer) == expected


def test_tables_of_a_few_rows(builder: Builder, answer: Answer) -> None:
    """Where each loop begins with the values of the whole table, and goes through two rows, no form is much faster."""
    source = "import pandas\ndef work(table):\n    for i, row in table.iterrows():\n        print(row)\n"
    rows = library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.iterrows")
    values = library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.values")
    hot(builder, source, 3, rows, samples=200)
    hot(builder, source, 3, rows, values, samples=100)
    assert found(answer) == []


CHAIN = (
    "import pandas\ndef work(table, station):\n    for hour in range(9):\n        print(table[station]['t'][hour])\n"
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (CHAIN, [("chained-indexing", 4)]),
        (CHAIN.replace("station]", "hour]"), []),
        (CHAIN.replace("[hour]", "[0]"), []),  # all of it is the same, and may be meant to be read again
        (CHAIN.replace("    for hour in range(9):\n        print", "    hour = 1\n    if True: print"), []),
        (CHAIN.replace("print(", "table[station] = print("), []),
        (CHAIN.replace("print(", "change(table, "), []),
        (CHAIN.replace("print(", "table.update("), []),
    ],
)
def test_chained_indexing(builder: Builder, answer: Answer, source: str, expected: list[Any]) -> None:
    hot(builder, source, 4, library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.__getitem__"))
    assert rules(answer) == expected


SEARCH = "import re\ndef work(lines):\n    for line in lines:\n        re.search(r'a+b', line)\n"


@pytest.mark.parametrize(
    ("source", "samples", "expected"),
    [
        (SEARCH, 300, [("pattern-in-loop", 4)]),
        (SEARCH.replace("r'a+b'", "PATTERN").replace("def", "PATTERN = 'a+b'; "[:-1] + "\ndef", 1), 300, None),
        (SEARCH.replace("r'a+b'", "line"), 300, []),  # another one each time
        (SEARCH.replace("import re\n", "import regex as re\n"), 300, []),
        (SEARCH, 12, []),  # most of the time is in the search itself
    ],
)
def test_patterns_that_are_looked_up(
    builder: Builder, answer: Answer, source: str, samples: int, expected: list[Any] | None
) -> None:
    line = 5 if expected is None else 4
    hot(builder, source, line, samples=300)
    hot(builder, source, line, library(builder, "/usr/lib/python3.13/re/__init__.py", "_compile"), samples=samples)
    assert rules(answer) == ([("pattern-in-loop", 5)] if expected is None else expected)


WORDS = """import re
def work(lines, words):
    for line in lines:
        for word in words:
            re.search(rf"\\b{word}", line)
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (WORDS, [("pattern-compiled-again", 5)]),
        (WORDS.replace("in words", "in line.split()"), []),  # others for each line
        (WORDS.replace("{word}", "{word}{line}"), []),
        (WORDS.replace("    for line in lines:\n", "    if True:\n"), []),  # each once
    ],
)
def test_patterns_that_are_compiled_again(builder: Builder, answer: Answer, source: str, expected: list[Any]) -> None:
    hot(builder, source, 5, library(builder, "/usr/lib/python3.13/re/_compiler.py", "compile"))
    assert rules(answer) == expected


SEEN = """def work(lines):
    seen = []
    for line in lines:
        if line not in seen:
            seen.append(line)
"""


@pytest.mark.parametrize(
    ("source", "functions", "expected"),
    [
        (SEEN, ["list_contains"], [("in-list", 4)]),
        (SEEN, ["list_contains", "unicode_compare_eq"], [("in-list", 4)]),
        (SEEN, ["list_contains", "dict_richcompare"], []),  # dicts are in no set
        (SEEN, ["work_of_line"], []),
        (SEEN.replace("seen = []", "seen = set()"), ["list_contains"], []),
        (SEEN.replace("(lines)", "(lines, seen)").replace("    seen = []\n", "    pass\n"), ["list_contains"], []),
        (SEEN.replace("        if line not in seen", "        if line not in line.split()"), ["list_contains"], []),
    ],
)
def test_in_on_a_list(builder: Builder, answer: Answer, source: str, functions: list[str], expected: list[Any]) -> None:
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), 3))
    path = builder.native_stack(None, PYTHON_FRAME, at)
    for name in functions[:-1]:
        path = builder.native_stack(path, builder.native_frame(0, name))
    leaf = builder.native_frame(0, functions[-1])
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=leaf, native_stack=path, native_path=1)
    assert rules(answer) == expected


FIND = """class Store:
    def __init__(self):
        self.links = []
    def find(self, code):
        for link in self.links:
            if link["code"] == code:
                return link
        return None
"""
FIRST = """LINKS = [Link(n) for n in range(9)]
def find(codes):
    for code in codes:
        {search}
"""
NEXT = "print(next((link for link in LINKS if link.code == code), None))"


@pytest.mark.parametrize(
    ("source", "line", "others", "expected"),
    [
        (FIND, 6, 0, "link['code'] is code"),
        (FIND.replace('link["code"]', "link.code"), 5, 0, "link.code is code"),
        (FIND.replace('link["code"] == code', "code == link.code"), 6, 0, "link.code is code"),
        (FIND.replace("return link", "found = link; break"), 6, 0, "link['code'] is code"),
        (FIND, 6, 2000, None),  # may be one search of a long list
        (FIND.replace("self.links = []", "self.links = {}"), 6, 0, None),
        (FIND.replace("self.links = []", "self.links = open(code)"), 6, 0, None),
        (FIND.replace("return link", "self.seen(link)"), 6, 0, None),  # goes on, to all items
        (FIND.replace("return link", "link['clicks'] += 1"), 6, 0, None),
        (FIND.replace("== code", "> code"), 6, 0, None),
        (FIND.replace("== code", "== code.lower()"), 6, 0, None),
        (FIND.replace("== code", "== link.other"), 6, 0, None),
        (
            FIND.replace('            if link["code"]', '            link = make(link)\n            if link["code"]'),
            7,
            0,
            None,
        ),
        (FIND.replace('link["code"] == code', 'code in link["code"]'), 6, 0, None),
        (FIND.replace("in self.links", "in sorted(self.links)"), 6, 0, None),
        (FIRST.format(search=NEXT.removeprefix("print")), 4, 2000, "link.code is code"),
        (FIRST.format(search="any(link.code == code for link in LINKS)"), 4, 0, "link.code is code"),
        (FIRST.format(search="work(next(link for link in LINKS if link.code == code))"), 4, 0, None),  # or in work
        (FIRST.format(search="all(link.code == code for link in LINKS)"), 4, 0, None),
        (FIRST.format(search="any(link.code == code and link.on for link in LINKS)"), 4, 0, None),
        (FIRST.format(search="found = BY_CODE.get(code)"), 4, 0, None),
    ],
)
def test_searching_a_list_for_a_key(
    builder: Builder, answer: Answer, source: str, line: int, others: int, expected: str | None
) -> None:
    hot(builder, source, line, samples=300)
    hot(builder, source, line - 1, samples=100)  # the loop's head is part of the same search
    hot(builder, source, 1, samples=others)
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([] if expected is None else [("in-list", line)])
    assert expected is None or suggestions[0].text.endswith(f"until {expected}.")


CONVERTED = (
    "import numpy as np\ndef work(table, rounds):\n    for n in rounds:\n        values = {made}\n        {used}\n"
)


@pytest.mark.parametrize(
    ("made", "used", "expected"),
    [
        ("np.array(table)", "total = values.sum()", True),
        ("table.astype(float)", "n += values[n]", True),
        ("list(table)", "len(values)", True),
        ("table.copy()", "values[n] = 0", False),  # the copy is needed
        ("list(table)", "values.append(n)", False),
        ("list(table)", "keep(values)", False),
        ("np.array(table)", "table.append(n)", False),  # another table each time
        ("np.array(table)", "change(table)", False),
        ("np.array(n)", "values.sum()", False),
        ("table.astype(n)", "values.sum()", False),
    ],
)
def test_conversions_that_are_the_same_each_time(
    builder: Builder, answer: Answer, made: str, used: str, expected: bool
) -> None:
    hot(builder, CONVERTED.format(made=made, used=used), 4, native_frame=NATIVE_FRAME)
    assert rules(answer) == ([("converted-in-loop", 4)] if expected else [])


def test_bytes_of_a_piece_of_a_bytearray(builder: Builder, answer: Answer) -> None:
    source = "buffer = bytearray(9)\ndef work():\n    return bytes(buffer[1:])\n"
    hot(builder, source, 3)
    assert rules(answer) == [("bytes-of-slice", 3)]


def test_bytes_of_a_piece_of_something_else(builder: Builder, answer: Answer) -> None:
    hot(builder, "buffer = memoryview(b'')\ndef work():\n    return bytes(buffer[1:])\n", 3)
    assert rules(answer) == []


MEAN = """import numpy as np
def work(values, window):
    means = np.empty(len(values))
    for i in range(window, 900):
        means[i] = sum(values[i - window:i]) / window
"""
WINDOWS = "numpy.lib.stride_tricks.sliding_window_view(…)"
MADE = MEAN.replace("(values, window):", "(window):\n    values = np.ones(9)")


@pytest.mark.parametrize(
    ("source", "line", "function", "expected"),
    [
        (MEAN, 5, "array_item", f"{WINDOWS}.sum(axis=-1), all windows in one expression; faster still"),
        (MADE, 6, None, f"{WINDOWS}.sum(axis=-1), all"),
        (
            MEAN.replace("sum(values[", "max(values["),
            5,
            "PyArray_Scalar",
            f"{WINDOWS}.max(axis=-1), all windows in one",
        ),
        ("import numpy as np\nvalues = np.ones(9)\ntotal = sum(values)\n", 3, None, "numpy.sum(values, axis=0), which"),
        ("import numpy as np\nvalues = load()\ntotal = max(values)\n", 3, "array_item", "values.max(), which stays"),
        (MEAN.replace("sum(values[i - window:i])", "max(values)"), 5, "array_item", None),  # may be a small one
        (MEAN.replace("range(window, 900)", "range(window, 900, window)"), 5, "array_item", None),  # each element once
        (MEAN.replace("values[i - window:i]", "values[starts[i]:starts[i + 1]]"), 5, "array_item", None),
        (MEAN.replace("values[i - window:i]", "values[9 * i:9 * i + 9]"), 5, "array_item", None),
        (MEAN, 5, None, None),  # may be a list
        (MEAN, 5, "double_add", None),  # a list of arrays, or of numbers of numpy
        (MADE.replace("np.ones(9)", "list(window)"), 6, "array_item", None),
        (MEAN.replace("sum(values", "np.sum(values"), 5, "array_item", None),
        (MEAN.replace("sum(values", "values.sum() + sum(values"), 5, "array_item", None),  # which of them?
        (MEAN.replace("sum(values[i - window:i])", "sum(values, start)"), 5, "array_item", None),
        (MEAN.replace("sum(values[i - window:i])", "sum(x * x for x in values)"), 5, "array_item", None),
        (MEAN.replace("sum(values[i - window:i])", "max(values[i], 0)"), 5, "array_item", None),
    ],
)
def test_built_in_functions_of_an_array(
    builder: Builder, answer: Answer, source: str, line: int, function: str | None, expected: str | None
) -> None:
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), line - 1))
    path = builder.native_stack(None, PYTHON_FRAME, at)
    leaf = NATIVE_FRAME if function is None else builder.native_frame(0, function)
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=leaf, native_stack=path, native_path=1)
    suggestions = [each for each in found(answer) if each.rule == "builtin-of-array"]
    assert [each.line for each in suggestions] == ([] if expected is None else [line])
    assert expected is None or suggestions[0].instead.startswith(expected)


FACTORS = """import numpy as np
def work():
    small, large = None, None
    a = np.ones((9, 9), dtype=np.float32)
    b = np.ones(9{dtype})
    for n in range(9):
        c = a @ b
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (FACTORS.format(dtype=""), [("mixed-precision", 7)]),
        (FACTORS.format(dtype=", dtype='float64'"), [("mixed-precision", 7)]),
        (FACTORS.format(dtype=", dtype=np.float32"), []),
        (FACTORS.format(dtype=", dtype=kind"), []),
        (FACTORS.format(dtype="").replace("c = a", "a = a"), []),
    ],
)
def test_mixed_precision(builder: Builder, answer: Answer, source: str, expected: list[Any]) -> None:
    hot(builder, source, 7, native_frame=NATIVE_FRAME)
    # The product of two arrays that stay is the same each time, which is said where nothing else is.
    assert [each for each in rules(answer) if each[0] != "same-expression"] == expected


BODIES = """import numpy as np
def step(bodies):
    for body in bodies:
        pull = np.zeros(3)
        body.speed = body.speed + pull
def once(body):
    body.speed = body.speed + 1
"""


@pytest.mark.parametrize(
    ("line", "begins", "works", "expected"),
    [
        (5, 120, 30, True),
        (5, 30, 30, False),  # in the interpreter
        (5, 120, 120, False),  # the arrays have work in them
        (7, 120, 30, False),  # in no loop that is known
    ],
)
def test_calls_of_numpy_for_a_few_numbers(
    builder: Builder, answer: Answer, line: int, begins: int, works: int, expected: bool
) -> None:
    numpy = builder.module(f"{SITE}/numpy/_core/_multiarray_umath.so")
    hot(builder, BODIES, line, samples=150)
    hot(builder, BODIES, line, samples=begins, native_frame=builder.native_frame(numpy, "ufunc_generic_fastcall"))
    hot(builder, BODIES, line, samples=works, native_frame=builder.native_frame(numpy, "DOUBLE_add_X86_V3"))
    assert rules(answer) == [("small-arrays", 5)] * expected
