"""Collapsed stacks, read by gprof2dot."""

from __future__ import annotations

import io
from pathlib import Path

import gprof2dot
import pytest

from tachograph.analyzer import Question, Recording, build_profile
from tachograph.analyzer.exports import FORMATS, Metric, Options, prepare
from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export
from unit.analyzer.recordings import START, Builder


def read(data: bytes) -> tuple[dict[str, int], dict[str, int]]:
    """Self and total weights by function."""
    profile = gprof2dot.CollapseParser(io.StringIO(data.decode())).parse()
    own, total = {}, {}
    for function in profile.functions.values():
        if function[gprof2dot.SAMPLES]:
            own[function.name] = function[gprof2dot.SAMPLES]
        total[function.name] = function[gprof2dot.TOTAL_SAMPLES]
    return own, total


@pytest.mark.parametrize(("metric", "truth"), program.EVERY)
def test_gprof2dot_reads_what_was_recorded(export: Export, metric: str, truth: program.Truth) -> None:
    def name(text: str) -> str:
        # The format has no way to write a semicolon; a name with blanks is one label, with its file, for this reader.
        return f"{text.replace(';', ':')} (lib.py:1)" if text == program.SHOWN else text

    own, total = read(export("collapsed", metric))
    assert own == {name(each): weight for each, weight in truth.own.items()}
    assert total == {name(each): weight for each, weight in truth.total.items()}


def test_every_line_is_frames_and_a_number(export: Export) -> None:
    lines = export("collapsed").decode().splitlines()
    assert lines[0] == "<module> (app.py:1);fib (app.py:30);fib (app.py:30);fib (app.py:30) 40000000"
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sum(program.CPU.own.values())


def test_native_functions_end_their_stacks_on_request(export: Export) -> None:
    text = export("collapsed", native=True).decode()
    assert "work (app.py:10);deflate (libz.so) 10000000\n" in text
    assert "fib (app.py:30);list_sort (python3.13) 20000000\n" in text
    assert "_PyEval" not in text


def test_what_is_out_of_scope_goes_to_the_caller(export: Export) -> None:
    text = export("collapsed", scope="project").decode()
    assert "\n<module> (app.py:1) 7000000\n" in text
    assert "odd" not in text


def test_selections(export: Export) -> None:
    def weight(**part: object) -> int:
        return (
            sum(int(line.rpartition(" ")[2]) for line in export("collapsed", **part).decode().splitlines())
            // program.MS
        )

    assert weight() == 110
    assert weight(thread="main") == 98
    assert weight(thread="pool-*") == 12
    assert weight(thread="101") == 12
    assert weight(process=["100"]) == 110
    # Samples are 10 ms apart.
    assert weight(end_s=0.02) == 25
    assert weight(start_s=0.02, end_s=0.04) == 50
    # Of a wait the part that lies in the window.
    assert weight(metric="wait", start_s=0.12, end_s=0.25) == 20 + 50


@pytest.mark.parametrize(
    ("metric", "column"),
    [
        ("cpu", "cpu_s"),
        ("wait", "wait_s"),
        ("allocated", "allocated_bytes"),
        ("live", "live_at_peak_bytes"),
        ("end", "live_at_end_bytes"),
        ("copied", "copied_bytes"),
    ],
)
@pytest.mark.parametrize("scope", ["project", "all"])
def test_figures_are_those_of_analyze(
    export: Export, recording: Recording, metric: str, column: str, scope: str
) -> None:
    functions = build_profile(recording, Question(scope=scope)).functions
    unit = 1e9 if column.endswith("_s") else 1
    expected = {
        name.replace(";", ":"): round(value * unit)
        for name, value in zip(functions["function"], functions[column], strict=True)
        if value > 0
    }
    own, _ = read(export("collapsed", metric, scope=scope))
    assert {name.removesuffix(" (lib.py:1)"): weight for name, weight in own.items()} == expected


def test_time_that_the_signal_sampler_s_threads_share_counts_once(tmp_path: Path) -> None:
    made = Builder(tmp_path / "signal.tacho", sampler="signal")
    made.rows["processes"][0]["sampler"] = "signal"
    file = made.file("/srv/app.py")
    first, second = (made.stack((made.code(file, name), 0)) for name in ("first", "second"))
    other = made.thread("other")
    made.cpu(first, 30, origin=2, time_ns=START)
    made.cpu(second, 30, origin=3, time_ns=START, thread=other)
    made.cpu(first, 10, origin=2, time_ns=START + 40 * program.MS)
    with Recording.open(made.write()) as recording:
        out = io.BytesIO()
        FORMATS["collapsed"].write(prepare(recording, Metric.CPU), Options(), out)
        functions = build_profile(recording, Question(scope="all")).functions
    own, _ = read(out.getvalue())
    assert own == {"first": 25 * program.MS, "second": 15 * program.MS}
    assert functions[["function", "cpu_s"]].head(2).to_numpy().tolist() == [["first", 0.025], ["second", 0.015]]
