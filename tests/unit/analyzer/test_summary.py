"""Self and total, recursion, windows, threads, intervals, rows without a line."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from tachograph.analyzer import Profile
from tachograph.analyzer.recording.call_tree import NOTHING, CallTree
from tachograph.analyzer.statistics.intervals import effective_samples, wilson
from tachograph.format import FormatError
from unit.analyzer.recordings import MS, START, Builder, table


def test_a_recursive_function_counts_once_per_sample(builder: Builder, profile: Callable[..., Profile]) -> None:
    file = builder.file("/srv/a.py")
    main, even, odd = (builder.code(file, name, 1 + 10 * n) for n, name in enumerate(("main", "even", "odd")))
    deep = [(main, 0), *[(even, 1), (odd, 1)] * 100]
    builder.cpu(builder.stack(*deep), 10)
    builder.cpu(builder.stack(*deep[:10]), 10)
    builder.cpu(builder.stack(*deep[:2]), 10)
    builder.cpu(builder.stack((main, 3)), 10)
    functions = profile().functions.sort_values("function")
    assert table(functions, "function", "samples", "cpu_s", "total_samples", "total_cpu_s") == [
        ("even", 2, 0.02, 3, 0.03),
        ("main", 1, 0.01, 4, 0.04),
        ("odd", 1, 0.01, 2, 0.02),
    ]
    assert table(profile().files, "cpu_s", "total_cpu_s") == [(0.04, 0.04)]


def test_equal_functions_of_two_processes_are_one(builder: Builder, profile: Callable[..., Profile]) -> None:
    file = builder.file("/srv/a.py")
    builder.cpu(builder.stack((builder.code(file, "f", 5), 0)))
    builder.cpu(builder.stack((builder.code(file, "f", 5), 2)))
    builder.cpu(builder.stack((builder.code(file, "f", 50), 0)))
    assert table(profile().functions, "function", "line", "cpu_s") == [("f", 5, 0.02), ("f", 50, 0.01)]


def test_a_line_that_functions_share_is_named_after_the_heaviest(
    builder: Builder, profile: Callable[..., Profile]
) -> None:
    file = builder.file("/srv/a.py", "x = sum(map(lambda y: y, z))\n")
    module, inner = builder.code(file, "<module>"), builder.code(file, "<lambda>")
    builder.cpu(builder.stack((module, 0)))
    builder.cpu(builder.stack((module, 0), (inner, 0)), 30)
    assert table(profile().lines, "line", "function", "cpu_s", "total_cpu_s", "source") == [
        (1, "<lambda>", 0.04, 0.04, "x = sum(map(lambda y: y, z))")
    ]


def test_rows_without_a_line(builder: Builder, profile: Callable[..., Profile]) -> None:
    file = builder.file("/srv/a.py")
    code = builder.code(file)
    builder.cpu(builder.stack((code, 0)), 200)
    builder.cpu(builder.stack((code, 0), (None, None)), 50)
    builder.cpu(builder.stack((code, None)), 90)
    worker = builder.thread("worker")
    for state, ms in ((1, 40), (2, 30), (4, 20), (7, 10)):
        builder.cpu(None, ms, stack_state=state, thread=worker)
    answer = profile(scope="all")
    assert table(answer.lines, "file", "line", "function", "cpu_s") == [
        ("/srv/a.py", 1, "f", 0.2),
        ("/srv/a.py", None, "f", 0.09),
        (None, None, "<unknown code>", 0.05),
        (None, None, "<no Python stack>", 0.04),
        (None, None, "<torn stack>", 0.03),
        (None, None, "<lost stack>", 0.02),
        (None, None, "<unknown stack>", 0.01),
    ]
    assert answer.lines["cpu_s"].sum() == pytest.approx(answer.totals.cpu_s)


def test_a_frame_that_has_not_begun_is_on_its_first_line(builder: Builder, profile: Callable[..., Profile]) -> None:
    """CPython 3.11 and 3.12 have set up a frame before its first instruction is known."""
    file = builder.file("/srv/a.py")
    caller, callee = builder.code(file), builder.code(file, "key", 7)
    builder.cpu(builder.stack((caller, 0), (callee, None)), 30)
    builder.cpu(builder.stack((caller, None), (callee, 0)), 20)
    lines = profile().lines
    expected = [(7, "key", 0.05, 0.05), (1, "f", 0.0, 0.03), (None, "f", 0.0, 0.02)]
    assert table(lines, "line", "function", "cpu_s", "total_cpu_s") == expected


def test_start_and_shutdown_of_the_interpreter(builder: Builder, profile: Callable[..., Profile]) -> None:
    worker = builder.thread("native worker")
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(None, 10)
    builder.cpu(None, 1, thread=worker)
    builder.cpu(stack, 200)
    builder.cpu(None, 30)
    builder.cpu(stack, 200, thread=worker)
    builder.cpu(stack, 200)
    builder.cpu(None, 60)
    builder.cpu(None, 2, thread=worker)
    builder.cpu(None, 60)
    builder.wait(None, 0, 5)
    builder.wait(None, 25, 30)
    builder.wait(None, 70, 90)
    builder.wait(None, 70, 90, thread=worker)
    answer = profile()
    assert table(answer.lines, "function", "cpu_s", "wait_s") == [
        ("f", 0.6, 0.0),
        ("<interpreter shutdown>", 0.12, 0.02),
        ("<no Python stack>", 0.033, 0.025),
        ("<interpreter start>", 0.01, 0.005),
    ]
    assert table(profile(start_s=0.065).lines, "function", "cpu_s") == [
        ("<interpreter shutdown>", 0.06),
        ("<no Python stack>", 0.002),
    ]


def test_start_and_shutdown_do_not_depend_on_row_groups(
    builder: Builder, profile: Callable[..., Profile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tachograph.format.parquet.ROW_GROUP", 2)
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    for number in range(30):
        builder.cpu(stack if 7 <= number < 20 and number != 11 else None, 10)
    for rows in (3, 10**6):
        monkeypatch.setattr("tachograph.analyzer.samples.stream.BATCH_ROWS", rows)
        assert table(profile().lines, "function", "samples") == [
            ("f", 12),
            ("<interpreter shutdown>", 10),
            ("<interpreter start>", 7),
            ("<no Python stack>", 1),
        ]


def test_time_that_no_sample_stands_for(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.rows["threads"][0]["cpu_ns"] = 107 * MS
    builder.thread("short", cpu_ns=4 * MS)
    worker = builder.thread("no clock")
    builder.cpu(None, 100)
    builder.cpu(None, 50, thread=worker)
    assert profile().totals.unsampled_s == pytest.approx(0.011)
    assert profile(start_s=0.001).totals.unsampled_s is None


def test_waiting_for_a_processor_is_kept_apart(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    builder.wait(builder.stack((code, 0)), 0, 1000)
    builder.wait(builder.stack((code, 1)), 1000, 1800, target=7)
    answer = profile()
    assert table(answer.lines.sort_values("line"), "line", "wait_s", "cpu_wait_s") == [(1, 1.0, 0.0), (2, 0.0, 0.8)]
    totals = answer.totals
    assert (totals.wait_s, totals.main_wait_s, totals.cpu_wait_s, totals.main_cpu_wait_s) == (1.0, 1.0, 0.8, 0.8)


def test_no_samples_at_all(builder: Builder, profile: Callable[..., Profile]) -> None:
    answer = profile()
    assert answer.lines.empty
    assert (answer.totals.cpu_s, answer.totals.samples, answer.totals.kernel_s) == (0.0, 0, 0.0)
    assert table(answer.threads, "name", "cpu_s", "cpu_share") == [("MainThread", 0.0, None)]


def test_threads(builder: Builder, profile: Callable[..., Profile]) -> None:
    worker = builder.thread("worker", cpu_ns=60 * MS)
    builder.thread("idle")
    nameless = builder.thread(None)
    builder.rows["threads"][0]["cpu_ns"] = 25 * MS
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.cpu(stack, 20)
    builder.cpu(stack, 60, thread=worker, system_ns=10 * MS)
    builder.cpu(None, 10, thread=nameless)
    builder.wait(stack, 0, 500)
    builder.wait(stack, 0, 2000, thread=worker)
    answer = profile()
    assert table(answer.threads, "name", "tid", "main", "cpu_s", "kernel_s", "wait_s", "clock_cpu_s") == [
        ("worker", 101, False, 0.06, 0.01, 2.0, 0.06),
        ("MainThread", 100, True, 0.02, 0.0, 0.5, 0.025),
        (None, 103, False, 0.01, 0.0, 0.0, None),
    ]
    assert (answer.totals.wait_s, answer.totals.main_wait_s) == (2.5, 0.5)
    assert table(answer.lines, "wait_s", "main_wait_s") == [(2.5, 0.5), (0.0, 0.0)]


@pytest.mark.parametrize(("wanted", "cpu_s"), [("worker-1", 0.01), ("worker-*", 0.03), ("main", 0.04), ("102", 0.02)])
def test_one_thread(builder: Builder, profile: Callable[..., Profile], wanted: str, cpu_s: float) -> None:
    builder.thread("worker-1")
    builder.thread("worker-2")
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    for thread, ms in ((0, 40), (1, 10), (2, 20)):
        builder.cpu(stack, ms, thread=thread)
        builder.wait(stack, 0, ms * 10, thread=thread)
    answer = profile(thread=wanted)
    assert table(answer.lines, "cpu_s", "wait_s", "cpu_share") == [(cpu_s, cpu_s * 10, 1.0)]


def test_no_such_thread(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.thread("evil\x1b[31m")
    with pytest.raises(FormatError, match=r"no thread is named 'nobody'.*MainThread, evil\\x1b"):
        profile(thread="nobody")


def test_threads_of_which_only_the_id_is_left(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.rows["threads"].append({"thread": 1, "process": 0})
    builder.cpu(None, 10, thread=1)
    assert table(profile().threads, "name", "tid", "cpu_s") == [(None, None, 0.01), ("MainThread", 100, 0.0)]


@pytest.mark.parametrize(
    ("question", "samples", "wait_s", "wall_s"),
    [
        ({}, 100, 3.0, 10.0),
        ({"start_s": 0.5}, 50, 2.5, 9.5),
        ({"end_s": 0.5}, 50, 0.5, 0.5),
        ({"start_s": 0.25, "end_s": 0.75}, 50, 0.5, 0.5),
        ({"start_s": -9.5}, 50, 2.5, 9.5),
        ({"end_s": -9.9}, 10, 0.1, 0.1),
        ({"start_s": 2.5}, 0, 0.5, 7.5),
        ({"end_s": 99}, 100, 3.0, 10.0),
    ],
)
def test_windows(
    builder: Builder,
    profile: Callable[..., Profile],
    question: dict[str, float],
    samples: int,
    wait_s: float,
    wall_s: float,
) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    for _ in range(100):
        builder.cpu(stack)
    builder.wait(stack, 0, 3000)
    totals = profile(**question).totals
    assert (totals.samples, totals.wait_s, totals.wall_s) == (samples, wait_s, wall_s)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"start_s": 3, "end_s": 3}, "window is empty"),
        ({"start_s": 11}, "outside of the recording, which is 10.000 s long"),
        ({"end_s": -10}, "outside of the recording"),
    ],
)
def test_bad_windows(
    builder: Builder, profile: Callable[..., Profile], question: dict[str, float], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        profile(**question)


def test_a_window_from_an_unknown_end(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.end_ns = builder.rows["processes"][0]["end_ns"] = None
    with pytest.raises(FormatError, match="does not tell when it ended"):
        profile(start_s=-1)
    assert profile().totals.wall_s is None


def test_waits_that_were_not_recorded_are_unknown(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.parameters["waits"] = False
    builder.cpu(builder.stack((builder.code(builder.file("/srv/a.py")), 0)))
    answer = profile()
    assert answer.totals.wait_s is None
    assert answer.lines["wait_s"].isna().all()
    assert "waiting was not recorded" in answer.quality.notes


def test_waits_longer_than_their_span_in_the_clock(builder: Builder, profile: Callable[..., Profile]) -> None:
    stack = builder.stack((builder.code(builder.file("/srv/a.py")), 0))
    builder.wait(stack, 0, 1000, off_cpu_ns=400 * MS)
    builder.wait(stack, 2000, 2000, off_cpu_ns=7 * MS)
    assert profile().totals.wait_s == pytest.approx(0.407)
    assert profile(end_s=0.5).totals.wait_s == pytest.approx(0.2)
    assert profile(start_s=2).totals.wait_s == pytest.approx(0.007)


def test_wilson() -> None:
    low, high = wilson(np.array([0.0, 0.5, 1.0]), 100)
    # From the closed form: 0 of 100 gives z^2 / (n + z^2).
    assert low == pytest.approx([0.0, 0.4038315, 0.9630065], abs=1e-6)
    assert high == pytest.approx([0.0369935, 0.5961685, 1.0], abs=1e-6)
    low, high = wilson(np.array([0.5]), 0)
    assert math.isnan(low[0])
    assert math.isnan(high[0])


def test_wilson_covers_the_truth() -> None:
    random_source = np.random.default_rng(1)
    for share in (0.01, 0.2, 0.5, 0.97):
        seen = random_source.binomial(300, share, 4000) / 300
        low, high = wilson(seen, 300)
        assert ((low <= share) & (share <= high)).mean() > 0.93


def test_effective_samples() -> None:
    assert effective_samples(50.0, 50.0 * 10) == pytest.approx(5.0)
    assert effective_samples(0.0, 0.0) == 0.0
    assert effective_samples(10.0 + 10 * 0.01, 100.0 + 10 * 0.0001) == pytest.approx(1.0, abs=0.03)


def test_shares_have_intervals(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    for line, count in ((0, 30), (1, 70)):
        for _ in range(count):
            builder.cpu(builder.stack((code, line)))
    answer = profile()
    low, high = wilson(np.array([0.7, 0.3]), 100)
    assert answer.lines["cpu_share"].tolist() == pytest.approx([0.7, 0.3])
    assert answer.lines["cpu_share_low"].tolist() == pytest.approx(low.tolist())
    assert answer.lines["cpu_share_high"].tolist() == pytest.approx(high.tolist())
    assert answer.totals.effective_samples == pytest.approx(100)


def tree(parents: list[int]) -> CallTree:
    none = np.full(len(parents), NOTHING, np.int64)
    return CallTree(np.array(parents, np.int64), none, none, none, [], none[:0], none[:0], [])


def test_tree_sums_against_a_plain_walk() -> None:
    random_source = random.Random(1)
    for size in (1, 2, 10, 300):
        parents = [
            NOTHING if random_source.random() < 0.1 else random_source.randrange(-1, node) for node in range(size)
        ]
        keys = [random_source.randrange(-1, 5) for _ in range(size)]
        wanted = [random_source.random() < 0.3 for _ in range(size)]
        values = np.array([[random_source.random()] for _ in range(size)])
        paths: list[list[int]] = []
        for node, parent in enumerate(parents):
            paths.append([*(paths[parent] if parent != NOTHING else []), node])
        subject = tree(parents)
        below = subject.below(values)
        outermost, nearest = subject.outermost(np.array(keys)), subject.nearest(np.array(wanted))
        for node, path in enumerate(paths):
            inside = [values[other, 0] for other, below_it in enumerate(paths) if node in below_it]
            assert below[node, 0] == pytest.approx(sum(inside))
            above = {keys[other] for other in path[:-1]}
            assert outermost[node] == (keys[node] != NOTHING and keys[node] not in above)
            assert nearest[node] == next((other for other in reversed(path) if wanted[other]), NOTHING)


def test_a_tree_as_deep_as_it_is_large() -> None:
    size = 200_000
    subject = tree([NOTHING, *range(size - 1)])
    ones = np.ones((size, 1))
    assert subject.below(ones)[0, 0] == size
    assert subject.outermost(np.zeros(size, np.int64)).sum() == 1
    only_root = np.zeros(size, np.bool_)
    only_root[0] = True
    assert (subject.nearest(only_root) == 0).all()


def test_start_is_zero_of_the_window(builder: Builder, profile: Callable[..., Profile]) -> None:
    builder.cpu(None, 10, time_ns=START + 4 * MS)
    assert profile(start_s=0.004).totals.samples == 1
    assert profile(start_s=0.0041).totals.samples == 0
