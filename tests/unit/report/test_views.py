"""Views of a page: each is what ``analyze`` answers to the same question."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tachograph.analyzer import Question, Recording
from tachograph.analyzer.profile.build import build_profile
from tachograph.analyzer.report_data import report_data
from tachograph.analyzer.report_data.headline import first_waiting
from tachograph.analyzer.report_data.report_data import ReportData, build_report_data, build_views
from unit.analyzer.recordings import MS, START, Builder


@pytest.fixture
def threads(builder: Builder) -> Builder:
    """The main thread works for 50 ms and waits for 2 s; a worker waits for 9 s."""
    f = builder.code(builder.file("/srv/a.py"))
    for _ in range(5):
        builder.cpu(builder.stack((f, 1)))
    builder.wait(builder.stack((f, 2)), 1_000, 3_000)
    builder.wait(builder.stack((f, 3)), 500, 9_500, thread=builder.thread("worker"))
    return builder


def test_views_are_answers_of_their_own(threads: Builder) -> None:
    with Recording.open(threads.write()) as recording:
        asked = build_report_data(recording, Question())
        found = {(view.kind, view.label): view.data.profile for view in build_views(recording, Question(), asked)}
        assert set(found) == {
            ("scope", "all code, libraries too"), ("thread", "MainThread (100)"), ("thread", "worker (101)"),
        }  # fmt: skip
        worker = build_profile(recording, Question(scope="project", thread="101"))
        assert found["thread", "worker (101)"].totals == worker.totals
        assert worker.totals.wait_s == pytest.approx(9)


def test_a_name_of_spans_is_a_view(builder: Builder) -> None:
    """That of `GET /{id}[0]` is the answer to a pattern, which has no brackets; `list?` could be two, and is none."""
    f = builder.code(builder.file("/srv/a.py"))
    for number in range(100):
        builder.cpu(builder.stack((f, number // 10)), time_ns=START + (number * 10 + 5) * MS)
    for start, end, name in ((0, 300, "GET /{id}[0]"), (300, 500, "POST /"), (500, 600, "list?"), (600, 700, "lists")):
        builder.span(name, start, end)
    with Recording.open(builder.write()) as recording:
        asked = build_report_data(recording, Question())
        views = build_views(recording, Question(), asked)
        found = {view.label: view.data.profile for view in views if view.kind == "span"}
        assert list(found) == ["GET /{id}[0]", "POST /", "lists"]
        assert found["GET /{id}[0]"].totals.cpu_s == pytest.approx(0.3)
        assert found["POST /"].totals == build_profile(recording, Question(scope="project", span="POST /")).totals
        assert not [view for view in build_views(recording, Question(span="lists"), asked) if view.kind == "span"]


def test_a_large_recording_has_none(threads: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_data, "MAX_ROWS", 3)
    with Recording.open(threads.write()) as recording:
        assert build_views(recording, Question(), build_report_data(recording, Question())) == []


def test_the_waiting_of_a_named_thread_is_its_own(threads: Builder, picture: Callable[..., ReportData]) -> None:
    whole, worker = picture().profile, picture(thread="worker").profile
    assert first_waiting(whole).measure == "main_wait"
    assert first_waiting(whole).seconds == pytest.approx(2)
    assert first_waiting(worker).measure == "wait"
    assert first_waiting(worker).seconds == pytest.approx(9)
    assert first_waiting(worker).threads == 1
