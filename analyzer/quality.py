"""What is known about how good a recording is: the manifest's ledger, and what the analysis itself found."""

from __future__ import annotations

from dataclasses import dataclass, field

from .recording import Recording
from .text import printable


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
class Quality:
    """The state of the recording (complete, recovered, recording), its losses, and remarks about this analysis."""

    state: str
    losses: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def nothing_lost(self) -> bool:
        """Whether no data is missing."""
        return not any(loss.severity == "loss" for loss in self.losses)


def read_quality(recording: Recording) -> Quality:
    """The ledger of a recording with what the specification says of each cause."""
    known = {loss.name: loss for loss in recording.specification.losses}
    losses = []
    for entry in recording.manifest.quality:
        name, count = str(entry["loss"]), int(entry["count"])
        if count <= 0:
            continue
        spec = known.get(name)
        losses.append(
            Loss(
                loss=printable(name),
                count=count,
                severity=spec.severity if spec else "loss",
                doc=spec.doc if spec else "a cause that this version of tachograph does not know",
                advice=spec.advice if spec else "use a newer tachograph to read about it",
                process=entry.get("process"),
            )
        )
    losses.sort(key=lambda loss: (loss.severity != "loss", -loss.count))
    notes = [printable(note, 500) for note in recording.manifest.notes]
    state = "recording" if recording.unfinished else recording.manifest.state
    return Quality(state, losses, notes)
