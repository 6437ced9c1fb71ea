"""Builds the table spans: intervals of time that the recorded programs gave names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import clean_text
from ..schema import Specification
from .arrow_columns import table_of
from .process_definitions import ProcessFacts
from .threads_table import ThreadIds

if TYPE_CHECKING:
    import pyarrow as pa


def spans_table(processes: Sequence[ProcessFacts], threads: Sequence[ThreadIds], spec: Specification) -> pa.Table:
    """One row per span that ended, in the order of their beginning; ``threads`` are the ids of ``threads_table``.

    Of a span whose own end was not recorded nothing is known, so it is no parent either.
    """
    found = sorted(
        (span.start_ns, index, span.span, span)
        for index, process in enumerate(processes)
        for span in process.spans.values()
    )
    ids = {(index, own): row for row, (_, index, own, _) in enumerate(found)}
    rows = []
    for row, (start_ns, index, _, span) in enumerate(found):
        parent = ids.get((index, span.parent))
        rows.append(
            (
                row,
                # A child cannot begin before its parent; a record that says so is damaged.
                parent if parent is not None and parent < row else None,
                processes[index].number,
                threads[index][span.thread],
                clean_text(span.name),
                clean_text(span.fields) or None,
                start_ns,
                span.end_ns,
            )
        )
    return table_of(rows, spec.tables["spans"].schema)
