"""A picture says what the profile says, only divided into spans of time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from browser import story
from tachograph.analyzer import Question, Recording
from tachograph.analyzer.recording.process_lifetimes import read_process_lifetimes
from tachograph.analyzer.recording.time_window import Window
from tachograph.analyzer.report_data.flame_tree import FOLDED, LABEL, build_flame
from tachograph.analyzer.report_data.report_data import Part, ReportData, build_report_data, coarser
from tachograph.analyzer.report_data.sampled import GridSums, ThreadSums
from tachograph.analyzer.report_data.series import Bins, make_bins
from tachograph.analyzer.report_data.targets import Groups, with_below
from unit.analyzer.recordings import CALL, MS, NATIVE_FRAME, START, Builder

GOLDEN = Path(__file__).parents[3] / "format-spec" / "vectors"
OWN = {
    "python": "python_s",
    "native": "native_s",
    "kernel": "kernel_s",
    "unknown": "unknown_s",
    "wait": "wait_s",
    "main_wait": "main_wait_s",
    "allocated": "allocated_bytes",
    "copied": "copied_bytes",
}
UNSEEN = ("<not sampled>", "<before recording>")


def assert_as_profile(part: Part) -> None:
    frame = part.frame
    seen = ~(frame["function"] if "function" in frame else frame["file"]).isin(UNSEEN).to_numpy()
    for measure, column in OWN.items():
        if measure not in part.series.own:
            if column in frame:
                assert not frame[column].fillna(0).to_numpy()[seen].any(), measure
            continue
        scale = 1 if column.endswith("bytes") else 1e9
        sums = part.series.own[measure].sum(axis=1, dtype=np.float64) / scale
        np.testing.assert_allclose(sums[seen], frame[column].fillna(0).to_numpy(np.float64)[seen], rtol=1e-5, atol=1e-9)
    for measure, column in (("cpu", "total_cpu_s"), ("main_wait", "total_main_wait_s")):
        if measure in part.series.total:
            sums = part.series.total[measure].sum(axis=1, dtype=np.float64) / 1e9
            np.testing.assert_allclose(sums, frame[column].fillna(0).to_numpy(np.float64), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", ["whole", "extra", "killed"])
@pytest.mark.parametrize("scope", ["all", "project"])
def test_golden_recordings_sum_up_to_their_profiles(name: str, scope: str) -> None:
    with Recording.open(GOLDEN / f"{name}.tacho") as recording:
        drawn = build_report_data(recording, Question(scope=scope))
    for part in (drawn.lines, drawn.functions, drawn.files):
        assert_as_profile(part)
    assert len(drawn.threads.frame) == len(drawn.profile.threads)


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"start_s": 3.25, "end_s": 8.5},
        {"thread": "main"},
        {"scope": "all"},
        {"span": "second*"},
        {"span": "inner", "start_s": 6.5},
    ],
)
def test_the_story_sums_up_to_its_profile(tmp_path: Path, question: dict[str, object]) -> None:
    with Recording.open(story.build(tmp_path / "story.tacho")) as recording:
        drawn = build_report_data(recording, Question(**question))  # type: ignore[arg-type]
    for part in (drawn.lines, drawn.functions, drawn.files):
        assert_as_profile(part)
    own = drawn.flame_series.own
    cpu = sum(own[name].sum(dtype=np.float64) for name in ("python", "native", "kernel") if name in own)
    assert cpu / 1e9 == pytest.approx(drawn.profile.totals.cpu_s, rel=1e-5)
    assert drawn.overall["samples"].sum() == drawn.profile.totals.samples
    weight, squared = drawn.overall["weight"].sum(), drawn.overall["weight_squared"].sum()
    assert weight**2 / squared == pytest.approx(drawn.profile.totals.effective_samples, rel=1e-6)


@pytest.mark.parametrize("question", [{}, {"start_s": 3.25, "end_s": 8.5}, {"span": "second*"}, {"thread": "worker"}])
def test_spans_sum_up_to_their_profile(tmp_path: Path, question: dict[str, object]) -> None:
    with Recording.open(story.build(tmp_path / "story.tacho")) as recording:
        drawn = build_report_data(recording, Question(**question))  # type: ignore[arg-type]
    frame, part = drawn.profile.spans, drawn.spans
    assert frame is not None
    if question.get("thread") == "worker":
        assert frame.empty
        assert part is None
        return
    assert part is not None
    assert part.names == frame["name"].tolist()
    assert part.counts[:-1] == frame["count"].tolist()[:-1]
    assert part.counts[-1] is None
    names = {"total_cpu_s": "cpu", "total_wait_s": "wait", "duration_s": "lasted", "total_allocated_bytes": "allocated"}
    names |= {"total_live_at_end_bytes": "kept", "total_copied_bytes": "copied"}
    for column, name in names.items():
        sums = part.grids[name].sum(axis=1) / (1e9 if column.endswith("_s") else 1)
        rows = slice(-1) if name in ("kept", "lasted") else slice(None)
        np.testing.assert_allclose(sums[rows], frame[column].to_numpy(np.float64)[rows], rtol=1e-6, atol=1e-7)


def test_spans_lie_where_they_lasted(tmp_path: Path) -> None:
    with Recording.open(story.build(tmp_path / "story.tacho")) as recording:
        drawn = build_report_data(recording, Question())
    assert drawn.spans is not None
    row = drawn.spans.names.index("inner")
    lasted = drawn.spans.grids["lasted"][row]
    assert lasted.nonzero()[0].tolist() == list(range(73, 86)), "12 spans of time a second: 6.105 s to 7.105 s"
    assert lasted[74] == pytest.approx(drawn.bins.width_ns, rel=1e-6)
    assert drawn.spans.grids["cpu"][row].sum() == pytest.approx(1e9)
    assert drawn.spans.grids["copied"][row].nonzero()[0].tolist() == [78]


def test_a_wait_in_and_out_of_spans_counts_as_far_as_it_lies_in_them(
    builder: Builder, picture: Callable[..., ReportData]
) -> None:
    f = builder.code(builder.file("/srv/a.py"))
    builder.wait(builder.stack((f, 2)), 2_000, 6_000)
    builder.span("work", 1_000, 3_000)
    builder.span("work", 3_500, 4_000)
    builder.span("work", 5_999, 7_000)
    drawn = picture(span="work")
    waits = drawn.lines.series.own["main_wait"]
    assert waits.sum() == pytest.approx(1.501e9, rel=1e-6)
    assert_as_profile(drawn.lines)


def test_what_is_held_at_moments_is_what_the_profile_says(builder: Builder, picture: Callable[..., ReportData]) -> None:
    """A block that is gone after the peak, one that is kept, and what was there before."""
    code = builder.code(builder.file("/srv/a.py"))
    early, late = builder.stack((code, 1)), builder.stack((code, 2))
    builder.rows["processes"][0]["exiting_ns"] = START + 9_000 * MS
    builder.memory("start", 0, 5_000_000, obj_allocated_bytes=5_000_000)
    builder.block(late, 10_000_000, 500)
    builder.block(early, 40_000_000, 1_000, freed_ms=6_000)
    builder.memory("tick", 1_001, 55_000_000, obj_allocated_bytes=50_000_000)
    builder.memory("tick", 6_001, 15_000_000, obj_freed_bytes=40_000_000)
    builder.memory("end", 10_000, 15_000_000)
    drawn = picture()
    assert drawn.flame_held["live_at_peak_bytes"].sum() == pytest.approx(55e6)
    assert drawn.flame_held["live_at_end_bytes"].sum() == pytest.approx(15e6)
    assert "live_at_resident_peak_bytes" not in drawn.flame_held  # was never read: unknown, and not none
    moments = np.cumsum(drawn.flame_series.own["net"], axis=1)
    np.testing.assert_allclose(moments[:, 11], [10e6, 5e6])  # after 1 s, but for what the bin ends with
    np.testing.assert_allclose(moments[:, 30], drawn.flame_held["live_at_peak_bytes"])
    np.testing.assert_allclose(moments[:, -1], drawn.flame_held["live_at_end_bytes"])


def test_the_signal_sampler_sums_up_too(builder: Builder, picture: Callable[..., ReportData]) -> None:
    builder = Builder(builder.path, sampler="signal")
    f = builder.code(builder.file("/srv/a.py"))
    for number in range(50):
        at = START + (number + 1) * 100 * MS
        builder.cpu(builder.stack((f, 1)), 25, time_ns=at, origin=2, opcode=CALL, system_ns=None, native_frame=None)
        builder.cpu(builder.stack((f, 2)), 25, time_ns=at, origin=3, opcode=CALL, system_ns=None, native_frame=None)
    builder.write()
    drawn = picture()
    assert_as_profile(drawn.lines)
    assert drawn.profile.totals.native_s


def test_values_lie_in_their_spans(builder: Builder, picture: Callable[..., ReportData]) -> None:
    f = builder.code(builder.file("/srv/a.py"))
    builder.cpu(builder.stack((f, 1)), 10, time_ns=START + 2_499 * MS)
    builder.cpu(builder.stack((f, 1)), 20, time_ns=START + 7_501 * MS, native_frame=NATIVE_FRAME)
    builder.wait(builder.stack((f, 2)), 2_000, 6_000)
    drawn = picture()
    assert drawn.bins.count == 120
    assert drawn.bins.width_s == pytest.approx(10 / 120)
    (hot,) = np.flatnonzero(drawn.lines.frame["line"] == 2)
    assert drawn.lines.series.own["python"][hot].nonzero()[0].tolist() == [29]
    assert drawn.lines.series.own["native"][hot].nonzero()[0].tolist() == [90]
    (waiting,) = np.flatnonzero(drawn.lines.frame["line"] == 3)
    waits = drawn.lines.series.own["wait"][waiting]
    assert waits.nonzero()[0].tolist() == list(range(24, 72))
    np.testing.assert_allclose(waits[24:72], 4e9 / 48, rtol=1e-5)


def test_a_wait_that_reaches_out_of_the_window_counts_in_part(
    builder: Builder, picture: Callable[..., ReportData]
) -> None:
    f = builder.code(builder.file("/srv/a.py"))
    builder.wait(builder.stack((f, 2)), 2_000, 6_000)
    drawn = picture(start_s=5, end_s=9)
    assert drawn.lines.series.own["main_wait"].sum() == pytest.approx(1e9, rel=1e-6)
    assert_as_profile(drawn.lines)


def test_coarser_spans_hold_the_same(tmp_path: Path) -> None:
    with Recording.open(story.build(tmp_path / "story.tacho")) as recording:
        drawn = build_report_data(recording, Question())
    half = coarser(coarser(drawn))
    assert half.bins.count == 30
    assert half.bins.width_ns == drawn.bins.width_ns * 4
    np.testing.assert_allclose(
        half.lines.series.own["python"].sum(axis=1), drawn.lines.series.own["python"].sum(axis=1)
    )
    assert_as_profile(half.lines)


def test_spans_are_never_shorter_than_four_intervals(builder: Builder) -> None:
    builder.end_ns = START + 95 * MS
    builder.rows["processes"][0]["end_ns"] = builder.end_ns
    with Recording.open(builder.write()) as recording:
        bins = make_bins(recording, Window(), read_process_lifetimes(recording))
    assert bins.count == 2
    assert bins.index(np.array([START - 5, START + 94 * MS, START + 1000 * MS])).tolist() == [0, 1, 1]


def test_groups_and_what_is_below() -> None:
    groups = Groups(np.array([1, -1, 0, 1]), 3)
    assert groups.sums(np.array([[1.0, 2, 3, 4]])).tolist() == [[3, 5, 0]]
    # A chain of two nodes, and a second child of the first.
    spans = (np.array([0, 1, 2]), np.array([3, 2, 3]))
    assert with_below(np.array([[1.0, 2, 4]]), spans).tolist() == [[7, 2, 4]]


def test_the_flame_graph_keeps_every_nanosecond_when_it_folds(
    builder: Builder, picture: Callable[..., ReportData]
) -> None:
    file = builder.file("/srv/a.py")
    root = builder.code(file, "root")
    builder.cpu(builder.stack((root, 1)), 100_000)
    for number in range(30):
        small, smaller = builder.code(file, f"small{number}"), builder.code(file, f"smaller{number}")
        builder.cpu(builder.stack((root, 1), (small, 1), (smaller, 1)), 10)
    drawn = picture()
    flame = drawn.flame
    assert flame.folded == 60
    assert min(flame.function.tolist()) == FOLDED
    (heap,) = np.flatnonzero(flame.function == FOLDED)
    assert flame.parent[heap] == 0
    assert drawn.flame_series.own["python"][heap].sum() == pytest.approx(300e6)


def test_lines_of_one_function_are_one_box() -> None:
    from tachograph.analyzer.recording.call_tree import CallTree

    tree = CallTree(
        parent=np.array([-1, 0, 0]), file=np.zeros(3, np.int64), function=np.array([0, 1, 1]), line=np.array([1, 5, 6]),
        function_names=["a", "b"], function_files=np.zeros(2, np.int64), function_lines=np.array([1, 4]), paths=["x"],
    )  # fmt: skip
    flame = build_flame(tree, np.array([[0.0, 1, 2, 3]]))
    assert flame.parent.tolist() == [-1, 0, -1]
    assert flame.function.tolist() == [0, 1, LABEL]
    assert flame.place.tolist() == [0, 1, 1, 2]


def test_moments_of_spans() -> None:
    bins = Bins(start_ns=5_000_000_000, width_ns=5e8, count=4, offset_ns=1_000_000_000)
    assert (bins.start_s, bins.end_s) == (1.0, 3.0)
    assert bins.middles_s().tolist() == [1.25, 1.75, 2.25, 2.75]


def test_many_threads_have_the_same_grids() -> None:
    """Where there are too many for a grid of all of them."""
    chance = np.random.default_rng(1)
    grids, sparse = GridSums(50, 8), ThreadSums(8)
    for names in (("python", "kernel"), ("wait",)):
        bins, thread = chance.integers(0, 8, 300), chance.integers(0, 50, 300).astype(np.uint32)
        weights = {name: chance.integers(0, 9, 300).astype(np.float64) for name in names}
        for sums in (grids, sparse):
            sums.add(bins, thread, weights)
    some = np.array([7, 3, 49, 0])
    expected, found = grids.of(some), sparse.of(some)
    assert found.keys() == expected.keys() == {"python", "kernel", "wait"}
    for name, grid in expected.items():
        np.testing.assert_array_equal(found[name], grid)
    assert all(not grid.any() for grid in sparse.of(np.array([1_000])).values())
