"""Calls of functions: their numbers and times as the recorder writes them and the analyzer tells them."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from integration import support
from tachograph.analyzer import api

pytestmark = [pytest.mark.native, pytest.mark.recording]

KNOWN = support.PROGRAMS / "known_calls.py"
OFTEN = ("constant", "bimodal", "early")
MONITORING = sys.version_info >= (3, 12)
"""Whether functions are watched one by one."""
selective = pytest.mark.skipif(not MONITORING, reason="sys.monitoring came with Python 3.12")
windows = pytest.mark.skipif(MONITORING, reason="only Python 3.11 is watched in windows")


def record(program: Path, folder: Path, *arguments: str, options: tuple[str, ...] = ("--calls",)) -> tuple[Path, Any]:
    """The recording, and what the program said in JSON."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    done = support.record([program, *arguments], folder, "--cpu-only", *options)
    assert (done.status, done.stderr) == (0, "")
    return folder / "run.tacho", json.loads(done.stdout)


def functions(recording: Path, program: Path) -> dict[str, dict[str, Any]]:
    """The rows of the program's own functions, by name."""
    with api.open(recording) as opened:
        rows = opened.profile().functions.to_dict("records")
    return {row["function"]: row for row in rows if str(row["file"]).endswith(program.name)}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, int]]:
    return record(KNOWN, tmp_path_factory.mktemp("calls"), "1.5", options=("--calls", "--calls-budget", "20"))


@selective
def test_functions_that_are_called_rarely_are_counted_exactly(known: tuple[Path, dict[str, int]]) -> None:
    rows = functions(known[0], KNOWN)
    few = {name: count for name, count in known[1].items() if name not in OFTEN}
    for name in few:
        row = rows[name]
        assert row["calls_low"] == row["calls"] == row["calls_high"], name
    assert {name: rows[name]["calls"] for name in few} == few


@selective
def test_times_of_calls_are_those_of_what_they_did(known: tuple[Path, dict[str, int]]) -> None:
    rows = functions(known[0], KNOWN)
    assert rows["rare"]["call_p50_s"] >= 0.02
    assert rows["rare"]["call_mean_s"] <= rows["rare"]["call_max_s"]
    # A coroutine is charged for what it ran, and not for what it waited.
    assert rows["coroutine"]["call_max_s"] < 0.4
    # Each call of a recursion holds those within it.
    assert rows["recursive"]["own_call_mean_s"] * 10 <= rows["recursive"]["call_max_s"] * 1.001
    assert rows["main"]["call_mean_s"] >= rows["many"]["call_mean_s"] + rows["few"]["call_mean_s"]
    for row in rows.values():
        known_times = [row[f"call_{name}_s"] for name in ("p50", "p90", "p99", "max")]
        assert known_times == sorted(known_times), row["function"]


@selective
@pytest.mark.quiet
def test_own_times_of_callers_are_known(tmp_path: Path) -> None:
    """Also where what they call is set aside, as it is so short, and where its intervals end within calls of theirs."""
    program = support.PROGRAMS / "small_calls.py"
    recording, _ = record(program, tmp_path)
    with api.open(recording) as opened:
        calls = opened.table("calls").to_pandas()
    assert calls.own_begun.sum() > 0
    assert calls.own_ended.sum() >= 0.999 * calls.own_begun.sum()
    rows = functions(recording, program)
    assert 0 < rows["calling"]["own_call_mean_s"] < rows["calling"]["call_mean_s"]


def test_numbers_of_calls_that_are_estimated_are_near_the_truth(known: tuple[Path, dict[str, int]]) -> None:
    rows = functions(known[0], KNOWN)
    for name in OFTEN:
        row = rows[name]
        assert row["watched_s"] > 0
        assert 0 < row["calls_low"] <= row["calls"]
        if math.isnan(row["calls_high"]):  # where the program hardly gets a processor nearly all calls are seen
            assert row["calls_low"] <= known[1][name], name
            continue
        # An interval of 95 % does not hold the truth once in twenty runs, and one of twice its length once in ten
        # thousand. That 95 % hold it is tested in tests/native/test_paces.py, without a clock.
        assert abs(row["calls"] - known[1][name]) <= 2 * (row["calls_high"] - row["calls"]), name


@pytest.mark.quiet
def test_time_without_a_processor_is_no_cost_of_watching(tmp_path: Path) -> None:
    """A program that is stopped all the time, also inside of what watches its calls, has the calls that it has."""
    program = support.PROGRAMS / "stopped_calls.py"
    recording, counted = record(program, tmp_path, "2.5", options=("--calls", "--no-children"))
    rows = functions(recording, program)
    for name, calls in counted.items():
        row = rows[name]
        assert row["calls"] == pytest.approx(calls, rel=0.25), name
        # Where an interruption is taken for what watching costs, a single window has ten times its weight.
        assert (row["calls_high"] - row["calls_low"]) / 2 < 0.3 * calls, name


@pytest.mark.quiet
def test_what_watching_takes_is_no_time_of_the_calls(tmp_path: Path) -> None:
    """It is a multiple of what small functions take: without that being known theirs are more than there is.

    What an event takes is measured once in a recording, and an interruption may fall on that: of five recordings the
    middle one counts, which is known when three agree. Where nothing is left of a function, that is nothing.
    """
    program = support.PROGRAMS / "small_calls.py"
    found = []
    for number in range(5):
        (tmp_path / str(number)).mkdir()
        options = ("--calls", "--calls-budget", "10", "--calls-choice", "rejects")
        recording, told = record(program, tmp_path / str(number), options=options)
        rows = functions(recording, program)
        times_s = [0 if math.isnan(s) else s for s in (rows[name]["own_call_mean_s"] for name in ("calling", "leaf"))]
        found.append((times_s[0] + 4 * times_s[1]) * told["calls"] / told["cpu_s"])
        # The loop that calls has a part of it. Without this they were 1.8 to 7.8 times as much.
        if sum(0.4 < each < 1.6 for each in found) == 3:
            return
    assert 0.4 < statistics.median(found) < 1.6, found


def test_histograms_tell_two_kinds_of_calls_apart(known: tuple[Path, dict[str, int]]) -> None:
    times = dict(functions(known[0], KNOWN)["bimodal"]["call_times"])
    whole = sum(times.values())
    # One call in ten does eighty times the work; a call that was interrupted counts with its interruption.
    long = sum(count for end, count in times.items() if end > 16e-6)
    assert long / whole == pytest.approx(0.1, abs=0.05)


MOST_TAKEN_OFF_NS = 2_000
"""Two events of a call that is watched take less than this."""


def test_tables_agree_with_each_other(known: tuple[Path, dict[str, int]]) -> None:
    calls, times = (support.rows(known[0], name) for name in ("calls", "call_times"))
    by_row: dict[tuple[Any, ...], list[int]] = {}
    for row in times:
        sums = by_row.setdefault((row["time_ns"], row["process"], row["stack"]), [0, 0])
        sums[row["own"]] += row["calls"]
    for row in calls:
        ended, own = by_row.get((row["time_ns"], row["process"], row["stack"]), [0, 0])
        assert (row["ended"], row["own_ended"]) == (ended, own)
        assert row["own_ended"] <= row["ended"]
        assert row["own_begun"] <= row["calls"]
        # What watching takes is taken off by its mean: calls of nothing may have sums below 0, and leave their caller
        # more than it had. One call may have many of them, so what counts is the calls that ended meanwhile.
        if row["own_ns"] > row["total_ns"]:
            meanwhile = sum(
                each["ended"]
                for each in calls
                if each["process"] == row["process"]
                and each["since_ns"] <= row["time_ns"]
                and row["since_ns"] <= each["time_ns"]
            )
            assert row["own_ns"] <= row["total_ns"] + MOST_TAKEN_OFF_NS * meanwhile
        assert row["watched_ns"] >= 0
        assert row["longest_ns"] ** 2 <= row["total_squared"] * (1 + 1e-9)
    # Library code that is compiled twice is one function with the periods of both code objects.
    own_functions = {stack for stack, name in names_of_stacks(known[0]).items() if name in known[1]}
    periods = sorted((row["stack"], row["since_ns"], row["time_ns"]) for row in calls if row["stack"] in own_functions)
    assert len(periods) > 1
    for (stack, _, end), (following, since, _) in pairwise(periods):
        assert stack != following or since == end


LOOP = """
import json
from itertools import pairwise
from tachograph.recorder import loop

def inside():
    pass

def outside():
    pass

for _ in range(50):
    outside()
total = 0
for number in loop(range(20)):
    inside()
    total += number
for _ in range(50):
    outside()
for number in loop(range(20)):
    inside()
    if number == 4:
        break
print(json.dumps({"total": total}))
"""


@selective
def test_a_marked_loop_is_watched_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "marked.py"
    program.write_text(LOOP)
    recording, said = record(program, tmp_path, options=())
    rows = functions(recording, program)
    assert said == {"total": 190}
    assert rows["inside"]["calls_low"] == 25
    assert "outside" not in rows or not rows["outside"]["calls_low"] > 0


LOOPS = """
import gc, json, weakref
from tachograph.recorder import loop

class Cell:
    pass

def failing():
    yield 1
    raise KeyError("over")

def outcome(does):
    try:
        return repr(does())
    except Exception as error:
        return repr(error)

def broken_off():
    for number in loop(range(3)):
        for other in loop("ab"):
            if number == 1:
                raise ValueError(other)

def over():
    items = loop([1])
    return list(items), next(items, None), list(items)

def in_a_cycle():
    cell = Cell()
    cell.items = loop([cell])
    next(cell.items)
    gone = weakref.ref(cell)
    del cell
    gc.collect()
    return gone()

does = [lambda: list(loop(failing())), lambda: loop(3), broken_off, over, in_a_cycle, lambda: sum(loop(iter([1, 2])))]
print(json.dumps([outcome(each) for each in does]))
"""


def test_a_marked_loop_does_as_the_iterable_does(tmp_path: Path) -> None:
    program = tmp_path / "loops.py"
    program.write_text(LOOPS)
    bare = json.loads(subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout)
    expected = ["KeyError('over')", "TypeError(\"'int' object is not iterable\")", "ValueError('a')"]
    assert bare == [*expected, "([1], None, [])", "None", "3"]
    assert record(program, tmp_path, options=())[1] == bare
    assert record(program, tmp_path, options=("--calls", "--force"))[1] == bare


ENTERED_OFTEN = """
import json, time
from tachograph.recorder import loop

def inside():
    pass

begun = time.process_time()
while time.process_time() - begun < 1:
    for _ in loop(range(2000)):
        inside()
print(json.dumps({"cpu_s": time.process_time() - begun}))
"""


def test_a_loop_that_is_entered_often_keeps_to_the_budget(tmp_path: Path) -> None:
    program = tmp_path / "often.py"
    program.write_text(ENTERED_OFTEN)
    recording, said = record(program, tmp_path, options=())
    names = names_of_stacks(recording)
    seen = sum(row["calls"] for row in support.rows(recording, "calls") if names.get(row["stack"]) == "inside")
    # The events of a call take 100 ns at least. With credit for each entry they had a quarter of the time on 3.11.
    assert 0 < seen * 100e-9 < 0.05 * said["cpu_s"]


def test_without_a_recording_a_marked_loop_is_an_iterator(tmp_path: Path) -> None:
    program = tmp_path / "marked.py"
    program.write_text(LOOP + "\nassert type(loop([1])) is type(iter([1]))\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"total": 190}


FORKS = """
import json, os

def before(): pass
def parent(): pass
def child(): pass

for _ in range(3): before()
pid = os.fork()
if pid == 0:
    for _ in range(5): child()
    os._exit(0)
os.waitpid(pid, 0)
for _ in range(4): parent()
print(json.dumps({}))
"""


@selective
def test_a_forked_child_has_its_own_counts(tmp_path: Path) -> None:
    program = tmp_path / "forks.py"
    program.write_text(FORKS)
    recording, _ = record(program, tmp_path)
    counts: dict[tuple[int, str], int] = {}
    names = names_of_stacks(recording)
    for row in support.rows(recording, "calls"):
        key = (row["process"], names.get(row["stack"], ""))
        counts[key] = counts.get(key, 0) + row["calls"]
    own = {key: count for key, count in counts.items() if key[1] in ("before", "parent", "child")}
    assert own == {(0, "before"): 3, (0, "parent"): 4, (1, "child"): 5}


def names_of_stacks(recording: Path) -> dict[int, str]:
    codes = support.rows(recording, "codes")
    stacks = [row for row in support.rows(recording, "stacks") if row["code"] is not None]
    return {row["stack"]: codes[row["code"]]["qualname"] for row in stacks}


TAKEN = """
import json, sys
sys.monitoring.use_tool_id(3, "another")
from tachograph.recorder import loop

def inside():
    pass

for _ in loop(range(3)):
    inside()
names = [sys.monitoring.get_tool(3), sys.monitoring.get_tool(4)]
print(json.dumps(names))
"""


@selective
def test_another_tool_with_an_identifier_of_ours_keeps_it(tmp_path: Path) -> None:
    program = tmp_path / "taken.py"
    program.write_text(TAKEN)
    recording, said = record(program, tmp_path, options=())
    assert said == ["another", None]
    assert support.losses(support.analyze(recording, cwd=tmp_path))["calls_unavailable"] == 1


PROFILED = """
import cProfile, json, pstats

def work():
    return sum(range(10))

profile = cProfile.Profile()
profile.enable()
for _ in range(100):
    work()
profile.disable()
calls = {key[2]: value[0] for key, value in pstats.Stats(profile).stats.items()}
print(json.dumps({"work": calls["work"]}))
"""


def test_cprofile_in_the_program_sees_all_of_its_calls(tmp_path: Path) -> None:
    program = tmp_path / "profiled.py"
    program.write_text(PROFILED)
    _, said = record(program, tmp_path)
    assert said == {"work": 100}


@windows
def test_windows_of_python_3_11_count_what_they_see(tmp_path: Path) -> None:
    # With all the time for a budget, of periods that are longer than the program, the first window has all of it.
    options = ("--calls", "--calls-budget", "100", "--calls-period", "60")
    recording, counts = record(KNOWN, tmp_path, "0.1", options=options)
    rows = functions(recording, KNOWN)
    assert 0 < rows["rare"]["calls_low"] <= counts["rare"]
    assert rows["rare"]["call_max_s"] >= 0.02
    assert rows["coroutine"]["call_max_s"] < 0.4


@pytest.mark.quiet
def test_python_runs_as_fast_where_it_is_watched(tmp_path: Path) -> None:
    """With a profile function CPython 3.11 took up to twice as long: calls were fewer there, and longer."""
    program = support.PROGRAMS / "python_calls.py"
    recording, said = record(program, tmp_path, "3")
    rows = functions(recording, program)
    assert rows["outer"]["calls"] == pytest.approx(said["calls"], rel=0.1)
    assert rows["work"]["calls"] == pytest.approx(2 * said["calls"], rel=0.1)
    assert rows["outer"]["call_mean_s"] == pytest.approx(said["outer_s"], rel=0.15)
    assert rows["work"]["own_call_mean_s"] == pytest.approx(said["outer_s"] / 2, rel=0.15)


@windows
def test_calls_that_the_interpreter_inlines_are_seen(tmp_path: Path) -> None:
    """Of functions, generators, methods of operators, properties, and of what they call."""
    program = support.PROGRAMS / "inlined_calls.py"
    options = ("--calls", "--calls-budget", "100", "--calls-period", "60")
    recording, counts = record(program, tmp_path, options=options)
    rows = functions(recording, program)
    assert {name: rows[name]["calls"] for name in counts} == counts


@windows
@pytest.mark.quiet
def test_the_end_of_a_call_that_is_longer_than_its_window_is_seen(tmp_path: Path) -> None:
    recording, counts = record(support.PROGRAMS / "long_calls.py", tmp_path)
    rows = functions(recording, support.PROGRAMS / "long_calls.py")
    assert rows["long"]["call_mean_s"] == pytest.approx(counts["long_s"], rel=0.3)


@windows
def test_deep_recursion_in_a_thread_with_a_small_stack(tmp_path: Path) -> None:
    """What is watched takes more of the stack than the interpreter does else: it ends before there is none left."""
    program = support.PROGRAMS / "small_stacks.py"
    recording, said = record(program, tmp_path, options=("--calls", "--calls-budget", "100"))
    assert said == {"depth": 900}
    assert support.losses(support.analyze(recording, cwd=tmp_path))["call_windows_skipped"] > 0


@windows
def test_each_window_is_told_of_each_function_once(tmp_path: Path) -> None:
    """Of one that was called in it, and of one that was not."""
    program = support.PROGRAMS / "python_calls.py"
    recording, _ = record(program, tmp_path, "1.5")
    with api.open(recording) as opened:
        calls = opened.table("calls").to_pandas()
    sums = calls.groupby("stack").agg(
        {"time_ns": "max", "watched_ns": "sum", "intervals": "sum", "calls": "sum", "counted_calls": "sum"}
    )
    to_the_end = sums[sums.time_ns == sums.time_ns.max()]
    assert (to_the_end.calls + to_the_end.counted_calls > 0).sum() > 2
    assert len(to_the_end.groupby(["watched_ns", "intervals"])) == 1
    assert to_the_end.intervals.iloc[0] > 5


@windows
def test_all_writes_to_dictionaries_are_counted(tmp_path: Path) -> None:
    """And of the windows those in them: a row has no function, and is of its whole period."""
    program = support.PROGRAMS / "dict_writes.py"
    recording, said = record(program, tmp_path)
    with api.open(recording) as opened:
        calls = opened.table("calls").to_pandas()
    writes = calls[calls["stack"].isna()]
    assert said["writes"] <= writes["calls"].sum() < 1.2 * said["writes"]
    assert (writes["watched_ns"] == writes["time_ns"] - writes["since_ns"]).all()
    assert (writes["counted_calls"] > 0).any()
    assert (writes["counted_calls"] <= writes["calls"]).all()


@windows
def test_another_evaluation_function_is_left_alone(tmp_path: Path) -> None:
    program = support.PROGRAMS / "own_evaluation.py"
    recording, said = record(program, tmp_path)
    assert said == {"is_own": True, "result": 42}
    assert support.losses(support.analyze(recording, cwd=tmp_path))["call_windows_skipped"] > 0


def test_free_functions_of_others_are_not_called_for_us(tmp_path: Path) -> None:
    """CPython calls each tool's free function for every code object that any tool keeps a pointer with.

    CPython's own test_code crashed.
    """
    program = support.PROGRAMS / "code_extras.py"
    # All that is called is watched.
    options = ("--calls", "--calls-budget", "100", "--calls-period", "60")
    recording, said = record(program, tmp_path, options=options)
    assert said == {"freed": [100]}
    with api.open(recording) as opened:
        rows = opened.profile().functions
    assert rows.loc[rows["function"] == "called", "calls"].sum() > 0
