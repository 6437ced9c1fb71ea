"""How good the data of a profile is, in one line for all reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..profile.profile import Profile, Totals
from ..recording.quality import Cause
from .numbers import counted, percent, seconds, size

UNSAMPLED_SHARE = 0.02
"""CPU time in no sample is mentioned from this part on."""

TOO_MUCH_UNSAMPLED = 0.10
"""From here on shares may be quite wrong."""

FEW = 0.005
"""Stacks lost from at most this part of the samples change nothing that a report says."""

CPU_WAIT_SHARE = 0.05

_STACKS = ("stacks_torn", "stacks_lost", "waits_torn")


@dataclass(frozen=True, slots=True)
class Verdict:
    """``good`` if what the report says can be believed as it is."""

    good: bool
    text: str


def verdict(profile: Profile) -> Verdict:
    """What to think of the data: how the recording ended, what was lost, and what no sample stands for."""
    quality = profile.quality
    severe = sum(is_severe(cause, profile) for cause in quality.causes)
    unsampled = unsampled_share(profile)
    told = []
    if unsampled >= TOO_MUCH_UNSAMPLED:
        told.append(f"{percent(unsampled)} % of the CPU time is in no sample")
    if severe:
        told.append(f"{severe} kind{'s' if severe > 1 else ''} of data loss")
    unfinished = "still being written" if quality.being_written else "never finished"
    ended = {"recovered": "recovered after a crash", "recording": unfinished}.get(quality.state)
    if told:
        return Verdict(good=False, text="; ".join(filter(None, (*told, ended))))
    text = "nothing was lost" if quality.nothing_lost else "hardly anything was lost"
    good = quality.state != "recording" or quality.being_written
    return Verdict(good=good, text=f"{text} ({ended})" if ended else text)


def is_severe(cause: Cause, profile: Profile) -> bool:
    """Whether data is missing, and more than a few stacks among many."""
    few = cause.loss in _STACKS and cause.count <= FEW * profile.totals.samples
    return cause.severity == "loss" and not few


def cause_text(cause: Cause) -> str:
    """What was lost, and in which processes where there are several."""
    doc = cause.doc.removesuffix(" (counted by the reader)")  # who counted does not matter here
    return counted(cause.count, doc) + (f" ({cause.where})" if cause.where else "")


def recorder_cost(profile: Profile) -> str | None:
    """What recording took of the program's CPU time and memory; None if it is unknown."""
    own, cpu, question = profile.quality.recorder_cpu_s, profile.totals.cpu_s, profile.question
    if own is None:
        return None
    whole = question.thread is None and question.span is None and (question.start_s, question.end_s) == (None, None)
    share = [f"{percent(own / cpu) or '<0.1'} %"] if cpu > 0 and whole else []
    hooks = ["hooks of memory not counted"] if profile.memory is not None else []
    known = f" ({'; '.join([*share, *hooks])})" if share or hooks else ""
    held = profile.quality.recorder_bytes
    memory = "" if held is None else f" and at most {size(held)} of memory"
    several = " in a process" if memory and len(profile.quality.labels) > 1 else ""
    return f"recording overhead: {seconds(own)} of CPU{known}{memory}{several}"


def unsampled_share(profile: Profile) -> float:
    """The part of the CPU time that no sample stands for; 0 if that is not known."""
    totals = profile.totals
    whole = totals.cpu_s + (totals.unsampled_s or 0.0)
    return (totals.unsampled_s or 0.0) / whole if whole > 0 else 0.0


def without_processor(totals: Totals) -> float | None:
    """Seconds for which the main threads were ready and had no processor; None if that is little, or not known."""
    waited = totals.main_cpu_wait_s
    return waited if waited and waited > CPU_WAIT_SHARE * totals.main_s else None


def remarks(profile: Profile) -> Iterator[str]:
    """What the totals show that a reader should know, where it matters."""
    totals, unsampled = profile.totals, unsampled_share(profile)
    if unsampled > UNSAMPLED_SHARE:
        shares = (
            "; shares may be quite wrong: record with a smaller --interval" if unsampled >= TOO_MUCH_UNSAMPLED else ""
        )
        yield (
            f"{percent(unsampled)} % of the CPU time ({seconds(totals.unsampled_s)}) is in no sample: threads shorter"
            f" than the interval, and the last moments of the others{shares}"
        )
    waited = without_processor(totals)
    if waited is not None:
        mains = "main thread" if totals.processes <= 1 else "main threads"
        yield f"the {mains} waited {seconds(waited)} for a processor: the machine was busy"
