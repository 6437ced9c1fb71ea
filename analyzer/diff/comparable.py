"""Whether recordings can be compared, and what a reader should know even if they can."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..recording.text import printable
from ..report_data.data_quality import CPU_WAIT_SHARE, is_severe
from ..report_data.numbers import seconds
from .run import Run

MODES = {
    "waits": "whether waiting was recorded",
    "memory": "whether memory was recorded",
    "memory_threshold": "memory threshold",
    "block_mean_bytes": "mean of the sampling of blocks",
    "copies_min_bytes": "smallest copy that counts",
    "copies_mean_bytes": "mean of the sampling of copies",
}
"""Parameters of the recorder that must be equal: they change what is seen, or what recording costs."""


def obstacles(runs: Sequence[Run]) -> list[str]:
    """Why the recordings cannot be compared; empty if they can."""
    found = [
        _differing("sampler", runs, lambda run: ", ".join(run.profile.about.samplers)),
        _differing("interval", runs, _interval),
        _differing("Python", runs, _minor_versions),
        _differing("operating system", runs, lambda run: (run.profile.about.os or "?").partition(" ")[0]),
        _differing("processor", runs, lambda run: run.profile.about.machine or "?"),
    ]
    found += [_differing(name, runs, _parameter(key)) for key, name in MODES.items()]
    if any(run.profile.totals.processes > 1 for run in runs):
        # What a program leaves to others would be in one recording and not in the other.
        found.append(_differing("whether child processes were recorded", runs, _parameter("children")))
    return [reason for reason in found if reason]


def remarks(base: Sequence[Run], new: Sequence[Run]) -> list[str]:
    """What makes the comparison weaker without forbidding it."""
    runs = [*base, *new]
    found = [
        _differing("machine", runs, lambda run: run.profile.about.host or "?"),
        _differing("number of CPUs", runs, lambda run: str(run.profile.about.cpu_count or "?")),
        _differing("Python", runs, lambda run: ", ".join(run.profile.about.python_versions)),
        _differing("program", runs, lambda run: run.profile.about.program or "?"),
        _differing("number of recorded processes", runs, lambda run: str(run.profile.totals.processes)),
    ]
    notes = [f"not everything is equal: {reason}" for reason in found if reason]
    for run in runs:
        if any(is_severe(cause, run.profile) for cause in run.profile.quality.causes):
            notes.append(f"data is missing in {run.name}: see 'tachograph analyze' of it")
        elif run.profile.quality.state == "recording":
            notes.append(f"{run.name} was never finished, or is still being written")
    for run in runs:
        totals = run.profile.totals
        waited, wall = totals.main_cpu_wait_s or 0.0, totals.main_s
        if waited > CPU_WAIT_SHARE * wall:
            notes.append(
                f"the machine was busy while {run.name} was recorded (no processor for {seconds(waited)} of"
                f" {seconds(wall)}): its wall time and waiting tell little"
            )
    if {run.profile.about.uuid for run in base} & {run.profile.about.uuid for run in new}:
        notes.append("a recording is on both sides")
    return notes


def _differing(what: str, runs: Sequence[Run], value: Callable[[Run], str | None]) -> str | None:
    values = list(dict.fromkeys(found for run in runs if (found := value(run)) is not None))
    return f"{what} {' and '.join(printable(value, 80) for value in values)}" if len(values) > 1 else None


def _interval(run: Run) -> str:
    interval = run.profile.about.interval_s
    return "?" if interval is None else f"{interval * 1e3:g} ms"


def _minor_versions(run: Run) -> str | None:
    versions = run.profile.about.python_versions
    return ", ".join(dict.fromkeys(".".join(version.split(".")[:2]) for version in versions)) or None


def _parameter(key: str) -> Callable[[Run], str]:
    def value(run: Run) -> str:
        # A recorder that did not know the parameter did not do what it asks for.
        found = run.parameters.get(key)
        return "no" if found is None or found is False else "yes" if found is True else str(found)

    return value
