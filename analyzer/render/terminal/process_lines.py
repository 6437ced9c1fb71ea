"""Processes and contents of a recording in the terminal: the tree of processes, and ``tachograph info``.

``info`` shows what is in a recording, without drawing conclusions from it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.text import Text

from ...profile.processes import read_metadata
from ...profile.profile import Profile
from ...recording.frame import Frame, Row
from ...recording.opened import Recording
from ...recording.quality import read_quality
from ...recording.text import printable
from ...report_data.numbers import counted, seconds, short_seconds, short_size, size
from ...report_data.section_rows import exit_text, process_remarks
from ...report_data.sections import SECTIONS
from .header import header
from .section_lines import section_heads, section_title
from .style import WIDE, Style

MAX_ALIKE = 8
"""More childless processes of one name and parent are put together, but for the first ones."""
SHOWN_ALIKE = 3
SECTION = SECTIONS["processes"]


@dataclass
class _Entry:
    """A process, or several of one kind that are put together."""

    rows: list[Row]
    children: list[_Entry] = field(default_factory=list)


def show(profile: Profile, console: Console) -> None:
    """Prints the head of the report and the tree."""
    style = Style.of(console)
    style.print_lines(console, lines(profile, style, max(60, console.width)))


def lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The lines of the head and of the tree."""
    yield from header(profile, style, width)
    yield Text()
    yield from tree_lines(profile, style, width)


def tree_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The tree: what each process used, and who started it."""
    yield from section_title(SECTION, style, width)
    heads = section_heads(SECTION)
    yield Text(f"{heads}  process", "dim")
    entries = WIDE.rows(_entries(profile.frames.processes), lambda entry: entry.children)
    for number, (indent, entry) in enumerate(entries):
        if number == SECTION.most:
            yield Text(f"{'':>{len(heads)}}  and more (--json has them all)", "dim")
            break
        yield _line(entry, style.plain(indent), style)
    yield from _signs(profile.frames.processes.rows())
    yield Text()


def _signs(rows: Iterable[Row]) -> Iterator[Text]:
    """The meanings of the signs in the tree; nothing where it has none."""
    shown = list(rows)
    least = any(_wall([row]).startswith(">") for row in shown)
    unknown = any(math.isnan(row["user_s"]) or math.isnan(row["system_s"]) for row in shown)
    meanings = ["> at least: it ended unobserved"] * least + ["? not known: the kernel reports it at the end"] * unknown
    if meanings:
        yield Text(f" {'; '.join(meanings)}", "dim")


def _entries(frame: Frame) -> list[_Entry]:
    """The roots of the tree; a process whose parent was not asked for is one."""
    entries: dict[int, _Entry] = {}
    roots: list[_Entry] = []
    for row in frame.rows():
        entry = _Entry([row])
        entries[row["process"]] = entry
        above = None if row["parent"] is None else entries.get(row["parent"])
        (roots if above is None else above.children).append(entry)
    for entry in entries.values():
        entry.children = _put_together(entry.children)
    return _put_together(roots)


def _put_together(siblings: list[_Entry]) -> list[_Entry]:
    """Siblings, of which many childless ones of one name are one entry, behind those that used most."""
    kinds: dict[tuple[str, str], list[_Entry]] = {}
    for entry in siblings:
        if not entry.children:
            row = entry.rows[0]
            kinds.setdefault((row["name"], row["recorded"]), []).append(entry)
    rest: dict[int, _Entry] = {}
    gone: set[int] = set()
    for alike in kinds.values():
        if len(alike) > MAX_ALIKE:
            heaviest = sorted(alike, key=lambda entry: -_cpu(entry.rows[0]))[:SHOWN_ALIKE]
            kept = {id(entry) for entry in heaviest}
            others = [entry for entry in alike if id(entry) not in kept]
            gone |= {id(entry) for entry in others}
            last = [entry for entry in alike if id(entry) in kept][-1]
            rest[id(last)] = _Entry([entry.rows[0] for entry in others])
    result = []
    for entry in siblings:
        if id(entry) not in gone:
            result.append(entry)
            if id(entry) in rest:
                result.append(rest[id(entry)])
    return result


def _cpu(row: Row) -> float:
    measured = [row[name] for name in ("user_s", "system_s") if not math.isnan(row[name])]
    return sum(measured) if measured else 0.0 if math.isnan(row["cpu_s"]) else row["cpu_s"]


def _line(entry: _Entry, indent: str, style: Style) -> Text:
    row = entry.rows[0]
    many = len(entry.rows) > 1
    dim = "dim" if row["recorded"] == "listed" or many else ""
    user, system = (_measured(entry.rows, name) for name in ("user_s", "system_s"))
    samples = sum(each["samples"] or 0 for each in entry.rows)
    cells = {
        "wall_s": _wall(entry.rows),
        "user_s": short_seconds(sum(user)) if user else "?",
        "system_s": short_seconds(sum(system)) if system else "?",
        "samples": f"{samples:,}" if samples else "",
        "peak_bytes": short_size(max(_measured(entry.rows, "peak_bytes"), default=None), unknown=""),
        "exit_status": "" if many else exit_text(row["exit_status"]),
    }
    text = Text("", dim)
    for column in SECTION.in_terminal:
        colour = _exit_style(row, many=many) if column.name == "exit_status" else dim
        text.append(f"{cells[column.name]:>{column.width}}", colour)
    text.append("  ").append(indent, "dim")
    if many:
        return text.append(f"and {len(entry.rows):,} more of {row['name']}", "dim")
    text.append(str(row["name"]), "bold" if row["recorded"] != "listed" else "dim")
    return text.append(f" {_remark(row, style)}", "dim")


def _measured(rows: list[Row], name: str) -> list[float]:
    """The values of a column that are known."""
    return [row[name] for row in rows if not math.isnan(row[name])]


def _wall(rows: list[Row]) -> str:
    """The lifetime of a process; its least lifetime if the end was not observed."""
    measured = _measured(rows, "wall_s")
    if measured:
        return short_seconds(sum(measured))
    least = short_seconds(sum(row["last_s"] - row["start_s"] for row in rows))
    return f">{least}" if least else "?"


def _exit_style(row: Row, *, many: bool) -> str:
    if many or row["exit_status"] is None:
        return "dim"
    return "yellow" if row["exit_status"] else ""


def _remark(row: Row, style: Style) -> str:
    """The process's ids, and what is not ordinary about it."""
    return style.plain(" · ").join([f"{row['pid']} id={row['process']}", *process_remarks(row)])


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
        sampled = document["tables"].get("cpu", {}).get("rows")
        yield Text("   nothing was lost", "green") if sampled else Text("   no CPU time was sampled", "yellow")
    for cause in causes:
        mark = "!" if cause["severity"] == "loss" else " "
        where = f" ({cause['where']})" if cause["where"] else ""
        line = f" {mark} {counted(cause['count'], cause['doc'])}{where}: {cause['advice']}"
        yield Text(line, "yellow" if mark == "!" else "")
    for note in document["notes"]:
        yield Text(f"   {note}", "dim")


KINDS = {"python": "Python", "native": "Python without its stacks", "listed": "only listed", None: "recorded"}
"""Words for the values of ``processes.recorded``; null in recordings from before there were others."""


def processes_by_kind(recording: Recording) -> dict[str, int]:
    """The number of processes by the way they were recorded; ``unknown`` where the recording does not say."""
    counts = Counter(recording.all_processes.recorded)
    return {kind or "unknown": count for kind, count in counts.items() if kind in KINDS}


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
