"""General suggestions: kinds of work, by names of functions and loops around them, with twins that have none."""

from __future__ import annotations

import ast

import pytest

from tachograph.analyzer.report_data.advice.general.verbs import converts, last, prepares, searches, sets_up, words
from unit.analyzer.recordings import MS, SPEC, START, Builder
from unit.report.suggested import SITE, Answer, library, likely
from unit.report.test_suggestions_of_programs import TARGETS

PIPE = [value.name for value in SPEC.enums["target"]].index("pipe")
CORE = f"{SITE}/shop/core.py"


def chain(builder: Builder, source: str, frames: list[tuple[str, int]], *callees: int, samples: int = 300) -> None:
    """Samples in a chain of the file's functions, each with the line that it is at, the outermost first."""
    file = builder.file("/srv/a.py", source)
    stack = builder.stack(
        *((builder.code(file, name), line - 1) for name, line in frames), *((callee, 0) for callee in callees)
    )
    for _ in range(samples):
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)


LOADS = """import shop
def rules(path):
    text = open(path).read()
    return shop.load_rules(text)
def check(event, path):
    known = rules(path)
    return known[event]
def main(events, path):
    total = 0
    for event in events:
        total += check(event, path)
    return total
"""
LOADING = [("main", 11), ("check", 6), ("rules", 4)]


def told(answer: Answer) -> list[tuple[str, int | None]]:
    return [(each.rule, each.line) for each in likely(answer)]


def test_what_a_called_function_loads_is_the_same_in_each_round_of_its_callers_loop(
    builder: Builder, answer: Answer
) -> None:
    chain(builder, LOADS, LOADING, library(builder, CORE, "load_rules"))
    (one,) = likely(answer)
    assert (one.rule, one.line, one.certainty) == ("repeated-call", 6, "likely")
    assert one.text.startswith("rules(path) is called again in each round of the loop of line 10")
    assert one.remedy == "Perhaps: call it once, before the loop of line 10, and keep the result."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("check(event, path)\n    return total", "check(event, event.path)\n    return total"),  # another one each time
        ("for event in events", "for path in events"),
        ("    for event in events:", "    for event in [1, 2, 3]:"),  # few
        ("    for event in events:", "    if event := events:"),
        ("        total += check", "        path = find(path)\n        total += check"),
        ("def rules(path):", "def rules(path):\n    log.write(path)"),  # an effect
        ("def rules(path):", "def rules(path):\n    global many"),
        (
            "check(event, path)\n    return total",
            "check(event, page(path))\n    return total\ndef page(p):\n    p.at = 1",
        ),
        ("def check(event, path):\n    known =", "def check(event, path):\n    if event not in kept:\n        known ="),
        ("    known = rules(path)", "    known = rules(path)\n    known[event] = 1"),  # its own to change
        ("def rules(path):", "@functools.cache\ndef rules(path):"),
        ("    known = rules(path)", "    rules(path)"),  # for its effect
        ("    for event in events:", "    for event in events:\n        fill(path)"),  # may be changed there
        ("        total += check(event, path)", "        return check(event, path)"),  # one round
    ],
)
def test_what_may_be_another_one_each_time_is_not(builder: Builder, answer: Answer, old: str, new: str) -> None:
    source = LOADS.replace(old, new)
    assert source != LOADS
    lines = source.splitlines()
    at = [
        (name, next(n for n, text in enumerate(lines, 1) if word in text and not text.startswith("def")))
        for name, word in (("main", "check("), ("check", "rules("), ("rules", "load_rules("))
    ]
    chain(builder, source, at, library(builder, CORE, "load_rules"))
    assert told(answer) == []


def test_rounds_that_count_only_are_others_where_what_they_call_is_given_others(
    builder: Builder, answer: Answer
) -> None:
    source = (
        "import shop\ndef vol(weights, prices):\n    return weights @ shop.covariance(prices)\ndef main(prices, rng):\n"
    )
    source += "    out = []\n    for _ in range(60):\n        out.append(vol(rng.random(9), prices))\n    return out\n"
    chain(builder, source, [("main", 7), ("vol", 3)], library(builder, CORE, "covariance"))
    assert told(answer) == [("repeated-call", 3)]


@pytest.mark.parametrize(("called", "expected"), [("vol(rng.random(9), prices)", True), ("globals()[name]()", False)])
def test_a_function_chosen_in_each_round_may_be_another_one(
    builder: Builder, answer: Answer, called: str, expected: bool
) -> None:
    source = "import shop\ndef vol(weights=1, prices=PRICES):\n    return weights @ shop.covariance(PRICES)\n"
    source += f"def main(names, prices, rng):\n    for name in names:\n        {called}\n"
    chain(builder, source, [("main", 6), ("vol", 3)], library(builder, CORE, "covariance"))
    assert told(answer) == ([("repeated-call", 3)] if expected else [])


def test_a_plain_repetition_is_meant(builder: Builder, answer: Answer) -> None:
    source = "import shop\ndef vol(prices):\n    return shop.covariance(prices)\ndef main(prices):\n"
    source += "    out = []\n    for _ in range(60):\n        out.append(vol(prices))\n    return out\n"
    chain(builder, source, [("main", 7), ("vol", 3)], library(builder, CORE, "covariance"))
    assert told(answer) == []


SEARCHES = """import shop
class Catalog:
    def __init__(self, root):
        self.root = root
    def price(self, key):
        return self.root.find_all(key)[0]
def main(catalog, orders):
    return sum(catalog.price(order) for order in orders)
"""
SEARCHING = [("main", 8), ("main.<locals>.<genexpr>", 8), ("Catalog.price", 6)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", [("search-in-loop", 6)]),
        ("find_all(key)", "find_all('a')", []),  # what is sought is the same: made by another rule, if it is used
        ("self.root.find_all", "self.kd_tree.find_all", []),  # made to be searched
        ("catalog.price(order)", "order.price(catalog)", []),  # another whole each time
        ("        self.root = root\n", "        self.root = root\n        self.pattern = 1\n", [("search-in-loop", 7)]),
    ],
)
def test_the_same_whole_is_searched_for_another_thing(
    builder: Builder, answer: Answer, old: str, new: str, expected: list[tuple[str, int]]
) -> None:
    source = SEARCHES.replace(old, new) if old else SEARCHES
    more = len(source.splitlines()) - len(SEARCHES.splitlines())
    at = [(name, line + more) for name, line in SEARCHING]
    chain(builder, source, at, library(builder, CORE, "find_all"))
    assert [each for each in told(answer) if each[0] == "search-in-loop"] == expected


PAIRS = """def main(orders, customers):
    sums = {}
    for order in orders:
        for customer in customers:
            if customer.number == order.customer:
                sums[customer] = order
                break
    return sums
"""


@pytest.mark.parametrize(
    ("old", "new", "remedy"),
    [
        ("", "", "a dict"),
        ("customer.number == order.customer", "abs(customer.place - order.place) < 3", "bisect"),
        ("customer.number == order.customer", "customer.number == 3", None),  # not by what the outer one has
        ("in customers", "in order.customers", None),  # its own
        ("    for order in orders:", "    for order in (1, 2):", None),
    ],
)
def test_two_loops_that_look_for_partners(
    builder: Builder, answer: Answer, old: str, new: str, remedy: str | None
) -> None:
    chain(builder, PAIRS.replace(old, new) if old else PAIRS, [("main", 5)])
    assert [(each.rule, each.instead[:6] in str(remedy) or str(remedy) in each.instead) for each in likely(answer)] == (
        [] if remedy is None else [("pairs", True)]
    )


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("known = {**known, each: 1}", True),
        ("known = shop.concat([known, each])", True),
        ("known = known.vstack(each)", True),
        ("known = shop.sort(shop.append(known, each))", True),
        ("known = shop.sort(shop.append(each, parts))", False),
        ("known = [*known, each]", True),
        ("known = shop.concat([each, each])", False),
        ("known = shop.score(known)", False),
        ("known.append(each)", False),
    ],
)
def test_made_of_itself_and_more(builder: Builder, answer: Answer, statement: str, expected: bool) -> None:
    source = f"import shop\ndef main(known, parts):\n    for each in parts:\n        {statement}\n    return known\n"
    chain(builder, source, [("main", 4)], library(builder, CORE, "join"))
    assert told(answer) == ([("grown-by-copies", 4)] if expected else [])


ONE = """import shop
def main(model, rows):
    return [model.predict([row]) for row in rows]
def other(models, rows):
    return [model.predict(rows) for model in models]
"""


def test_a_library_is_called_for_one_at_a_time(builder: Builder, answer: Answer) -> None:
    chain(builder, ONE, [("main", 3)], library(builder, CORE, "predict"))
    (one,) = likely(answer)
    assert (one.rule, one.line) == ("one-by-one", 3)
    assert "Python code of shop" in one.text


def test_another_object_each_time_is_no_bulk(builder: Builder, answer: Answer) -> None:
    chain(builder, ONE, [("other", 5)], library(builder, CORE, "predict"))
    assert likely(answer) == []


@pytest.mark.parametrize(
    ("taken", "expected"),
    [("column[number].as_py()", True), ("columns[number].as_py()", False), ("column[0].as_py()", False)],
)
def test_elements_taken_out_of_a_column(builder: Builder, answer: Answer, taken: str, expected: bool) -> None:
    source = (
        "import pyarrow\ndef main(column, count):\n    for number in range(count):\n        columns = read(number)\n"
    )
    source += f"        print({taken})\n"
    chain(builder, source, [("main", 5)], library(builder, f"{SITE}/pyarrow/lib.py", "as_py"))
    assert [each for each in told(answer) if each[0] == "one-by-one"] == ([("one-by-one", 5)] if expected else [])
    assert not expected or "to_pylist()" in likely(answer)[0].instead


FRAMES = """import shop
def bank(rate):
    low = shop.edges(rate)
    return shop.weights(low)
def energy(frame):
    return bank(3) @ frame
def main(frames):
    return [energy(frame) for frame in frames]
"""


@pytest.mark.parametrize(("argument", "expected"), [("3", True), ("frame", False)])
def test_a_function_whose_time_is_divided_among_its_lines(
    builder: Builder, answer: Answer, argument: str, expected: bool
) -> None:
    file, inner = builder.file("/srv/a.py", FRAMES.replace("bank(3)", f"bank({argument})")), library(builder, CORE, "f")
    outer = [(builder.code(file, "main", 7), 1), (builder.code(file, "energy", 5), 1)]
    for line in (1, 2) * 60:
        stack = builder.stack(*outer, (builder.code(file, "bank", 2), line), (inner, 0))
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)
    for number in range(900):  # none of the lines has enough by itself
        busy = builder.code(file, f"other{number % 30}", 9 + number % 30)
        builder.cpu(builder.stack((busy, 0)), time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)
    for line in (1, 2) * 100:
        stack = builder.stack(*outer, (builder.code(file, "bank", 2), line), (inner, 0))
        builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)
    assert told(answer) == ([("repeated-call", 6)] if expected else [])


@pytest.mark.parametrize(("path", "expected"), [("/usr/lib/python3.11/subprocess.py", []), (CORE, ["prepared-inside"])])
def test_a_process_is_not_started_twice(builder: Builder, answer: Answer, path: str, expected: list[str]) -> None:
    source = "import subprocess\ndef main(paths):\n    return [subprocess.run(path, text=True) for path in paths]\n"
    chain(builder, source, [("main", 3)], library(builder, path, "run"), library(builder, path, "Popen.__init__"))
    assert [each.rule for each in likely(answer)] == expected


def test_what_a_library_prepares_inside(builder: Builder, answer: Answer) -> None:
    source = "import shop\ndef main(pages, look):\n    return [shop.render(page, look) for page in pages]\n"
    inner = library(builder, CORE, "Renderer.__init__")
    chain(builder, source, [("main", 3)], library(builder, CORE, "render"), inner)
    (one,) = likely(answer)
    assert (one.rule, one.line) == ("prepared-inside", 3)
    assert "Renderer.__init__()" in one.text
    assert "what look alone decides" in one.text
    assert one.instead.startswith("make the Renderer of shop once, before the loop of line 3")


@pytest.mark.parametrize("name", ["Soup", "soup_of"])
def test_an_object_of_what_varies_is_made_in_earnest(builder: Builder, answer: Answer, name: str) -> None:
    source = f"import shop\ndef main(pages, look):\n    return [shop.{name}(page, look) for page in pages]\n"
    chain(builder, source, [("main", 3)], library(builder, CORE, "Soup.__init__"))
    assert likely(answer) == []


SUM = """def main(height, width):
    rows = []
    for y in range(height):
        for x in range(width):
            rows.append(x * x + y * y - 2 * x * y)
    return rows
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", True),
        ("x * x + y * y - 2 * x * y", "find(x * x + y * y - 2 * x)", False),
        ("range(width)", "width.items()", False),
        ("x * x + y * y - 2 * x * y", "x", False),
    ],
)
def test_arithmetic_with_one_number_at_a_time(
    builder: Builder, answer: Answer, old: str, new: str, expected: bool
) -> None:
    chain(builder, SUM.replace(old, new) if old else SUM, [("main", 5)])
    assert told(answer) == ([("python-arithmetic", 5)] if expected else [])


def test_names_tell_what_functions_do() -> None:
    def call(text: str) -> ast.Call:
        made = ast.parse(text, mode="eval").body
        assert isinstance(made, ast.Call)
        return made

    assert words("read_csv") == ["read", "csv"]
    assert words("XMLParser") == ["xml", "parser"]
    assert last(call("a.b.c(1)")) == "c"
    assert sets_up(call("Environment()"))
    assert sets_up(call("re.compile(a)"))
    assert not sets_up(call("file.read()"))
    assert converts(call("frame.to_dict()"))
    assert searches(call("root.find_all(a)"))
    assert not searches(call("root.render(a)"))
    assert prepares("Markdown.__init__")
    assert not prepares("Markdown.convert")


ROADS = """import shop
def main(roads, depots, customers):
    rows = []
    for customer in customers:
        for depot in depots:
            rows.append(shop.path_length({given}))
    return rows
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("roads, depot, customer", [("each-pair", 6)]),
        ("customer, depot, roads", [("each-pair", 6)]),
        ("roads[depot], depot, customer", []),  # nothing is the same each time
        ("depot, customer", []),
        ("roads, depot, depot", []),
    ],
)
def test_a_function_of_each_pair(builder: Builder, answer: Answer, given: str, expected: list[tuple[str, int]]) -> None:
    chain(builder, ROADS.format(given=given), [("main", 6)], library(builder, CORE, "path_length"))
    assert told(answer) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("table['when'].apply(shop.parse)", True),
        ("table['when'].apply(own)", False),
        ("table['when'].keep(shop.parse)", False),
    ],
)
def test_a_librarys_function_for_each_value_of_a_column(
    builder: Builder, answer: Answer, call: str, expected: bool
) -> None:
    source = f"import pandas\nimport shop\ndef main(table):\n    return {call}\n"
    chain(builder, source, [("main", 4)], library(builder, CORE, "parse"))
    assert told(answer) == ([("one-by-one", 4)] if expected else [])
    if expected:
        assert "pandas.to_datetime(..., format=...)" in likely(answer)[0].instead


LAZY = """import polars as pl
def of_region(sales, region):
    return sales.filter(pl.col("region") == region)
def main(path, regions):
    sales = pl.scan_csv(path)
    for region in regions:
        shown = of_region({given}).collect()
        print(shown)
"""


@pytest.mark.parametrize(
    ("given", "expected"), [("sales, region", True), ("region, region", False), ("sales, path", False)]
)
def test_a_lazy_query_in_each_round(builder: Builder, answer: Answer, given: str, expected: bool) -> None:
    frame = library(builder, f"{SITE}/polars/lazyframe/frame.py", "LazyFrame.read")
    chain(builder, LAZY.format(given=given), [("main", 7)], frame)
    assert [each for each in told(answer) if each[0] == "lazy-in-loop"] == ([("lazy-in-loop", 7)] if expected else [])


@pytest.mark.parametrize(("lines", "expected"), [((3, 4, 5), True), ((3, 4), False)])
def test_a_library_compiles_for_several_lines(
    builder: Builder, answer: Answer, lines: tuple[int, ...], expected: bool
) -> None:
    source = (
        "import shop\ndef main(session, name):\n    session.one(name)\n    session.two(name)\n    session.three()\n"
    )
    compiling = library(builder, CORE, "Statement._compile_anew")
    file = builder.file("/srv/a.py", source)
    for line in lines:
        stack = builder.stack((builder.code(file, "main"), line - 1), (compiling, 0))
        for _ in range(100):
            builder.cpu(stack, time_ns=START + (len(builder.rows["cpu"]) + 1) * MS)
    assert [each.rule for each in likely(answer) if each.rule == "compiled-again"] == ["compiled-again"] * expected


@pytest.mark.parametrize(("taker", "expected"), [("QueuePool._do_get", True), ("Future._do_get", False)])
def test_threads_wait_for_one_of_a_pool(builder: Builder, answer: Answer, taker: str, expected: bool) -> None:
    source = "import shop\ndef main(engine, ask):\n    order = engine.one()\n    return ask(order)\n"
    file, getting = builder.file("/srv/a.py", source), library(builder, CORE, taker)
    main = builder.code(file, "main")
    builder.cpu(builder.stack((main, 2)))
    builder.wait(builder.stack((main, 2), (getting, 0)), 10, 2010, target=TARGETS["lock"])
    builder.wait(builder.stack((main, 3)), 2010, 3010, target=TARGETS["socket"])
    assert [each.rule for each in likely(answer) if each.rule == "pool-waits"] == ["pool-waits"] * expected
    if expected:
        assert "wait at line 4" in likely(answer)[0].text


CHILDREN = """import subprocess
def length(text):
    return subprocess.run(["wc"], input=text)
def main(texts):
    total = 0
    for text in texts:
        total += length({given})
    return total
"""


@pytest.mark.parametrize(("given", "expected"), [("text", True), ("total", False), ("texts", False)])
def test_children_that_are_waited_for_one_by_one(builder: Builder, answer: Answer, given: str, expected: bool) -> None:
    file = builder.file("/srv/a.py", CHILDREN.format(given=given))
    stack = builder.stack((builder.code(file, "main"), 6), (builder.code(file, "length"), 2))
    builder.cpu(stack)
    builder.wait(stack, 10, 5010, target=PIPE)
    assert told(answer) == ([("waits-one-by-one", 3)] if expected else [])
