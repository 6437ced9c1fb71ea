"""Suggestions about functions of libraries that have a faster form, and about queries, with twins that have none."""

from __future__ import annotations

import pytest

from tachograph.analyzer.report_data.advice.library_forms import FORMS
from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder
from unit.report.suggested import SITE, Answer, found, hot, library, rules

pytestmark = pytest.mark.broad

GRAPH = """import networkx as nx
def work(graph, depots, shops):
    table = {{}}
    for depot in depots:
        for shop in shops:
            table[depot, shop] = nx.dijkstra_path_length({arguments})
            {more}
    return table
"""
DIJKSTRA = f"{SITE}/networkx/algorithms/shortest_paths/weighted.py", "dijkstra_path_length"


@pytest.mark.parametrize(
    ("arguments", "more", "expected"),
    [
        ("graph, depot, shop", "pass", True),
        ("graph, depot, shop, weight='km'", "print(len(shops))", True),
        ("graph, shop, depot", "pass", False),  # from another place each time
        ("graph, depot, shop", "graph.remove_edge(depot, shop)", False),
        ("graph, depot, shop", "change(graph)", False),
        ("graphs[depot], depot, shop", "pass", False),
    ],
)
def test_paths_of_each_pair(builder: Builder, answer: Answer, arguments: str, more: str, expected: bool) -> None:
    hot(builder, GRAPH.format(arguments=arguments, more=more), 6, library(builder, *DIJKSTRA))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("call-for-each-pair", 6)] if expected else [])
    if expected:
        assert suggestions[0].text == "dijkstra_path_length searches the graph from depot anew for each target."
        assert suggestions[0].instead.startswith("lengths = nx.single_source_dijkstra_path_length(graph, depot) once")


def test_one_loop_over_targets_is_no_pair(builder: Builder, answer: Answer) -> None:
    source = "import networkx as nx\ndef work(graph, shops):\n    for shop in shops:\n" + (
        "        nx.dijkstra_path_length(graph, 0, shop)\n"
    )
    hot(builder, source, 4, library(builder, *DIJKSTRA))
    assert rules(answer) == []


PAIRS = """from scipy.spatial.distance import euclidean
from rapidfuzz import fuzz
def work(left, right):
    result = []
    for one in left:
        for other in right:
            result.append({call})
    return result
def single(left, right):
    return [{call} for one, other in zip(left, right)]
"""
BASE = f"{SITE}/shapely/geometry/base.py"


@pytest.mark.parametrize(
    ("call", "path", "name", "said"),
    [
        ("one.contains(other)", BASE, "contains", "STRtree"),
        ("other.contains(one)", BASE, "contains", "STRtree"),
        ("one.distance(other)", BASE, "distance", None),  # not faster by far for all of them
        ("euclidean(one, other)", f"{SITE}/scipy/spatial/distance.py", "euclidean", 'cdist(left, right, "euclidean")'),
        ("fuzz.ratio(one, other)", f"{SITE}/rapidfuzz/fuzz_py.py", "ratio", "rapidfuzz.process.cdist"),
        ("one.contains(left)", BASE, "contains", None),  # with the same in each round of the inner loop
        ("other.contains(right)", BASE, "contains", None),
        ("one.contains(other)", f"{SITE}/own_shapes/base.py", "contains", None),
        ("one.contains(other)", BASE, "buffer", None),
    ],
)
def test_calls_for_each_pair(
    builder: Builder, answer: Answer, call: str, path: str, name: str, said: str | None
) -> None:
    source = PAIRS.format(call=call)
    hot(builder, source, 7, library(builder, path, name))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("call-for-each-pair", 7)] if said else [])
    assert said is None or said in suggestions[0].instead


def test_pairs_of_one_loop_are_as_many_as_there_are(builder: Builder, answer: Answer) -> None:
    hot(builder, PAIRS.format(call="one.contains(other)"), 10, library(builder, BASE, "contains"))
    assert rules(answer) == []


def test_a_native_function_of_the_library_has_the_time(builder: Builder, answer: Answer) -> None:
    file = builder.file("/srv/a.py", PAIRS.format(call="fuzz.ratio(one, other)"))
    at = builder.stack((builder.code(file, "work"), 6))
    module = builder.module(f"{SITE}/rapidfuzz/fuzz_cpp.so")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), builder.native_frame(module, "ratio"))
    leaf = len(builder.rows["native_frames"]) - 1
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=leaf, native_stack=path, native_path=1)
    assert rules(answer) == [("call-for-each-pair", 7)]


ROUNDS = """import openpyxl, jsonschema, jinja2, yaml
from openpyxl.styles import Font
from pathlib import Path
from pygments.lexers import guess_lexer
from PIL import Image
TEXT = "{{{{ name }}}}"
def work(rows, schema, image, path, environment):
    text = Path(path).read_text()
    for row in rows:
        for number in range(9):
            {call}
"""
STYLES, TEMPLATES = f"{SITE}/openpyxl/styles/styleable.py", f"{SITE}/jinja2/environment.py"
SCHEMAS, DOCUMENTS = f"{SITE}/jsonschema/validators.py", f"{SITE}/yaml/constructor.py"
LEXERS = f"{SITE}/pygments/lexers/__init__.py"


@pytest.mark.parametrize(
    ("call", "path", "name", "expected"),
    [
        ("row[0].font = Font(bold=True)", STYLES, "StyleDescriptor.__set__", "made-again"),
        ("row[0].font = Font(bold=number > 5)", STYLES, "StyleDescriptor.__set__", None),
        ("row[0].font = Font(bold=row[0].value)", STYLES, "StyleDescriptor.__set__", "made-again"),  # the outer loop's
        ("jinja2.Template(TEXT).render(name=row)", TEMPLATES, "Environment.compile", "made-again"),
        ("environment.from_string(TEXT).render(name=row)", TEMPLATES, "Environment.compile", "made-again"),
        ("jinja2.Template(TEXT).render(name=row)", TEMPLATES, "Template.render", None),
        ("jinja2.Template(rows[number]).render()", TEMPLATES, "Environment.compile", None),
        ("jinja2.Template(read()).render()", TEMPLATES, "Environment.compile", None),
        ("jsonschema.validate(number, schema)", SCHEMAS, "Validator.check_schema", "made-again"),
        ("jsonschema.validate(number, schema=schema)", SCHEMAS, "Validator.check_schema", "made-again"),
        ("jsonschema.validate(row, schemas[number])", SCHEMAS, "Validator.check_schema", None),
        ("jsonschema.validate(number, schema)", SCHEMAS, "Validator.iter_errors", None),
        ("image.getpixel((number, row))", f"{SITE}/PIL/Image.py", "Image.getpixel", "call-for-each-element"),
        ("image.getpixel((0, 0))", f"{SITE}/PIL/Image.py", "Image.getpixel", None),
        ("image.resize((number, row))", f"{SITE}/PIL/Image.py", "Image.getpixel", None),
        ("yaml.safe_load(text)", DOCUMENTS, "BaseConstructor.get_single_data", "slower-form"),
        ("yaml.load(text, Loader=yaml.SafeLoader)", DOCUMENTS, "BaseConstructor.get_single_data", "slower-form"),
        ("yaml.load(text, Loader=yaml.FullLoader)", DOCUMENTS, "BaseConstructor.get_single_data", None),
        ("yaml.load(text, yaml.CSafeLoader)", DOCUMENTS, "BaseConstructor.get_single_data", None),
        ("guess_lexer(text)", LEXERS, "guess_lexer", "slower-form"),
        ("guess_lexer(row)", LEXERS, "guess_lexer", None),  # of no file
    ],
)
def test_calls_in_rounds(
    builder: Builder, answer: Answer, call: str, path: str, name: str, expected: str | None
) -> None:
    hot(builder, ROUNDS.format(call=call), 11, library(builder, path, name))
    assert rules(answer) == ([(expected, 11)] if expected else [])


TABLES = """import pandas as pd
def work(path, connection, rows):
    return {call}
"""
PARSER = f"{SITE}/pandas/io/parsers/python_parser.py"


@pytest.mark.parametrize(
    ("call", "name", "expected"),
    [
        (r'pd.read_csv(path, sep=r"\s*,\s*", engine="python")', "PythonParser.read", True),
        (r'pd.read_csv(path, sep="; *")', "PythonParser.read", True),
        (r'pd.read_csv(path, engine="python")', "PythonParser.read", True),
        (r"pd.read_csv(path, skipfooter=3)", "PythonParser.read", False),  # what only the parser in Python has
        (r'pd.read_csv(path, sep="::", engine="python")', "PythonParser.read", False),
        (r'pd.read_csv(path, sep=r"\d,")', "PythonParser.read", False),
        (r'pd.read_csv(path, sep=None, engine="python")', "PythonParser.read", False),  # it finds out
        (r'pd.read_csv(path, sep=", ")', "PythonParser.close", False),
    ],
)
def test_files_that_pandas_takes_apart_in_python(
    builder: Builder, answer: Answer, call: str, name: str, expected: bool
) -> None:
    hot(builder, TABLES.format(call=call), 3, library(builder, PARSER, name))
    assert rules(answer) == ([("slower-form", 3)] if expected else [])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('executemany("INSERT INTO t VALUES (?)", rows)', True),
        ('executemany("UPDATE t SET a = ?", rows)', False),
        ('execute("INSERT INTO t VALUES (?)", rows)', False),
    ],
)
def test_rows_that_duckdb_inserts_one_by_one(builder: Builder, answer: Answer, call: str, expected: bool) -> None:
    source = TABLES.format(call=f"connection.{call}")
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), 2))
    frame = builder.native_frame(builder.module(f"{SITE}/_duckdb.cpython-313-x86_64-linux-gnu.so"), "ExecuteMany")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), frame)
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=frame, native_stack=path, native_path=1)
    assert rules(answer) == ([("slower-form", 3)] if expected else [])


def test_a_line_with_little_of_the_time_gets_none(builder: Builder, answer: Answer) -> None:
    source = ROUNDS.format(call="yaml.safe_load(text)")
    hot(builder, source, 8, samples=300)
    hot(builder, source, 11, library(builder, DOCUMENTS, "BaseConstructor.get_single_data"), samples=20)
    assert rules(answer) == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.names[0])
def test_the_texts_of_all_forms_can_be_filled_in(form: object) -> None:
    parts = {"call": "a", "first": "b", "path": "c", "round": "d", "before": "e", "pieces": "f"}
    assert (form.text + form.instead).format(**parts)  # type: ignore[attr-defined]


ORDERS = """from models import Order
def work(page):
    for order in Order.select().limit(page):
        show({shown})
def row(order):
    return {shown}
def rows(orders):
    return [row(order) for order in orders]
"""


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        (f"{SITE}/peewee.py", "ForeignKeyAccessor.get_rel_instance", ".join(), or prefetch()"),
        (f"{SITE}/sqlalchemy/orm/strategies.py", "LazyLoader._emit_lazyload", "selectinload"),
        (
            f"{SITE}/django/db/models/fields/related_descriptors.py",
            "ForwardManyToOneDescriptor.__get__",
            "select_related",
        ),
    ],
)
@pytest.mark.parametrize("line", [4, 6])
def test_relations_that_each_round_loads(
    builder: Builder, answer: Answer, path: str, name: str, said: str, line: int
) -> None:
    hot(builder, ORDERS.format(shown="order.customer.name"), line, library(builder, path, name))
    (suggestion,) = found(answer)
    assert (suggestion.rule, suggestion.line) == ("lazy-relation", line)
    assert "“order.customer” is not loaded yet" in suggestion.text
    assert said in suggestion.instead


@pytest.mark.parametrize(
    ("shown", "line", "name"),
    [
        ("order.customer.name", 4, "Model.save"),  # the time is elsewhere
        ("page.customer.name", 4, "ForeignKeyAccessor.get_rel_instance"),  # of none that the loop goes through
        ("shop.customer.name", 6, "ForeignKeyAccessor.get_rel_instance"),
    ],
)
def test_relations_that_no_loop_loads(builder: Builder, answer: Answer, shown: str, line: int, name: str) -> None:
    hot(builder, ORDERS.format(shown=shown), line, library(builder, f"{SITE}/peewee.py", name))
    assert rules(answer) == []


QUERIES = """from models import Order
def work(session, connection, numbers):
    for number in numbers:
        {query}
"""


@pytest.mark.parametrize(
    ("query", "path", "name", "expected"),
    [
        ("Order.get(Order.id == number)", "peewee.py", "Database.execute", True),
        ("Order.select().where(Order.id == number).first()", "peewee.py", "Database.execute", True),
        ("session.get(Order, number)", "sqlalchemy/orm/session.py", "Session.get", True),
        ("Order.objects.get(pk=number)", "django/db/models/query.py", "QuerySet.get", True),
        ("Order.get(Order.id == 3)", "peewee.py", "Database.execute", False),
        ("Order.update(paid=True).where(Order.id == number).execute()", "peewee.py", "Database.execute", False),
        ("session.get(Order, number)", "own/session.py", "Session.get", False),
        ("session.get(Order, number)", "sqlalchemy/orm/session.py", "Session.flush", False),
    ],
)
def test_queries_of_each_round(
    builder: Builder, answer: Answer, query: str, path: str, name: str, expected: bool
) -> None:
    hot(builder, QUERIES.format(query=query), 4, library(builder, f"{SITE}/{path}", name))
    assert rules(answer) == ([("query-in-loop", 4)] if expected else [])


@pytest.mark.parametrize(("symbol", "expected"), [("sqlite3_step", True), (None, False)])
def test_queries_of_a_database_in_the_process(
    builder: Builder, answer: Answer, symbol: str | None, expected: bool
) -> None:
    query = 'connection.execute("SELECT name FROM orders WHERE id = ?", (number,))'
    at = builder.stack((builder.code(builder.file("/srv/a.py", QUERIES.format(query=query)), "work"), 3))
    module = builder.module("/usr/lib/libsqlite3.so.0")
    frame = builder.native_frame(module if symbol else 0, symbol or "poll")
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), frame)
    leaf = len(builder.rows["native_frames"]) - 1
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=leaf, native_stack=path, native_path=1)
    assert rules(answer) == ([("query-in-loop", 4)] if expected else [])


CELLS = """import pandas as pd
def work(table, names):
    for {loop}:
        total = {cell}
"""


@pytest.mark.parametrize(
    ("loop", "cell", "expected"),
    [
        ("row in range(len(table))", 'table.loc[row, "price"]', True),
        ("row in range(len(table))", 'table.iloc[row]["price"]', True),
        ("row in table.index", 'table.at[row, "price"]', True),
        ("row, _ in table.iterrows()", 'table.at[row, "price"]', True),
        ("name in names", "table.loc[name]", False),
        ("row in range(9)", "table.iloc[row : row + 10]", False),
        ("row in range(9)", "table.iloc[3]", False),
    ],
)
def test_rows_one_by_one(builder: Builder, answer: Answer, loop: str, cell: str, expected: bool) -> None:
    looked_up = library(builder, f"{SITE}/pandas/core/indexing.py", "_LocationIndexer.__getitem__")
    hot(builder, CELLS.format(loop=loop, cell=cell), 4, looked_up)
    assert rules(answer) == ([("cell-by-cell", 4)] if expected else [])


MASKS = """import numpy as np
import pandas as pd
def work(table, image, labels, cities, regions):
    for city in cities:
        part = {mask}
"""


@pytest.mark.parametrize(
    ("mask", "path", "said"),
    [
        ("table[table.city == city].price.sum()", f"{SITE}/pandas/core/frame.py", "groupby"),
        ("table[table['city'] == city]", f"{SITE}/pandas/core/frame.py", "groupby"),
        ("table[table.city == 'Ulm']", f"{SITE}/pandas/core/frame.py", None),
        ("city[city.price == table]", f"{SITE}/pandas/core/frame.py", None),
        ("table[table.city > city]", f"{SITE}/pandas/core/frame.py", None),
        ("table[table.city == city]", f"{SITE}/own/frame.py", None),
    ],
)
def test_masks_of_each_value(builder: Builder, answer: Answer, mask: str, path: str, said: str | None) -> None:
    hot(builder, MASKS.format(mask=mask), 5, library(builder, path, "DataFrame.__getitem__"))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("mask-for-each-value", 5)] if said else [])
    assert said is None or said in suggestions[0].instead


def test_cells_of_a_notebook_share_their_imports(builder: Builder, answer: Answer) -> None:
    builder.file("/tmp/ipykernel_1/1.py", "import pandas as pd\n", cell=1)
    source = "for row in range(len(table)):\n    total = table.loc[row]\n"
    code = builder.code(builder.file("/tmp/ipykernel_1/2.py", source, cell=2), "<module>")
    looked_up = library(builder, f"{SITE}/pandas/core/indexing.py", "_LocationIndexer.__getitem__")
    for number in range(300):
        builder.cpu(builder.stack((code, 1), (looked_up, 0)), time_ns=START + number * MS)
    assert rules(answer) == [("cell-by-cell", 2)]


def test_a_notebook_is_the_program_though_its_server_takes_longer(builder: Builder, answer: Answer) -> None:
    code = builder.code(builder.file("/tmp/ipykernel_1/2.py", "work()\n", cell=2), "<module>")
    server = library(builder, f"{SITE}/lark/lexer.py", "match")
    for number in range(300):
        at = builder.stack((code, 0)) if number % 4 == 0 else builder.stack((server, 0))
        builder.cpu(at, time_ns=START + number * MS)
    assert (answer().scope, answer().widened) == ("project", False)
