"""What is in a recording, without drawing conclusions from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.text import Text

from ...profile.metadata import read_metadata
from ...recording.opened import Recording
from ...recording.quality import read_quality
from ...recording.text import printable
from ...report_data.numbers import counted, seconds, size


def facts(recording: Recording) -> dict[str, Any]:
    """The document of ``tachograph info --json``."""
    quality = read_quality(recording)
    end = recording.end_ns
    tables = {
        name: {"rows": recording.rows(name), "bytes": recording.tables.size(name)}
        for name in recording.specification.tables
    }
    return {
        "tachograph": {"document": "info", "version": 1},
        "recording": asdict(read_metadata(recording)),
        "state": quality.state,
        "bytes": recording.size,
        "wall_s": None if end is None else (end - recording.start_ns) / 1e9,
        "processes": processes_by_kind(recording),
        "parameters": recording.manifest.parameters,
        "sampler_cost": recording.manifest.sampler_cost,
        "recorder_bytes": quality.recorder_bytes,
        "tables": tables,
        "quality": {
            "nothing_lost": quality.nothing_lost,
            "losses": [asdict(loss) for loss in quality.losses],
            "causes": [asdict(cause) for cause in quality.causes],
        },
        "notes": quality.notes,
    }


def text(document: dict[str, Any]) -> Iterator[Text]:
    """The document as lines for a terminal."""
    metadata = document["recording"]
    machine = [
        metadata["host"],
        metadata["os"],
        metadata["machine"],
        metadata["cpu_count"] and f"{metadata['cpu_count']} CPUs",
    ]
    yield Text().append(f" {metadata['path']}", "bold").append(f"   {size(document['bytes'])}", "dim")
    for name, value in (
        ("program", metadata["program"]),
        ("recorded", metadata["created_utc"]),
        ("on", ", ".join(str(part) for part in machine if part)),
        ("labels", " ".join(f"{key}={value}" for key, value in metadata["labels"].items()) or "none"),
        ("Python", ", ".join(metadata["python_versions"])),
        ("processes", _processes(document["processes"])),
        ("wall time", seconds(document["wall_s"])),
        ("state", document["state"]),
        ("format", f"{metadata['format_version']}, written by tachograph {metadata['tachograph_version'] or '?'}"),
        ("parameters", _pairs(document["parameters"])),
        ("sampler cost", _pairs(document["sampler_cost"])),
        ("its memory", _its_memory(document)),
    ):
        yield Text().append(f"   {name:<13}", "dim").append(str(value or "?"))
    yield Text()
    yield Text(f"   {'table':<16}{'rows':>14}{'size':>12}", "dim")
    for name, table in document["tables"].items():
        yield Text(f"   {name:<16}{table['rows']:>14,}{size(table['bytes']):>12}")
    yield Text()
    causes = document["quality"]["causes"]
    if not causes:
        yield Text("   nothing was lost", "green")
    for cause in causes:
        mark = "!" if cause["severity"] == "loss" else " "
        where = f" ({cause['where']})" if cause["where"] else ""
        told = f" {mark} {counted(cause['count'], cause['doc'])}{where}: {cause['advice']}"
        yield Text(told, "yellow" if mark == "!" else "")
    for note in document["notes"]:
        yield Text(f"   {note}", "dim")


KINDS = {"python": "Python", "native": "Python without its stacks", "listed": "only listed", None: "recorded"}
"""What ``processes.recorded`` says, and how it is called here; null in recordings from before there were others."""


def processes_by_kind(recording: Recording) -> dict[str, int]:
    """How many processes were recorded in which way; ``unknown`` where the recording does not say."""
    found = Counter(recording.table("processes").column("recorded").to_pylist())
    return {kind or "unknown": count for kind, count in found.items() if kind in KINDS}


def _processes(counts: dict[str, int]) -> str:
    parts = [f"{counts[kind or 'unknown']:,} {name}" for kind, name in KINDS.items() if counts.get(kind or "unknown")]
    return ", ".join(parts)


def _its_memory(document: dict[str, Any]) -> str:
    most = document["recorder_bytes"]
    several = " in a process" if sum(document["processes"].values()) > 1 else ""
    return "" if most is None else f"at most {size(most)}{several}"


def _pairs(values: dict[str, Any]) -> str:
    simple = {key: value for key, value in values.items() if not isinstance(value, dict) and _is_plain(value)}
    return ", ".join(f"{printable(str(key), 40)} {printable(_value(key, value), 80)}" for key, value in simple.items())


def _is_plain(value: Any) -> bool:
    return not isinstance(value, list) or all(isinstance(each, str) for each in value)


def _value(key: str, value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value)
    if isinstance(value, int) and not isinstance(value, bool) and key.endswith("_ns"):
        return seconds(value / 1e9)
    return "yes" if value is True else "no" if value is False else str(value)
