"""Native functions of two recordings: followed by name and library, judged as lines and functions are."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Question
from tachograph.analyzer import diff as comparison
from tachograph.analyzer.commands.diff import diff as command
from tachograph.analyzer.commands.export import export
from tachograph.analyzer.diff.gate import judge, parse_condition
from tachograph.analyzer.recording.opened import Recording
from tachograph.analyzer.render.figures.flame_figure import box_look
from tachograph.analyzer.render.html.diff_page import page
from tachograph.analyzer.render.terminal.report import report_lines
from tachograph.analyzer.report_data.difference import Outcome
from tachograph.analyzer.report_data.report_data import build_report_data
from tachograph.format import FormatError
from tachograph.format.enumerations import NativePath
from unit.analyzer.diff.test_diff import statuses, values
from unit.analyzer.recordings import PYTHON_FRAME, Builder
from unit.report.block import read_block

pytestmark = pytest.mark.broad

diff = partial(comparison.diff, spread=0.01)

PRODUCT = "/v/lib/python3.13/site-packages/numpy.libs/libopenblas64_-{}.so"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A program whose one line calls ``gemm``, which calls ``kernel``: ``write("a", gemm=20, kernel=100)``."""

    def made(
        name: str,
        *,
        library: str = PRODUCT.format("0123abcd"),
        build: str = "aa",
        paths: bool = True,
        source: tuple[str, int] | None = None,
        nameless: bool = False,
        **samples: int,
    ) -> Path:
        builder = Builder(tmp_path / f"{name}.tacho")
        stack = builder.stack((builder.code(builder.file("/srv/app.py", "a @ a\n"), "<module>"), 0))
        module = builder.module(library)
        builder.rows["modules"][module]["build_id"] = build
        frames = {symbol: builder.native_frame(module, symbol) for symbol in ("gemm", *samples)}
        if source is not None:
            named = builder.rows["native_frames"][frames["kernel"]]
            named["function_source"], named["function_line"] = source
        if nameless:
            builder.rows["native_frames"][frames["kernel"]]["symbol"] = None
        loop = builder.native_stack(None, PYTHON_FRAME, stack)
        gemm = builder.native_stack(loop, frames["gemm"])
        builder.cpu(stack, native_stack=None, native_path=NativePath.WHOLE)
        for symbol, count in samples.items():
            above = loop if symbol == "gemm" else gemm
            how = {"native_stack": above, "native_path": NativePath.WHOLE} if paths else {}
            for _ in range(count):
                builder.cpu(stack, native_frame=frames[symbol], **how)
        if not paths:
            builder.rows["native_stacks"].clear()
        return builder.write()

    return made


def test_a_native_function_got_slower(write: Write) -> None:
    result = diff([write("a", gemm=100, kernel=300)], [write("b", gemm=102, kernel=600)])
    kernel, gemm = (values(result.native_functions, "cpu", function=name) for name in ("kernel", "gemm"))
    assert (kernel["base"], kernel["new"], kernel["difference"]) == pytest.approx((3.0, 6.0, 3.0))
    assert 2 < kernel["low"] < 3 < kernel["high"] < 4
    assert (kernel["verdict"], gemm["verdict"]) == ("slower", "no evidence")
    called = values(result.native_functions, "total_cpu", function="gemm")
    assert (called["base"], called["new"], called["verdict"]) == (pytest.approx(4.0), pytest.approx(7.02), "slower")
    assert result.native_functions.compared("cpu") == 2
    # They are asked together with the rows of all other tables, and divide the time of the functions once more.
    assert set(result.native_functions.families["alpha"]) == set(result.lines.families["alpha"])
    assert result.functions.metric("cpu")["new"].sum() == pytest.approx(7.03)
    back = diff([write("c", gemm=102, kernel=600)], [write("d", gemm=100, kernel=300)])
    assert values(back.native_functions, "cpu", function="kernel")["verdict"] == "faster"


def test_groups_are_judged_by_how_much_runs_differ(write: Write) -> None:
    def groups(name: str, *kernels: int) -> list[Path]:
        return [write(f"{name}{n}", gemm=100, kernel=count) for n, count in enumerate(kernels)]

    steady = diff(groups("a", 300, 303, 306), groups("b", 360, 363, 366))
    assert values(steady.native_functions, "cpu", function="kernel")["verdict"] == "slower"
    noisy = diff(groups("c", 200, 305, 410), groups("d", 260, 365, 470))
    assert values(noisy.native_functions, "cpu", function="kernel")["verdict"] == "no evidence"


def test_one_run_a_side_gives_no_verdicts(write: Write) -> None:
    result = comparison.diff([write("a", kernel=100)], [write("b", kernel=400)])
    assert values(result.native_functions, "cpu", function="kernel")["verdict"] == "not_judged"


def test_another_installation_of_the_library_is_the_same(write: Write) -> None:
    """Packages are installed in other folders, and wheels have a hash in the names of their libraries."""
    other = PRODUCT.replace("/v/", "/opt/app/").format("9999ffff")
    result = diff([write("a", kernel=100)], [write("b", library=other, build="bb", kernel=100)])
    row = values(result.native_functions, "cpu", function="kernel")
    assert (row["base"], row["new"], row["status"]) == (1.0, 1.0, "same")
    libraries = (row["base_library"], row["new_library"], row["library"])
    assert libraries == ("libopenblas64_-0123abcd.so", "libopenblas64_-9999ffff.so", "libopenblas64_-9999ffff.so")


def test_a_function_of_that_name_in_another_library_is_another(write: Write) -> None:
    result = diff([write("a", kernel=100)], [write("b", library="/lib/libmkl.so", build="bb", kernel=100)])
    found = {row["library"]: str(row["status"]) for _, row in result.native_functions.places.iterrows()}
    assert found == {"libopenblas64_-0123abcd.so": "vanished", "libmkl.so": "new"}


def test_what_has_no_time_is_still_there_if_the_library_is_the_same_build(write: Write) -> None:
    same = diff([write("a", kernel=100, copy=50)], [write("b", kernel=100)])
    assert statuses(same.functions) == {"<module>": "same"}
    status = {row["function"]: str(row["status"]) for _, row in same.native_functions.places.iterrows()}
    assert status == {"kernel": "same", "copy": "same"} | ({"gemm": "same"} if "gemm" in status else {})
    assert values(same.native_functions, "cpu", function="copy")["verdict"] == "faster"
    other = diff([write("c", kernel=100, copy=50)], [write("d", build="bb", kernel=100)])
    assert values(other.native_functions, "cpu", function="copy")["status"] == "vanished"


def test_totals_are_unknown_where_a_side_has_no_paths(write: Write) -> None:
    result = diff([write("a", kernel=100)], [write("b", kernel=300, paths=False)])
    assert not result.native_functions.knows("total_cpu")
    assert values(result.native_functions, "cpu", function="kernel")["verdict"] == "slower"


def test_shares(write: Write) -> None:
    result = diff([write("a", gemm=99, kernel=100)], [write("b", gemm=999, kernel=1000)], shares=True)
    row = values(result.native_functions, "cpu", function="kernel")
    assert (row["base"], row["new"], row["verdict"]) == (0.5, 0.5, "no evidence")


@pytest.mark.parametrize(
    ("condition", "outcome"),
    [
        ("native kernel cpu>5%", Outcome.FAILED),
        ("native kern* cpu>2s", Outcome.FAILED),
        ("native gemm cpu>50%", Outcome.PASSED),
        ("native gemm total_cpu>50%", Outcome.FAILED),
    ],
)
def test_conditions(write: Write, condition: str, outcome: Outcome) -> None:
    result = diff([write("a", gemm=300, kernel=300)], [write("b", gemm=300, kernel=900)])
    (judgement,) = judge(result, [parse_condition(condition)])
    assert judgement.outcome is outcome
    assert (judgement.where or "").endswith("(libopenblas64_-0123abcd.so)")


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("native nothing cpu>5%", "no native function of that name has time"),
        ("native kernel memory.peak>5%", "there is no metric 'memory.peak' here"),
    ],
)
def test_conditions_that_ask_for_nothing(write: Write, condition: str, message: str) -> None:
    result = diff([write("a", kernel=30)], [write("b", kernel=30)])
    with pytest.raises(FormatError, match=message):
        judge(result, [parse_condition(condition)])


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    monkeypatch.setenv("COLUMNS", "120")
    result = CliRunner().invoke(command, [*map(str, arguments), "--spread", "1"])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_terminal_shows_them(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = write("a", gemm=100, kernel=300), write("b", gemm=102, kernel=600)
    lines = invoke(monkeypatch, *pair).splitlines()
    at = next(number for number, line in enumerate(lines) if "Native functions by CPU, with what they call" in line)
    rows = {words[-2]: words for line in lines[at + 2 : at + 4] if (words := line.split())}
    assert rows["kernel"][:6] == ["3.00", "s", "6.00", "s", "+3.00", "s"]
    assert rows["gemm"][:6] == ["4.00", "s", "7.02", "s", "+3.02", "s"]
    assert "slower" in rows["kernel"]
    assert rows["kernel"][-1] == "numpy/libopenblas64_"


def test_a_function_without_a_name_is_called_the_same_everywhere(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = write("a", nameless=True, gemm=100, kernel=300), write("b", nameless=True, gemm=102, kernel=600)
    label = "[numpy/libopenblas64_]"
    result = diff([pair[0]], [pair[1]])
    with Recording.open(pair[0]) as recording:
        data = build_report_data(recording, Question())
        report = "\n".join(line.plain for line in report_lines(data.profile, Console(width=160)))
        boxes = {box_look(data, int(function), "#808080")[0] for function in data.flame.function}
    target = pair[0].with_name("collapsed.txt")
    exported = CliRunner().invoke(export, ["collapsed", str(pair[0]), "--native", "-o", str(target)])
    assert exported.exit_code == 0, exported.output
    collapsed = target.read_text(encoding="utf-8")
    assert label in report
    assert label in boxes
    assert label in collapsed
    assert label in invoke(monkeypatch, *pair)
    assert label in read_block(page(result))[0]["names"]
    for text in (report, collapsed, *boxes):
        assert "[libopenblas64_-0123abcd.so]" not in text


def test_json_has_functions_of_both_languages(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = write("a", gemm=100, kernel=300), write("b", gemm=102, kernel=600)
    found = json.loads(invoke(monkeypatch, *pair, "--json", "-"))["functions"]
    assert {(row["function"], row["language"], row["library"]) for row in found} == {
        ("<module>", "python", None),
        ("gemm", "native", "libopenblas64_-0123abcd.so"),
        ("kernel", "native", "libopenblas64_-0123abcd.so"),
    }
    (kernel,) = [row for row in found if row["function"] == "kernel"]
    assert (kernel["file"], kernel["status"]) == (None, "same")
    assert kernel["metrics"]["cpu"]["verdict"] == "slower"
    assert len({frozenset(row) for row in found}) == 1
    differences = [abs(row["metrics"]["cpu"]["difference"]) for row in found if "cpu" in row["metrics"]]
    assert differences == sorted(differences, reverse=True)


@pytest.mark.parametrize(
    ("base", "new", "told"),
    [
        (("old/kernel.c", 30), ("src/kernel.c", 34), ("src/kernel.c", 34)),
        (("old/kernel.c", 30), None, ("old/kernel.c", 30)),
        (None, ("src/kernel.c", 34), ("src/kernel.c", 34)),
        (None, None, (None, None)),
    ],
)
def test_sources_of_native_functions(
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    base: tuple[str, int] | None,
    new: tuple[str, int] | None,
    told: tuple[str | None, int | None],
) -> None:
    """As each side has them, and in front what is known; the library is the new one's, wherever the source is from."""
    other = PRODUCT.format("9999ffff")
    pair = write("a", kernel=30, source=base), write("b", library=other, build="bb", kernel=90, source=new)
    (kernel,) = [
        row for row in json.loads(invoke(monkeypatch, *pair, "--json", "-"))["functions"] if row["function"] == "kernel"
    ]
    unknown = (None, None)
    assert (kernel["file"], kernel["line"]) == told
    assert (kernel["base_file"], kernel["base_line"]) == (base or unknown)
    assert (kernel["new_file"], kernel["new_line"]) == (new or unknown)
    assert kernel["library"] == kernel["new_library"] == Path(other).name
    shown = invoke(monkeypatch, *pair, "--markdown", "-")
    (row,) = [line for line in shown.splitlines() if "| kernel in" in line]
    assert row.endswith(f"{Path(other).name}" + ("" if told[0] is None else f" from {told[0]}:{told[1]}"))


def test_the_page_has_a_table_only_if_there_are_any(write: Write, tmp_path: Path) -> None:
    result = diff([write("a", kernel=30)], [write("b", kernel=90)])
    assert 'id="native"' in page(result)


def test_hostile_names(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    evil: dict[str, Any] = {"evil\x1b[31m[bold]\r\u202e\x07": 100}
    pair = write("a", library="/lib/\x1b[2J.so", **evil), write("b", kernel=100)
    assert not set("\x1b\r\x07\u202e") & set(invoke(monkeypatch, *pair))
    assert not set("\x1b\r\x07\u202e") & set(invoke(monkeypatch, *pair, "--json", "-"))
