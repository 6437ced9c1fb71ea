"""Suggestions about event loops, databases and libraries, on recordings whose every number is known."""

from __future__ import annotations

from inspect import CO_COROUTINE
from typing import Any

import pytest

from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder
from unit.report.suggested import SITE, Answer, found, hot, library, rules
from unit.report.test_suggestions_of_programs import TARGETS

pytestmark = pytest.mark.broad

LIB = "/usr/lib/python3.13"
SLEEP = 230
CRAWL = """import asyncio, time, subprocess, requests
def save(page):
    time.sleep(0.1)
async def crawl(pages):
    for page in pages:
        time.sleep(0.1)
        save(page)
        subprocess.run(["ls"])
        requests.get(page)
        page.read()
        later(lambda: time.sleep(1))
def main():
    asyncio.run(crawl([]))
    time.sleep(9)
"""


def crawling(builder: Builder, source: str = CRAWL) -> tuple[int, int, int]:
    """Files and code objects: the coroutine, the function that it calls, and the loop's own."""
    file = builder.file("/srv/a.py", source)
    return (
        builder.code(file, "crawl", 1),
        builder.code(file, "save", 1),
        library(builder, f"{LIB}/asyncio/base_events.py", "BaseEventLoop._run_once"),
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (6, "await asyncio.sleep()"),
        (8, "create_subprocess_exec"),
        (9, "an asynchronous client"),
        (10, "await asyncio.to_thread() of the function"),
    ],
)
def test_a_coroutine_that_waits_holds_up_its_loop(builder: Builder, answer: Answer, line: int, said: str) -> None:
    crawl, _, loop = crawling(builder)
    builder.wait(builder.stack((loop, 0), (crawl, line - 1)), 0, 1000, syscall=SLEEP)
    (suggestion,) = found(answer)
    assert (suggestion.rule, suggestion.line) == ("blocked-loop", line)
    assert suggestion.figure == "1.00 s of 10.0 s waiting while “crawl” holds up its event loop"
    assert said in suggestion.instead


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (6, "await trio.sleep()"),
        (8, "await trio.run_process(), or await trio.to_thread.run_sync() of the same call"),
        (9, "an asynchronous client (httpx.AsyncClient), or await trio.to_thread.run_sync() of the same call"),
        (10, "await trio.to_thread.run_sync() of the function that waits, or a library that is made for trio"),
    ],
)
def test_a_program_of_trio_is_given_its_functions(builder: Builder, answer: Answer, line: int, instead: str) -> None:
    crawl, _, _ = crawling(builder, CRAWL.replace("asyncio", "trio"))
    loop = library(builder, f"{SITE}/trio/_core/_run.py", "unrolled_run")
    builder.wait(builder.stack((loop, 0), (crawl, line - 1)), 0, 1000, syscall=SLEEP)
    assert [each.instead for each in found(answer)] == [instead]


def test_a_function_that_a_coroutine_calls_holds_it_up_too(builder: Builder, answer: Answer) -> None:
    crawl, save, loop = crawling(builder)
    builder.wait(builder.stack((loop, 0), (crawl, 6), (save, 2)), 0, 1000, syscall=SLEEP)
    assert rules(answer) == [("blocked-loop", 3)]


def test_the_task_and_the_request_that_hold_up_the_loop_are_named(builder: Builder, answer: Answer) -> None:
    """Those that most of the waits are in; of nested spans the outermost, which is the request's."""
    crawl, _, loop = crawling(builder)
    route, other = builder.span("GET /pages/{id}", 0, 2000), builder.span("GET /", 2000, 3000)
    step = builder.span("parse", 0, 900, parent=route)
    named, unnamed = ((loop, 0), (crawl, 5, "crawler")), ((loop, 0), (crawl, 5))
    builder.wait(builder.stack(*named), 0, 900, syscall=SLEEP, span=step)
    builder.wait(builder.stack(*named), 900, 1500, syscall=SLEEP, span=route)
    builder.wait(builder.stack(*unnamed), 2000, 2500, syscall=SLEEP, span=other)
    builder.rows["processes"][0]["spans_followed"] = True
    builder.rows["codes"][crawl]["flags"] = CO_COROUTINE
    (suggestion,) = found(answer)
    held = "waiting while “crawl” holds up its event loop (task “crawler”, span “GET /pages/{id}”)"
    assert suggestion.figure == f"2.00 s of 10.0 s {held}"


@pytest.mark.parametrize("case", ["thread", "loop below", "idle", "lambda", "GIL", "little", "library"])
def test_what_does_not_hold_up_a_loop(builder: Builder, answer: Answer, case: str) -> None:
    crawl, save, loop = crawling(builder)
    stack, values = builder.stack((loop, 0), (crawl, 5)), {"syscall": SLEEP}
    if case == "thread":
        stack = builder.stack((library(builder, f"{LIB}/threading.py", "Thread.run"), 0), (save, 2))
    elif case == "loop below":
        stack = builder.stack((crawl, 5), (loop, 0), (library(builder, f"{LIB}/selectors.py", "select"), 0))
    elif case == "idle":
        main = builder.code(0, "main", 1)
        stack = builder.stack((main, 12), (loop, 0), (library(builder, f"{LIB}/selectors.py", "select"), 0))
    elif case == "lambda":
        stack = builder.stack((loop, 0), (crawl, 10))
    elif case == "GIL":
        values = {"target": TARGETS["GIL"]}
    elif case == "library":
        stack = builder.stack((loop, 0), (library(builder, f"{SITE}/aiohttp/client.py", "request"), 5))
    builder.wait(stack, 0, 200 if case == "little" else 1000, **values)
    assert rules(answer) == []


COMMITS = """import sqlite3
def store(connection, rows):
    for row in rows:
        connection.execute("INSERT", row)
        connection.commit()
    connection.commit()
"""


@pytest.mark.parametrize(
    ("source", "line", "ms", "expected"),
    [
        (COMMITS, 5, 3000, [("commit-in-loop", 5)]),
        (COMMITS, 5, 1000, []),
        (COMMITS, 6, 3000, []),  # once
        (COMMITS.replace("sqlite3", "shop"), 5, 3000, []),
        (COMMITS.replace("for row in rows", "while rows"), 5, 3000, []),  # jobs as they come, for all that is known
    ],
)
def test_commits_in_a_loop(
    builder: Builder, answer: Answer, source: str, line: int, ms: int, expected: list[Any]
) -> None:
    f = builder.code(builder.file("/srv/a.py", source), "store")
    builder.wait(builder.stack((f, line - 1)), 0, ms, target=TARGETS["socket"] - 1)
    assert rules(answer) == expected


STORE = """import sqlite3
class Store:
    def reading(self, row):
        self.connection.execute("INSERT", row)
        self.connection.commit()
def load(store, rows):
    for row in rows:
        store.reading(row)
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", True),
        ("for row in rows", "while rows", False),
        ("        store.reading", "        pass\n    store.reading", False),  # once
        ("reading", "update", False),  # may be a dict's
        ("def load", "class Other:\n    def reading(self):\n        pass\ndef load", False),
    ],
)
def test_commits_in_a_method_that_a_loop_calls(
    builder: Builder, answer: Answer, old: str, new: str, expected: bool
) -> None:
    f = builder.code(builder.file("/srv/a.py", STORE.replace(old, new) if old else STORE), "reading")
    builder.wait(builder.stack((f, 4)), 0, 3000, target=TARGETS["socket"] - 1)
    assert [each.rule for each in found(answer) if "of the loop of line 7" in each.text] == [
        "commit-in-loop"
    ] * expected


def test_time_without_a_processor_is_not_the_programs(builder: Builder, answer: Answer) -> None:
    """Of ten seconds, one of committing; in eight no processor was free."""
    at = builder.stack((builder.code(builder.file("/srv/a.py", COMMITS), "store"), 4))
    builder.wait(at, 0, 1000, target=TARGETS["socket"] - 1)
    builder.wait(at, 1000, 9000, target=TARGETS["cpu"])
    assert rules(answer) == [("commit-in-loop", 5)]


PAGES = """import asyncio
async def page(session, number):
    return await session.get(number)
async def collect(session, numbers):
    found = []
    for number in numbers:
        one = await page(session, number)
        found.append(one)
    return found
"""


@pytest.mark.parametrize(
    ("old", "new", "tasks", "expected"),
    [
        ("", "", 1, True),
        ("", "", 5, False),  # they wait together
        ("page(session, number)\n        found", "page(session, one)\n        found", 1, False),  # of the last answer
        ("found.append(one)", "found.append(one)\n        if not one:\n            break", 1, False),
        ("found.append(one)", "await asyncio.sleep(1)", 1, False),  # a pause that may be asked for
        (
            "await page(session, number)\n        f",
            "await session.fetch(number)\n        f",
            1,
            False,
        ),  # one connection
        ("for number in numbers", "while numbers", 1, False),
    ],
)
def test_answers_that_a_coroutine_awaits_one_by_one(
    builder: Builder, answer: Answer, old: str, new: str, tasks: int, expected: bool
) -> None:
    file = builder.file("/srv/a.py", PAGES.replace(old, new) if old else PAGES)
    collect, page = builder.code(file, "collect"), builder.code(file, "page")
    builder.awaits(0, 6000, builder.stack((collect, 6, "Task-1"), (page, 2, "Task-1")), tasks)
    assert rules(answer) == [("waits-in-series", 7)] * expected


QUERIES = """ONE = "SELECT count FROM stock WHERE id = %s"
def counts(cursor, ids):
    for id in ids:
        cursor.execute(ONE, (id,))
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", True),
        ("ONE,", "'select count from stock where id = %s',", True),
        ("(id,)", "(7,)", False),  # the same again
        ("SELECT", "UPDATE", False),
        (" WHERE id = %s", " LIMIT %s", False),
        ("for id in ids", "while ids", False),
        ("ONE,", "ids.query,", False),
    ],
)
def test_queries_in_a_loop(builder: Builder, answer: Answer, old: str, new: str, expected: bool) -> None:
    f = builder.code(builder.file("/srv/a.py", QUERIES.replace(old, new) if old else QUERIES), "counts")
    builder.wait(builder.stack((f, 3)), 0, 2500, target=TARGETS["socket"])
    builder.wait(builder.stack((f, 3)), 3000, 4000, syscall=7)  # poll
    assert rules(answer) == ([("query-in-loop", 4)] if expected else [])


PARSE = """from datetime import datetime
def work(texts):
    return [datetime.strptime(text, "%Y-%m-%d") for text in texts]
"""


@pytest.mark.parametrize(
    ("source", "inside", "expected"),
    [
        (PARSE, "_strptime.py", "iso-date"),
        (PARSE.replace("%Y-%m-%d", "%d.%m.%Y"), "_strptime.py", "slower-form"),
        (PARSE.replace("from datetime", "from tools"), "_strptime.py", None),
        (PARSE, "locale.py", None),
    ],
)
def test_dates_in_iso_form(builder: Builder, answer: Answer, source: str, inside: str, expected: str | None) -> None:
    hot(builder, source, 3, library(builder, f"{LIB}/{inside}", "_strptime_datetime"))
    assert rules(answer) == ([(expected, 3)] if expected else [])


LOGS = """import logging
log = logging.getLogger()
def work(row):
    log.debug(f"row {row}")
"""


@pytest.mark.parametrize(
    ("message", "shown", "expected"),
    [
        ('f"row {row}"', None, True),
        ('"row %s" % row', None, True),
        ('"row {}".format(row)', None, True),
        ('"row %s", row', None, False),
        ("row", None, False),
        ('f"row {row}"', "Logger.handle", False),
        ('f"row {row}"', "Logger._log", False),
    ],
)
def test_messages_that_are_not_shown(
    builder: Builder, answer: Answer, message: str, shown: str | None, expected: bool
) -> None:
    source = LOGS.replace('f"row {row}"', message)
    hot(builder, source, 4)
    for name in filter(None, ("Logger.isEnabledFor", shown)):
        hot(builder, source, 4, library(builder, f"{LIB}/logging/__init__.py", name), samples=5)
    assert rules(answer) == ([("log-not-shown", 4)] if expected else [])


IMPORTS = """import pandas as pd
def report(rows):
    return pd.DataFrame(rows)
"""


@pytest.mark.parametrize(
    ("source", "later", "expected"),
    [
        (IMPORTS, None, True),
        (IMPORTS, "pandas/core/frame.py", False),
        (IMPORTS, "numpy/core/numeric.py", True),
        (IMPORTS + "NONE = pd.NA\n", None, False),  # the module itself uses it
        (IMPORTS + "def other(t: pd.DataFrame): pass\n", None, False),  # and so does the signature
        ("import pandas\n", None, False),  # for its effects, for all that is known
    ],
)
def test_imports_that_nothing_used(
    builder: Builder, answer: Answer, source: str, later: str | None, expected: bool
) -> None:
    importing = library(builder, "<frozen importlib._bootstrap>", "_find_and_load")
    hot(builder, source, 1, importing, library(builder, f"{SITE}/pandas/__init__.py", "<module>"))
    if later is not None:
        hot(builder, source, 3, library(builder, f"{SITE}/{later}", "f"), samples=5)
    assert rules(answer) == ([("unused-import", 1)] if expected else [])


JIT = "from numba import njit\n@njit{arguments}\ndef step(x):\n    return x\ndef work():\n    step(1)\n"


@pytest.mark.parametrize(
    ("arguments", "samples", "expected"),
    [
        ("", 100, True),
        ("(parallel=True)", 100, True),
        ("(cache=True)", 100, False),
        ("(**OPTIONS)", 100, False),
        ("", 5, False),
    ],
)
def test_functions_that_numba_compiles(
    builder: Builder, answer: Answer, arguments: str, samples: int, expected: bool
) -> None:
    source = JIT.format(arguments=arguments)
    compiling = library(builder, f"{SITE}/numba/core/dispatcher.py", "_DispatcherBase._compile_for_args")
    hot(builder, source, 6, samples=200)
    hot(builder, source, 6, compiling, samples=samples)
    assert rules(answer) == ([("compiled-each-run", 2)] if expected else [])


@pytest.mark.parametrize("between", ["typed/typedlist.py", "core/decorators.py"])
def test_what_numba_compiles_for_its_own_lists_is_kept_by_no_decorator(
    builder: Builder, answer: Answer, between: str
) -> None:
    source = "from numba import njit\n@njit\ndef f(x):\n    return x\nf(1)\n"
    own = library(builder, f"{SITE}/numba/{between}", "begin")
    hot(builder, source, 5, own, library(builder, f"{SITE}/numba/core/dispatcher.py", "_compile_for_args"))
    assert rules(answer) == ([] if "typed" in between else [("compiled-each-run", 2)])


FILTERS = """\
from functools import cache
from numba import njit
{decorator}
def make(a):
    @njit{arguments}
    def step(x):
        return a * x
    return step
kept = make(0)
def work(xs):
    for x in xs:
        step = make(x)
        {call}
"""


@pytest.mark.parametrize(
    ("decorator", "arguments", "call", "expected"),
    [
        ("", "", "step(x)", [("compiled-each-call", 6)]),
        ("", "(cache=True)", "step(x)", [("compiled-each-call", 6)]),
        ("", "", "make(x)(x)", [("compiled-each-call", 6)]),
        ("@cache", "", "step(x)", [("compiled-each-run", 5)]),
        ("", "", "kept(x)", [("compiled-each-run", 5)]),
    ],
)
def test_functions_that_are_made_and_compiled_in_a_loop(
    builder: Builder, answer: Answer, decorator: str, arguments: str, call: str, expected: list[tuple[str, int]]
) -> None:
    """Their cache does not help within one run; one that is made once is not compiled again."""
    source = FILTERS.format(decorator=decorator, arguments=arguments, call=call)
    compiling = library(builder, f"{SITE}/numba/core/dispatcher.py", "_DispatcherBase._compile_for_args")
    hot(builder, source, 13, samples=200)
    hot(builder, source, 13, compiling, samples=200)
    assert rules(answer) == expected
    if expected[0][0] == "compiled-each-call":
        (suggestion,) = found(answer)
        assert suggestion.text.startswith("“step” is defined inside “make”: each call of that makes a new function")
        assert suggestion.instead.startswith("define it once")
    else:
        assert "cache=True" not in found(answer)[0].instead  # it hits only where nothing around the function changes


OF_A_SETTING = """\
from numba import njit
@njit
def total(x):
    return x
def make(a):
    @njit
    def inner(x):
        return a * x
    @njit
    def step(x):
        return inner(x)
    return step
def simulate(a):
    step = make(a)
    for n in range(9):
        step(n)
def search(settings):
    {loop}
        simulate(1)
"""


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("for each in settings:", ("compiled-each-call", 10, "define it once")),
        ("if settings:", ("compiled-each-run", 2, "cache=True")),  # once
    ],
)
def test_functions_that_are_made_for_each_call_of_their_caller(
    builder: Builder, answer: Answer, loop: str, expected: tuple[str, int, str]
) -> None:
    compiling = library(builder, f"{SITE}/numba/core/dispatcher.py", "_DispatcherBase._compile_for_args")
    hot(builder, OF_A_SETTING.format(loop=loop), 16, compiling, samples=200)
    (suggestion,) = found(answer)
    assert (suggestion.rule, suggestion.line) == expected[:2]
    assert suggestion.instead.startswith(expected[2])


@pytest.mark.parametrize(("samples", "processes", "expected"), [(150, 2, True), (20, 2, False), (150, 1, False)])
def test_pickling(builder: Builder, answer: Answer, samples: int, processes: int, expected: bool) -> None:
    dumps = library(builder, f"{LIB}/multiprocessing/reduction.py", "ForkingPickler.dumps")
    hot(builder, "x = 1\n", 1, samples=300)
    at = builder.stack((dumps, 3))
    thread = builder.process(200, 0, 5000)[1] if processes > 1 else 0
    for number in range(samples):
        builder.cpu(at, time_ns=START + number * MS, thread=thread)
    assert rules(answer) == ([("pickled", None)] if expected else [])


LOADER = (
    "from torch.utils.data import DataLoader\nloader = DataLoader(data{arguments})\nfor batch in loader:\n    pass\n"
)


@pytest.mark.parametrize(
    ("arguments", "samples", "expected"),
    [("", 150, True), (", num_workers=2", 150, False), (", **options", 150, False), ("", 20, False)],
)
def test_a_loader_without_workers(
    builder: Builder, answer: Answer, arguments: str, samples: int, expected: bool
) -> None:
    source = LOADER.format(arguments=arguments)
    loading = library(builder, f"{SITE}/torch/utils/data/dataloader.py", "_SingleProcessDataLoaderIter._next_data")
    hot(builder, source, 4, samples=200)
    hot(builder, source, 3, loading, samples=samples)
    assert rules(answer) == ([("single-loader", 2)] if expected else [])


ELEMENTS = "import pandas as pd\nimport numpy as np\ndef work(table):\n    return table.price.apply({function})\n"


@pytest.mark.parametrize(
    ("function", "inside", "said"),
    [
        ("pd.to_datetime", "pandas/core/series.py", "pd.to_datetime(table.price)"),
        ("str", "pandas/core/series.py", "table.price.astype(str)"),
        ("np.sqrt", "pandas/core/series.py", "np.sqrt(table.price)"),
        ("lambda x: x * 2 + 1", "pandas/core/series.py", "the same expression with table.price"),
        ("lambda x: x.lower()", "pandas/core/series.py", "table.price.str.lower()"),
        ("lambda x: x * factor", "pandas/core/series.py", None),  # of what, is not known
        ("lambda x: x[0]", "pandas/core/series.py", None),
        ("parse", "pandas/core/series.py", None),
        ("str, convert=True", "pandas/core/series.py", None),
        ("str", "pandas/core/frame.py", None),
        ("str", "pandas/core/groupby/generic.py", None),
    ],
)
def test_functions_of_each_value_of_a_column(
    builder: Builder, answer: Answer, function: str, inside: str, said: str | None
) -> None:
    hot(builder, ELEMENTS.format(function=function), 4, library(builder, f"{SITE}/{inside}", "Some.apply"))
    suggestions = found(answer)
    assert [each.rule for each in suggestions] == (["apply-elements"] if said else [])
    assert said is None or said in suggestions[0].instead


@pytest.mark.parametrize(
    ("condition", "name", "expected"),
    [
        ('table.city == "Bonn"', "comp_method_OBJECT_ARRAY", True),
        ('table.city == "Bonn"', "comparison_op", False),
        ("table.city == other", "comp_method_OBJECT_ARRAY", False),
    ],
)
def test_columns_of_objects(builder: Builder, answer: Answer, condition: str, name: str, expected: bool) -> None:
    source = f"import pandas as pd\ndef work(table, other):\n    return table[{condition}]\n"
    hot(builder, source, 3, library(builder, f"{SITE}/pandas/core/ops/array_ops.py", name))
    assert rules(answer) == ([("object-column", 3)] if expected else [])


@pytest.mark.parametrize(
    ("call", "name", "expected"),
    [
        ("jobs.pop(0)", "list_pop", True),
        ("jobs.insert(0, job)", "list_insert", True),
        ("jobs.pop()", "list_pop", False),
        ("jobs.pop(False)", "list_pop", False),
        ("jobs.insert(1, job)", "list_insert", False),
        ("jobs.pop(0)", "dict_pop", False),
    ],
)
def test_the_front_of_a_list(builder: Builder, answer: Answer, call: str, name: str, expected: bool) -> None:
    source = f"def work(jobs, job):\n    while jobs:\n        {call}\n"
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), 2))
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), builder.native_frame(0, name))
    leaf = len(builder.rows["native_frames"]) - 1
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=leaf, native_stack=path, native_path=1)
    assert rules(answer) == ([("list-front", 3)] if expected else [])


def test_what_is_called_like_a_logger_is_not_taken_for_one(builder: Builder, answer: Answer) -> None:
    source = LOGS.replace("log.debug", "screen.error")
    hot(builder, source, 4, library(builder, f"{SITE}/curtain/screen.py", "Screen.error"))
    assert rules(answer) == []
