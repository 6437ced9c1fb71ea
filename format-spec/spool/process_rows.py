"""Builds the table processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import clean_text
from ..schema import Specification
from .arrow_columns import table_of
from .directory import SpoolProcess
from .layout import Refusal, StateEvent
from .process_context import resource_text
from .process_definitions import ProcessFacts
from .process_log import Image, Images

if TYPE_CHECKING:
    import pyarrow as pa

RECORDED = ("python", "native")
"""What a process may say of how it was recorded (META ``recorded``); the first if it says nothing."""


@dataclass(eq=False, slots=True)
class Row:
    """A row of processes to be: what the log says of it, and what it recorded itself, at least one of them."""

    image: Image | None
    process: SpoolProcess | None
    number: int = 0
    parent: int | None = None
    first: bool = False

    @property
    def pid(self) -> int:
        """The system's process id."""
        return self.image.pid if self.image is not None else self._recorded.pid

    @property
    def began_ns(self) -> int:
        """When the program began, or recording of it where that is not known."""
        return self.image.start_ns if self.image is not None else self._recorded.start_ns

    @property
    def parent_pid(self) -> int | None:
        """The system's id of the parent."""
        if self.image is not None:
            return self.image.parent_pid
        return self._recorded.control.parent_pid if self._recorded.control is not None else None

    @property
    def _recorded(self) -> SpoolProcess:
        assert self.process is not None
        return self.process


def rows_of(processes: Sequence[SpoolProcess], images: Images) -> list[Row]:
    """The rows of the table in their order, every parent before its children."""
    rows = {id(image): Row(image, None) for image in images.found}
    alone = []
    for process in processes:
        image = images.alive(process.pid, process.start_ns)
        if image is not None and rows[id(image)].process is None:
            rows[id(image)].process = process
        else:
            alone.append(Row(None, process))
    in_order = sorted([*rows.values(), *alone], key=lambda row: (row.began_ns, row.pid))
    numbers: dict[int, int] = {}
    latest: dict[int, int] = {}
    for number, row in enumerate(in_order):
        row.number = number
        row.parent = _parent(row, images, numbers, latest)
        if row.image is not None:
            numbers[id(row.image)] = number
        latest[row.pid] = number
    if in_order and not any(image.origin == "first" for image in images.found):
        in_order[0].first = in_order[0].parent is None
    return in_order


def _parent(row: Row, images: Images, numbers: Mapping[int, int], latest: Mapping[int, int]) -> int | None:
    """The row of the parent by the log, else the latest row that had the parent's pid."""
    if row.image is not None:
        parent = images.parent(row.image)
        if parent is not None:
            return numbers.get(id(parent))
        if row.parent_pid is None or images.latest(row.parent_pid, row.began_ns) is not None:
            return None  # the process of that pid had ended before: another one has its pid now
    return None if row.parent_pid is None else latest.get(row.parent_pid)


def processes_table(
    rows: Sequence[Row],
    facts: Mapping[int, ProcessFacts],
    exit_statuses: Mapping[int, int],
    spec: Specification,
    window_ns: int | None = None,
) -> pa.Table:
    """One row per process; ``facts`` are by row number, ``exit_statuses`` by pid, each of the last of that pid.

    ``window_ns`` is the beginning of the window in a recording that is rotated: no process begins earlier in it.
    """
    last = {row.pid: row.number for row in rows}
    statuses = {last[pid]: status for pid, status in exit_statuses.items() if pid in last}
    return table_of(
        [_process_row(row, facts.get(row.number), statuses.get(row.number), window_ns) for row in rows],
        spec.tables["processes"].schema,
    )


def _process_row(
    row: Row, facts: ProcessFacts | None, exit_status: int | None, window_ns: int | None
) -> tuple[object, ...]:
    image = row.image
    begin_ns = window_ns if facts is None else facts.carried.start_ns if facts.carried is not None else None
    start_ns = row.process.start_ns if row.process is not None else row.began_ns
    # What was counted until the end of a process that began before the window is not of the window.
    counted = image if image is not None and (begin_ns is None or image.start_ns >= begin_ns) else None
    meta = facts.meta if facts is not None else {}
    states = facts.states if facts is not None else []
    executable = meta.get("executable") or (image.executable if image is not None else None)
    return (
        row.number,
        row.parent,
        row.pid,
        row.parent_pid,
        start_ns if begin_ns is None else max(start_ns, begin_ns),
        _end_ns(row),
        exit_status if exit_status is not None or image is None else image.exit_status,
        None if executable is None else clean_text(executable),
        meta.get("implementation"),
        meta.get("python_version"),
        meta.get("sampler"),
        next((state.time_ns for state in states if state.event == StateEvent.EXITING), None),
        None if image is None or image.command is None else clean_text(image.command),
        _recorded_how(facts),
        "first" if row.first else image.origin if image is not None else None,
        counted.user_ns if counted is not None else None,
        counted.system_ns if counted is not None else None,
        counted.max_resident_bytes if counted is not None else None,
        {"1": True, "0": False}.get(meta.get("jit", "")),
        _count(meta.get("pyarrow_live_bytes")),
        True if meta.get("spans_followed") == "1" else None,
        resource_text(meta.get("process_context")),
    )


def _count(text: str | None) -> int | None:
    """A number that a process told of itself; None if it is none, or larger than any."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 19 else None


def _end_ns(row: Row) -> int | None:
    """The end that the log tells, or the process itself; one that was asked to stop recording had not ended."""
    if row.image is not None and row.image.end_ns is not None:
        return row.image.end_ns
    control = row.process.control if row.process is not None else None
    return control.end_ns if control is not None and control.end_ns > 0 and not control.stop_requested else None


def losses_of_rows(rows: Sequence[Row], images: Images, window_ns: int | None = None) -> list[dict[str, Any]]:
    """The quality ledger's entries about processes that were not recorded or listed, or not to their end.

    A child that began in an earlier window of a rotated recording is not in the log of this one.
    """
    losses: list[dict[str, Any]] = []
    if images.unlisted_ns and window_ns is None and not images.have_own_ids:
        losses.append({"process": None, "loss": "children_unlisted_ms", "count": images.unlisted_ns // 1_000_000})
    for row in rows:
        if row.image is not None and row.image.refused == Refusal.FAILED:
            losses.append({"process": row.number, "loss": "processes_unarmed", "count": 1})
        control = row.process.control if row.process is not None else None
        if control is not None and control.stop_requested and _end_ns(row) is None:
            losses.append({"process": row.number, "loss": "processes_outlived", "count": 1})
        if _is_behind(row.process):
            losses.append({"process": row.number, "loss": "ends_uncopied", "count": 1})
    return losses


def _is_behind(process: SpoolProcess | None) -> bool:
    """True if what the process wrote last may be missing; without a control file its first copies were not complete."""
    if process is None:
        return False
    if process.control is not None:
        return process.control.behind
    return bool(process.segments or process.parts)


def _recorded_how(facts: ProcessFacts | None) -> str:
    if facts is None:
        return "listed"
    how = facts.meta.get("recorded", RECORDED[0])
    return how if how in RECORDED else RECORDED[0]
