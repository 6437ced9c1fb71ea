"""What of a process log is carried over into the next window of a recording that is rotated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...format.spool.process_log import BEGINNINGS, Event, LogRecord, ProcessLog, encode_record


def carried_log(log: ProcessLog, pid: int, start_ns: int, number: int, lives: Callable[[LogRecord], bool]) -> bytes:
    """The log with which window ``number`` begins at ``start_ns``; ``pid`` is that of the recording command.

    It has all that was written since, and of what came before the programs that live on. ``lives`` is asked about the
    record of the beginning of one that has not said that it ended.
    """
    begun = {(record.pid, record.time_ns): record for record in log.records if record.event in BEGINNINGS}
    latest: dict[int, LogRecord] = {}
    for record in sorted(log.records, key=lambda record: record.time_ns):
        if record.time_ns <= start_ns:
            if record.event in BEGINNINGS:
                latest[record.pid] = record
            elif record.event is Event.END or _is_told(record, latest.get(record.pid)):
                latest.pop(record.pid, None)
    # A process that has ended since then lived at that moment, whether or not it is found now.
    since_then = {record.pid for record in log.records if record.time_ns > start_ns and record.event not in BEGINNINGS}
    alive = {number: record for number, record in latest.items() if number in since_then or lives(record)}
    kept = [encode_record(Event.WINDOW, pid, 0, start_ns, numbers=(number, -1, -1))]
    for record in log.records:
        since = alive.get(record.pid)
        ours = record.event is Event.FIRST or (since is not None and record.time_ns >= since.time_ns)
        if record.event is not Event.WINDOW and (ours or record.time_ns > start_ns):
            kept.append(_encoded(_with_program(record, begun)))
    return b"".join(kept)


def _is_told(record: LogRecord, begun: LogRecord | None) -> bool:
    """Whether a record says that the parent of a process was told of its end."""
    return record.event is Event.REAPED and begun is not None and record.parent_pid == begun.parent_pid


def _with_program(record: LogRecord, begun: dict[tuple[int, int], LogRecord]) -> LogRecord:
    """A FORK with the program of its parent, which may be over and no longer in the log."""
    at: LogRecord | None = record
    seen: set[tuple[int, int]] = set()
    while at is not None and at.event is Event.FORK and not at.arguments and (at.pid, at.time_ns) not in seen:
        seen.add((at.pid, at.time_ns))
        at = begun.get((at.first, at.second))
    if record.event is not Event.FORK or record.arguments or at is None:
        return record
    return replace(record, executable=at.executable, arguments=at.arguments)


def _encoded(record: LogRecord) -> bytes:
    return encode_record(
        record.event,
        record.pid,
        record.parent_pid,
        record.time_ns,
        status=record.status,
        numbers=(record.first, record.second, record.third),
        executable=record.executable.encode("utf-8", "replace"),
        arguments="\0".join(record.arguments).encode("utf-8", "replace"),
    )
