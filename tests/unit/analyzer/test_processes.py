"""Several processes: which is which, one of them by itself, and figures that are right for all of them together."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tachograph.analyzer import Profile, Recording
from tachograph.analyzer.profile.processes import tree_order
from tachograph.analyzer.recording.definitions import name_of
from tachograph.analyzer.recording.filter import make_filter
from tachograph.format import FormatError
from unit.analyzer.recordings import MS, START, Builder, table

MB = 1_000_000


def lines(builder: Builder, count: int) -> list[int]:
    """Stacks of one function, one on each of its first lines."""
    code = builder.code(builder.file("/srv/a.py"))
    return [builder.stack((code, line)) for line in range(count)]


@pytest.fixture
def pool(builder: Builder) -> Builder:
    """A program with two workers, one of which is killed, and a compiler that is only seen."""
    one, two, three = lines(builder, 3)
    builder.rows["processes"][0] |= {"origin": "first", "command": "python -m app --fast", "user_ns": 90 * MS}
    first, main_1 = builder.process(4242, 100, 900, command="python worker.py", user_ns=70 * MS, system_ns=5 * MS)
    second, main_2 = builder.process(4243, 200, None, exit_status=-9, command="python worker.py")
    builder.process(5000, 300, 400, recorded="listed", origin="exec", command="cc1 -O2", system_ns=MS, exit_status=1)
    builder.cpu(one, 60)
    builder.cpu(two, 30, thread=main_1, time_ns=START + 500 * MS)
    builder.cpu(two, 10, thread=main_2, time_ns=START + 600 * MS)
    builder.wait(one, 100, 900)
    builder.wait(three, 200, 700, thread=main_2)
    builder.copy(one, 8 * MB, 50)
    builder.copy(two, 2 * MB, 510, thread=main_1)
    builder.span("serve", 0, 9000)
    builder.span("job", 450, 550, thread=main_1, process=first)
    for process, start in ((0, 0), (first, 100), (second, 200)):
        builder.memory("start", start, 0, process=process)
    builder.memory("end", 9000, 10 * MB, obj_allocated_bytes=10 * MB)
    builder.block(one, 10 * MB, 50)
    builder.memory("end", 880, 3 * MB, obj_allocated_bytes=3 * MB, process=first)
    builder.block(two, 3 * MB, 400, process=first, thread=main_1)
    builder.quality = [
        {"process": first, "loss": "stacks_torn", "count": 2},
        {"process": second, "loss": "stacks_torn", "count": 7},
        {"process": None, "loss": "records_torn", "count": 1},
    ]
    return builder


def test_the_frame_of_processes(pool: Builder, profile: Callable[..., Profile]) -> None:
    frame = profile().processes
    names = ("process", "depth", "name", "pid", "recorded", "wall_s", "user_s", "system_s", "samples", "cpu_s")
    assert table(frame, *names, "exit_status", "peak_bytes") == [
        (0, 0, "app", 100, "python", 10.0, 0.09, None, 1, 0.06, None, 10 * MB),
        (1, 1, "worker.py", 4242, "python", 0.8, 0.07, 0.005, 1, 0.03, None, 3 * MB),
        # Its end was not seen; that it waited until 700 ms is the last that is known of it.
        (2, 1, "worker.py", 4243, "python", None, None, None, 1, 0.01, -9, 0),
        (3, 1, "cc1", 5000, "listed", 0.1, None, 0.001, None, None, 1, None),
    ]
    assert frame["last_s"].tolist()[2] == 0.7
    assert frame["threads"].tolist()[:3] == [1, 1, 1]


def test_totals_of_several_processes(pool: Builder, profile: Callable[..., Profile]) -> None:
    totals = profile().totals
    assert (totals.processes, totals.listed_processes, totals.native_processes) == (3, 1, 0)
    assert totals.process_s == pytest.approx(10 + 0.8 + 0.5)
    # Both main threads waited; what they waited is a part of what both of them lived.
    assert totals.main_wait_s == pytest.approx(1.3)
    assert totals.main_s == totals.process_s


@pytest.mark.parametrize("wanted", ["1", "4242", "id=1", "pid=4242"])
def test_one_process_in_every_metric(wanted: str, pool: Builder, profile: Callable[..., Profile]) -> None:
    answer = profile(processes=(wanted,))
    totals = answer.totals
    assert (totals.cpu_s, totals.samples, totals.wall_s, totals.wait_s) == (0.03, 1, 0.8, 0)
    assert (totals.processes, totals.listed_processes, totals.threads) == (1, 0, 1)
    assert table(answer.lines, "line", "cpu_s", "allocated_bytes", "live_at_end_bytes", "copied_bytes") == [
        (2, 0.03, 3 * MB, 3 * MB, 2 * MB)
    ]
    assert answer.memory is not None
    assert (answer.memory.peak_bytes, answer.memory.processes["process"].tolist()) == (3 * MB, [1])
    assert answer.memory.footprint["process"].unique().tolist() == [1]
    assert table(answer.threads, "name", "tid") == [("MainThread", 4242)]
    assert answer.spans is not None
    assert answer.spans["name"].tolist() == ["job", "<no span>"]
    assert answer.processes["name"].tolist() == ["worker.py"]
    assert [(cause.loss, cause.count) for cause in answer.quality.causes] == [("stacks_torn", 2), ("records_torn", 1)]


def test_processes_by_name_and_several(pool: Builder, profile: Callable[..., Profile]) -> None:
    assert profile(processes=("worker*",)).processes["process"].tolist() == [1, 2]
    assert profile(processes=("app", "4243")).totals.cpu_s == pytest.approx(0.07)
    assert profile(processes=("worker.py",), thread="main").totals.samples == 2
    # The two lived at the same time for most of it: wall time is counted once.
    assert profile(processes=("worker.py",)).totals.wall_s == 0.8


def test_spans_of_one_process_only(pool: Builder, profile: Callable[..., Profile]) -> None:
    assert profile(processes=("4242",), span="job").totals.wall_s == 0.1
    with pytest.raises(FormatError, match="no span matches --span 'serve'"):
        profile(processes=("4243",), span="serve")


def test_the_ledger_by_cause(pool: Builder, profile: Callable[..., Profile]) -> None:
    causes = profile().quality.causes
    assert [(cause.loss, cause.count, cause.processes, cause.where) for cause in causes] == [
        ("stacks_torn", 9, 2, "in 2 processes: worker.py 4243: 7, worker.py 4242: 2"),
        ("records_torn", 1, 0, ""),
    ]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("99", r"no process has the id or the name '99'; there are: app \(100\), worker.py \(4242\)"),
        ("nobody", "no process has the id or the name 'nobody'"),
        ("pid=1", "no process has the id or the name 'pid=1'"),
        ("\x1b[31m", r"x1b\[31m'; there are"),
    ],
)
def test_no_such_process(wanted: str, message: str, pool: Builder, profile: Callable[..., Profile]) -> None:
    with pytest.raises(FormatError, match=message):
        profile(processes=(wanted,))


def test_a_number_that_may_mean_two(pool: Builder, profile: Callable[..., Profile]) -> None:
    pool.rows["processes"][3]["pid"] = 1
    with pytest.raises(FormatError, match=r"1 is the id of worker\.py in the recording and the system's id of cc1"):
        profile(processes=("1",))
    assert profile(processes=("id=1",)).processes["pid"].tolist() == [4242]
    assert profile(processes=("pid=1",)).processes["name"].tolist() == ["cc1"]


def test_a_thread_of_another_process(pool: Builder) -> None:
    pool.thread("loader")
    with Recording(pool.write()) as recording:
        assert make_filter(recording, "main", ["worker.py"]).threads.tolist() == [False, True, True, False]  # type: ignore[union-attr]
        with pytest.raises(FormatError, match="no thread is named 'loader' or has that id; there are: MainThread"):
            make_filter(recording, "loader", ["worker.py"])


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python /srv/app/main.py --port 80", "main.py"),
        ("/usr/bin/python3.13 -X dev -W error::Warning -m http.server 80", "http.server"),
        ("python -Im app", "app"),
        ("python -c 'import app; app.run()' -m", "-c"),
        ("python -c 'from multiprocessing.spawn import spawn_main; spawn_main(4)' --x", "multiprocessing.spawn"),
        ("python --check-hash-based-pycs never -mapp", "app"),
        ("python", "python"),
        ("python -", "-"),
        ("/usr/bin/python3 /usr/bin/gunicorn app:app", "gunicorn"),
        ("-m pytest -n 4", "pytest"),
        ("/bin/sh -c 'make all'", "sh"),
        ("gunicorn app:app", "gunicorn"),
    ],
)  # fmt: skip
def test_names(command: str, name: str) -> None:
    assert name_of(shlex.split(command)) == name


def test_the_order_of_the_tree() -> None:
    assert tree_order([None, 0, 0, 1, None, 2, 1]) == ([0, 1, 3, 6, 2, 5, 4], [0, 1, 1, 2, 0, 2, 2])


def test_memory_is_summed_over_the_processes_that_live(builder: Builder, profile: Callable[..., Profile]) -> None:
    """Ten processes one after the other hold 50 MB each, and never more than that together."""
    one, two = lines(builder, 2)
    builder.memory("start", 0, MB, native_allocated_bytes=MB)
    builder.block(one, 2 * MB, 50)
    builder.memory("end", 9900, 3 * MB, obj_allocated_bytes=2 * MB, resident_bytes=4 * MB)
    for number in range(10):
        start = 100 + 900 * number
        values = {"process": builder.process(200 + number, start, start + 800, origin="exec")[0]}
        builder.memory("start", start, 5 * MB, native_allocated_bytes=5 * MB, **values)
        builder.memory("tick", start + 400, 55 * MB, obj_allocated_bytes=50 * MB, resident_bytes=60 * MB, **values)
        builder.block(two, 50 * MB, start + 300, thread=1 + number, **values)
        # Every other one is killed: it has no last row, and no more is held from its end on.
        if number % 2:
            builder.memory("end", start + 790, 55 * MB, resident_bytes=60 * MB, **values)
    answer = profile()
    memory = answer.memory
    assert memory is not None
    assert (memory.start_bytes, memory.peak_bytes, memory.peak_inherited_bytes) == (MB, 58 * MB, 0)
    assert memory.resident_peak_bytes == 60 * MB  # the first one was read at the end only
    # Each at its own end: the ten, and the first.
    assert memory.end_bytes == 10 * 55 * MB + 3 * MB
    rows = {
        row[0]: row[1:] for row in table(answer.lines, "line", "peak_bytes", "live_at_peak_bytes", "live_at_end_bytes")
    }
    assert rows[1] == (2 * MB, 2 * MB, 2 * MB)
    assert rows[2] == (50 * MB, 50 * MB, 500 * MB)
    held = answer.lines.set_index("function")["live_at_peak_bytes"]
    assert held["<before recording>"] == 6 * MB
    assert answer.totals.live_at_peak_bytes == 58 * MB
    sums = memory.footprint_sum
    assert sums["bytes"].max() == 58 * MB
    assert np.interp(0.95, sums["time_s"], sums["bytes"]) <= 3 * MB  # between two of them
    curve = answer.lines.set_index("line")["timeline"][2]
    assert max(size for _, size in curve) == 50 * MB


def test_what_forks_inherit_is_told(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.block(one, 40 * MB, 50)
    builder.memory("tick", 100, 40 * MB, obj_allocated_bytes=40 * MB)
    builder.memory("end", 9900, 40 * MB)
    for number in range(3):
        process, _ = builder.process(200 + number, 200, 9000)
        builder.memory("start", 200 + number, 40 * MB, native_allocated_bytes=40 * MB, process=process)
        builder.memory("end", 8990, 40 * MB, process=process)
    answer = profile()
    assert answer.memory is not None
    assert (answer.memory.peak_bytes, answer.memory.peak_inherited_bytes) == (160 * MB, 120 * MB)
    held = {row[0]: row[1] for row in table(answer.lines, "function", "live_at_peak_bytes")}
    assert held == {"f": 40 * MB, "<inherited by fork>": 120 * MB}
    assert table(answer.memory.processes, "start_bytes", "peak_bytes")[1:] == [(40 * MB, 40 * MB)] * 3


def test_what_forks_release_of_it_is_not_taken_from_other_lines(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """The parent's blocks are drawn by chance, and the counters say how much of them is held."""
    one, two = lines(builder, 2)
    builder.memory("start", 0, 0)
    for number in range(100):
        builder.block(one, 1000, 10 + number / 2, mean=399_500)  # each stands for 400 kB
    builder.memory("tick", 100, 40 * MB, obj_allocated_bytes=40 * MB)
    builder.memory("end", 9900, 40 * MB)
    for number in range(3):
        process, thread = builder.process(200 + number, 200, 9000)
        builder.memory("start", 200 + number, 40 * MB, native_allocated_bytes=40 * MB, process=process)
        builder.block(two, 20 * MB, 300, process=process, thread=thread)
        builder.memory(
            "tick",
            400,
            30 * MB,
            process=process,
            obj_allocated_bytes=20 * MB,
            obj_freed_bytes=30 * MB,
            peak_bytes=50 * MB,
        )
        builder.memory("end", 8990, 30 * MB, process=process)
    answer = profile(start_s=0.5)
    held = {row[:2]: row[2] for row in table(answer.lines, "function", "line", "live_at_end_bytes")}
    assert held["f", 1] == pytest.approx(40 * MB, rel=0.01)
    assert held["f", 2] == 60 * MB
    functions = {row[0]: row[1] for row in table(profile().lines, "function", "live_at_end_bytes")}
    assert functions["<inherited by fork>"] == pytest.approx(30 * MB, rel=0.02)


def test_what_is_released_of_it_meanwhile_is_not_taken_from_new_blocks(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """Between two rows the counters say how much was given back, and not of what."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.memory("end", 9900, 0)
    process, thread = builder.process(200, 200, 9000)
    builder.memory("start", 200, 60 * MB, native_allocated_bytes=60 * MB, process=process)
    for number in range(100):
        builder.block(
            one, 1000, 310 + number / 2, mean=399_500, process=process, thread=thread
        )  # each stands for 400 kB
    flows = {"obj_allocated_bytes": 40 * MB, "obj_freed_bytes": 30 * MB}
    builder.memory("tick", 400, 70 * MB, process=process, **flows)
    builder.memory("end", 8990, 70 * MB, process=process)
    held = {row[0]: row[1] for row in table(profile().lines, "function", "live_at_end_bytes")}
    assert held == {"f": pytest.approx(40 * MB, rel=0.01), "<inherited by fork>": pytest.approx(30 * MB, rel=0.02)}


def test_what_was_there_before_recording_and_is_released_is_not_taken_from_lines(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """As where recording began in a program that ran already, which drops one cache and fills another."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 90 * MB, native_allocated_bytes=90 * MB)
    for number in range(100):
        builder.block(one, 1000, 150 + number / 2, mean=399_500)  # each stands for 400 kB
    builder.memory("tick", 100, 10 * MB, native_freed_bytes=80 * MB, peak_bytes=90 * MB)
    builder.memory("tick", 250, 50 * MB, obj_allocated_bytes=40 * MB)
    builder.memory("end", 9900, 50 * MB)
    held = {row[0]: row[1] for row in table(profile().lines, "function", "live_at_end_bytes")}
    assert held["f"] == pytest.approx(40 * MB, rel=0.01)
    assert held["<before recording>"] == pytest.approx(10 * MB, rel=0.05)


def test_a_window_leaves_out_processes_that_were_gone(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two = lines(builder, 2)
    gone, thread = builder.process(200, 100, 1000)
    for process in (0, gone):
        builder.memory("start", 100 * (process > 0), 0, process=process)
    builder.block(one, 5 * MB, 50)
    builder.memory("end", 9900, 5 * MB, obj_allocated_bytes=5 * MB)
    builder.block(two, 30 * MB, 300, process=gone, thread=thread)
    builder.memory("end", 990, 30 * MB, obj_allocated_bytes=30 * MB, process=gone)
    answer = profile(start_s=2.0)
    assert answer.memory is not None
    assert (answer.memory.start_bytes, answer.memory.peak_bytes, answer.memory.end_bytes) == (5 * MB, 5 * MB, 5 * MB)
    assert answer.memory.processes["process"].tolist() == answer.processes["process"].tolist() == [0]
    assert table(answer.lines, "line", "live_at_end_bytes") == [(1, 5 * MB)]


def test_processes_that_keep_something_to_their_end_do_not_leak(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    """Forty short processes that each keep one block: taken as one they would look like a leak."""
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    builder.memory("end", 9900, 0)
    for number in range(40):
        start = 100 + 200 * number
        process, thread = builder.process(200 + number, start, start + 5000)
        builder.memory("start", start, 0, process=process)
        builder.block(one, MB, start + 10, process=process, thread=thread)
        builder.memory("tick", start + 20, MB, obj_allocated_bytes=MB, process=process)
    answer = profile()
    assert answer.leaks is not None
    assert answer.leaks.empty
    assert answer.lines["leak_likelihood"].max() < 0.95


def leaking(builder: Builder, stack: int, process: int, thread: int, start: int, length: int, size: int) -> None:
    """A process that keeps a block every 50 ms, for as long as it lives."""
    builder.memory("start", start, 0, process=process)
    held = 0
    for at in range(start, start + length, 50):
        builder.block(stack, size, at, process=process, thread=thread)
        held += size
        builder.memory("tick", at + 1, held, obj_allocated_bytes=size, process=process)


def test_a_leak_in_a_worker_that_ended_early(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two = lines(builder, 2)
    builder.memory("start", 0, 0)
    builder.memory("end", 9900, 0)
    for pid in (200, 201):
        process, thread = builder.process(pid, 1000, 4000)
        leaking(builder, one, process, thread, 1000, 3000, 100_000)
    process, thread = builder.process(202, 1000, 9000)
    builder.memory("start", 1000, 0, process=process)
    answer = profile()
    assert answer.leaks is not None
    assert table(answer.leaks, "line", "processes") == [(1, 2)]
    # 20 blocks a second in each of two at the same time.
    assert answer.leaks["rate_bytes_per_s"][0] == pytest.approx(4e6, rel=0.05)
    assert two is not None


def test_the_rate_of_a_leak_in_one_worker_after_the_other(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    builder.memory("start", 0, 0)
    for number in range(3):
        start = 3000 * number
        process, thread = builder.process(200 + number, start, start + 3000)
        leaking(builder, one, process, thread, start, 3000, 100_000)
    answer = profile()
    assert answer.leaks is not None
    assert table(answer.leaks, "line", "processes") == [(1, 3)]
    assert answer.leaks["rate_bytes_per_s"][0] == pytest.approx(2e6, rel=0.05)


def test_the_edges_of_each_interpreter(builder: Builder, profile: Callable[..., Profile]) -> None:
    (one,) = lines(builder, 1)
    _, other = builder.process(200, 0, 9000)
    _, silent = builder.process(201, 0, 9000)
    at: Any = lambda ms: {"time_ns": START + ms * MS}  # noqa: E731
    for thread, begin in ((0, 100), (other, 300)):
        builder.cpu(None, 1, thread=thread, **at(begin - 50))
        builder.cpu(one, 2, thread=thread, **at(begin))
        builder.cpu(None, 4, thread=thread, **at(begin + 50))
        builder.cpu(one, 8, thread=thread, **at(begin + 100))
        builder.cpu(None, 16, thread=thread, **at(begin + 150))
    builder.cpu(None, 32, thread=silent, **at(500))
    found = {row[0]: round(row[1] * 1000) for row in table(profile(scope="all").lines, "function", "cpu_s")}
    assert found == {"f": 20, "<interpreter start>": 2, "<interpreter shutdown>": 32, "<no Python stack>": 8 + 32}


def test_listed_processes_do_not_make_the_native_sampler_a_signal_sampler(builder: Builder) -> None:
    from tachograph.analyzer.samples.stream import has_signals

    builder.process(5000, 0, 10, recorded="listed")
    with Recording(builder.write()) as recording:
        assert not has_signals(recording)


def test_a_listed_program_beside_the_project_is_no_interpreter(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    builder.process(5000, 0, 10, recorded="listed", executable="/srv/tool")
    (one,) = lines(builder, 1)
    builder.cpu(one)
    assert (profile().scope, profile().widened) == ("project", False)


def test_thousands_of_processes(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A build: what was not recorded is in the list, and costs nothing elsewhere."""
    (one,) = lines(builder, 1)
    builder.cpu(one)
    for number in range(3000):
        builder.process(1000 + number, number, number + 5, recorded="listed", origin="exec", command="cc1")
    answer = profile()
    assert (answer.totals.processes, answer.totals.listed_processes, len(answer.processes)) == (1, 3000, 3001)
    assert np.isnan(answer.processes["cpu_s"].to_numpy(np.float64)[1:]).all()
