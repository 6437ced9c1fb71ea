"""Suggestions are made where a rule is certain, and nowhere else: on recordings whose every number is known."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.advice.suggestion import PAGE, Suggestion
from tachograph.analyzer.advice.table import RULES, suggestions
from tachograph.analyzer.render.terminal.style import Style
from tachograph.analyzer.render.terminal.suggestions import suggestion_lines
from unit.analyzer.recordings import MS, NATIVE_FRAME, PYTHON_FRAME, SPEC, START, Builder

Answer = Callable[..., Profile]
SITE = "/usr/lib/python3/site-packages"


@pytest.fixture
def answer(builder: Builder) -> Answer:
    """Writes what was built, and answers a question about it."""

    def of(**question: Any) -> Profile:
        if not builder.path.exists():
            builder.write()
        with Recording.open(builder.path) as recording:
            return build_profile(recording, Question(**question))

    return of


def hot(builder: Builder, source: str, line: int, *callees: int, samples: int = 300, **values: Any) -> None:
    """So many samples of 10 ms on a line of /srv/a.py, in the functions that it called."""
    file = next((n for n, row in enumerate(builder.rows["files"]) if row["path"] == "/srv/a.py"), None)
    code = builder.code(builder.file("/srv/a.py", source) if file is None else file, "work")
    stack = builder.stack((code, line - 1), *((callee, 0) for callee in callees))
    for _ in range(samples):
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS, **values)


def library(builder: Builder, path: str, name: str) -> int:
    """A function of a library."""
    return builder.code(builder.file(path), name)


def found(answer: Answer, **question: Any) -> list[Suggestion]:
    return suggestions(answer(**question))


def rules(answer: Answer, **question: Any) -> list[tuple[str, int | None]]:
    return [(each.rule, each.line) for each in found(answer, **question)]


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


APPLY = "import pandas as pd\ndef work(table, f):\n    return table.apply(f, axis=1)\n"


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
    assert rules(answer) == expected


KEEPING = """import functools, queue
from collections import deque
KEPT, LIST, WAITING = {}, [], None
CACHE = {}
ITEMS = []
JOBS = queue.Queue()
class Store:
    def __init__(self):
        self.items = []
    def keep(self, value):
        self.items.append(bytes(value))
@functools.lru_cache(maxsize=None)
def cached(key):
    return bytes(key)
def keep(key, value):
    CACHE[key] = bytes(value)
    ITEMS.append(bytes(value))
    JOBS.put(bytes(value))
    other[key] = bytes(value)
"""


@pytest.mark.parametrize(
    ("line", "removing", "said"),
    [
        (11, "", "“self.items” is a list"),
        (14, "", "cached is cached without a limit"),
        (16, "", "“CACHE” is a dict"),
        (16, "def drop(key):\n    del CACHE[key]\n", "keeps what it allocates"),
        (16, "def drop(key):\n    CACHE.pop(key)\n", "keeps what it allocates"),
        (17, "", "“ITEMS” is a list"),
        (18, "", "“JOBS” has no limit"),
        (19, "", "keeps what it allocates"),
    ],
)
def test_what_keeps_the_blocks_of_a_leak(builder: Builder, answer: Answer, line: int, removing: str, said: str) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py", KEEPING + removing), "keep"), line - 1))
    footprint = 0
    for number in range(100):
        builder.block(stack, 1_000_000, number * 100)
        footprint += 1_000_000
        builder.memory("tick", number * 100, footprint, obj_allocated_bytes=1_000_000, stack=stack)
    builder.memory("end", 10_000, footprint)
    (suggestion,) = found(answer)
    assert (suggestion.rule, suggestion.line) == ("leak", line)
    assert said in suggestion.text
    assert "/s not given back" in suggestion.figure


def test_the_collector(builder: Builder, answer: Answer) -> None:
    frame = builder.native_frame(0, "visit_reachable")
    hot(builder, "x = []\n", 1, samples=200)
    hot(builder, "x = []\n", 1, samples=100, native_frame=frame)
    assert rules(answer) == [("garbage-collector", None)]


def test_the_collector_while_modules_are_imported(builder: Builder, answer: Answer) -> None:
    """What an import allocates is looked through as well, once: nothing is to be done about it."""
    frame = builder.native_frame(0, "visit_reachable")
    hot(builder, "import pandas\n", 1, samples=200)
    importing = library(builder, "<frozen importlib._bootstrap>", "_find_and_load")
    hot(builder, "import pandas\n", 1, importing, samples=100, native_frame=frame)
    assert rules(answer) == []


TARGETS = {"GIL": 8, "lock": 9, "socket": 2}


def test_target_numbers() -> None:
    names = [value.name for value in SPEC.enums["target"]]
    assert {name: names.index(name.lower()) for name in TARGETS} == TARGETS


@pytest.mark.parametrize(
    ("cpu_ms", "gil_ms", "same_process", "expected"),
    [
        (3000, 2500, True, [("python-threads", 1)]),
        (3000, 500, True, []),  # hardly waited
        (3000, 2500, False, []),  # two interpreters
        (600, 600, True, []),  # the program mostly rests
    ],
)
def test_threads_that_take_turns(
    builder: Builder, answer: Answer, cpu_ms: int, gil_ms: int, same_process: bool, expected: list[Any]
) -> None:
    process = 0 if same_process else builder.process(200, 0, 10_000)[0]
    threads = [0, builder.thread("worker", process=process)]
    at = builder.stack((builder.code(builder.file("/srv/a.py", "x = 1\n"), "work"), 0))
    for thread in threads:
        for number in range(cpu_ms // 10):
            builder.cpu(at, time_ns=START + number * MS, thread=thread)
        builder.wait(at, 100, 100 + gil_ms, thread=thread, target=TARGETS["GIL"])
    assert rules(answer) == expected


WITH = """import threading
LOCK = threading.{kind}()
def work():
    with LOCK:
        step()
"""


@pytest.mark.parametrize(
    ("kind", "waited_ms", "held_ms", "expected"),
    [
        ("Lock", 6000, 9000, [("held-lock", 4)]),
        ("RLock", 6000, 9000, [("held-lock", 4)]),
        ("Condition", 6000, 9000, []),  # to wait for one is what it is for
        ("Lock", 1000, 9000, []),
        ("Lock", 6000, 1000, []),  # not held by this line's body
    ],
)
def test_a_lock_that_is_held(
    builder: Builder, answer: Answer, kind: str, waited_ms: int, held_ms: int, expected: list[Any]
) -> None:
    f = builder.code(builder.file("/srv/a.py", WITH.format(kind=kind)), "work")
    other = builder.thread("other")
    builder.wait(builder.stack((f, 3)), 0, waited_ms, target=TARGETS["lock"])
    builder.wait(builder.stack((f, 4)), 0, held_ms, thread=other, target=TARGETS["socket"])
    assert rules(answer) == expected


REQUESTS = """from urllib.request import urlopen
import time
def work(base, pages):
    found = []
    for page in pages:
        found.append(urlopen(base + page))
    return found
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", True),
        ("base + page", "f'{base}/{page}'", True),
        ("base + page", "base", False),  # the same again: it waits for a change
        ("found.append(urlopen(base + page))", "base = urlopen(base + page)", False),  # leads to the next
        ("return found", "    time.sleep(1)", False),  # it was asked to
        ("return found", "    if found: break", False),  # until it is found
        ("for page in pages", "while pages", False),
        ("from urllib.request", "from tools", False),
    ],
)
def test_requests_in_series(builder: Builder, answer: Answer, old: str, new: str, expected: bool) -> None:
    f = builder.code(builder.file("/srv/a.py", REQUESTS.replace(old, new) if old else REQUESTS), "work")
    builder.wait(builder.stack((f, 5)), 0, 6000, target=TARGETS["socket"])
    assert rules(answer) == ([("waits-in-series", 6)] if expected else [])


@pytest.mark.parametrize(
    ("pool", "spent", "expected"),
    [
        (("concurrent/futures/process.py", "_process_worker"), (1000, 50, 50, 50), True),
        (("multiprocessing/pool.py", "worker"), (1000, 50, 50, 50), True),
        (("multiprocessing/pool.py", "worker"), (400, 300, 300, 300), False),
        (("multiprocessing/pool.py", "worker"), (1000, 50), False),
        (("socketserver.py", "serve_forever"), (1000, 50, 50, 50), False),  # one client, for all that is known
    ],
)
def test_one_busy_worker(
    builder: Builder, answer: Answer, pool: tuple[str, str], spent: tuple[int, ...], expected: bool
) -> None:
    worker = library(builder, f"/usr/lib/python3.13/{pool[0]}", pool[1])
    at = builder.stack((worker, 0), (builder.code(builder.file("/srv/a.py", "x = 1\n"), "work"), 0))
    for number, milliseconds in enumerate(spent):
        main = builder.process(200 + number, 0, 5000)[1]
        for _ in range(milliseconds // 10):
            builder.cpu(at, thread=main)
    assert rules(answer) == ([("one-busy-worker", None)] if expected else [])


@pytest.mark.parametrize(("threads", "waited_ms", "expected"), [(8, 900, True), (8, 100, False), (4, 900, False)])
def test_more_threads_than_processors(
    builder: Builder, answer: Answer, threads: int, waited_ms: int, expected: bool
) -> None:
    builder.cpu_count = 4
    for _ in range(threads):
        thread = builder.thread(None)
        for _sample in range(100):
            builder.cpu(None, thread=thread, native_frame=NATIVE_FRAME)
        builder.wait(None, 0, waited_ms, thread=thread, target=7)
    found_rules = rules(answer)
    assert found_rules == ([("too-many-threads", None)] if expected else [])


@pytest.mark.parametrize(
    ("state", "megabytes", "expected"),
    [
        ("recovered", lambda second: 100 + 2 * second, True),
        ("complete", lambda second: 100 + 2 * second, False),  # it ended, and may have meant to
        ("recovered", lambda second: 100 + min(2 * second, 60), False),
        ("recovered", lambda second: 100 + 20 * (second % 20), False),
        ("recovered", lambda second: 1000 + second / 10, False),
    ],
)
def test_a_program_that_goes_on_and_grows(
    builder: Builder, answer: Answer, state: str, megabytes: Callable[[int], float], expected: bool
) -> None:
    builder.state = state
    builder.end_ns = START + 120_000 * MS
    builder.rows["processes"][0]["end_ns"] = builder.end_ns
    before = 0.0
    for second in range(120):
        now = megabytes(second) * 1e6
        flow = {f"obj_{'allocated' if now >= before else 'freed'}_bytes": abs(round(now) - round(before))}
        builder.memory("tick" if second else "start", 1000 * second, round(now), **flow)
        before = now
    builder.memory("end", 120_000, round(before))
    assert rules(answer) == ([("growing-process", None)] if expected else [])


def test_the_same_whatever_the_scope(builder: Builder, answer: Answer) -> None:
    hot(builder, APPLY, 3, library(builder, f"{SITE}/pandas/core/apply.py", "FrameApply.apply_standard"))
    assert found(answer) == found(answer, scope="all") != []


def test_what_most_of_the_time_is_about_comes_first(builder: Builder, answer: Answer) -> None:
    source = APPLY + "def rows(table):\n    for i, row in table.iterrows():\n        print(row)\n"
    hot(builder, source, 5, library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.iterrows"), samples=200)
    hot(builder, source, 3, library(builder, f"{SITE}/pandas/core/apply.py", "FrameApply.apply"), samples=100)
    assert rules(answer) == [("iterrows", 5), ("apply-rows", 3)]


def test_less_than_a_twentieth_is_not_worth_an_edit(builder: Builder, answer: Answer) -> None:
    hot(builder, APPLY + "x = 1\n", 4, samples=285)
    hot(builder, APPLY + "x = 1\n", 3, library(builder, f"{SITE}/pandas/core/apply.py", "apply"), samples=15)
    assert rules(answer) == []


def test_a_source_that_is_not_in_the_recording_is_silence(builder: Builder, answer: Answer) -> None:
    apply = library(builder, f"{SITE}/pandas/core/apply.py", "apply")
    f = builder.code(builder.file("/srv/b.py"), "work")
    for number in range(300):
        builder.cpu(builder.stack((f, 2), (apply, 0)), time_ns=START + number * MS)
    assert rules(answer) == []


INNOCENT = Path(__file__).resolve().parents[2] / "integration" / "programs" / "suggestions" / "innocent.py"
INNOCENTS = [each for each in ast.parse(INNOCENT.read_text(encoding="utf-8")).body if isinstance(each, ast.FunctionDef)]


@pytest.mark.parametrize("function", INNOCENTS[1:], ids=lambda function: function.name)
def test_the_source_of_innocent_programs_alone_makes_no_rule_speak(
    builder: Builder, answer: Answer, function: ast.FunctionDef
) -> None:
    """Where every line of them is busy, in Python and in native code; tests/integration records them, too."""
    code = builder.code(builder.file("/srv/a.py", INNOCENT.read_text(encoding="utf-8")), function.name, function.lineno)
    for line in range(function.lineno, (function.end_lineno or 0) + 1):
        at = builder.stack((code, line - function.lineno))
        for number in range(20):
            frame = NATIVE_FRAME if number % 2 else PYTHON_FRAME
            builder.cpu(at, time_ns=START + len(builder.rows["cpu"]) * MS, native_frame=frame)
    assert rules(answer) == []


def test_the_terminal_shows_five_and_says_that_there_are_more() -> None:
    """Each with its place, its figure, what to write instead and the link; text is text, never markup."""
    console = Console(width=100, file=StringIO())

    def title(name: str, rest: str) -> Text:
        return Text(f"{name} {rest}")

    made = [
        Suggestion(
            "iterrows", f"/srv/{n}.py", n, "[bold]f", "20 % of it", f"[red]text {n}.", "write", f"{PAGE}#iterrows"
        )
        for n in range(1, 8)
    ]
    lines = [line.plain for line in suggestion_lines(made, Style.of(console), 100, title)]
    assert "2 more with --json" in lines[0]
    assert [line for line in lines if "→" in line or "->" in line] == [lines[n] for n in (1, 3, 5, 7, 9)]
    assert "/srv/1.py:1  20 % of it" in lines[1]
    assert lines[2].strip() == f"[red]text 1. Instead: write. {PAGE}#iterrows"
    assert list(suggestion_lines([], Style.of(console), 100, title)) == []


def test_every_rule_has_its_heading_and_its_reasons() -> None:
    """The page shows each of them, under its id."""
    page = Path(__file__).resolve().parents[3] / PAGE
    headings = re.findall(r"^#+ ([a-z-]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(rule.id for rule in RULES)
    assert all(rule.needs and rule.threshold for rule in RULES)
