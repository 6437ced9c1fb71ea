"""Memory by the native recorder against programs that know what they allocate."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import (
    PYTHON_DOMAINS,
    THRESHOLD,
    check_lines,
    flow,
    function_row,
    line_bytes,
    line_rows,
    mean_of,
    moved,
    rows,
    sampling_error,
    window,
    window_bytes,
)
from oracle.test_native import needs_numpy
from tachograph.format.enumerations import DOMAINS, MemoryEvent

pytestmark = pytest.mark.native

MB = 1 << 20
ARRAY = 512 * MB
TENTHS = range(11)


# ------------------------------------------------------------------ the array of which a part is touched


@pytest.fixture(scope="module")
def array(recorded: Recorder) -> support.Run:
    return recorded("array_touched.py")


@needs_numpy
@pytest.mark.parametrize("tenths", TENTHS)
def test_line_has_the_array_however_much_is_touched(array: support.Run, tenths: int) -> None:
    for key in ("peak_bytes", "allocated_bytes", "requested_bytes", "freed_bytes"):
        assert line_bytes(array, key, f"touched-{tenths}") == pytest.approx(ARRAY, rel=0.001), key


@needs_numpy
@pytest.mark.parametrize("tenths", TENTHS)
def test_footprint_grows_by_the_array_however_much_is_touched(array: support.Run, tenths: int) -> None:
    """The step of the process's footprint from the fence before the array to when it is there."""
    before, there = array.truth["facts"]["moments"][tenths]
    counters = rows(array.recording, "memory")
    last = [row for row in counters if row["time_ns"] <= before][-1]
    (step,) = (row for row in counters if before < row["time_ns"] <= there and row["event"] != MemoryEvent.TICK)
    assert step["event"] == MemoryEvent.THRESHOLD
    assert step["footprint_bytes"] - last["footprint_bytes"] == pytest.approx(ARRAY, rel=0.001)


@needs_numpy
def test_who_held_the_peak_and_the_end(array: support.Run) -> None:
    for key in ("live_at_peak_bytes", "live_at_end_bytes", "peak_bytes"):
        assert line_bytes(array, key, "kept") == pytest.approx(ARRAY, rel=0.001), key
        assert line_bytes(array, key, "beside") == pytest.approx(64 * MB, rel=0.001), key
    for tenths in TENTHS:
        assert line_bytes(array, "live_at_peak_bytes", f"touched-{tenths}") == 0
        assert line_bytes(array, "live_at_end_bytes", f"touched-{tenths}") == 0


@needs_numpy
def test_resident_memory_is_something_else(array: support.Run) -> None:
    """What the kernel has given pages for: little of the last two arrays, of which nothing was touched."""
    counters = [row for row in rows(array.recording, "memory") if row["resident_bytes"] is not None]
    assert max(row["resident_bytes"] for row in counters) > 0.9 * ARRAY
    at_the_end = [row for row in counters if row["footprint_bytes"] > 576 * MB][-1]
    assert at_the_end["resident_bytes"] < 200 * MB


@needs_numpy
def test_peak_of_the_process(array: support.Run) -> None:
    """The two last arrays on top of what there was before them: the interpreter, numpy and its work space."""
    before = [
        row for row in rows(array.recording, "memory") if row["time_ns"] <= array.truth["facts"]["before_the_last"]
    ]
    peak = array.report["memory"]["peak_bytes"]
    assert peak - before[-1]["footprint_bytes"] == pytest.approx(ARRAY + 64 * MB, rel=0.001)


# ------------------------------------------------------------------ the counters


PROGRAMS: dict[str, tuple[str, ...]] = {
    "native_blocks.py": ("library",),
    "mappings.py": ("small",),
    "footprint.py": (),
    "shared_helper.py": ("40000", "250"),
}


@pytest.fixture(scope="module")
def booked(recorded: Recorder, allocations: Path) -> Any:
    def of(program: str, *arguments: str) -> support.Run:
        return recorded(program, *(str(allocations) if a == "library" else a for a in arguments))

    return of


@pytest.mark.parametrize("program", PROGRAMS)
def test_books_balance_to_the_byte(booked: Any, program: str) -> None:
    """Every row's footprint is the one before it and what moved since; the last row is the remainder."""
    counters = rows(booked(program, *PROGRAMS[program]).recording, "memory")
    assert [counters[0]["event"], counters[-1]["event"]] == [MemoryEvent.START, MemoryEvent.END]
    held = 0
    for row in counters:
        held += flow(row)
        assert row["footprint_bytes"] == held, row
        assert row["peak_bytes"] is None or row["peak_bytes"] >= held - 128 * 1024
        assert row["footprint_bytes"] >= 0
    assert all(row[f"{domain}_freed_bytes"] == 0 for row in counters[:1] for domain in DOMAINS)


@pytest.mark.parametrize("size", ["small", "huge"])
def test_mappings_balance_to_the_byte(booked: Any, size: str) -> None:
    run = booked("mappings.py", size)
    sizes = run.truth["sizes"]
    assert window_bytes(run, "mappings", "mapped") == (sizes["allocated"], sizes["freed"])
    assert run.loss("mappings_untracked") == 0


@pytest.mark.parametrize(("size", "rel"), [("small", 0.001), ("huge", 0.01)])
def test_lines_have_their_mappings(booked: Any, size: str, rel: float) -> None:
    """Of huge ones the pages that are touched, which are sampled one by one; a smaller mapping is one block."""
    run = booked("mappings.py", size)
    kept = run.truth["sizes"]["allocated"] - run.truth["sizes"]["freed"]
    assert line_bytes(run, "live_at_end_bytes", "kept") == pytest.approx(
        kept, rel=rel, abs=sampling_error(1, kept, mean_of(run))
    )


@pytest.mark.parametrize("name", ["forms", "resized", "grown", "shrunk", "kept", "worker", "handed-over"])
def test_native_blocks_are_counted_to_the_byte(booked: Any, name: str) -> None:
    """Every form of allocation, resizing, other threads: the window's counts are those of the library itself."""
    run = booked("native_blocks.py", "library")
    assert list(window_bytes(run, name, "native")) == run.truth["facts"][name]


def test_python_blocks_are_counted_by_their_size(booked: Any) -> None:
    """Blocks of Python's own allocator, which are made here and dropped elsewhere: as many bytes as asked for."""
    run = booked("native_blocks.py", "library")
    allocated, freed = window_bytes(run, "produced", *PYTHON_DOMAINS)
    assert allocated == pytest.approx(run.truth["sizes"]["produced"], rel=0.001, abs=64 * 1024)
    assert allocated - freed == pytest.approx(0, abs=32 * 1024)
    run = booked("footprint.py")
    for name in ("grow", "churn"):  # the headers of bytes, and a list that grows, are no part of the truth
        assert window_bytes(run, name, *PYTHON_DOMAINS)[0] == pytest.approx(run.truth["sizes"][name], rel=0.002)


# ------------------------------------------------------------------ threads and native code


def blocks_of(run: support.Run, tid: int) -> list[dict[str, Any]]:
    """The sampled blocks that the thread with the system's id ``tid`` allocated."""
    (thread,) = (row["thread"] for row in rows(run.recording, "threads") if row["tid"] == tid)
    return [row for row in rows(run.recording, "allocations") if row["thread"] == thread]


def test_thread_without_python_state(booked: Any) -> None:
    """Its blocks are in the recording, are its own, and are no line's."""
    run = booked("native_blocks.py", "library")
    for name in ("keeper", "giver"):
        tid = run.truth["facts"][name]
        blocks = blocks_of(run, tid)
        assert sum(row["weight_bytes"] for row in blocks) == pytest.approx(
            50 * MB, rel=0, abs=sampling_error(50, MB, mean_of(run))
        )
        assert all(row["stack"] is None and DOMAINS[row["domain"]] == "native" for row in blocks)
        (thread,) = (row for row in run.report["threads"] if row["tid"] == tid)
        assert thread["allocated_bytes"] == pytest.approx(50 * MB, abs=sampling_error(50, MB, mean_of(run)))
    assert line_bytes(run, "allocated_bytes", "worker") < MB


def test_blocks_are_freed_by_the_thread_that_frees_them(booked: Any) -> None:
    run = booked("native_blocks.py", "library")
    (main,) = (row["thread"] for row in rows(run.recording, "threads") if row["main"])
    given, kept = (blocks_of(run, run.truth["facts"][name]) for name in ("giver", "keeper"))
    assert given
    assert {row["freed_thread"] for row in given} == {main}
    assert kept
    assert all(row["freed_thread"] == row["thread"] for row in kept)
    names = {row["thread"]: row["name"] for row in rows(run.recording, "threads")}
    produced = [row for row in rows(run.recording, "allocations") if names.get(row["thread"]) == "oracle-producer"]
    assert [row for row in produced if row["size_bytes"] > MB]
    assert {row["freed_thread"] for row in produced if row["size_bytes"] > MB} == {main}


def test_producer_is_charged_and_holds_nothing_at_the_end(booked: Any) -> None:
    run = booked("native_blocks.py", "library")
    check_lines(run, "allocated_bytes", ["produced"], rel=0.01, extra=sampling_error(40, MB, mean_of(run)))
    assert line_bytes(run, "live_at_end_bytes", "produced") == 0
    assert line_bytes(run, "net_bytes", "produced") == 0


def test_resizing_is_charged_to_its_lines(booked: Any) -> None:
    """A block that grew and shrank: all that passed through it, and what is left of it."""
    run = booked("native_blocks.py", "library")
    steps = {"forms": (540, 40_000), "resized": (4000, 50_000), "grown": (60, MB), "shrunk": (1, 20 * MB)}
    for name, (count, size) in steps.items():
        allocated = run.truth["facts"][name][0]
        found = line_bytes(run, "allocated_bytes", name)
        assert found == pytest.approx(allocated, rel=0.01, abs=sampling_error(count, size, mean_of(run))), name
    assert line_bytes(run, "live_at_end_bytes", "grown") == 0
    for name, size in run.truth["facts"]["live"].items():
        assert line_bytes(run, "live_at_end_bytes", name) == pytest.approx(size, rel=0.001), name
    assert line_bytes(run, "peak_bytes", "grown") == pytest.approx(60 * MB, rel=0.02)


def test_native_and_python_are_told_apart(recorded: Recorder, allocations: Path) -> None:
    run = recorded("visits.py", str(allocations))
    for name, part in {"one": 1.0, "three": 1.0, "native": 0.0, "half": 0.5}.items():
        (row,) = line_rows(run, name)
        assert row["python_fraction"] == pytest.approx(part, abs=0.01), name


def test_average_is_that_of_one_execution(recorded: Recorder, allocations: Path) -> None:
    """One execution of the line, and not one block or one row: the line with three blocks has the sum of them."""
    run = recorded("visits.py", str(allocations))
    check_lines(run, "average_bytes", ["one", "three", "native", "half"], rel=0.02)
    for name in ("one", "three", "native", "half"):
        allocated = run.truth["sizes"][name] * run.truth["facts"]["rounds"]
        assert line_bytes(run, "allocated_bytes", name) == pytest.approx(allocated, rel=0.01), name


# ------------------------------------------------------------------ small objects, operators, call paths


NAMES = ("floats", "dicts", "strings", "floats-again", "dicts-again", "strings-again")


def small_objects(recorded: Recorder, tmp_path: Path, count: int) -> support.Run:
    """The recorded run, with what tracemalloc says in a run of its own as the truth."""
    run = recorded("small_objects.py", str(count))
    run.truth["sizes"] = support.run_bare(tmp_path, "small_objects.py", str(count), "traced")["sizes"]
    for name in NAMES:
        # Python keeps some 80 dicts and 100 floats for later: now and then one of them is in the sample.
        assert line_bytes(run, "live_at_end_bytes", name) <= 2 * mean_of(run) < 0.1 * run.truth["sizes"][name], name
        assert all(row["python_fraction"] > 0.99 for row in line_rows(run, name)), name
    return run


def test_small_objects_agree_with_tracemalloc(recorded: Recorder, tmp_path: Path) -> None:
    """A part of the objects that the 5 % are asked for, and what chance adds for so few blocks in the sample."""
    run = small_objects(recorded, tmp_path, 500_000)
    mean = mean_of(run)
    for name in NAMES:
        size = run.truth["sizes"][name]
        check_lines(run, "requested_bytes", [name], rel=0.05, extra=sampling_error(size // 64, 64, mean))


@pytest.mark.slow
def test_ten_million_small_objects_agree_with_tracemalloc(recorded: Recorder, tmp_path: Path) -> None:
    check_lines(small_objects(recorded, tmp_path, 10_000_000), "requested_bytes", NAMES, rel=0.05)


@pytest.mark.slow
def test_what_is_held_for_a_moment_is_told_by_line(recorded: Recorder, tmp_path: Path) -> None:
    """All of it dies within the second in which it was made, so some hundred rows stand for millions of blocks.

    Some 3 % of the bytes are on the wrong line then; one row is 2 to 4 %.
    """
    run = recorded("held_together.py", "1000000")
    run.truth["sizes"] = support.run_bare(tmp_path, "held_together.py", "1000000", "traced")["sizes"]
    true = run.truth["sizes"]
    assert len(true) == 4
    told = {name: line_bytes(run, "requested_at_peak_bytes", name) for name in true}
    misplaced = sum(abs(told[name] - true[name]) for name in true) / 2
    assert misplaced < 0.1 * sum(true.values()), (told, true)
    assert sum(told.values()) == pytest.approx(sum(true.values()), rel=0.1)


def arrays_are_pythons() -> bool:
    """Whether numpy has its arrays of PyMem_RawMalloc, as 2.5 does: then it has no use for malloc, as 2.4 had."""
    import numpy as np

    (library,) = (Path(np.__file__).parent / "_core").glob("_multiarray_umath*.so")
    return b"\0malloc\0" not in library.read_bytes()


def small_objects_weight(run: support.Run, function: str) -> int:
    """Bytes that the sampled blocks of less than 1 KiB of a function stand for: each for up to some megabytes."""
    codes = {row["code"] for row in rows(run.recording, "codes") if row["qualname"] == function}
    stacks = {row["stack"] for row in rows(run.recording, "stacks") if row["code"] in codes}
    found = [row for row in rows(run.recording, "allocations") if row["stack"] in stacks and row["size_bytes"] < 1024]
    return sum(int(row["weight_bytes"]) for row in found)


@needs_numpy
def test_operators_are_charged_to_their_lines(recorded: Recorder) -> None:
    run = recorded("numpy_arrays.py")
    check_lines(
        run,
        "allocated_bytes",
        ["product", "sum", "negative"],
        rel=0.01,
        extra=sampling_error(150, 1_200_000, mean_of(run)),
    )
    check_lines(run, "allocated_bytes", ["compare"], rel=0.01, extra=sampling_error(150, 150_000, mean_of(run)))
    assert line_bytes(run, "allocated_bytes", "after") == pytest.approx(0, abs=MB)
    expected = 1.0 if arrays_are_pythons() else 0.0
    # The objects of the arrays are Python's: in one of some thirty runs one of them is in the sample.
    small = small_objects_weight(run, "work")
    for row in line_rows(run, "product", "sum"):
        assert row["python_fraction"] == pytest.approx(expected, abs=0.01 + small / row["allocated_bytes"])


@pytest.mark.parametrize(("piece", "rounds"), [(40_000, 250), (4 * MB, 8)])
def test_call_paths_tell_two_users_of_one_helper_apart(recorded: Recorder, piece: int, rounds: int) -> None:
    """Allocated 5 : 2 through the same line of the same helper."""
    run = recorded("shared_helper.py", str(piece), str(rounds))
    sizes = run.truth["sizes"]
    whole = sizes["first"] + sizes["second"]
    spread = sampling_error(whole // piece, piece, mean_of(run))
    for name in ("first", "second"):
        row = function_row(run, name)
        assert row["total_allocated_bytes"] == pytest.approx(sizes[name], rel=0.01, abs=spread), name
        assert row["total_live_at_end_bytes"] == pytest.approx(sizes[name], rel=0.01, abs=spread), name
        assert row["allocated_bytes"] == pytest.approx(0, abs=MB)
    for key in ("allocated_bytes", "live_at_end_bytes"):
        assert line_bytes(run, key, "shared") == pytest.approx(whole, rel=0.01, abs=spread), key


# ------------------------------------------------------------------ the footprint


def test_the_peak_is_made_of_what_was_held_then(recorded: Recorder) -> None:
    run = recorded("footprint.py")
    for name, size in {"held": 60, "top": 150, "before": 0, "after": 0, "grow": 0}.items():
        assert line_bytes(run, "live_at_peak_bytes", name) == pytest.approx(size * MB, rel=0.001, abs=64 * 1024), name
    for name, size in {"held": 60, "before": 100, "top": 150, "after": 90}.items():
        assert line_bytes(run, "peak_bytes", name) == pytest.approx(size * MB, rel=0.001), name


def test_threshold_rows_follow_the_footprint(recorded: Recorder) -> None:
    """Two hundred MB up and down again take twenty rows each way; two GB of temporaries take none."""
    run = recorded("footprint.py")
    steps = run.truth["sizes"]["grow"] / THRESHOLD
    for name, expected in {"grow": steps, "shrink": steps, "churn": 0}.items():
        found = [row for row in window(run, name) if row["event"] == MemoryEvent.THRESHOLD]
        crossings = len(found) - 2  # two are the fence's
        # The count begins anew with any row, also one that time has brought, and crossings may share a row.
        fewer = len(window(run, name)) - len(found) + run.loss("crossings_merged")
        assert expected - 1 - fewer <= crossings <= expected + 1, name
        assert all(row["stack"] is not None for row in found)


def test_rate_based_sampling_would_take_many_times_more(recorded: Recorder) -> None:
    """The paper's table 2, by counting: a sample for every threshold's worth of bytes that are allocated or freed."""
    run = recorded("footprint.py")
    churn = run.truth["sizes"]["churn"]
    rate = sum(moved(row) for row in window(run, "churn")) / THRESHOLD
    assert rate == pytest.approx((2 * churn + 2 * run.truth["fence"]) / THRESHOLD, rel=0.01)
    threshold = sum(row["event"] == MemoryEvent.THRESHOLD for row in window(run, "churn"))
    assert rate / threshold > 18  # the paper's median
    steady = window(run, "grow")  # what only grows is sampled as often by either; the fence is two rows
    rate = (sum(moved(row) for row in steady) - 2 * run.truth["fence"]) / THRESHOLD
    crossings = sum(row["event"] == MemoryEvent.THRESHOLD for row in steady) - 2
    # The count begins anew with any row, also one that time has brought, and crossings may share a row.
    fewer = sum(row["event"] != MemoryEvent.THRESHOLD for row in steady) + run.loss("crossings_merged")
    assert rate - 1.5 - fewer <= crossings <= rate + 1.5


@pytest.mark.parametrize("threshold", ["64K", pytest.param("1M", marks=pytest.mark.slow)])
def test_a_finer_threshold_takes_more_rows_and_counts_the_same(recorded: Recorder, threshold: str) -> None:
    """Where crossings come too fast to have a row each they share one: it is the whole run's sums that are exact."""
    fine, plain = recorded("footprint.py", options=("--memory-threshold", threshold)), recorded("footprint.py")
    found, expected = ([moved(row) for row in rows(run.recording, "memory")] for run in (fine, plain))
    assert sum(found) == pytest.approx(sum(expected), rel=0.001)
    assert len(found) > 3 * len(expected)
    for run in (fine, plain):
        for name, size in {"grow": 100_000, "churn": 500_000}.items():
            true = run.truth["sizes"][name]
            spread = sampling_error(true // size, size, mean_of(run))
            assert line_bytes(run, "allocated_bytes", name) == pytest.approx(true, rel=0.01, abs=spread)


def test_timelines_are_short_and_reach_the_peak(recorded: Recorder) -> None:
    memory = recorded("footprint.py").report["memory"]
    timeline = memory["footprint"]
    assert 2 <= len(timeline) <= 100
    assert max(point["bytes"] for point in timeline) == pytest.approx(memory["peak_bytes"], rel=0.01)


def test_cpu_only_records_no_memory(recorded: Recorder) -> None:
    run = recorded("shared_helper.py", "40000", "250", options=("--cpu-only",))
    for table in ("memory", "allocations", "copies"):
        path = run.recording / f"{table}.parquet"
        assert not path.exists() or not rows(run.recording, table)
    assert all(row["allocated_bytes"] is None for row in run.report["lines"])
    assert run.report["totals"]["allocated_bytes"] is None


# ------------------------------------------------------------------ what grows


REALLOCATED = [
    "list",
    "bytearray",
    pytest.param("numpy", marks=needs_numpy),
    "libc",
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("array", "BytesIO", "str")),
]
IN_SMALL_STEPS = ["turns", "threads", pytest.param("small_steps", marks=pytest.mark.slow)]
"""Hundreds of gigabytes are allocated on the way to some megabytes."""
WITH_TWO_TABLES = ["dict", pytest.param("set", marks=pytest.mark.slow), "deque"]


@pytest.fixture
def grown(request: pytest.FixtureRequest, recorded: Recorder) -> support.Run:
    return recorded("growing.py", request.param)


@pytest.mark.parametrize("grown", [*REALLOCATED, *IN_SMALL_STEPS, *WITH_TWO_TABLES], indirect=True)
def test_what_grows_is_held_once_at_the_peak(grown: support.Run) -> None:
    peak = grown.report["memory"]["peak_bytes"]
    lines = grown.report["lines"]
    assert sum(row["live_at_peak_bytes"] for row in lines) == pytest.approx(peak, rel=1e-6)
    assert max(row["peak_bytes"] for row in lines) <= peak
    of_small_blocks = sampling_error(grown.truth["sizes"]["grown"] // 528, 528) if grown.truth["facts"]["small"] else 0
    check_lines(grown, "live_at_peak_bytes", ["grown"], rel=0.001, extra=of_small_blocks)


@pytest.mark.parametrize("grown", REALLOCATED, indirect=True)
def test_a_block_that_is_reallocated_is_never_gone(grown: support.Run) -> None:
    """What was held and what is held are counted in one row: the footprint does not fall in between."""
    counters = [row["footprint_bytes"] for row in window(grown, "growth")]
    assert len(counters) > 3
    falls = [before - after for before, after in pairwise(counters) if after < before]
    assert max(falls, default=0) < 2 * MB
    assert all((row["average_bytes"] or 0) <= row["peak_bytes"] for row in line_rows(grown, "grown"))


@pytest.mark.parametrize("grown", WITH_TWO_TABLES, indirect=True)
def test_the_average_of_an_execution_is_no_more_than_its_line_ever_held(grown: support.Run) -> None:
    """A dict holds its old table and its new one while it copies; then it gives the old one back."""
    assert all((row["average_bytes"] or 0) <= row["peak_bytes"] for row in line_rows(grown, "grown"))


@pytest.mark.parametrize("pages", ["file", "heap"])
def test_the_largest_resident_set_is_the_kernels(recorded: Recorder, pages: str) -> None:
    """Also where it was between two readings, and no page of it was allocated."""
    run = recorded("resident_burst.py", pages)
    most = run.truth["facts"]["most_resident"]
    assert run.report["memory"]["resident_peak_bytes"] == pytest.approx(most, rel=0.01)
    assert run.report["totals"]["resident_peak_bytes"] == run.report["memory"]["resident_peak_bytes"]
