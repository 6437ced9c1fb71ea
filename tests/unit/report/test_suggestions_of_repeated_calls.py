"""Suggestions about calls that are slow as they are written, each with a twin that is left in peace."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder
from unit.report.suggested import SITE, Answer, found, hot, library, rules

pytestmark = pytest.mark.broad

ADAPTER = f"{SITE}/pydantic/type_adapter.py"
SERVICE = """from pydantic import TypeAdapter
from web import app, cached
KIND = list[int]
def parse(kind, raw):
    return TypeAdapter({made_of}).validate_json(raw)
{decorator}
async def take(request):
    return parse({given}, await request.body())
"""
ROUTE = '@app.post("/orders")'


@pytest.mark.parametrize(
    ("made_of", "given", "decorator", "function", "expected"),
    [
        ("kind", "list[int]", ROUTE, "TypeAdapter.__init__", "once for each argument"),
        ("list[int]", "None", ROUTE, "TypeAdapter.__init__", "once, at the level of the module"),
        ("KIND", "None", ROUTE, "TypeAdapter.__init__", "once, at the level of the module"),
        ("kind", "request.kind", ROUTE, "TypeAdapter.__init__", None),  # another one each time
        ("kind", "make()", ROUTE, "TypeAdapter.__init__", None),
        ("kind", "list[int]", ROUTE, "TypeAdapter.validate_json", None),  # it is the validation that takes long
        ("kind", "list[int]", '@app.post("name")', "TypeAdapter.__init__", None),
        ("kind", "list[int]", "@cached", "TypeAdapter.__init__", None),
        ("kind", "list[int]", "", "TypeAdapter.__init__", None),  # it may be called once
    ],
)
def test_made_for_each_request(
    builder: Builder, answer: Answer, made_of: str, given: str, decorator: str, function: str, expected: str | None
) -> None:
    source = SERVICE.format(made_of=made_of, given=given, decorator=decorator)
    hot(builder, source, 5, library(builder, ADAPTER, function))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("made-again", 5)] if expected else [])
    if expected:
        assert "in each call of “parse”" in suggestions[0].text
        assert expected in suggestions[0].instead


def test_made_in_a_function_that_a_loop_calls(builder: Builder, answer: Answer) -> None:
    source = "from jinja2 import Template\ndef page(name):\n    return Template(TEXT).render(name=name)\n" + (
        "TEXT = 'Dear {{ name }}'\ndef work(names):\n    return [page(name) for name in names]\n"
    )
    hot(builder, source, 3, library(builder, f"{SITE}/jinja2/environment.py", "Environment.compile"))
    (suggestion,) = found(answer)
    assert "in each call of “page”" in suggestion.text


CALLS = """import copy, dataclasses, datetime, difflib, inspect, json, statistics, xml
import pandas as pd
def work(response, sheet, column, word, words):
    for number in range(9):
        {call}
def once(sheet):
    return sheet.cell(1, 2)
"""
STREAM, SHEET = f"{SITE}/requests/models.py", f"{SITE}/openpyxl/worksheet/_read_only.py"
ENCODER, STRPTIME = "/usr/lib/python3.11/json/encoder.py", "/usr/lib/python3.11/_strptime.py"
DATES = f"{SITE}/dateutil/parser/_parser.py"


@pytest.mark.parametrize(
    ("call", "path", "name", "said"),
    [
        ("list(response.iter_content())", STREAM, "Response.iter_content.<locals>.generate", "one byte"),
        ("list(response.iter_content(16))", STREAM, "Response.iter_content.<locals>.generate", "16 bytes"),
        ("list(response.iter_content(decode_unicode=True))", STREAM, "generate", "one byte"),
        ("list(response.iter_content(65536))", STREAM, "Response.iter_content.<locals>.generate", None),
        ("list(response.iter_content(chunk_size=None))", STREAM, "generate", None),
        ("list(response.iter_content(**column))", STREAM, "generate", None),
        ("sheet.cell(number, 2)", SHEET, "ReadOnlyWorksheet._get_cell", "from its start"),
        ("sheet.cell(number, 2)", f"{SITE}/openpyxl/worksheet/worksheet.py", "Worksheet._get_cell", None),
        ("pd.to_datetime(column)", DATES, "parser._parse", "its form is not given"),
        ('pd.to_datetime(column, format="mixed", dayfirst=True)', DATES, "parser._parse", "its form is not given"),
        ('pd.to_datetime(column, format="%d.%m.%Y")', DATES, "parser._parse", None),
        ("pd.to_datetime(column)", f"{SITE}/pandas/core/tools/datetimes.py", "to_datetime", None),
        ("difflib.get_close_matches(word, words)", "/usr/lib/python3.11/difflib.py", "get_close_matches", "in Python"),
        ("copy.deepcopy(word)", "/usr/lib/python3.11/copy.py", "deepcopy", "each time"),
        ("word.deepcopy()", "/usr/lib/python3.11/copy.py", "deepcopy", None),
        ("dataclasses.asdict(word)", "/usr/lib/python3.11/dataclasses.py", "_asdict_inner", "asdict() copies"),
        ("inspect.stack()", "/usr/lib/python3.11/inspect.py", "stack", "of each caller"),
        ("inspect.signature(word)", "/usr/lib/python3.11/inspect.py", "signature", None),
        ("json.dumps(word, indent=1)", ENCODER, "_make_iterencode.<locals>._iterencode_dict", "in Python"),
        ("json.dumps(word)", ENCODER, "JSONEncoder.encode", None),  # in C
        ("json.dump(word, sheet)", ENCODER, "_make_iterencode.<locals>._iterencode", "piece by piece"),
        ("statistics.stdev(words)", "/usr/lib/python3.11/statistics.py", "stdev", "stdev() adds"),
        ("statistics.fmean(words)", "/usr/lib/python3.11/statistics.py", "fmean", None),
        ("xml.dom.minidom.parseString(word)", "/usr/lib/python3.11/xml/dom/expatbuilder.py", "parseString", "node"),
        ("xml.etree.ElementTree.parse(word)", "/usr/lib/python3.11/xml/etree/ElementTree.py", "parse", None),
        ("datetime.datetime.strptime(word, '%d.%m.%Y')", STRPTIME, "_strptime_datetime", "functools.lru_cache"),
        ("words.get_close_matches(word)", "/usr/lib/python3.11/difflib.py", "get_close_matches", None),
    ],
)
def test_calls_with_a_faster_form(
    builder: Builder, answer: Answer, call: str, path: str, name: str, said: str | None
) -> None:
    hot(builder, CALLS.format(call=call), 5, library(builder, path, name))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("slower-form", 5)] if said else [])
    assert said is None or said in suggestions[0].text + suggestions[0].instead


def test_a_cell_that_is_read_once(builder: Builder, answer: Answer) -> None:
    hot(builder, CALLS.format(call="pass"), 7, library(builder, SHEET, "ReadOnlyWorksheet._get_cell"))
    assert rules(answer) == []


COMPILED = """from numba import njit
def work(values, limits):
    for limit in limits:
        exceed(values, limit)
"""


@pytest.mark.parametrize(
    ("callees", "expected"),
    [
        ((("/numba/core/typing/typeof.py", "typeof"),), True),
        # An argument of an unusual type, or the first call: the dispatcher asks for the type of the whole.
        (
            (("/numba/core/dispatcher.py", "_DispatcherBase.typeof_pyval"), ("/numba/core/typing/typeof.py", "typeof")),
            False,
        ),
        (
            (("/numba/core/dispatcher.py", "Dispatcher._compile_for_args"), ("/numba/core/typing/typeof.py", "typeof")),
            False,
        ),
        ((("/numba/core/typing/templates.py", "typeof"),), False),
    ],
)
def test_lists_that_are_passed_to_compiled_functions(
    builder: Builder, answer: Answer, callees: tuple[tuple[str, str], ...], expected: bool
) -> None:
    hot(builder, COMPILED, 4, *(library(builder, SITE + path, name) for path, name in callees))
    assert ("list-for-compiled" in [rule for rule, _ in rules(answer)]) == expected


@pytest.mark.parametrize(("runner", "expected"), [("_pytest/runner.py", True), ("shop/runner.py", False)])
def test_passwords_of_tests(builder: Builder, answer: Answer, runner: str, expected: bool) -> None:
    source = "from werkzeug import security\ndef add(word):\n    return security.generate_password_hash(word)\n"
    under = builder.code(builder.file(f"{SITE}/{runner}"), "pytest_runtest_protocol")
    at = builder.code(builder.file("/srv/a.py", source), "add")
    hashing = library(builder, f"{SITE}/werkzeug/security.py", "generate_password_hash")
    stack = builder.stack((under, 0), (at, 2), (hashing, 0))
    for number in range(300):
        builder.cpu(stack, time_ns=START + (number + 1) * MS)
    assert rules(answer) == ([("hash-in-tests", 3)] if expected else [])


QUERY = """import sqlite3
def month(db, label):
    return db.execute(
        "{query}", (label,)
    ).fetchone()
INDEX = "{index}"
"""
BY_MONTH = "select count(*) from trips where strftime('%Y-%m', started) = ?"


@pytest.mark.parametrize(
    ("query", "index", "instead"),
    [
        (BY_MONTH, "", "started >= ? AND started < ?"),
        (f"{BY_MONTH} order by id limit 3", "create index a on trips(started)", "started >= ? AND started < ?"),
        ("select id from trips where date(t.day) = ?", "", "t.day >= ? AND t.day < ?"),
        ("select id from trips where strftime('%m', started) = ?", "", "(strftime('%m', started))"),  # no range
        ("select id from users where lower(name) = ?", "", "CREATE INDEX ... (lower(name))"),
        ("select id from users where substr(name, 1, 2) in (?)", "", "CREATE INDEX ... (substr(name, 1, 2))"),
        ("select id from users where lower(name) = ?", "create index low on users(lower(name))", None),
        ("select id from users where lower(?) = name", "", None),
        ("select id from users where name = ?", "", None),
        ("select id from users where lower(name) = ? and town = ?", "", None),  # there may be an index of the town
        ("select a.id from users, towns where lower(name) = ?", "", None),
        ("select id from users join towns where lower(name) = ?", "", None),
        ("select id from users where own(name) = ?", "", None),
        ("select id from users where strftime('%m', started, 'localtime') = ?", "", None),
        ("delete from users where lower(name) = ?", "", None),
    ],
)
def test_queries_that_no_index_serves(
    builder: Builder, answer: Answer, query: str, index: str, instead: str | None
) -> None:
    at = builder.stack((builder.code(builder.file("/srv/a.py", QUERY.format(query=query, index=index)), "month"), 2))
    frame = builder.native_frame(builder.module("/usr/lib/libsqlite3.so.0"), "sqlite3_step")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), frame)
    leaf = len(builder.rows["native_frames"]) - 1
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=leaf, native_stack=path, native_path=1)
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("function-of-column", 3)] if instead else [])
    assert instead is None or instead in suggestions[0].instead


@pytest.mark.parametrize(
    ("call", "expected"),
    [("hashlib.pbkdf2_hmac('sha256', word, salt, 600_000)", True), ("hashlib.sha256(word)", False)],
)
def test_hashes_that_a_program_makes_itself(builder: Builder, answer: Answer, call: str, expected: bool) -> None:
    source = f"import hashlib\ndef add(word, salt):\n    return {call}\n"
    under = builder.code(builder.file(f"{SITE}/_pytest/runner.py"), "pytest_runtest_protocol")
    stack = builder.stack((under, 0), (builder.code(builder.file("/srv/a.py", source), "add"), 2))
    native = builder.native_frame(builder.module("/usr/lib/libcrypto.so.3"), "EVP_DigestUpdate")
    for number in range(300):
        builder.cpu(stack, time_ns=START + (number + 1) * MS, native_frame=native)
    assert rules(answer) == ([("hash-in-tests", 3)] if expected else [])


SEARCH = """from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
def work(steps, data):
    model = Pipeline([("words", steps[0]), ("last", steps[1])]{memory})
    search = GridSearchCV(model, {grid})
    return search.fit(*data)
"""


@pytest.mark.parametrize(
    ("memory", "grid", "expected"),
    [
        ("", '{"last__C": [1, 2], "last__penalty": ["l2"]}', True),
        (", memory='cache'", '{"last__C": [1, 2]}', False),
        ("", '{"last__C": [1, 2], "words__size": [1, 2]}', False),
        ("", '{"words__size": [1, 2]}', False),
        ("", "grid", False),
    ],
)
def test_steps_that_a_search_fits_again(
    builder: Builder, answer: Answer, memory: str, grid: str, expected: bool
) -> None:
    callees = (
        library(builder, f"{SITE}/sklearn/model_selection/_search.py", "BaseSearchCV.fit"),
        library(builder, f"{SITE}/sklearn/pipeline.py", "_fit_transform_one"),
    )
    hot(builder, SEARCH.format(memory=memory, grid=grid), 6, *callees)
    assert rules(answer) == ([("transformed-again", 6)] if expected else [])


@pytest.mark.parametrize(
    ("memory", "grid", "expected"),
    [
        ("", '{"ridge__alpha": [1, 2]}', True),
        (", memory='cache'", '{"ridge__alpha": [1, 2]}', False),
        ("", '{"scaler__size": [1, 2]}', False),
    ],
)
def test_steps_without_names_are_fitted_again(
    builder: Builder, answer: Answer, memory: str, grid: str, expected: bool
) -> None:
    source = (
        SEARCH.replace("Pipeline\n", "make_pipeline\n")
        .replace('Pipeline([("words", steps[0]), ("last", steps[1])]', "make_pipeline(Scaler(), linear.Ridge()")
        .format(memory=memory, grid=grid)
    )
    callees = (
        library(builder, f"{SITE}/sklearn/model_selection/_search.py", "BaseSearchCV.fit"),
        library(builder, f"{SITE}/sklearn/pipeline.py", "_fit_transform_one"),
    )
    hot(builder, source, 6, *callees)
    assert rules(answer) == ([("transformed-again", 6)] if expected else [])
