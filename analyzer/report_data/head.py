"""The head of a report, worded once: what ran and how it was recorded, its totals, and how its CPU time divides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..profile.profile import Profile
from .headline import (
    collections,
    first_waiting,
    number_and_noun,
    pool_facts,
    processes_fact,
    touched_text,
    without_processor,
)
from .numbers import percent, rounded_size, seconds, when

MIN_INHERITED = 1_000_000
"""Memory that forked processes inherited from their parents is mentioned from this size on."""

PART_NAMES: Mapping[str, str] = {
    "python": "Python",
    "native": "native",
    "kernel": "kernel",
    "unknown": "unknown",
    "wait": "waiting",
}
"""The names of the parts of time, in the order in which they are shown."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An amount of the head, as a line of text and as a page show it."""

    value: str
    text: str
    """What it is, behind the value in a line of text."""
    label: str = ""
    """What it is, above the value on a page; without one it is none of a page's figures."""
    hint: str = ""
    """More of it, below the value on a page."""


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the CPU time, or the waiting, which has no share."""

    name: str
    """``python``, ``native``, ``kernel``, ``unknown`` or ``wait``."""
    seconds: float
    share: float | None

    @property
    def label(self) -> str:
        """Its name for readers."""
        return PART_NAMES[self.name]

    @property
    def share_text(self) -> str:
        """Its share in percent; empty for waiting."""
        return "" if self.share is None else f"{percent(self.share) or '<0.1'} %"


def circumstances(profile: Profile) -> list[str]:
    """When, where and how the program was recorded."""
    metadata = profile.metadata
    every = f", every {metadata.interval_s * 1e3:g} ms" if metadata.interval_s else ""
    facts = (
        when(metadata.created_utc),
        f"on {metadata.host}" if metadata.host else None,
        *(f"CPython {version}" for version in metadata.python_versions),
        " and ".join(metadata.samplers) + f" sampler{every}" if metadata.samplers else None,
        metadata.rotated,
    )
    return [fact for fact in facts if fact]


def restrictions(profile: Profile) -> list[str]:
    """What of the recording the report is about, where that is not all: ``only thread 4242``."""
    question = profile.question
    chosen = {
        "thread": question.thread,
        "span": question.span,
        "process": ", ".join(question.processes) or None,
        "from": None if question.start_s is None else f"{question.start_s:g} s on",
        "until": None if question.end_s is None else f"{question.end_s:g} s",
    }
    return [f"only {name} {value}" for name, value in chosen.items() if value is not None]


def time_figures(profile: Profile) -> list[Figure]:
    """Wall time, CPU time and waiting, and what they were measured of."""
    totals = profile.totals
    parallel = totals.cpu_s / totals.wall_s if totals.wall_s else 0.0
    cores = f" ({parallel:.1f} cores)" if parallel > 1.05 else ""
    figures = [
        Figure(seconds(totals.wall_s), "wall", "time", "from start to end"),
        Figure(seconds(totals.cpu_s), f"CPU{cores}", "CPU", f"{parallel:.1f} cores busy" if parallel else ""),
    ]
    waiting = _waiting(profile)
    if waiting is not None:
        figures.append(waiting)
    lacked = without_processor(totals)
    if lacked is not None:
        figures.append(Figure(seconds(lacked), "without a processor", "no processor", "the machine was busy"))
    threads, processes = number_and_noun(totals.threads, "thread"), processes_fact(totals)
    figures.append(Figure(*threads))
    if processes is not None:
        figures.append(Figure(*processes))
    of = f"{' '.join(threads)} in {' '.join(processes or ('1', 'process'))}"
    return [*figures, Figure(*number_and_noun(totals.samples, "sample"), "samples", of)]


def _waiting(profile: Profile) -> Figure | None:
    totals, waiting = profile.totals, first_waiting(profile)
    if waiting.seconds is None:
        return None
    main, several = "main " if waiting.main else "", waiting.threads > 1
    whose = f"{waiting.threads:,} {main}threads" if several else "main" if waiting.main else "its thread"
    whole = totals.main_s if waiting.main else (totals.wall_s or 0.0) * waiting.threads
    share = f"{percent(waiting.seconds / whole) or '0'} % of the time" if whole else ""
    if several and share:
        share += f" of {totals.processes:,} processes" if waiting.main else f" of {waiting.threads:,} threads"
    label = f"{main}thread{'s wait' if several else ' waits'}"
    return Figure(seconds(waiting.seconds), f"waiting in {whose}", label, share)


def memory_figures(profile: Profile) -> list[Figure]:
    """Memory that the processes held and allocated, and bytes copied."""
    memory, totals = profile.memory, profile.totals
    figures: list[Figure] = []

    def rate(count: float | None) -> str:
        return f"{rounded_size(count / totals.wall_s)}/s" if count is not None and totals.wall_s else ""

    if memory is not None:
        inherited = memory.peak_inherited_bytes
        details = [
            f"at {seconds(memory.peak_s)}",
            f"{rounded_size(inherited)} of it inherited by forks and counted again"
            if inherited >= MIN_INHERITED
            else None,
            touched_text(profile),
        ]
        known = [detail for detail in details if detail]
        at = "" if memory.resident_peak_s is None else f" (at {seconds(memory.resident_peak_s)})"
        resident = None if memory.resident_peak_bytes is None else rounded_size(memory.resident_peak_bytes)
        hint = " · ".join([*known, *([] if resident is None else [f"{resident} resident at most{at}"])])
        label = "" if memory.peak_bytes is None else "memory at its peak"
        figures.append(Figure(rounded_size(memory.peak_bytes), f"held at the peak ({', '.join(known)})", label, hint))
        several = len(memory.frames.processes) > 1
        figures.append(Figure(rounded_size(memory.end_bytes), "at their ends" if several else "at the end"))
        if resident is not None:
            figures.append(Figure(resident, f"resident at most{at}"))
        python = "" if totals.python_fraction is None else f" ({totals.python_fraction * 100:.0f} % by Python)"
        label = "" if totals.allocated_bytes is None else "allocated"
        allocated = rounded_size(totals.allocated_bytes)
        figures.append(Figure(allocated, f"allocated{python}", label, rate(totals.allocated_bytes)))
    if totals.copied_bytes is not None:
        figures.append(Figure(rounded_size(totals.copied_bytes), "copied", "copied", rate(totals.copied_bytes)))
    return figures


def gpu_figures(profile: Profile) -> list[Figure]:
    """The busy share of the GPUs, their memory in use, their power, and which they are; none if none was read."""
    gpu, totals = profile.gpu, profile.totals
    if gpu is None:
        return []
    used = gpu.devices[gpu.devices["used"]] if gpu.devices["used"].any() else gpu.devices
    busy = "?" if totals.gpu_share is None else f"{percent(totals.gpu_share) or '0'} %"
    held = "" if totals.gpu_peak_bytes is None else f"{rounded_size(totals.gpu_peak_bytes)} of its memory at most"
    figures = [Figure(busy, "busy", "" if totals.gpu_share is None else "GPU busy", held)]
    figures.append(Figure(rounded_size(totals.gpu_peak_bytes), "of its memory at most"))
    if used["power_w"].notna().any():
        figures.append(Figure(f"{used['power_w'].mean():.0f} W", "on average"))
    names = [f"{count} {name}" if count > 1 else str(name) for name, count in used["name"].value_counts().items()]
    return [*figures, Figure("", ", ".join(names))] if names else figures


def pool_figures(profile: Profile) -> list[Figure]:
    """CPU time of native threads, and the part of it that is charged to lines; none if they did hardly anything."""
    facts = pool_facts(profile.totals)
    if not facts:
        return []
    (value, text), *others = facts
    hint = " · ".join([text, *(f"{amount} {what}" for amount, what in others)])
    return [Figure(value, text, "native threads", hint), *(Figure(*fact) for fact in others)]


def time_parts(profile: Profile) -> list[TimePart]:
    """The parts of the CPU time that there are; the waiting of ``first_waiting`` comes last."""
    totals, whole = profile.totals, profile.totals.cpu_s
    amounts = {
        "python": totals.python_s,
        "native": totals.native_s,
        "kernel": totals.kernel_s,
        "unknown": totals.unknown_s,
    }
    parts = [
        TimePart(name, amount, amount / whole if whole > 0 else None) for name, amount in amounts.items() if amount
    ]
    waited = first_waiting(profile).seconds
    return [*parts, TimePart("wait", waited, None)] if waited else parts


def collecting_figure(profile: Profile) -> Figure | None:
    """Garbage collection, a part of Python's time; None where it took too little to be mentioned, or is unknown."""
    collected = collections(profile)
    if collected is None:
        return None
    where = f"mostly {' and '.join(collected.places)}" if collected.places else "on the lines that set it off"
    share = f"{percent(collected.share)} %"
    return Figure(f"{share} {seconds(collected.seconds)}", f"in garbage collection, a part of Python, {where}")
