"""What tests cost: phases of tests in a recording that was written by hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tachograph.analyzer
from tachograph.analyzer.profile.tests import COLUMNS, COPIES, CPU, KEPT, PEAK, TIME, read_tests
from tachograph.analyzer.recording.time_window import TimeRanges
from tachograph.analyzer.render.terminal.lines_of_tests import test_lines as lines_about
from tachograph.analyzer.report_data.limit_verdicts import judge

from .recordings import MS, START, Builder

MB = 1_000_000


def fields(test: str, **more: object) -> str:
    return json.dumps({"test": test, **more})


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    """Tests a (limits, memory) and b (another thread of its process works for it)."""
    builder = Builder(tmp_path / "r.tacho")
    source = "".join(f"line {number}\n" for number in range(1, 10))
    own, library = builder.file("/w/test_a.py", source), builder.file("/usr/lib/python3.11/json.py")
    imports = builder.file("<frozen importlib._bootstrap>")
    test = builder.stack((builder.code(own), 0))
    called = builder.stack((builder.code(own), 1), (builder.code(library), 0))
    imported = builder.stack((builder.code(own), 0), (builder.code(imports), 0), (builder.code(own), 2))
    other = builder.thread("other")
    limits = {"limit_cpu_s": 0.02, "limit_memory_bytes": 5 * MB, "limit_copies_bytes": MB, "no_leaks_bytes": 1000}
    builder.span("setup", 0, 10, fields("a", cpu_ns=5 * MS))
    builder.span("call", 10, 60, fields("a", cpu_ns=30 * MS, **limits))
    builder.span("teardown", 60, 70, fields("a", cpu_ns=1 * MS))
    builder.span("setup", 70, 80, fields("b", cpu_ns=0))
    builder.span("call", 80, 120, fields("b", limit_cpu_s="much", limit_memory_bytes=-1, cpu_ns=True))
    builder.span("call", 130, 140, '{"of": "the program"}')
    builder.span("call", 150, 160, "no JSON")
    builder.cpu(test, time_ns=START + 20 * MS)
    builder.cpu(called, time_ns=START + 30 * MS)
    builder.cpu(called, time_ns=START + 40 * MS)
    builder.cpu(test, time_ns=START + 90 * MS)
    builder.cpu(called, thread=other, time_ns=START + 91 * MS)
    builder.cpu(test, time_ns=START + 135 * MS)
    builder.wait(test, 45, 55)
    builder.wait(called, 90, 110, thread=other)
    builder.block(test, 4 * MB, 12, freed_ms=20)
    builder.block(called, 3 * MB, 25, freed_ms=50)
    builder.block(test, 2 * MB, 30, freed_ms=65)
    builder.block(imported, 6 * MB, 85)
    builder.block(called, 1 * MB, 90)
    builder.copy(called, 2 * MB, 30)
    return builder


def test_each_phase_is_a_row(builder: Builder) -> None:
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        frame = recording.tests()
    assert list(frame.columns) == list(COLUMNS)
    assert list(zip(frame["test"], frame["phase"], strict=True)) == [
        ("a", "setup"), ("a", "call"), ("a", "teardown"), ("b", "setup"), ("b", "call"),
    ]  # fmt: skip
    setup, call, teardown, _, other = frame.itertuples()
    assert (setup.duration_s, setup.cpu_s) == (pytest.approx(0.01), pytest.approx(0.005))
    assert (call.cpu_s, call.wait_s) == (pytest.approx(0.03), pytest.approx(0.01))
    assert teardown.cpu_s == pytest.approx(0.001)
    # The clock was not read: the samples of all threads of the process. The wait of the other thread is not the test's.
    assert (other.cpu_s, other.wait_s) == (pytest.approx(0.02), 0)
    assert np.isnan(other.limit_cpu_s)
    assert np.isnan(other.limit_memory_bytes)


def test_memory_and_copies(builder: Builder) -> None:
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        setup, call, _, _, other = recording.tests().itertuples()
    assert setup.peak_bytes == 0
    assert call.peak_bytes == call.peak_bytes_low == 5 * MB
    assert call.copied_bytes == 2 * MB
    assert call.kept_bytes == 0
    assert other.peak_bytes == 7 * MB
    assert other.kept_bytes == 1 * MB  # not what was imported


def test_a_large_block_that_lived_for_a_moment_was_there_but_once(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    stack = builder.stack((builder.code(builder.file("/w/test_a.py")), 0))
    builder.span("call", 10, 2000, fields("a", cpu_ns=0))
    for number in range(8):
        builder.block(stack, 4 * MB, 20 + 20 * number, freed_ms=22 + 20 * number, mean=4 * MB)
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        (call,) = recording.tests().itertuples()
    assert 4 * MB <= call.peak_bytes_low <= call.peak_bytes < 7 * MB


def test_the_line_that_is_charged(builder: Builder) -> None:
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        tests = read_tests(recording)
        places = {what: tests.place(1, what) for what in (TIME, CPU, PEAK, COPIES, KEPT)}
        kept = tests.place(4, KEPT)
    where = {what: place and (place.file, place.line, place.source, place.amount) for what, place in places.items()}
    assert where == {
        TIME: ("/w/test_a.py", 1, "line 1", pytest.approx(0.02)),  # 10 ms on the CPU and 10 ms of waiting
        CPU: ("/w/test_a.py", 2, "line 2", pytest.approx(0.02)),
        PEAK: ("/w/test_a.py", 2, "line 2", 3 * MB),
        COPIES: ("/w/test_a.py", 2, "line 2", 2 * MB),
        KEPT: None,
    }
    assert kept is not None
    assert (kept.line, kept.amount) == (2, 1 * MB)


def test_verdicts_and_what_is_printed(builder: Builder) -> None:
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        tests = read_tests(recording)
        verdicts = list(judge(tests))
        said = "\n".join(lines_about(tests, verdicts, 5, "/w"))
    over = {verdict.limit.mark: verdict.over for verdict in verdicts}
    assert over == {"limit_cpu": True, "limit_memory": False, "limit_copies": True, "no_leaks": False}
    assert "FAILED a: limit_cpu allows 20 ms, and it took 30 ms\n         test_a.py:2 in " in said
    assert "FAILED a: limit_copies allows 1 MB, and it copied 2 MB\n         test_a.py:2 in " in said
    assert said.count("FAILED") == 2


def test_what_was_not_recorded_is_not_judged(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    builder.span("call", 0, 10, fields("a", limit_memory_bytes=1, cpu_ns=1))
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        tests = read_tests(recording)
        verdicts = list(judge(tests))
        said = list(lines_about(tests, verdicts, 5, ""))
    assert [verdict.over for verdict in verdicts] == [None]
    assert said[-1] == "not judged: limit_memory (what it limits was not recorded)"


def test_a_recording_without_tests(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    builder.cpu(builder.stack((builder.code(builder.file("program.py")), 0)))
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        assert list(recording.tests().columns) == list(COLUMNS)
        assert list(lines_about(read_tests(recording), [], 5, "")) == ["no test ran while it was recorded"]


def test_the_group_of_moments() -> None:
    ranges = TimeRanges.of([(0, 10, 20, 5), (0, 20, 30, 6), (2, 10, 20, 7)])
    thread, time = np.array([0, 0, 0, 0, 0, 1, 2]), np.array([9, 10, 19, 20, 30, 15, 15])
    assert ranges.group_at(thread, time).tolist() == [-1, 5, 5, 6, -1, -1, 7]


def test_a_line_has_no_more_time_than_its_phase(tmp_path: Path) -> None:
    """A sample stands for 10 ms, the clock has 4."""
    builder = Builder(tmp_path / "r.tacho")
    test = builder.stack((builder.code(builder.file("/w/test_a.py", "burn()\n")), 0))
    builder.span("call", 10, 120, fields("test_a.py::test", cpu_ns=4 * MS))
    builder.cpu(test, time_ns=START + 20 * MS)
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        lines = list(lines_about(read_tests(recording), [], 5, "/w"))
    assert "call: 4 ms CPU, 0 s waiting; mostly at test_a.py:1" in lines[2]


def test_a_test_that_pytest_gives_no_file_has_its_packages(tmp_path: Path) -> None:
    """As pytest 9 does of ``--pyargs`` where the package is not below the folder that it runs in."""
    tests = tmp_path / "site-packages" / "pack" / "tests"
    tests.mkdir(parents=True)
    for folder in (tests.parent, tests):
        (folder / "__init__.py").write_text("")
    (tests / "test_words.py").write_text("def test_word():\n    pass\n")
    plugin = tmp_path / "showing.py"
    plugin.write_text(
        "from tachograph.testing.plugin import id_of\n"
        "def pytest_collection_finish(session):\n    print('ids', [id_of(each) for each in session.items])\n"
    )
    (tmp_path / "elsewhere").mkdir()
    environment = os.environ | {"PYTHONPATH": f"{tests.parents[1]}{os.pathsep}{tmp_path}"}
    options = ("-q", "-p", "no:cacheprovider", "-p", "showing", "--collect-only", "--pyargs", "pack.tests.test_words")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=tmp_path / "elsewhere",
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert re.search(r"ids \['(?:\.\./)*(?:site-packages/)?pack/tests/test_words\.py::test_word'\]", run.stdout), (
        run.stdout
    )


def test_tests_of_an_installed_package_have_its_lines(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    site = "/usr/lib/python3.13/site-packages"
    tests = builder.code(builder.file(f"{site}/joblib/test/test_hashing.py", "hash(1)\n"), "test_hash")
    package = builder.code(builder.file(f"{site}/joblib/hashing.py", "x = 1\n"), "hash")
    pytest_ = builder.code(builder.file(f"{site}/_pytest/runner.py", "x = 1\n"), "call")
    numpy = builder.code(builder.file(f"{site}/numpy/core.py", "x = 1\n"), "ones")
    builder.span("call", 10, 120, fields("../lib/python3.13/site-packages/joblib/test/test_hashing.py::test_hash"))
    for number in range(5):
        builder.cpu(
            builder.stack((pytest_, 0), (tests, 0), (package, 0), (numpy, 0)), time_ns=START + (20 + number) * MS
        )
    builder.cpu(builder.stack((pytest_, 0)), time_ns=START + 30 * MS)
    builder.write()
    with tachograph.analyzer.open(builder.path) as recording:
        found = read_tests(recording).place(0, TIME)
    assert found is not None
    assert (found.file, found.line) == (f"{site}/joblib/hashing.py", 1)
