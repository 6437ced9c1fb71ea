"""The head of the report: program, machine, totals and quality of the data, as texts and numbers for the template."""

from __future__ import annotations

import math
from typing import Any

from ...profile.profile import Profile
from ...report_data.headline import (
    collections,
    first_waiting,
    ledger,
    pool_facts,
    processes_fact,
    recorder_cost,
    touched_text,
    verdict,
    without_processor,
)
from ...report_data.numbers import percent, seconds, size

PARTS = (("python", "Python"), ("native", "native"), ("kernel", "kernel"), ("unknown", "not known"))


def head(profile: Profile, left_out: list[str]) -> dict[str, Any]:
    """Values for the template: the head above the charts, and the facts of the recording at the end."""
    metadata = profile.metadata
    return {
        "program": metadata.program or metadata.path,
        "facts": _facts(profile),
        **summary(profile),
        "quality": _quality(profile),
        "about": _about(profile),
        "left_out": left_out,
        "lines": _top_lines(profile),
    }


def summary(profile: Profile) -> dict[str, list[dict[str, Any]]]:
    """The figures at the top, and how the CPU time divides."""
    return {"figures": _figures(profile), "split": _split(profile)}


def _facts(profile: Profile) -> list[str]:
    metadata = profile.metadata
    facts = [metadata.created_utc and metadata.created_utc.replace("T", " ").removesuffix("+00:00")[:19] + " UTC"]
    facts.append(metadata.host)
    facts.append(f"{metadata.cpu_count} CPUs" if metadata.cpu_count else None)
    facts += [f"CPython {version}" for version in metadata.python_versions]
    every = f", every {metadata.interval_s * 1e3:g} ms" if metadata.interval_s else ""
    facts.append(" and ".join(metadata.samplers) + f" sampler{every}" if metadata.samplers else None)
    facts.append(metadata.rotated)
    question = profile.question
    if question.thread is not None:
        facts.append(f"only thread {question.thread}")
    if question.span is not None:
        facts.append(f"only span {question.span}")
    if question.processes:
        facts.append(f"only process {', '.join(question.processes)}")
    return [fact for fact in facts if fact]


def _figures(profile: Profile) -> list[dict[str, Any]]:
    totals, memory = profile.totals, getattr(profile, "memory", None)
    cores = f"{totals.cpu_s / totals.wall_s:.1f} cores busy" if totals.wall_s and totals.cpu_s else ""
    figures = [
        _figure("time", seconds(totals.wall_s), "from start to end"),
        _figure("CPU", seconds(totals.cpu_s), cores),
    ]
    waiting = first_waiting(profile)
    if waiting.seconds is not None:
        several = waiting.threads > 1
        whole = totals.main_s if waiting.main else (totals.wall_s or 0.0) * waiting.threads
        share = f"{percent(waiting.seconds / whole) or '0'} % of the time" if whole else ""
        if several and share:
            share += f" of {totals.processes:,} processes" if waiting.main else f" of {waiting.threads:,} threads"
        label = f"{'main ' if waiting.main else ''}thread{'s wait' if several else ' waits'}"
        figures.append(_figure(label, seconds(waiting.seconds), share))
    lacked = without_processor(totals)
    if lacked is not None:
        figures.append(_figure("no processor", seconds(lacked), "the machine was busy"))
    if memory is not None and memory.peak_bytes is not None:
        resident = None
        if memory.resident_peak_bytes is not None:
            resident = f"{size(round(memory.resident_peak_bytes))} resident"
            resident += "" if memory.resident_peak_s is None else f" after {seconds(memory.resident_peak_s)}"
        details = (
            f"after {seconds(memory.peak_s)}" if memory.peak_s is not None else None,
            touched_text(profile),
            resident,
        )
        at = " · ".join(filter(None, details))
        figures.append(_figure("memory at its peak", size(round(memory.peak_bytes)), at))
        allocated = getattr(totals, "allocated_bytes", None)
        if allocated is not None:
            rate = f"{size(round(allocated / totals.wall_s))}/s" if totals.wall_s else ""
            figures.append(_figure("allocated", size(round(allocated)), rate))
    if totals.gpu_share is not None:
        held = "" if totals.gpu_peak_bytes is None else f"{size(round(totals.gpu_peak_bytes))} of its memory at most"
        figures.append(_figure("GPU busy", f"{percent(totals.gpu_share) or '0'} %", held))
    pools = pool_facts(totals)
    if pools:
        hint = " · ".join(f"{amount} {what}" for amount, what in pools[1:])
        figures.append(_figure("native threads", f"{pools[0][0]} CPU", hint))
    copied = getattr(totals, "copied_bytes", None)
    if copied is not None:
        rate = f"{size(round(copied / totals.wall_s))}/s" if totals.wall_s else ""
        figures.append(_figure("copied", size(round(copied)), rate))
    threads = f"{totals.threads:,} thread{'s' if totals.threads != 1 else ''}"
    processes = " ".join(processes_fact(totals) or ("1", "process"))
    figures.append(_figure("samples", f"{totals.samples:,}", f"{threads} in {processes}"))
    return figures


def _figure(label: str, value: str, hint: str) -> dict[str, Any]:
    return {"label": label, "value": value, "hint": hint}


def _split(profile: Profile) -> list[dict[str, Any]]:
    """The parts of the CPU time: kind, name, share and position in percent."""
    totals, parts, at = profile.totals, [], 0.0
    if totals.cpu_s <= 0:
        return []
    for kind, name in PARTS:
        amount = getattr(totals, f"{kind}_s")
        if not amount:
            continue
        share = amount / totals.cpu_s
        text = f"{percent(share) or '<0.1'} %"
        parts.append(
            {"kind": kind, "name": name, "x": 100 * at, "width": 100 * share, "share": text, "time": seconds(amount)}
        )
        at += share
    collected = collections(profile)
    if collected is not None:
        where = f", mostly on {' and '.join(collected.lines)}" if collected.lines else ""
        name = f"garbage collection (part of Python{where})"
        parts.append(
            {"kind": "", "name": name, "share": f"{percent(collected.share)} %", "time": seconds(collected.seconds)}
        )
    return parts


def _quality(profile: Profile) -> dict[str, Any]:
    overall, entries, cost = verdict(profile), ledger(profile), recorder_cost(profile)
    return {
        "good": overall.good,
        "verdict": overall.text[0].upper() + overall.text[1:] + (f" · {cost}" if cost else ""),
        "losses": entries.losses,
        "notes": entries.notes,
    }


def _about(profile: Profile) -> list[tuple[str, str]]:
    metadata, question = profile.metadata, profile.question
    widened = " (little time is the project's own)" if profile.widened else ""
    window = "" if question.start_s is None and question.end_s is None else f"{question.start_s} to {question.end_s} s"
    rows = [
        ("command", " ".join(metadata.argv[:100])),
        ("recording", metadata.path),
        ("identity", metadata.uuid),
        ("machine", ", ".join(filter(None, (metadata.host, metadata.os, metadata.machine)))),
        ("labels", " ".join(f"{key}={value}" for key, value in metadata.labels.items())),
        ("scope", profile.scope + widened),
        ("window", window),
        ("attribution", str(question.attribution)),
        ("native threads", f"attributed by {question.pools}" if profile.totals.pool_cpu_s > 0 else ""),
        ("format", f"{metadata.format_version}, written by tachograph {metadata.tachograph_version or '?'}"),
        ("effective samples", f"{profile.totals.effective_samples:,.0f}"),
    ]
    return [(name, value) for name, value in rows if value]


def _top_lines(profile: Profile) -> list[dict[str, str]]:
    """The first lines, for readers without scripts."""
    rows = []
    for row in profile.lines.head(40).itertuples():
        place = f"{row.file}:{row.line}" if isinstance(row.file, str) else str(row.function)
        wait = "" if math.isnan(row.main_wait_s) else seconds(row.main_wait_s)
        low, high = percent(row.cpu_share_low) or "0", percent(row.cpu_share_high) or "0"
        share = percent(row.cpu_share) or "0"
        text = row.source if isinstance(row.source, str) else ""
        rows.append({"place": place, "share": share, "interval": f"{low} to {high}", "wait": wait, "source": text})
    return rows
