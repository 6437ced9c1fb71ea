"""Builds the tables processes and threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .columns import table_of
from .definitions import PYTHON_NAME, ProcessFacts, ThreadFacts
from .records import EXITING
from .specification import Specification

if TYPE_CHECKING:
    import pyarrow as pa


def processes_table(
    processes: Sequence[ProcessFacts], exit_statuses: Mapping[int, int], spec: Specification
) -> pa.Table:
    """One row per process; a parent is the latest recorded process that had the parent's pid."""
    rows = []
    latest: dict[int, int] = {}
    for number, process in enumerate(processes):
        control, meta = process.control, process.meta
        rows.append(
            (
                number,
                latest.get(control.parent_pid) if control else None,
                process.pid,
                control.parent_pid if control else None,
                process.start_ns,
                control.end_ns if control and control.end_ns > 0 else None,
                exit_statuses.get(process.pid),
                meta.get("executable"),
                meta.get("implementation"),
                meta.get("python_version"),
                meta.get("sampler"),
                next((state.time_ns for state in process.states if state.event == EXITING), None),
            )
        )
        latest[process.pid] = number
    return table_of(rows, spec.tables["processes"].schema)


def threads_table(processes: Sequence[ProcessFacts], spec: Specification) -> tuple[pa.Table, list[dict[int, int]]]:
    """One row per thread that is defined or mentioned, and for each process the map from its ids to the recording's."""
    rows: list[tuple[object, ...]] = []
    maps = []
    for number, process in enumerate(processes):
        ids: dict[int, int] = {}
        for thread in sorted(process.threads.keys() | process.mentions["thread"]):
            facts = process.threads.get(thread, ThreadFacts())
            process.references_lost += facts.start is None
            ids[thread] = len(rows)
            rows.append((len(rows), number, *_thread_row(facts)))
        maps.append(ids)
    return table_of(rows, spec.tables["threads"].schema), maps


def _thread_row(facts: ThreadFacts) -> tuple[object, ...]:
    start, name, end = facts.start, facts.name, facts.end
    return (
        start.tid if start else None,
        name.name if name else None,
        name.source == PYTHON_NAME if name else None,
        start.main if start else None,
        start.time_ns if start else None,
        end.time_ns if end else None,
        end.cpu_ns if end and end.cpu_ns >= 0 else None,
    )
