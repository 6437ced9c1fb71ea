"""Spans: what lies in them, by name, and the selection of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

from tachograph.analyzer import Question, Recording, build_profile
from tachograph.analyzer.commands.analyze import analyze
from tachograph.analyzer.profile.profile import Profile
from tachograph.analyzer.recording.recorded_spans import matching_spans, narrowed, read_spans
from tachograph.analyzer.recording.time_window import TimeRanges, Window
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.render.terminal.report import show
from tachograph.format import FormatError

from .recordings import MS, START, Builder, table

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"
SPAN = ("name", "count", "duration_s", "cpu_s", "wait_s", "total_cpu_s", "total_wait_s")


def program(path: Path) -> Builder:
    """Two epochs of 100 ms with a batch of 40 ms each, on the main thread, while another thread works as well.

    There is a sample of 10 ms every 10 ms on either thread; the first lies at 0 ms.
    """
    builder = Builder(path)
    stack = builder.stack((builder.code(builder.file("program.py", "pass\n" * 9)), 0))
    other = builder.thread("other")
    for each in range(30):
        for thread in (0, other):
            builder.cpu(stack, thread=thread, time_ns=START + each * 10 * MS)
    builder.span("epoch", 20, 120, '{"n": 1, "kind": "train"}')
    builder.span("batch", 30, 70, parent=0)
    builder.span("epoch", 120, 220, '{"n": 2, "kind": "test"}')
    builder.span("batch", 130, 170, parent=2)
    builder.span("aside", 100, 130, thread=other)
    builder.wait(stack, 60, 80)
    builder.wait(stack, 210, 230)
    builder.wait(stack, 110, 120, thread=other)
    builder.wait(stack, 110, 120, thread=other, target=7)  # for a processor
    return builder


def profile_of(builder: Builder, **question: object) -> Profile:
    path = builder.path if builder.path.exists() else builder.write()
    with Recording(path) as recording:
        return build_profile(recording, Question(**question))  # type: ignore[arg-type]


def spans_of(profile: Profile) -> pd.DataFrame:
    assert profile.spans is not None
    return profile.spans


def test_sums_by_name(tmp_path: Path) -> None:
    profile = profile_of(program(tmp_path / "r.tacho"))
    assert table(spans_of(profile), *SPAN) == [
        ("epoch", 2, 0.2, 0.12, 0.02, 0.2, 0.03),
        ("batch", 2, 0.08, 0.08, 0.01, 0.08, 0.01),
        ("aside", 1, 0.03, 0.03, 0.01, 0.03, 0.01),
        ("<no span>", None, None, 0.37, 0.01, 0.37, 0.01),
    ]
    assert spans_of(profile)["cpu_s"].sum() == pytest.approx(profile.totals.cpu_s)
    assert spans_of(profile)["wait_s"].sum() == pytest.approx(profile.totals.wait_s)


def turns(profile: Profile) -> bool:
    return any("took turns" in note for note in profile.quality.notes)


def test_spans_that_take_turns_are_noted(tmp_path: Path) -> None:
    """Spans that lie in one another, follow one another, or overlap on two threads do not take turns."""
    assert not turns(profile_of(program(tmp_path / "nested.tacho")))
    both = program(tmp_path / "both.tacho")
    both.span("request", 150, 190)  # begins in a batch and ends behind it
    assert turns(profile_of(both))
    assert not turns(profile_of(both, end_s=0.1))


def test_spans_of_format_1_0_are_unknown() -> None:
    with Recording.open(VECTORS / "whole.tacho") as recording:
        assert not recording.recorded("spans")
        with pytest.raises(FormatError, match="had no spans"):
            build_profile(recording, Question(span="epoch"))
        profile = build_profile(recording, Question())
    assert profile.spans is None
    assert document(profile)["spans"] is None


def test_no_spans(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    builder.cpu(builder.stack((builder.code(builder.file("program.py")), 0)))
    profile = profile_of(builder)
    assert spans_of(profile).empty
    assert json.loads("".join(pieces(document(profile))))["spans"] == []
    with pytest.raises(FormatError, match="the program named none"):
        profile_of(builder, span="epoch")


@pytest.mark.parametrize(
    ("wanted", "cpu_s", "wait_s", "wall_s"),
    [
        ("epoch", 0.2, 0.03, 0.2),
        ("epoch[n=2]", 0.1, 0.01, 0.1),
        ("epoch[kind=t*]", 0.2, 0.03, 0.2),
        ("epoch[n=1, kind=train]", 0.1, 0.02, 0.1),
        ("e*", 0.2, 0.03, 0.2),
        ("batch", 0.08, 0.01, 0.08),
        ("aside", 0.03, 0.01, 0.03),
        ("*", 0.23, 0.04, 0.2),
    ],
)
def test_selection(tmp_path: Path, wanted: str, cpu_s: float, wait_s: float, wall_s: float) -> None:
    profile = profile_of(program(tmp_path / "r.tacho"), span=wanted)
    totals = profile.totals
    assert (totals.cpu_s, totals.wait_s, totals.wall_s) == pytest.approx((cpu_s, wait_s, wall_s))
    assert profile.lines["cpu_s"].sum() == pytest.approx(cpu_s)
    assert spans_of(profile)["cpu_s"].sum() == pytest.approx(cpu_s)
    assert spans_of(profile)["wait_s"].sum() == pytest.approx(wait_s)
    assert spans_of(profile).iloc[-1]["cpu_s"] == pytest.approx(0)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("epoch[n=3]", "no span matches --span 'epoch.n=3.'; there are: epoch, batch, aside"),
        ("epoch[n]", "write NAME or NAME.KEY=VALUE"),
        ("epoch[n=1", "write NAME or NAME.KEY=VALUE"),
        ("nothing", "no span matches"),
        ("epoch[n=1]]", "no span matches"),
    ],
)
def test_a_selection_of_nothing(tmp_path: Path, wanted: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        profile_of(program(tmp_path / "r.tacho"), span=wanted)


TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize(
    ("options", "cpu_s"),
    [
        (["--trace", TRACE], 0.2),
        (["--trace", TRACE.upper(), "--span", "GET *"], 0.2),
        (["--trace", TRACE, "--span", "GET /a[span_id=b*]"], 0.1),
    ],
)
def test_a_trace_has_its_requests(tmp_path: Path, options: list[str], cpu_s: float) -> None:
    builder = program(tmp_path / "r.tacho")
    builder.span("GET /a", 0, 100, f'{{"trace_id": "{TRACE}", "span_id": "a1"}}')
    builder.span("GET /a", 100, 200, f'{{"trace_id": "{TRACE}", "span_id": "b1"}}')
    builder.span("GET /b", 200, 300, f'{{"trace_id": "{"0" * 32}", "span_id": "c1"}}')
    ran = CliRunner().invoke(analyze, [str(builder.write()), "--json", "-", *options])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["totals"]["cpu_s"] == pytest.approx(cpu_s)


@pytest.mark.parametrize(
    ("trace", "told"), [("17", "hexadecimal digits"), ("g" * 32, "hexadecimal"), ("1" * 32, "no span")]
)
def test_a_trace_that_is_none(tmp_path: Path, trace: str, told: str) -> None:
    ran = CliRunner().invoke(analyze, [str(program(tmp_path / "r.tacho").write()), "--trace", trace])
    assert (ran.exit_code, ran.output.count("\n")) == (2, 1)
    assert told in ran.output


def test_selection_with_a_window_and_a_thread(tmp_path: Path) -> None:
    builder = program(tmp_path / "r.tacho")
    assert profile_of(builder, span="epoch", start_s=0.1, end_s=0.15).totals.cpu_s == pytest.approx(0.05)
    assert profile_of(builder, span="*", thread="other").totals.cpu_s == pytest.approx(0.03)
    with pytest.raises(FormatError, match="no span matches"):
        profile_of(builder, span="epoch", start_s=0.25)


def test_memory_and_copies(tmp_path: Path) -> None:
    builder = program(tmp_path / "r.tacho")
    stack = builder.stack((0, 0))
    builder.memory("start", 0, 0)
    for born, freed, thread in ((10, None, 0), (40, None, 0), (100, 110, 0), (110, None, 1), (150, 400, 0)):
        builder.block(stack, 1000, born, freed, thread=thread)
    builder.memory("end", 900, 3000, obj_allocated_bytes=5000, obj_freed_bytes=2000)
    builder.copy(stack, 700, 45)
    builder.copy(stack, 500, 240)
    profile = profile_of(builder)
    columns = ("name", "allocated_bytes", "total_allocated_bytes", "total_live_at_end_bytes", "total_copied_bytes")
    assert table(spans_of(profile), *columns) == [
        ("epoch", 1000.0, 3000.0, 1000.0, 700.0),
        ("batch", 2000.0, 2000.0, 1000.0, 700.0),
        ("aside", 1000.0, 1000.0, 1000.0, 0.0),
        ("<no span>", 1000.0, 1000.0, 1000.0, 500.0),
    ]
    selected = profile_of(builder, span="epoch[n=1]")
    assert (selected.totals.allocated_bytes, selected.totals.copied_bytes) == (2000.0, 700.0)
    assert selected.totals.live_at_end_bytes == pytest.approx(1000.0)


def test_unknown_stays_unknown(tmp_path: Path) -> None:
    builder = program(tmp_path / "r.tacho")
    builder.rows["waits"], builder.parameters["waits"] = [], False
    spans = spans_of(profile_of(builder))
    for column in ("wait_s", "total_wait_s", "allocated_bytes", "total_copied_bytes"):
        assert spans[column].isna().all()


def test_tasks_that_take_turns_recursion_and_an_end_that_was_not_seen(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho", end_ns=START + 100 * MS)
    stack = builder.stack((builder.code(builder.file("program.py")), 0))
    for _ in range(10):
        builder.cpu(stack)
    builder.span("a", 0, 50)
    builder.span("b", 20, 70)
    builder.span("again", 70, 90)
    builder.span("again", 75, 80)
    builder.span("open", 85, None)
    assert table(spans_of(profile_of(builder)), "name", "count", "duration_s", "cpu_s", "total_cpu_s") == [
        ("a", 1, 0.05, 0.02, 0.05),
        ("b", 1, 0.05, 0.05, 0.05),
        ("again", 2, 0.02, 0.02, 0.02),
        ("open", 1, 0.015, 0.01, 0.01),
        ("<no span>", None, None, 0.0, 0.0),
    ]


def test_the_signal_sampler_shares_its_time(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho", sampler="signal")
    stack = builder.stack((builder.code(builder.file("program.py")), 0))
    other = builder.thread("other")
    for each in range(4):
        for thread, origin in ((0, 2), (other, 3)):
            builder.cpu(stack, thread=thread, origin=origin, time_ns=START + each * 10 * MS, native_frame=None)
    builder.span("main", 0, 20)
    assert table(spans_of(profile_of(builder)), "name", "cpu_s") == [("main", 0.01), ("<no span>", 0.03)]


def test_in_the_reports(tmp_path: Path) -> None:
    builder = program(tmp_path / "r.tacho")
    builder.span("\x1b[31m" + "x" * 200, 280, 290)
    profile = profile_of(builder)
    console = Console(width=80, file=(tmp_path / "out").open("w+", encoding="utf-8"), force_terminal=False)
    show(profile, console)
    console.file.flush()
    text = (tmp_path / "out").read_text(encoding="utf-8")
    assert "\x1b" not in text
    lines = text[text.index(" Spans ") :].splitlines()
    assert lines[2].split() == ["2", "200ms", "200ms", "30ms", "100ms", "100ms", "?", "epoch"]
    assert max(map(len, lines)) <= 80
    found = json.loads("".join(pieces(document(profile))))
    assert found["question"]["span"] is None
    assert found["spans"][0]["total_cpu_s"] == pytest.approx(0.2)


def test_a_span_of_time_is_shared_out_by_what_lies_in_each_range() -> None:
    """Its middle, 25, lies in none of them."""
    ranges = TimeRanges.of([(1, 0, 24, 3), (1, 26, 50, 4), (1, 50, 60, 3), (2, 0, 100, 5)])
    thread, start, end = (np.array(each) for each in ((1, 0, 2, 1, 1), (0, 0, 10, 60, 50), (50, 9, 20, 70, 55)))
    row, group, part = ranges.overlaps(thread, start, end)
    assert list(zip(row.tolist(), group.tolist(), part.tolist(), strict=True)) == [
        (0, 3, 0.48),
        (0, 4, 0.48),
        (4, 3, 1.0),
        (2, 5, 1.0),
    ]
    assert [len(each) for each in TimeRanges.of([]).overlaps(thread, start, end)] == [0, 0, 0]


def test_ranges() -> None:
    ranges = TimeRanges.of([(1, 10, 20, 0), (0, 0, 5, 0), (1, 30, 40, 0)])
    thread, times = np.array([0, 0, 1, 1, 1, 2, -1]), np.array([4, 5, 10, 20, 39, 10, 10])
    assert ranges.contains(thread, times).tolist() == [True, False, True, False, True, False, False]
    part = ranges.part(np.array([1, 1, 0, 1, 2]), np.array([0, 15, 0, 35, 0]), np.array([50, 35, 10, 35, 9]))
    assert part.tolist() == [0.4, 0.5, 0.5, 1.0, 0.0]
    assert ranges.wall_ns() == 25
    cut = TimeRanges.of([(1, 0, 35, 7), (0, 4, 9, 8)]).within(ranges)
    assert sorted(zip(*(each.tolist() for each in (cut.thread, cut.start_ns, cut.end_ns, cut.group)), strict=True)) == [
        (0, 4, 5, 8),
        (1, 10, 20, 7),
        (1, 30, 35, 7),
    ]


def test_many_spans_are_swept_quickly(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    builder.rows["spans"] = [
        {
            "span": n,
            "process": 0,
            "thread": 0,
            "name": f"n{n % 7}",
            "start_ns": START + n * 10,
            "end_ns": START + n * 10 + 9,
        }
        for n in range(20_000)
    ]
    with Recording(builder.write()) as recording:
        window = narrowed(Window(), matching_spans(Window(), recording, read_spans(recording), "n3"), None)
    assert window.spans is not None
    assert len(window.spans) == 20_000 // 7


def test_ranges_divided_at_bounds_keep_their_time() -> None:
    whole = TimeRanges.of([(0, 5, 25, 1), (0, 10, 12, 0), (2, 0, 30, 0)])
    pieces = whole.divided(np.array([0, 10, 20, 30]))
    found = zip(pieces.thread, pieces.start_ns, pieces.end_ns, pieces.group, strict=True)
    assert [tuple(map(int, each)) for each in found] == [
        (0, 5, 10, 3), (0, 10, 20, 4), (0, 10, 12, 1), (0, 20, 25, 5), (2, 0, 10, 0), (2, 10, 20, 1), (2, 20, 30, 2),
    ]  # fmt: skip
    assert len(TimeRanges.of([]).divided(np.array([0, 10]))) == 0
    assert len(TimeRanges.of([]).within(whole)) == 0


def turns_of_tasks(path: Path, *, followed: bool = True) -> Builder:
    """Two requests that take turns on one thread, 10 ms each, and a child that goes on behind its parent's end."""
    builder = Builder(path)
    builder.rows["processes"][0]["spans_followed"] = followed or None
    stack = builder.stack((builder.code(builder.file("program.py", "pass\n" * 9)), 0))
    builder.span("request", 0, 200, '{"n": 1}')
    builder.span("request", 5, 205, '{"n": 2}')
    builder.span("query", 30, 150, parent=0)
    for each, span in enumerate([0, 1, 1, 2, 1, 0, None, 1, 2, 2]):
        builder.cpu(stack, time_ns=START + (10 + each * 10) * MS)
        builder.rows["cpu"][-1]["span"] = span
    for span in (0, 1):  # of two threads at once in truth: they overlap
        builder.wait(stack, 120, 140)
        builder.rows["waits"][-1]["span"] = span
    return builder


def test_rows_that_say_their_span_belong_to_it(tmp_path: Path) -> None:
    profile = profile_of(turns_of_tasks(tmp_path / "r.tacho"))
    assert table(spans_of(profile), *SPAN) == [
        ("request", 2, 0.205, 0.06, 0.04, 0.09, 0.04),
        ("query", 1, 0.12, 0.03, 0.0, 0.03, 0.0),
        ("<no span>", None, None, 0.01, 0.0, 0.01, 0.0),
    ]
    assert not turns(profile)
    by_time = profile_of(turns_of_tasks(tmp_path / "old.tacho", followed=False))
    assert spans_of(by_time)["cpu_s"].tolist() != spans_of(profile)["cpu_s"].tolist()
    assert turns(by_time)


@pytest.mark.parametrize(
    ("wanted", "cpu_s", "wait_s", "wall_s"),
    [("request[n=1]", 0.05, 0.02, 0.2), ("request[n=2]", 0.04, 0.02, 0.2), ("query", 0.03, 0.0, 0.12)],
)
def test_one_of_those_that_take_turns(tmp_path: Path, wanted: str, cpu_s: float, wait_s: float, wall_s: float) -> None:
    totals = profile_of(turns_of_tasks(tmp_path / "r.tacho"), span=wanted).totals
    assert (totals.cpu_s, totals.wait_s, totals.wall_s) == pytest.approx((cpu_s, wait_s, wall_s))


def test_quantiles_of_how_long_spans_lasted(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    builder.cpu(builder.stack((builder.code(builder.file("program.py")), 0)))
    for each in range(101):
        builder.span("request", each, each + each)
    builder.span("once", 0, 30)
    frame = spans_of(profile_of(builder)).set_index("name")
    assert frame.loc["request", ["p50_s", "p95_s", "p99_s"]].tolist() == pytest.approx([0.05, 0.095, 0.099])
    assert frame.loc["once", ["p50_s", "p95_s", "p99_s"]].tolist() == pytest.approx([0.03] * 3)
    assert frame.loc["<no span>", ["p50_s", "p95_s", "p99_s"]].isna().all()


def test_what_one_of_them_costs(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "r.tacho")
    stack = builder.stack((builder.code(builder.file("program.py")), 0))
    for each in range(4):
        builder.span("request", 100 * each, 100 * each + 50)
    builder.span("query", 10, 40)
    for ms in (20, 120, 130, 500):
        builder.cpu(stack, 10, time_ns=START + ms * MS)
    builder.wait(stack, 225, 245)
    frame = spans_of(profile_of(builder)).set_index("name")
    assert frame.loc["request", ["each_cpu_s", "each_wait_s"]].tolist() == pytest.approx([0.03 / 4, 0.02 / 4])
    assert frame.loc["query", "each_cpu_s"] == pytest.approx(0.01)
    assert frame.loc["request", ["each_await_s", "each_allocated_bytes"]].isna().all()
    assert frame.loc["<no span>", ["each_cpu_s", "each_wait_s"]].isna().all()


def test_weights_of_intervals_that_overlap_are_summed_exactly() -> None:
    ranges = TimeRanges.of([(5, 0, 50, 0), (5, 50, 100, 1)])
    start, end = np.array([10, 20, 40]), np.array([60, 40, 90])
    sums = ranges.sum_spans(np.full(3, 5), start, end, np.array([50.0, 40.0, 100.0]), 2)
    assert sums.tolist() == pytest.approx([40 + 40 + 20, 10 + 80])
