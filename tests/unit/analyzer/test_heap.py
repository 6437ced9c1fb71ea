"""Who holds the memory: exact counters, peaks, ends, windows, threads, rows without a line, what is unknown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tachograph.analyzer import Profile
from tachograph.format import FormatError
from tachograph.format.enumerations import DOMAINS
from unit.analyzer.recordings import MS, NATIVE_FRAME, START, Builder, table

MB = 1_000_000


def lines(builder: Builder, count: int, path: str = "/srv/a.py") -> list[int]:
    """Stacks of one function, one on each of its first lines."""
    code = builder.code(builder.file(path))
    return [builder.stack((code, line)) for line in range(count)]


def test_every_byte_has_its_place(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two = lines(builder, 2)
    builder.memory("start", 0, 7 * MB, obj_allocated_bytes=7 * MB)
    builder.block(one, 30 * MB, 100, 900)
    builder.block(two, 5 * MB, 200, 300)
    builder.block(two, 6 * MB, 400, domain=0)
    builder.memory(
        "tick", 500, 43 * MB, obj_allocated_bytes=35 * MB, native_allocated_bytes=6 * MB, obj_freed_bytes=5 * MB
    )
    builder.memory("end", 1000, 10 * MB, obj_freed_bytes=33 * MB)
    answer = profile()
    columns = (
        "line",
        "allocated_bytes",
        "freed_bytes",
        "net_bytes",
        "peak_bytes",
        "live_at_peak_bytes",
        "live_at_end_bytes",
    )
    assert table(answer.lines.sort_values("line"), *columns) == [
        (1, 30 * MB, 30 * MB, 0, 30 * MB, 30 * MB, 0),
        (2, 11 * MB, 5 * MB, 6 * MB, 6 * MB, 6 * MB, 6 * MB),
        (None, 0, 3 * MB, -3 * MB, 7 * MB, 7 * MB, 4 * MB),
    ]
    assert answer.lines["function"].tolist()[-1] == "<before recording>"
    assert table(answer.lines.sort_values("line"), "python_fraction", "allocation_samples") == [
        (1.0, 1),
        (round(5 / 11, 9), 2),
        (None, 0),
    ]
    totals = answer.totals
    assert (totals.allocated_bytes, totals.freed_bytes, totals.net_bytes) == (41 * MB, 38 * MB, 3 * MB)
    assert (totals.live_at_peak_bytes, totals.live_at_end_bytes) == (43 * MB, 10 * MB)
    assert totals.python_fraction == pytest.approx(35 / 41)
    assert totals.allocation_mb_per_s == pytest.approx(4.1)
    for name in ("allocated_bytes", "freed_bytes", "live_at_peak_bytes", "live_at_end_bytes"):
        assert answer.lines[name].sum() == pytest.approx(getattr(totals, name))
        assert answer.functions[name].sum() == pytest.approx(getattr(totals, name))
        assert answer.files[name].sum() == pytest.approx(getattr(totals, name))
    # Blocks much larger than the mean of the sampling are in it for certain, so nothing is an estimate.
    assert (answer.lines["allocated_bytes_low"] == answer.lines["allocated_bytes_high"]).all()
    memory = answer.memory
    assert memory is not None
    assert (memory.start_bytes, memory.peak_bytes, memory.peak_s, memory.end_bytes) == (7 * MB, 43 * MB, 0.5, 10 * MB)
    assert table(memory.domains, "domain", "allocated_bytes", "freed_bytes")[0] == ("native", 6 * MB, 0)
    assert table(memory.domains, "domain", "allocated_bytes", "freed_bytes")[4] == ("obj", 35 * MB, 38 * MB)


def test_what_no_sample_was_seen_of_may_still_be_there(builder: Builder, profile: Callable[..., Profile]) -> None:
    """Twenty blocks of 10 KB that stand for 512 KB each: all that were seen are gone, others may be held."""
    gone, held = lines(builder, 2)
    mean = 512 * 1024
    for number in range(20):
        builder.block(gone, 10_000, 10 + number, 500, mean=mean)
    for number in range(40):
        builder.block(held, 10_000, 10 + number, mean=mean)
    answer = profile().lines.sort_values("line").iloc[0]
    assert answer["live_at_end_bytes"] == answer["live_at_end_bytes_low"] == 0
    # 3.69 is the upper end of a Poisson count of 0: half of the 97.5 % quantile of chi squared with 2 degrees.
    assert answer["live_at_end_bytes_high"] == pytest.approx(3.69 * mean, rel=0.02)
    assert answer["live_at_end_bytes_high"] < answer["allocated_bytes_high"]


def test_functions_in_total_along_the_call_path(builder: Builder, profile: Callable[..., Profile]) -> None:
    file = builder.file("/srv/a.py")
    main, left, right, helper = (
        builder.code(file, name, 1 + 10 * n) for n, name in enumerate(("main", "l", "r", "help"))
    )
    builder.memory("start", 0, 0)
    for caller, size in ((left, 5 * MB), (right, 2 * MB)):
        builder.block(builder.stack((main, 0), (caller, 0), (helper, 0)), size, 100)
    builder.memory("end", 1000, 7 * MB, obj_allocated_bytes=7 * MB)
    functions = profile().functions.sort_values("function")
    assert table(functions, "function", "allocated_bytes", "total_allocated_bytes", "total_live_at_end_bytes") == [
        ("help", 7 * MB, 7 * MB, 7 * MB),
        ("l", 0, 5 * MB, 5 * MB),
        ("main", 0, 7 * MB, 7 * MB),
        ("r", 0, 2 * MB, 2 * MB),
    ]


def test_libraries_are_charged_to_the_project(builder: Builder, profile: Callable[..., Profile]) -> None:
    mine = builder.code(builder.file("/srv/a.py"))
    library = builder.code(builder.file("/usr/lib/python3.13/json/decoder.py"))
    builder.cpu(builder.stack((mine, 3)), 100)
    builder.memory("start", 0, 0)
    builder.block(builder.stack((mine, 3), (library, 7)), 4 * MB, 100)
    builder.memory("end", 1000, 4 * MB, obj_allocated_bytes=4 * MB)
    charged = profile().lines
    assert table(charged, "file", "line", "live_at_end_bytes") == [("/srv/a.py", 4, 4 * MB)]
    everything = profile(scope="all").lines
    assert table(everything[everything["live_at_end_bytes"] > 0], "file", "line") == [
        ("/usr/lib/python3.13/json/decoder.py", 8)
    ]


def test_the_peak_between_two_rows_is_found_by_the_blocks(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two, three = lines(builder, 3)
    builder.memory("start", 0, 0)
    builder.block(one, 50 * MB, 100, 200)
    builder.block(two, 40 * MB, 300, 500)
    builder.block(three, 30 * MB, 400, 500)
    flows = {"obj_allocated_bytes": 120 * MB, "obj_freed_bytes": 120 * MB}
    builder.memory("end", 1000, 0, peak_bytes=70 * MB, **flows)
    answer = profile()
    assert answer.memory is not None
    assert (answer.memory.peak_bytes, answer.memory.peak_s) == (70 * MB, 0.4)
    assert table(answer.lines.sort_values("line").head(3), "peak_bytes", "live_at_peak_bytes") == [
        (50 * MB, 0),
        (40 * MB, 40 * MB),
        (30 * MB, 30 * MB),
    ]
    held = dict(answer.lines.sort_values("line")["timeline"].iloc[0])
    assert max(held.values()) == 50 * MB
    assert np.interp(0.25, list(held), list(held.values())) == 0


def test_the_end_is_where_the_interpreter_begins_to_shut_down(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    (one,) = lines(builder, 1)
    builder.rows["processes"][0]["exiting_ns"] = START + 800 * MS
    builder.memory("start", 0, 0)
    builder.block(one, 20 * MB, 100, 900)
    builder.memory("tick", 800, 20 * MB, obj_allocated_bytes=20 * MB)
    builder.memory("end", 1000, 0, obj_freed_bytes=20 * MB)
    answer = profile()
    assert table(answer.lines, "live_at_end_bytes", "net_bytes") == [(20 * MB, 0)]
    assert answer.memory is not None
    assert (answer.memory.end_bytes, answer.memory.end_s) == (20 * MB, 0.8)


def test_a_block_that_grows_is_never_held_twice(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    for step in range(1, 10):
        builder.block(one, step * MB, step * 100, (step + 1) * 100)
    builder.memory("end", 2000, 0, peak_bytes=9 * MB, obj_allocated_bytes=45 * MB, obj_freed_bytes=45 * MB)
    assert table(profile().lines, "allocated_bytes", "peak_bytes") == [(45 * MB, 9 * MB)]


def test_threads_windows_and_sizes(builder: Builder, profile: Callable[..., Profile]) -> None:
    worker = builder.thread("worker")
    one, two = lines(builder, 2)
    builder.memory("start", 0, 0)
    builder.block(one, 10 * MB, 100, requested_bytes=8 * MB)
    builder.block(two, 20 * MB, 2100, 4100, thread=worker, freed_thread=0)
    builder.block(None, 3 * MB, 3000, thread=None, native_frame=NATIVE_FRAME, domain=0)
    builder.memory("tick", 3500, 33 * MB, obj_allocated_bytes=30 * MB, native_allocated_bytes=3 * MB)
    builder.memory("end", 5000, 13 * MB, obj_freed_bytes=20 * MB)
    whole = profile()
    assert table(whole.threads, "name", "allocated_bytes", "freed_bytes", "live_at_peak_bytes") == [
        ("MainThread", 10 * MB, 0, 10 * MB),
        ("worker", 20 * MB, 20 * MB, 20 * MB),
    ]
    assert ("<deflate in libz.so>", 3 * MB, 3 * MB) in table(
        whole.lines, "function", "allocated_bytes", "live_at_end_bytes"
    )
    assert ("<deflate in libz.so>", 3 * MB) in table(whole.files, "file", "allocated_bytes")
    assert whole.totals.requested_bytes == 31 * MB
    mine = profile(thread="worker")
    assert table(mine.lines, "line", "allocated_bytes", "live_at_peak_bytes") == [(2, 20 * MB, 20 * MB)]
    assert mine.totals.allocated_bytes == 20 * MB
    late = profile(start_s=2, end_s=4)
    assert table(late.lines.sort_values("line"), "line", "allocated_bytes", "freed_bytes", "live_at_peak_bytes") == [
        (1, 0, 0, 10 * MB),
        (2, 20 * MB, 0, 20 * MB),
        (None, 3 * MB, 0, 3 * MB),
    ]
    assert late.memory is not None
    assert (late.memory.start_bytes, late.memory.peak_bytes) == (10 * MB, 33 * MB)
    after = profile(start_s=4.2)
    assert after.totals.live_at_peak_bytes == 13 * MB
    assert after.totals.allocated_bytes == 0


def test_what_was_not_recorded_is_unknown(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.cpu(one)
    answer = profile()
    assert answer.memory is None
    assert answer.leaks is None
    assert answer.totals.allocated_bytes is None
    assert answer.totals.copied_bytes is None
    assert (
        answer.lines[["allocated_bytes", "peak_bytes", "copied_bytes", "leak_likelihood", "copy_samples"]]
        .isna()
        .all(axis=None)
    )
    assert answer.calls.nodes["allocated_bytes"].isna().all()
    assert answer.quality.notes == ["memory and copies were not recorded"]


def test_what_was_recorded_and_did_not_happen_is_zero(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.parameters["memory"] = True
    (one,) = lines(builder, 1)
    builder.cpu(one)
    answer = profile()
    assert table(answer.lines, "allocated_bytes", "copied_bytes", "python_fraction", "average_bytes") == [
        (0, 0, None, None)
    ]
    assert answer.totals.copied_bytes == 0
    assert answer.quality.notes == []
    assert answer.leaks is not None
    assert answer.leaks.empty


def test_blocks_that_were_not_followed_count_as_the_others_of_their_site(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, None)
    builder.block(one, 10 * MB, 100)
    builder.block(one, 10 * MB, 200, 300)
    builder.block(one, 20 * MB, 400, followed=False)
    builder.memory("end", 1000, None, obj_allocated_bytes=40 * MB, obj_freed_bytes=20 * MB)
    assert table(profile().lines.head(1), "allocated_bytes", "live_at_end_bytes") == [(40 * MB, 20 * MB)]


def test_several_processes(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two = lines(builder, 2)
    builder._add("processes", pid=101, parent=0, start_ns=START, end_ns=START + 900 * MS, sampler="native")
    for process in (0, 1):
        builder.memory("start", process, 0, process=process)
    builder.block(one, 10 * MB, 100)
    builder.block(two, 20 * MB, 200, process=1)
    builder.memory("tick", 300, 10 * MB, obj_allocated_bytes=10 * MB)
    builder.memory("end", 900, 20 * MB, obj_allocated_bytes=20 * MB, process=1)
    builder.block(one, 25 * MB, 1000)
    builder.memory("end", 2000, 35 * MB, obj_allocated_bytes=25 * MB)
    answer = profile()
    assert answer.memory is not None
    # The second process is gone when the first one holds most.
    assert (answer.memory.peak_bytes, answer.memory.peak_s) == (35 * MB, 2.0)
    assert table(answer.memory.processes, "process", "peak_bytes", "end_bytes", "allocated_bytes") == [
        (0, 35 * MB, 35 * MB, 35 * MB),
        (1, 20 * MB, 20 * MB, 20 * MB),
    ]


def test_average_per_visit(builder: Builder, profile: Callable[..., Profile]) -> None:
    file = builder.file("/srv/a.py")
    main, inner = builder.code(file, "main", 1), builder.code(file, "inner", 50)
    builder.memory("start", 0, 0)
    here, deeper = builder.stack((main, 4)), builder.stack((main, 4), (inner, 0))
    footprint = 0
    for number, (stack, kept) in enumerate(
        [(here, 0), (here, 1), (here, 0), (deeper, 1), (deeper, 2), (deeper, 1), (here, None)]
    ):
        footprint += 12 * MB
        flows = {"obj_allocated_bytes": 13 * MB, "obj_freed_bytes": MB}
        builder.memory("threshold", 100 * (number + 1), footprint, thread=0, stack=stack, kept_frames=kept, **flows)
    builder.memory("threshold", 900, 0, thread=0, stack=here, kept_frames=0, obj_freed_bytes=footprint)
    # main's line: rows 1 and 2 are one visit, row 3 begins another; inner's line: rows 4 and 5, row 6.
    answer = profile().lines.sort_values("line")
    assert table(answer.head(2), "line", "average_bytes") == [(5, 18 * MB), (50, 18 * MB)]


def test_average_lacks_what_the_same_visit_gives_back(builder: Builder, profile: Callable[..., Profile]) -> None:
    """Grown by 20 MB, then by 40 MB beside them, and the 20 MB given back: 60 MB at most, as if they came once."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    footprint = 0
    for number, size in enumerate((20, 40, -20, 20, -20)):
        footprint += size * MB
        flow = {"obj_allocated_bytes": size * MB} if size > 0 else {"obj_freed_bytes": -size * MB}
        kept = 0 if number == 0 else 1
        builder.memory("threshold", 100 * (number + 1), footprint, thread=0, stack=one, kept_frames=kept, **flow)
    assert profile().lines.sort_values("line")["average_bytes"].iloc[0] == 60 * MB


def test_an_average_is_no_more_than_the_line_ever_held(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A row of the counters is charged whole to the line that passes the threshold, with what others allocated."""
    one, two = lines(builder, 2)
    builder.memory("start", 0, 0)
    builder.block(one, 4 * MB, 150)
    builder.block(two, 8 * MB, 100)
    builder.memory("threshold", 200, 12 * MB, obj_allocated_bytes=12 * MB, thread=0, stack=one, kept_frames=0)
    answer = profile().lines.sort_values("line").iloc[0]
    assert answer["average_bytes"] == answer["peak_bytes"] < 5 * MB


def test_growth_between_rows_of_other_kinds_counts(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.memory("tick", 100, 6 * MB, obj_allocated_bytes=6 * MB)
    builder.memory("threshold", 200, 12 * MB, obj_allocated_bytes=6 * MB, thread=0, stack=one, kept_frames=0)
    assert profile().lines.sort_values("line")["average_bytes"].iloc[0] == 12 * MB


def test_timelines_of_the_process(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.memory("start", 0, 0)
    for number in range(1, 1000):
        spike = 500 * MB if number == 777 else number * MB
        builder.memory(
            "tick", number * 10, number * MB, peak_bytes=spike, resident_bytes=2 * number * MB, minor_faults=number
        )
    memory = profile().memory
    assert memory is not None
    assert len(memory.footprint) <= 100
    assert memory.peak_bytes == 999 * MB
    assert memory.footprint["bytes"].max() == 999 * MB
    assert memory.resident["bytes"].max() == memory.resident_peak_bytes == 1998 * MB
    assert (np.diff(memory.footprint["time_s"]) >= 0).all()
    assert memory.processes["minor_faults"].tolist() == [999]


def test_a_recording_that_was_killed_before_its_first_row(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.block(one, 10 * MB, 100)
    answer = profile()
    assert table(answer.lines, "allocated_bytes", "live_at_end_bytes", "live_at_peak_bytes") == [(10 * MB, 10 * MB, 0)]
    assert answer.memory is not None
    assert (answer.memory.peak_bytes, answer.memory.end_bytes, answer.memory.start_bytes) == (None, None, None)
    assert answer.totals.allocated_bytes == 10 * MB
    assert len(answer.memory.footprint) == 0


def test_numbers_that_cannot_be_true(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.block(one, 1 << 60, 100)
    with pytest.raises(FormatError, match=r"table allocations, column size_bytes: .* bytes cannot be true"):
        profile()


def test_values_of_later_versions(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.block(one, 10 * MB, 100, domain=9)
    builder.block(None, 5 * MB, 100, stack_state=77)
    builder.memory("end", 1000, 15 * MB, obj_allocated_bytes=5 * MB, native_allocated_bytes=10 * MB)
    builder.memory("end", 1100, 15 * MB)
    builder.rows["memory"][-1]["event"] = 200
    answer = profile()
    assert ("<unknown stack>", 5 * MB) in table(answer.lines, "function", "live_at_end_bytes")
    assert answer.lines["allocated_bytes"].max() == 10 * MB


def test_churn_is_no_peak(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A line that allocates 1 GB per second in blocks of 1 KB, of which it never holds more than one."""
    one, two = lines(builder, 2)
    mean = 4 << 20
    random = np.random.default_rng(1)
    times = np.cumsum(random.exponential(mean / 1e9 * 1000, 2500))
    builder.memory("start", 0, 0)
    builder.block(two, 40 * MB, 1)
    for at in times[times < 9900].tolist():
        builder.block(one, 1024, at, at + 0.001, mean=mean)
    for at in range(100, 10_001, 100):
        allocated = 100 * MB + (40 * MB if at == 100 else 0)
        builder.memory("tick", at, 40 * MB, obj_allocated_bytes=allocated, obj_freed_bytes=100 * MB, peak_bytes=41 * MB)
    answer = profile()
    churning = answer.lines[answer.lines["line"] == 1].iloc[0]
    assert churning["allocated_bytes"] == pytest.approx(1e10, rel=0.02)
    assert churning["peak_bytes"] < 0.1 * MB
    assert churning["live_at_peak_bytes"] < 0.1 * MB
    assert answer.lines[answer.lines["line"] == 2]["peak_bytes"].iloc[0] == 40 * MB


def test_what_is_built_up_and_dropped_is_a_peak(builder: Builder, profile: Callable[..., Profile]) -> None:
    """Blocks that stand for many, each of which dies before those that were born before it: the last live shortly."""
    (one,) = lines(builder, 1)
    mean = 4 << 20
    builder.memory("start", 0, 0)
    for step in range(10):
        builder.block(one, 64, 100 + 10 * step, 220 - 10 * step, mean=mean, requested_bytes=48)
    held = sum(row["weight_bytes"] for row in builder.rows["allocations"])
    builder.memory("tick", 196, held, obj_allocated_bytes=held)
    builder.memory("end", 5000, 0, obj_freed_bytes=held, peak_bytes=held)
    found = profile().lines.iloc[0]
    assert found["peak_bytes"] == found["live_at_peak_bytes"] == pytest.approx(held)
    assert found["requested_at_peak_bytes"] == pytest.approx(0.75 * held)


def test_one_coarse_sample_is_no_peak_above_the_footprint(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, MB)
    builder.block(one, 1024, 100, 1500, mean=32 << 20)
    builder.memory("end", 5000, MB, obj_allocated_bytes=40 * MB, obj_freed_bytes=40 * MB, peak_bytes=12 * MB)
    found = profile().lines.iloc[0]
    assert found["allocated_bytes"] == 40 * MB
    assert found["peak_bytes"] <= 12 * MB
    assert found["peak_bytes_low"] < 0.05 * found["peak_bytes"]


def test_what_is_held_when_most_is_resident(builder: Builder, profile: Callable[..., Profile]) -> None:
    """The most that was held was never touched; the resident set is largest long afterwards."""
    reserved, used = lines(builder, 2)
    builder.memory("start", 0, 0, resident_bytes=10 * MB)
    builder.memory("threshold", 100, 100 * MB, native_allocated_bytes=100 * MB, resident_bytes=12 * MB)
    builder.memory("threshold", 200, 0, native_freed_bytes=100 * MB, resident_bytes=12 * MB)
    builder.memory("threshold", 500, 50 * MB, native_allocated_bytes=50 * MB, resident_bytes=60 * MB)
    builder.memory("end", 900, 50 * MB, resident_bytes=55 * MB)
    native = DOMAINS.index("native")
    builder.block(reserved, 100 * MB, 99, 199, domain=native)
    builder.block(used, 50 * MB, 499, domain=native)
    answer = profile()
    memory = answer.memory
    assert memory is not None
    assert (memory.peak_bytes, memory.peak_s) == (100 * MB, 0.1)
    assert (memory.resident_peak_bytes, memory.resident_peak_s) == (60 * MB, 0.5)
    assert memory.processes["resident_peak_s"].tolist() == [0.5]
    rows = answer.lines.sort_values("line")
    assert table(rows, "live_at_peak_bytes", "live_at_resident_peak_bytes") == [(100 * MB, 0), (0, 50 * MB)]
    assert answer.totals.live_at_resident_peak_bytes == 50 * MB


@pytest.mark.parametrize(("read", "expected_s"), [(20 * MB, 0.5), (80 * MB, 0.2)])
def test_the_kernels_own_largest_resident_set(
    builder: Builder, profile: Callable[..., Profile], read: int, expected_s: float
) -> None:
    """It is where most was held, unless more than that was read elsewhere."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0, resident_bytes=10 * MB)
    builder.memory("tick", 200, 0, resident_bytes=read)
    builder.memory("threshold", 500, 50 * MB, native_allocated_bytes=50 * MB)
    builder.memory("end", 900, 50 * MB, resident_bytes=12 * MB)
    builder.block(one, 50 * MB, 499, domain=DOMAINS.index("native"))
    builder.rows["processes"][0]["max_resident_bytes"] = 90 * MB
    memory = profile().memory
    assert memory is not None
    assert (memory.resident_peak_bytes, memory.resident_peak_s) == (90 * MB, expected_s)
    assert memory.processes["resident_peak_bytes"].tolist() == [90 * MB]
    assert memory.resident["bytes"].max() == 90 * MB


def test_of_a_part_of_a_process_the_largest_resident_set_is_the_one_that_was_read(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    builder.memory("start", 0, 0, resident_bytes=10 * MB)
    builder.memory("tick", 200, 0, resident_bytes=20 * MB)
    builder.memory("end", 900, 0, resident_bytes=12 * MB)
    builder.rows["processes"][0]["max_resident_bytes"] = 90 * MB
    memory = profile(start_s=0.1).memory
    assert memory is not None
    assert memory.resident_peak_bytes == 20 * MB


def test_without_resident_sets_nothing_is_known_of_their_peak(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.memory("end", 900, 50 * MB, obj_allocated_bytes=50 * MB)
    builder.block(one, 50 * MB, 499)
    answer = profile()
    assert answer.memory is not None
    assert answer.memory.resident_peak_s is None
    assert answer.totals.live_at_resident_peak_bytes is None
    assert answer.lines["live_at_resident_peak_bytes"].isna().all()


def test_mappings_are_not_corrected_by_what_is_unsure_of_small_blocks(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """By chance most sampled objects are among the few that stay; the pages of a mapping are known to a sample."""
    pages, objects = lines(builder, 2)
    mean = 512 << 10
    builder.memory("start", 0, 3 * MB, obj_allocated_bytes=3 * MB)
    for number in range(100):
        builder.block(pages, 4096, 100 + number, mean=mean, domain=DOMAINS.index("mapped"))
    mapped = sum(row["weight_bytes"] for row in builder.rows["allocations"])
    held, asked = 3 * MB + mapped, 0
    builder.memory("tick", 250, held, mapped_allocated_bytes=mapped)
    for start in (300, 400):
        for number in range(20):
            builder.block(objects, 64, start + number, 600 if start == 300 and number < 4 else None, mean=mean)
        asked = sum(row["weight_bytes"] for row in builder.rows["allocations"][-20:])
        held += asked
        builder.memory("tick", start + 50, held, obj_allocated_bytes=asked)
    builder.memory("tick", 700, held - 2 * asked + MB, obj_freed_bytes=2 * asked - MB, resident_bytes=held)
    builder.memory("end", 1000, held - 2 * asked + MB)
    answer = profile().lines.sort_values("line")
    for name in ("live_at_end_bytes", "live_at_resident_peak_bytes"):
        found = [float(value) for value in answer[name][:2]]
        assert found == [pytest.approx(mapped), pytest.approx(MB)], name


def test_blocks_of_an_earlier_window_are_held_by_their_lines(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A window of a rotated recording opens with what is held; of that the blocks from before have their lines."""
    one, two = lines(builder, 2)
    builder.block(one, 30 * MB, -500)
    builder.memory("start", 0, 40 * MB, obj_allocated_bytes=40 * MB)
    builder.block(two, 20 * MB, 400)
    builder.memory("end", 1000, 60 * MB, obj_allocated_bytes=20 * MB)
    answer = profile()
    held = dict(zip(answer.lines["function"], answer.lines["live_at_end_bytes"], strict=True))
    assert held["<before recording>"] == 10 * MB
    assert sorted(answer.lines.dropna(subset="line")["live_at_end_bytes"]) == [20 * MB, 30 * MB]


def test_what_is_allocated_behind_the_last_row_counts(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A process that was killed, or goes on in another window: its last row comes before its last blocks."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.block(one, 10 * MB, 100)
    builder.memory("tick", 200, 10 * MB, obj_allocated_bytes=10 * MB)
    builder.block(one, 25 * MB, 700)
    answer = profile()
    assert answer.totals.allocated_bytes == answer.lines["allocated_bytes"].sum() == 35 * MB


def test_no_more_is_left_of_what_was_there_before_than_was_there(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """A string that grows by ``+=`` is reallocated so often that its last block may be in no sample."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 5 * MB, obj_allocated_bytes=5 * MB)
    builder.block(one, 80 * MB, 100, 600)
    builder.memory("tick", 500, 85 * MB, obj_allocated_bytes=80 * MB)
    builder.memory("end", 1000, 86 * MB, obj_allocated_bytes=81 * MB, obj_freed_bytes=80 * MB)
    answer = profile()
    held = dict(zip(answer.lines["function"], answer.lines["live_at_end_bytes"], strict=True))
    assert held["<before recording>"] == 5 * MB
    assert held["<not sampled>"] == 81 * MB
