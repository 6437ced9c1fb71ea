"""Suggestions about few of many, windows, compiled steps, tables without an index, and processes started anew."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder
from unit.report.suggested import SITE, Answer, found, hot, library, likely, rules

NUMPY, WINDOWS = f"{SITE}/numpy/_core/fromnumeric.py", f"{SITE}/pandas/core/window/rolling.py"

FEW = """import numpy as np
def work(away, rows, k=4):
    for row in rows:
        near = {taken}
        {then}
def other(away, row):
    return work(away, row{given})
"""


@pytest.mark.parametrize(
    ("taken", "then", "given", "expected"),
    [
        ("away[np.argsort(away)[:5]]", "row(near)", "", True),
        ("np.sort(away)[-5:]", "row(near)", "", True),
        ("np.argsort(away)[0]", "row(near)", "", True),
        ("away.argsort()[:5]", "row(near)", "", True),
        ("np.argsort(away)[:k]", "row(near)", "", True),
        ("np.argsort(away)[:k]", "row(near)", ", k=9", True),
        ("np.argsort(away)[:k]", "row(near)", ", 5000", False),
        ("np.argsort(away)[:k]", "row(near)", ", len(away)", False),
        ("np.argsort(away)", "row(near[:5])", "", True),
        ("np.argsort(away)", "row(near)", "", False),  # all of them
        ("np.argsort(away)", "row(near[:5], near)", "", False),
        ("np.argsort(away)[::-1]", "row(near)", "", False),
        ("np.argsort(away)[:5000]", "row(near)", "", False),
        ("np.argsort(away, axis=1)[:5]", "row(near)", "", False),  # rows of the result
        ("np.argsort(away)[5:]", "row(near)", "", False),
        ("row.argsort(away)[:5]", "row(near)", "", False),
    ],
)
def test_few_of_what_is_sorted(
    builder: Builder, answer: Answer, taken: str, then: str, given: str, expected: bool
) -> None:
    hot(builder, FEW.format(taken=taken, then=then, given=given), 4, library(builder, NUMPY, "argsort"))
    assert rules(answer) == ([("sorted-for-few", 4)] if expected else [])


def test_sorting_that_is_little_of_the_line(builder: Builder, answer: Answer) -> None:
    source = FEW.format(taken="away[np.argsort(away)[:5]]", then="row(near)", given="")
    hot(builder, source, 4, library(builder, NUMPY, "argsort"), samples=100)
    hot(builder, source, 4, library(builder, NUMPY, "take"), samples=200)
    assert rules(answer) == []


ROLLING = """import numpy as np
import pandas as pd
def work(prices):
    return prices.rolling(48).{call}
def span(window):
    return window.max() - window.min()
def slope(window):
    return np.log(window).mean() * 2
def spread(window):
    return np.log(window).std() * 2
def parsed(window):
    return lookup(window)
"""


@pytest.mark.parametrize(
    ("call", "name", "said"),
    [
        ("apply(span)", "Rolling.apply", "windows.max()"),
        ("apply(lambda w: w.mean() / w.std())", "Rolling.apply", "windows.mean()"),
        ("apply(span, raw=True)", "Rolling.apply", "windows.max()"),
        ("apply(slope)", "Rolling.apply", "raw=True"),
        ("apply(slope, raw=True)", "Rolling.apply", None),
        ("apply(spread)", "Rolling.apply", None),  # of an array it is another number
        ("apply(lambda w: np.std(w))", "Rolling.apply", None),
        ("apply(parsed)", "Rolling.apply", None),
        ("apply(span, engine='numba')", "Rolling.apply", None),
        ("apply(span)", "Rolling.max", None),
    ],
)
def test_functions_of_each_window(builder: Builder, answer: Answer, call: str, name: str, said: str | None) -> None:
    hot(builder, ROLLING.format(call=call), 4, library(builder, WINDOWS, name))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("function-of-each-window", 4)] if said else [])
    assert said is None or said in suggestions[0].instead


def native(builder: Builder, source: str, line: int, *leaves: tuple[str, str | None, int]) -> None:
    """Samples on a line in native functions: a library, a symbol, and how many."""
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), line - 1))
    for library_path, symbol, samples in leaves:
        frame = builder.native_frame(builder.module(library_path), symbol)
        path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), frame)
        for _ in range(samples):
            time_ns = START + (len(builder.rows["cpu"]) + 1) * MS
            builder.cpu(at, time_ns=time_ns, native_frame=frame, native_stack=path, native_path=1)


STEPS = """from numba import njit
@njit
def step(x):
    return x * 2
{decorator}
def work(count):
    for _ in range(count):
        {call}
"""
DISPATCHER = f"{SITE}/numba/_dispatcher.cpython-311-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("decorator", "call", "entering", "working", "expected"),
    [
        ("", "step(3)", 100, 20, True),
        ("", "step(3)", 100, 150, False),  # what it does takes longer than to call it
        ("", "step(3)", 10, 20, False),
        ("@njit", "step(3)", 100, 20, False),
        ("", "print(3)", 100, 20, False),
    ],
)
def test_compiled_functions_that_python_steps_through(
    builder: Builder, answer: Answer, decorator: str, call: str, entering: int, working: int, expected: bool
) -> None:
    source = STEPS.format(decorator=decorator, call=call)
    leaves = (DISPATCHER, "Dispatcher_call", entering), ("[anonymous]", None, working), ("/lib/libc.so.6", "free", 100)
    native(builder, source, 8, *leaves)
    assert rules(answer) == ([("compiled-steps", 8)] if expected else [])


MEMBERS = """import sqlite3
def work(connection, email):
    return connection.execute("{query}", (email,)).fetchone()
def prepare(connection):
    connection.execute("{other}")
"""
SQLITE = "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0"


@pytest.mark.parametrize(
    ("query", "other", "passing", "expected"),
    [
        ("SELECT * FROM member WHERE email = ?", "CREATE TABLE member(id INTEGER, email TEXT)", 30, True),
        ("select name from member where email = ? order by name limit 3", "", 30, True),
        ("SELECT * FROM member WHERE email = ?", "CREATE INDEX by_email ON member(email)", 30, False),
        ("SELECT * FROM member WHERE email = ?", "CREATE TABLE member(email TEXT PRIMARY KEY, name TEXT)", 30, False),
        ("SELECT * FROM member WHERE email = ?", "CREATE TABLE member(email, name, UNIQUE (name, email))", 30, False),
        ("SELECT * FROM member WHERE email = ?", "", 0, False),  # no row is passed over
        ("SELECT count(*) FROM member WHERE email = ?", "", 30, False),  # it may have to go through them
        ("SELECT * FROM member WHERE email = ? AND age > 3", "", 30, False),
        ("SELECT * FROM member WHERE id = ?", "", 30, False),
        ("SELECT * FROM member JOIN visit WHERE email = ?", "", 30, False),
        ("SELECT * FROM member", "", 30, False),
    ],
)
def test_tables_that_are_gone_through_for_a_row(
    builder: Builder, answer: Answer, query: str, other: str, passing: int, expected: bool
) -> None:
    source = MEMBERS.format(query=query, other=other)
    file = builder.file("/srv/a.py", source)
    at = builder.stack((builder.code(file, "work"), 2))
    module = builder.module(SQLITE)
    execute, following = (builder.native_frame(module, each) for each in ("sqlite3VdbeExec", "sqlite3BtreeNext"))
    outer = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), execute)
    inner = builder.native_stack(outer, following)
    for number in range(300):
        below = number < passing
        frame, path = (following, inner) if below else (execute, outer)
        builder.cpu(at, time_ns=START + number * MS, native_frame=frame, native_stack=path, native_path=1)
    assert [(each.rule, each.line) for each in likely(answer)] == ([("no-index", 3)] if expected else [])


ENCODER = f"{SITE}/fastapi/encoders.py"
SERVER = "import uvicorn\nfrom fastapi.encoders import jsonable_encoder\ndef work(app, x):\n    return {call}\n"


@pytest.mark.parametrize(
    ("call", "name", "expected"),
    [
        ("uvicorn.run(app)", "jsonable_encoder", True),
        ("uvicorn.run(app)", "decimal_encoder", False),
        ("jsonable_encoder(x)", "jsonable_encoder", False),  # the program's own call
    ],
)
def test_results_that_fastapi_takes_apart(
    builder: Builder, answer: Answer, call: str, name: str, expected: bool
) -> None:
    hot(builder, SERVER.format(call=call), 4, library(builder, ENCODER, name))
    assert rules(answer) == ([("encoded-in-python", None)] if expected else [])


RUNS = """import subprocess
import sys
def work(name):
    return subprocess.{call}
"""
PROGRAM = "import argparse\nimport json\ndef main():\n    return 3\nmain()\n"
PIPE, READ = 3, 0


@pytest.mark.parametrize(
    ("call", "children", "imports_ms", "expected"),
    [
        ("run([sys.executable, 'greet.py', name])", 6, 300, True),
        ("run([sys.executable, 'greet.py', name])", 4, 300, False),
        ("run([sys.executable, 'greet.py', name])", 6, 100, False),  # they are started for something
        ("Popen([sys.executable, 'serve.py'])", 6, 300, False),
    ],
)
def test_processes_that_do_little_but_import(
    builder: Builder, answer: Answer, call: str, children: int, imports_ms: int, expected: bool
) -> None:
    file = builder.file("/srv/a.py", RUNS.format(call=call))
    at = builder.stack((builder.code(file, "work"), 3))
    program = builder.file("/srv/greet.py", PROGRAM)
    module = builder.code(program, "<module>")
    importing, main = builder.stack((module, 0)), builder.stack((module, 4))
    for child in range(children):
        start = 1500 * child
        builder.wait(at, start, start + 1300, target=PIPE, syscall=READ)
        _, thread = builder.process(200 + child, start, start + 1300)
        for step in range(40):
            stack = importing if step * 10 < imports_ms else main
            builder.cpu(stack, 30, thread=thread, time_ns=START + (start + 20 + step * 30) * MS)
    assert [each for each in rules(answer) if each[0] == "started-again"] == (
        [("started-again", 4)] if expected else []
    )
