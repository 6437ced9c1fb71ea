"""A span processor for OpenTelemetry: what begins in this process, such as a request, is a span of the recording.

``provider.add_span_processor(SpanProcessor())``, with the ``TracerProvider`` of opentelemetry-sdk. The span has the
name that OpenTelemetry's has at its end, such as ``GET /users/{id}``, and the fields ``trace_id`` and ``span_id``.
Where the program is not recorded nothing is done. Imported by a program that has the package.
"""

from __future__ import annotations

from collections import OrderedDict

from opentelemetry.sdk import trace

from tachograph.recorder.inprocess import named_spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opentelemetry.context import Context

MOST_OPEN = 10_000
"""Spans that have not ended. Beyond that the oldest is left out, which the program has most likely lost."""


class SpanProcessor(trace.SpanProcessor):
    """Opens a span with each one that has no parent in this process; those within it are of the same request."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, named_spans.Span] = OrderedDict()

    def on_start(self, span: trace.Span, parent_context: Context | None = None) -> None:
        """Called where a span begins, in the context that it is made current in."""
        if span.parent is not None and not span.parent.is_remote:
            return
        context = span.get_span_context()
        ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
        opened = named_spans.span(span.name, **ids)
        if named_spans.is_recorded(opened):
            if len(self._open) >= MOST_OPEN:
                self._open.popitem(last=False)
            self._open[context.span_id] = opened
            opened.__enter__()

    def on_end(self, span: trace.ReadableSpan) -> None:
        """Called where a span ends, in whatever thread."""
        context = span.get_span_context()
        opened = None if context is None else self._open.pop(context.span_id, None)
        if opened is not None:
            opened.rename(span.name)
            opened.__exit__(None, None, None)
