"""The head of the terminal report: what ran, where the time went as a whole, how good the recording is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from rich.console import Console
from rich.text import Text

from ...profile.profile import Profile
from ...recording.text import printable
from ...report_data.headline import (
    collections,
    first_waiting,
    ledger,
    number_and_noun,
    pool_facts,
    processes_fact,
    recorder_cost,
    touched_text,
    verdict,
    without_processor,
)
from ...report_data.numbers import percent, seconds, size
from .style import COLOURS, NAMES, Style

MAX_LABELS = 12
"""Labels that the head has room for."""
MIN_INHERITED = 1_000_000
"""Memory that forked processes inherited from their parents is mentioned from this size on."""
SEPARATORS = (" · ", " - ")
"""Separators between facts; the second where there is only ASCII."""

_RULER = Console(width=80)  # wrap() wants one; nothing is printed on it


def header(profile: Profile, style: Style, width: int, *, notes: bool = False) -> Iterator[Text]:
    """The lines of the head."""
    yield _program(profile, style, width)
    yield from _wrapped(_circumstances(profile, style), width)
    if profile.metadata.labels:
        yield from _wrapped(_labels(profile, style), width)
    yield Text()
    yield from _wrapped(_numbers(profile, style), width)
    yield from _split(profile, style, width)
    for line in _pools(profile, style):
        yield from _wrapped(line, width)
    for line in _memory(profile, style):
        yield from _wrapped(line, width)
    for line in _gpu(profile, style):
        yield from _wrapped(line, width)
    for line in quality(profile, style, notes=notes):
        yield from _wrapped(line, width)


def _program(profile: Profile, style: Style, width: int) -> Text:
    text = Text().append(" tachograph  ", "bold")
    program = profile.metadata.program or profile.metadata.path
    text.append(printable(program, max(20, width - 14)), "bold #e5c07b")
    return text


def _circumstances(profile: Profile, style: Style) -> Text:
    metadata = profile.metadata
    facts = [_when(metadata.created_utc), f"on {metadata.host}" if metadata.host else None]
    facts += [f"CPython {version}" for version in metadata.python_versions]
    every = f", every {metadata.interval_s * 1e3:g} ms" if metadata.interval_s else ""
    facts.append(" and ".join(metadata.samplers) + f" sampler{every}" if metadata.samplers else None)
    facts.append(metadata.rotated)
    return Text(" " + style.plain(" · ").join(fact for fact in facts if fact), "dim")


def _labels(profile: Profile, style: Style) -> Text:
    labels = [
        f"{key}={value if len(value) <= 24 else value[:23] + '…'}" for key, value in profile.metadata.labels.items()
    ]
    more = [f"and {len(labels) - MAX_LABELS} more ('tachograph info' has all)"] if len(labels) > MAX_LABELS else []
    return Text(style.plain(" " + " · ".join([*labels[:MAX_LABELS], *more])), "dim")


def _when(created: str | None) -> str | None:
    if created is None:
        return None
    try:
        return datetime.fromisoformat(created).strftime("%d %b %Y %H:%M UTC").lstrip("0")
    except ValueError:
        return created


def _numbers(profile: Profile, style: Style) -> Text:
    totals, waiting = profile.totals, first_waiting(profile)
    kind = "main" if waiting.main else "its thread"
    whose = kind if waiting.threads == 1 else f"{waiting.threads:,} {'main ' if waiting.main else ''}threads"
    cores = (
        f" ({totals.cpu_s / totals.wall_s:.1f} cores)" if totals.wall_s and totals.cpu_s > 1.05 * totals.wall_s else ""
    )
    lacked = without_processor(totals)
    facts = [
        (seconds(totals.wall_s), "wall"),
        (f"{seconds(totals.cpu_s)} CPU{cores}", ""),
        (seconds(waiting.seconds), f"waiting in {whose}") if waiting.seconds is not None else None,
        (seconds(lacked), "without a processor") if lacked is not None else None,
        number_and_noun(totals.threads, "thread"),
        processes_fact(totals),
        number_and_noun(totals.samples, "sample"),
    ]
    text = Text(" ")
    for number, (value, what) in enumerate(filter(None, facts)):
        text.append(style.plain(" · ") if number else "", "dim")
        text.append(style.plain(value), "bold").append(f" {what}" if what else "")
    return text


def _split(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The bar, and what its parts are. Shares are of the CPU time; waiting is ``first_waiting``."""
    totals = profile.totals
    amounts = {
        "python": totals.python_s,
        "native": totals.native_s,
        "kernel": totals.kernel_s,
        "unknown": totals.unknown_s or None,
        "wait": first_waiting(profile).seconds,
    }
    parts = [(part, amount) for part, amount in amounts.items() if amount]
    if not parts:
        return
    bar = style.bar(parts, width - 2)
    bar.pad_left(1)
    yield bar
    legend = Text()
    for part, amount in parts:
        entry = Text(" ").append(style.glyph(part) + " ", COLOURS[part])
        share = f"{percent(amount / totals.cpu_s) or '<0.1'} % " if part != "wait" and totals.cpu_s > 0 else ""
        entry.append(f"{NAMES[part]} ").append(style.plain(f"{share}{seconds(amount)}"), "bold").append("  ")
        if legend.cell_len + entry.cell_len > width:
            yield legend
            legend = Text()
        legend.append_text(entry)
    yield legend
    collected = collections(profile)
    if collected is not None:
        where = f"mostly on {' and '.join(collected.lines)}" if collected.lines else "on the lines that set it off"
        sentence = (
            f"   garbage collection took {percent(collected.share)} % ({seconds(collected.seconds)});"
            f" it is Python, {where}"
        )
        yield from _wrapped(Text(style.plain(sentence), "dim"), width)


def _pools(profile: Profile, style: Style) -> Iterator[Text]:
    """CPU time of native threads, and the part of it that is charged to lines."""
    facts = pool_facts(profile.totals)
    if not facts:
        return
    text = Text(" native threads  ", COLOURS["native"])
    for number, (amount, what) in enumerate(facts):
        text.append(style.plain(" · ") if number else "", "dim").append(style.plain(amount), "bold").append(f" {what}")
    yield text


def _gpu(profile: Profile, style: Style) -> Iterator[Text]:
    """The busy share of the GPUs, and their memory in use."""
    gpu, totals = profile.gpu, profile.totals
    if gpu is None:
        return
    used = gpu.devices[gpu.devices["used"]] if gpu.devices["used"].any() else gpu.devices
    busy = "?" if totals.gpu_share is None else f"{percent(totals.gpu_share) or '0'} %"
    text = Text(" GPU     ", COLOURS["gpu"]).append(busy, "bold").append(" busy")
    for value, what in (
        (_size(totals.gpu_peak_bytes), "of its memory at most"),
        (f"{used['power_w'].mean():.0f} W" if used["power_w"].notna().any() else None, "on average"),
    ):
        if value is not None:
            text.append(style.plain(" · "), "dim").append(value, "bold").append(f" {what}")
    names = [f"{count} {name}" if count > 1 else str(name) for name, count in used["name"].value_counts().items()]
    if names:
        text.append(style.plain(" · ") + ", ".join(names), "dim")
    yield text


def _memory(profile: Profile, style: Style) -> Iterator[Text]:
    """Memory that the processes held, and bytes copied."""
    memory, totals = profile.memory, profile.totals
    facts: list[tuple[str, str]] = []
    if memory is not None:
        shared = memory.peak_inherited_bytes
        details = (
            f", {size(round(shared))} of it inherited by forks and counted again" if shared >= MIN_INHERITED else ""
        )
        details += "" if touched_text(profile) is None else f", {touched_text(profile)}"
        facts.append((_size(memory.peak_bytes), f"held at the peak (at {seconds(memory.peak_s)}{details})"))
        several = len(memory.frames.processes) > 1
        facts.append((_size(memory.end_bytes), "at their ends" if several else "at the end"))
        if memory.resident_peak_bytes is not None:
            at = "" if memory.resident_peak_s is None else f" (at {seconds(memory.resident_peak_s)})"
            facts.append((_size(memory.resident_peak_bytes), f"resident at most{at}"))
        python = "" if totals.python_fraction is None else f" ({totals.python_fraction * 100:.0f} % by Python)"
        facts.append((_size(totals.allocated_bytes), f"allocated{python}"))
    if totals.copied_bytes is not None:
        facts.append((_size(totals.copied_bytes), "copied"))
    if not facts:
        return
    text = Text(" memory  ", COLOURS["memory"])
    for number, (amount, what) in enumerate(facts):
        text.append(style.plain(" · ") if number else "", "dim").append(amount, "bold").append(f" {what}")
    yield text


def _size(count: float | None) -> str:
    return "?" if count is None else size(round(count))


def _wrapped(line: Text, width: int) -> Iterator[Text]:
    """A line of facts or prose on as many lines as it needs, the later ones indented; facts are kept together."""
    rows: list[Text] = []
    for fact in _facts(line):
        if rows and rows[-1].cell_len + fact.cell_len <= width - 3:
            rows[-1].append_text(fact)
        else:
            rows.extend(indented(fact, width - 3, ""))
    for number, row in enumerate(rows):
        if number < len(rows) - 1 and row.plain.endswith(SEPARATORS):
            row.right_crop(3)
        yield Text("   ").append_text(row) if number else row


def _facts(line: Text) -> Iterator[Text]:
    """The facts of a line, each with the separator behind it."""
    ends = [separator.end() for separator in re.finditer("|".join(map(re.escape, SEPARATORS)), line.plain)]
    yield from line.divide(ends)


def indented(line: Text, width: int, indent: str) -> Iterator[Text]:
    """A line of prose on as many lines as it needs, all of them indented."""
    for piece in line.wrap(_RULER, width - len(indent)):
        if not piece.plain.endswith(SEPARATORS):
            piece.rstrip()
        yield Text(indent).append_text(piece)


def quality(profile: Profile, style: Style, *, notes: bool) -> Iterator[Text]:
    """The verdict, what was lost, and all notes; without ``notes`` only how many there are."""
    overall, entries = verdict(profile), ledger(profile)
    facts = [f"{entries.count}: analyze --notes" if entries.notes and not notes else None, recorder_cost(profile)]
    line = Text(style.plain(f" {'✓' if overall.good else '!'} {overall.text}"), "green" if overall.good else "yellow")
    yield line.append(style.plain("".join(f" · {fact}" for fact in facts if fact)), "dim")
    for entry in entries.losses:
        line = Text(style.plain(f" ! {entry.text}"), "yellow")
        yield line.append(style.plain(f": {entry.advice}") if entry.advice else "", "")
    for entry in entries.notes if notes else []:
        yield Text(style.plain("   " + ": ".join(filter(None, (entry.text, entry.advice)))), "dim")
