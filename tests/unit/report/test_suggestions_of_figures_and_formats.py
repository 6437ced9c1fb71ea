"""Suggestions about figures, dates, images, templates and compiled arrays, with twins that have none."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import MS, PYTHON_FRAME, START, Builder
from unit.report.suggested import SITE, Answer, found, hot, library, rules

pytestmark = pytest.mark.broad

FIGURE = """import matplotlib.pyplot as plt
def work(rows, axes, curve):
    for row in rows:
        {call}
"""
AXES = f"{SITE}/matplotlib/axes/_axes.py"


@pytest.mark.parametrize(
    ("call", "name", "said"),
    [
        ('axes.plot(row.x, row.y, "o", color=row.shade)', "Axes.plot", "scatter(xs, ys, c=values)"),
        ('axes.plot([row.x], [row.y], marker="o")', "Axes.plot", "scatter(xs, ys, c=values)"),
        ("axes.scatter(row.x, row.y)", "Axes.scatter", "scatter(xs, ys, c=values)"),
        ('plt.plot(row.x, row.y, "r.")', "Axes.plot", "scatter(xs, ys, c=values)"),
        ('axes.plot(row.times, row.values, "-")', "Axes.plot", "LineCollection(lines)"),
        ("axes.plot(row.times, row.values)", "Axes.plot", "LineCollection(lines)"),
        ("axes.plot(row.x, row.y, label=row.name)", "Axes.plot", None),  # each has a name in the legend
        ("axes[row.place].plot(row.x, row.y)", "Axes.plot", None),  # a figure of its own
        ("axes.plot(curve, row.y)", "Axes.plot", None),
        ("axes.plot(row.x, row.y)", "Axes.legend", None),
        ("lines = axes.plot(row.x, row.y)", "Axes.plot", None),  # what it gives is used
    ],
)
def test_points_and_lines_that_are_added_one_by_one(
    builder: Builder, answer: Answer, call: str, name: str, said: str | None
) -> None:
    hot(builder, FIGURE.format(call=call), 4, library(builder, AXES, name))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("added-one-by-one", 4)] if said else [])
    assert said is None or said in suggestions[0].instead


@pytest.mark.parametrize("native", [True, False])
def test_curves_of_many_points_are_drawn_in_native_code(builder: Builder, answer: Answer, native: bool) -> None:
    frame = {"native_frame": builder.native_frame(builder.module(f"{SITE}/matplotlib/_path.so"), "update_path_extents")}
    source = FIGURE.format(call="axes.plot(row.x, row.y)")
    hot(builder, source, 4, library(builder, AXES, "Axes.plot"), **(frame if native else {}))
    assert rules(answer) == ([] if native else [("added-one-by-one", 4)])


DATES = """from dateutil import parser
def work(rows):
    return [{call} for row in rows]
def one(row):
    return parser.parse(row)
"""
DATEUTIL = f"{SITE}/dateutil/parser/_parser.py"


@pytest.mark.parametrize(
    ("call", "line", "expected"),
    [
        ('parser.parse(row["time"])', 3, True),
        ('parser.parse(row["time"], dayfirst=True)', 3, True),
        ("parser.parse(row, fuzzy=True)", 3, False),  # it looks for the date among other words
        ("parser.parse(row, tzinfos=ZONES)", 3, False),
        ("row", 5, False),  # nothing calls it many times
    ],
)
def test_dates_whose_form_is_not_given(builder: Builder, answer: Answer, call: str, line: int, expected: bool) -> None:
    hot(builder, DATES.format(call=call), line, library(builder, DATEUTIL, "parse"))
    assert rules(answer) == ([("slower-form", line)] if expected else [])


PICTURES = """from PIL import Image
def work(image, target):
    {call}
"""


@pytest.mark.parametrize(
    ("call", "symbol", "expected"),
    [
        ("image.save(target, optimize=True)", "ImagingZipEncode", True),
        ("image.save(target, optimize=True)", "ImagingJpegEncode", False),
        ("image.save(target)", "ImagingZipEncode", True),
        ("image.save(target, compress_level=1)", "ImagingZipEncode", False),
        ("image.save(target, **options)", "ImagingZipEncode", False),
    ],
)
def test_images_that_are_compressed_at_the_usual_level(
    builder: Builder, answer: Answer, call: str, symbol: str, expected: bool
) -> None:
    code = builder.code(builder.file("/srv/a.py", PICTURES.format(call=call)), "work")
    at = builder.stack((code, 2), (library(builder, f"{SITE}/PIL/Image.py", "Image.save"), 0))
    frame = builder.native_frame(builder.module(f"{SITE}/PIL/_imaging.so"), symbol)
    path = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), frame)
    for number in range(300):
        builder.cpu(at, time_ns=START + number * MS, native_frame=frame, native_stack=path, native_path=1)
    assert rules(answer) == ([("slower-form", 3)] if expected else [])


PAGES = """from jinja2 import Environment
{module}
def render(name, folder):
    {own}
    return env.get_template(name).render()
def build(names, folder):
    return [render(name, folder) for name in names]
"""


@pytest.mark.parametrize(
    ("module", "own", "expected"),
    [
        ("pass", "env = Environment(loader=LOADER)", True),
        ("env = Environment(loader=LOADER)", "pass", False),
        ("pass", "env = Environment(loader=FileSystemLoader(folder))", False),  # another one for each folder
    ],
)
def test_an_environment_of_each_call_keeps_nothing(
    builder: Builder, answer: Answer, module: str, own: str, expected: bool
) -> None:
    source = PAGES.format(module=module, own=own)
    hot(builder, source, 5, library(builder, f"{SITE}/jinja2/environment.py", "Environment.get_template"))
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("slower-form", 5)] if expected else [])
    assert not expected or "make the Environment once" in suggestions[0].instead


MULTIARRAY = f"{SITE}/numpy/_core/_multiarray_umath.so"


@pytest.mark.parametrize(
    ("module", "function", "access", "expected"),
    [
        ("/srv/smooth.cpython-311-x86_64-linux-gnu.so", "__pyx_pw_6smooth_1smooth", "array_subscript", True),
        (f"{SITE}/skimage/smooth.so", "__pyx_pw_6smooth_1smooth", "array_subscript", False),  # not the project's
        ("/srv/smooth.so", "__pyx_pw_6smooth_1smooth", "DOUBLE_add", False),  # whole arrays
        ("/srv/smooth.so", "smooth(double*)", "array_subscript", False),  # not of Cython
    ],
)
def test_elements_that_compiled_code_makes_objects_of(
    builder: Builder, answer: Answer, module: str, function: str, access: str, expected: bool
) -> None:
    source = "from smooth import smooth\ndef work(image):\n    return smooth(image)\n"
    at = builder.stack((builder.code(builder.file("/srv/a.py", source), "work"), 2))
    compiled = builder.native_frame(builder.module(module), function)
    numpy = builder.module(MULTIARRAY)
    above = builder.native_stack(builder.native_stack(None, PYTHON_FRAME, at), compiled)
    taken = builder.native_frame(numpy, access)
    made = builder.native_frame(numpy, "gentype_alloc")
    within = builder.native_stack(above, taken)
    for number in range(300):
        frame, path = (taken, within) if number % 3 else (made, builder.native_stack(within, made))
        builder.cpu(at, time_ns=START + number * MS, native_frame=frame, native_stack=path, native_path=1)
    suggestions = found(answer)
    assert [(each.rule, each.line) for each in suggestions] == ([("untyped-elements", 3)] if expected else [])
    assert not expected or "“smooth.smooth” is compiled" in suggestions[0].text


MIXED = """import gzip
import pandas as pd
from numba.typed import List
def work(path, data, numbers):
    values = List()
    for number in numbers:
        {call}
"""
EXCEL, ZIP = f"{SITE}/pandas/io/excel/_openpyxl.py", "/usr/lib/python3.11/gzip.py"
TYPED = f"{SITE}/numba/typed/typedlist.py"


@pytest.mark.parametrize(
    ("call", "path", "name", "expected"),
    [
        ("pd.read_excel(path)", EXCEL, "OpenpyxlReader.get_sheet_data", True),
        ('pd.read_excel(path, engine="openpyxl")', EXCEL, "OpenpyxlReader.get_sheet_data", True),
        ("pd.read_excel(path, engine=fastest)", EXCEL, "OpenpyxlReader.get_sheet_data", False),
        ("pd.read_excel(path)", f"{SITE}/pandas/core/frame.py", "DataFrame.__init__", False),
        ("gzip.compress(data)", ZIP, "compress", True),
        ("gzip.compress(data, 6)", ZIP, "compress", False),
        ("gzip.compress(data, compresslevel=6)", ZIP, "compress", False),
        ("values.append(number)", TYPED, "List.append", True),
        ("values.append(number)", f"{SITE}/own/lists.py", "List.append", False),
    ],
)
def test_forms_that_take_longer(
    builder: Builder, answer: Answer, call: str, path: str, name: str, expected: bool
) -> None:
    hot(builder, MIXED.format(call=call), 7, library(builder, path, name))
    assert rules(answer) == ([("slower-form", 7)] if expected else [])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("orjson.dumps(dataclasses.asdict(item))", "orjson.dumps() of the object"),
        ("orjson.dumps(dataclasses.asdict(item, dict_factory=Table))", "write the fields out"),
        ("json.dumps(dataclasses.asdict(item))", "write the fields out"),  # json knows no dataclasses
    ],
)
def test_objects_that_the_encoder_could_write_itself(builder: Builder, answer: Answer, call: str, said: str) -> None:
    source = f"import dataclasses, json, orjson\ndef work(items):\n    return [{call} for item in items]\n"
    hot(builder, source, 3, library(builder, "/usr/lib/python3.11/dataclasses.py", "asdict"))
    (suggestion,) = found(answer)
    assert suggestion.rule == "slower-form"
    assert said in suggestion.instead


MERGES = """import pandas as pd
def work(orders, customers, days, paths):
    for {loop}:
        {part}
        joined = part.merge({other}, on="customer")
"""


@pytest.mark.parametrize(
    ("loop", "part", "other", "expected"),
    [
        ("day in days", 'part = orders[orders["day"] == day]', "customers", True),
        ("day in days", 'part = orders.loc[orders["day"] == day]', "customers", True),
        ('day, part in orders.groupby("day")', "pass", "customers", True),
        ("path in paths", "part = pd.read_csv(path)", "customers", False),  # a table of its own
        ("day in days", 'part = orders[orders["day"] == day]', "customers[day]", False),
        ("part in days", "pass", "customers", False),
        ("day in days", "part = orders", "customers", False),
    ],
)
def test_parts_of_a_table_that_are_merged_with_the_same_one(
    builder: Builder, answer: Answer, loop: str, part: str, other: str, expected: bool
) -> None:
    source = MERGES.format(loop=loop, part=part, other=other)
    hot(builder, source, 5, library(builder, f"{SITE}/pandas/core/frame.py", "DataFrame.merge"))
    assert rules(answer) == ([("slower-form", 5)] if expected else [])


@pytest.mark.parametrize(
    ("call", "name", "expected"),
    [
        ("requests.get(number)", "request", True),
        ("session.get(number)", "request", False),
        ("requests.get(number)", "other", False),
    ],
)
def test_requests_without_a_session(builder: Builder, answer: Answer, call: str, name: str, expected: bool) -> None:
    source = f"import requests\ndef work(numbers, session):\n    return [{call} for number in numbers]\n"
    hot(builder, source, 3, library(builder, f"{SITE}/requests/api.py", name))
    assert rules(answer) == ([("slower-form", 3)] if expected else [])
