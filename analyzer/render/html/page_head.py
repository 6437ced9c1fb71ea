"""The head of the report: program, machine, totals and quality of the data, as texts and numbers for the template."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from ...profile.profile import Profile
from ...report_data.head import (
    circumstances,
    collecting_figure,
    gpu_figures,
    memory_figures,
    pool_figures,
    restrictions,
    time_figures,
    time_parts,
)
from ...report_data.headline import ledger, recorder_cost, verdict
from ...report_data.killed import killed_text, last_lines, last_title
from ...report_data.numbers import percent, seconds
from ...report_data.waiting_parents import waiting_sentences


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
        "killed": killed_text(profile),
        "last": {"title": last_title(profile), "lines": last_lines(profile)},
        "waiting": waiting_sentences(profile),
        "lines": _top_lines(profile),
    }


def summary(profile: Profile) -> dict[str, list[dict[str, Any]]]:
    """The figures at the top, and how the CPU time divides."""
    time = time_figures(profile)
    groups = (time[:-1], memory_figures(profile), gpu_figures(profile), pool_figures(profile), time[-1:])
    figures = [asdict(figure) for group in groups for figure in group if figure.label]
    return {"figures": figures, "split": _split(profile)}


def _facts(profile: Profile) -> list[str]:
    cpus = profile.metadata.cpu_count
    return [*circumstances(profile), *([f"{cpus} CPUs"] if cpus else []), *restrictions(profile)]


def _split(profile: Profile) -> list[dict[str, Any]]:
    """The parts of the CPU time: kind (none for garbage collection), name, share, time and position."""
    rows: list[dict[str, Any]] = []
    at = 0.0
    for part in time_parts(profile):
        if part.share is None:
            continue
        place = {"kind": part.name, "x": 100 * at, "width": 100 * part.share}
        rows.append({**place, "name": part.label, "share": part.share_text, "time": seconds(part.seconds)})
        at += part.share
    collected = collecting_figure(profile)
    if collected is not None:
        rows.append({"kind": "", "name": "", "share": collected.value, "time": collected.text})
    return rows


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
