"""The quality of a recording: the losses in the manifest's ledger, and remarks from the analysis itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .filter import Mask
from .opened import Recording
from .text import printable

NAMED = 3
"""Processes that are named where something was lost in several."""

_UNTIL_THE_END = frozenset({"ends_uncopied"})
"""Losses that are none while the program runs: its last second of records is copied a moment later."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One entry of the ledger; ``severity`` is "loss" (data is missing) or "note" (nothing is missing)."""

    loss: str
    count: int
    severity: str
    doc: str
    advice: str
    process: int | None = None


@dataclass(frozen=True, slots=True)
class Cause:
    """Losses for one reason, in all processes; ``where`` names those it happened in, the worst first."""

    loss: str
    count: int
    severity: str
    doc: str
    advice: str
    processes: int
    """Number of processes it happened in; 0 where it concerns the recording as a whole."""
    where: str
    """Names and counts of the worst; empty if the recording has one process."""


@dataclass(frozen=True, slots=True)
class HooksTime:
    """CPU time of the recorder's hooks in the program's threads, by the samples in them, with its 95 % interval."""

    cpu_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Quality:
    """The state of the recording (complete, recovered, recording), its losses, and remarks about this analysis."""

    state: str
    losses: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    labels: Mapping[int, str] = field(default_factory=dict)
    """Names of the processes; empty if there is only one."""
    recorder_cpu_s: float | None = None
    """CPU time of the recorder's signal handlers and threads in the recorded processes; its hooks are not in it."""
    being_written: bool = False
    """True if ``state`` is recording because the program still runs, and not because of a crash."""
    recorder_bytes: int | None = None
    """Memory that the recorder took up, at most, in the process in which it took up most."""
    hooks: HooksTime | None = None
    """CPU time of its hooks; None if it is not known."""

    @property
    def nothing_lost(self) -> bool:
        """True if no data is missing."""
        return not any(loss.severity == "loss" for loss in self.losses)

    @property
    def causes(self) -> list[Cause]:
        """The losses by cause: first those where data is missing, the most frequent first."""
        by_cause: dict[str, list[Loss]] = {}
        for loss in self.losses:
            by_cause.setdefault(loss.loss, []).append(loss)
        causes = [_cause(entries, self.labels) for entries in by_cause.values()]
        return sorted(causes, key=lambda cause: (cause.severity != "loss", -cause.count))


def read_quality(recording: Recording, processes: Mask | None = None) -> Quality:
    """The ledger of a recording with what the specification says of each cause.

    ``processes`` says whose losses are asked for; those of the recording as a whole always are.
    """
    specifications = {loss.name: loss for loss in recording.specification.losses}
    losses = []
    for entry in recording.manifest.quality:
        name, count, process = str(entry["loss"]), int(entry["count"]), entry.get("process")
        if count <= 0 or not _asked_for(process, processes) or (name in _UNTIL_THE_END and recording.being_written):
            continue
        spec = specifications.get(name)
        losses.append(
            Loss(
                loss=printable(name),
                count=count,
                severity=spec.severity if spec else "loss",
                doc=spec.doc if spec else "a cause that this version of tachograph does not know",
                advice=spec.advice if spec else "use a newer tachograph to read about it",
                process=process,
            )
        )
    losses.sort(key=lambda loss: (loss.severity != "loss", -loss.count))
    notes = [printable(note, 500) for note in recording.manifest.notes]
    state = "recording" if recording.unfinished else recording.manifest.state
    cost = _cost(recording, processes)
    own = _own_bytes(recording, processes)
    return Quality(state, losses, notes, _labels(recording), cost, recording.being_written, own)


def _asked_for(process: int | None, processes: Mask | None) -> bool:
    if process is None or processes is None:
        return True
    return 0 <= process < len(processes) and bool(processes[process])


def _labels(recording: Recording) -> dict[int, str]:
    processes = recording.all_processes
    if len(processes) < 2:
        return {}
    pairs = zip(processes.name, processes.pid.tolist(), strict=True)
    return {number: f"{name} {pid}" for number, (name, pid) in enumerate(pairs)}


def _cause(losses: list[Loss], labels: Mapping[int, str]) -> Cause:
    first = losses[0]
    counts: dict[int, int] = {}
    for loss in losses:
        if loss.process is not None:
            counts[loss.process] = counts.get(loss.process, 0) + loss.count
    worst = sorted(counts, key=lambda process: -counts[process])
    total = sum(loss.count for loss in losses)
    places = [
        labels[process] + (f": {counts[process]:,}" if total > 1 else "") for process in worst if process in labels
    ]
    where = ""
    if places:
        more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
        where = ("in " if len(places) == 1 else f"in {len(places):,} processes: ") + ", ".join(places[:NAMED]) + more
    return Cause(first.loss, total, first.severity, first.doc, first.advice, len(counts), where)


def _cost(recording: Recording, processes: Mask | None) -> float | None:
    """CPU seconds that recording used in the processes, None if the manifest does not have them."""
    cost = recording.manifest.sampler_cost
    entries: list[Any] = [cost] if processes is None else _cost_by_process(recording, processes)
    amounts = [_whole(entry.get(name)) for entry in entries for name in ("handler_cpu_ns", "helper_cpu_ns")]
    valid = [value for value in amounts if value is not None and value >= 0]
    return sum(valid) / 1e9 if valid else None


def cost_of_a_sample(recording: Recording) -> float | None:
    """CPU nanoseconds that the handler used for a sample, on average; None if the manifest does not have them."""
    entries = _cost_by_process(recording, None)
    used, samples = (sum(_whole(entry.get(name)) or 0 for entry in entries) for name in ("handler_cpu_ns", "samples"))
    return used / samples if used > 0 and samples > 0 else None


def _own_bytes(recording: Recording, processes: Mask | None) -> int | None:
    """The most bytes that recording took up in one of the processes, None if the manifest does not have them."""
    sizes = [_whole(entry.get("own_bytes")) for entry in _cost_by_process(recording, processes)]
    return max((value for value in sizes if value is not None and value > 0), default=None)


def _cost_by_process(recording: Recording, processes: Mask | None) -> list[dict[str, Any]]:
    by_process = recording.manifest.sampler_cost.get("processes")
    return [
        entry
        for entry in (by_process if isinstance(by_process, list) else [])
        if isinstance(entry, dict) and _asked_for(_whole(entry.get("process")), processes)
    ]


def _whole(value: Any) -> int | None:
    return value if type(value) is int else None
