"""Spans of OpenTelemetry that begin in the process are spans of the recording, with the ids of their trace."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from tachograph.recorder import opentelemetry
from tachograph.recorder.inprocess import named_spans
from tachograph.recorder.inprocess.open_spans import RecordedSpan

Written = list[tuple[str, str, int, int, int, int]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Spans as in a recorded program."""
    made: Written = []

    def span(name: str, /, **fields: object) -> RecordedSpan:
        return RecordedSpan(lambda *row: made.append(row), name, fields)

    monkeypatch.setattr(named_spans, "span", span)
    return made


@pytest.fixture
def tracer() -> trace.Tracer:
    provider = TracerProvider()
    provider.add_span_processor(opentelemetry.SpanProcessor())
    return provider.get_tracer(__name__)


def test_a_request_has_the_name_and_ids_of_its_trace(written: Written, tracer: trace.Tracer) -> None:
    with tracer.start_as_current_span("GET /") as request:
        with tracer.start_as_current_span("SELECT"), named_spans.span("step"):
            pass
        request.update_name("GET /users/{id}")
    context = request.get_span_context()
    ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
    (step, _, _, _, _, parent), (name, fields, start_ns, end_ns, number, _) = written
    assert (step, name, json.loads(fields)) == ("step", "GET /users/{id}", ids)
    assert parent == number
    assert start_ns <= end_ns


def test_what_another_service_asked_for_begins_here(written: Written, tracer: trace.Tracer) -> None:
    asked = trace.SpanContext(trace_id=7, span_id=8, is_remote=True, trace_flags=trace.TraceFlags(1))
    caller = trace.set_span_in_context(trace.NonRecordingSpan(asked))
    with tracer.start_as_current_span("GET /a", context=caller):
        pass
    ((name, fields, *_),) = written
    assert name == "GET /a"
    assert json.loads(fields)["trace_id"] == f"{7:032x}"


def test_a_span_may_end_in_another_thread_and_after_the_next_began(written: Written, tracer: trace.Tracer) -> None:
    first, second = tracer.start_span("first"), tracer.start_span("second")
    with ThreadPoolExecutor(1) as threads:
        threads.submit(first.end).result()
    second.end()
    assert [name for name, *_ in written] == ["first", "second"]


def test_spans_that_never_end_are_not_kept_for_good(
    written: Written, tracer: trace.Tracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opentelemetry, "MOST_OPEN", 2)
    spans = [tracer.start_span(str(number)) for number in range(3)]
    for span in spans:
        span.end()
    assert [name for name, *_ in written] == ["1", "2"]


def test_nothing_is_opened_where_the_program_is_not_recorded(tracer: trace.Tracer) -> None:
    with tracer.start_as_current_span("GET /"):
        assert named_spans.is_recorded(named_spans.span("other")) is False
