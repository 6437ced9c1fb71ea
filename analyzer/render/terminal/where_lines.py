"""``analyze --where``: what the resident memory consists of, of all processes, of each, and over time."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from ...profile.profile import Profile
from ...report_data.numbers import short_seconds, short_size
from ...report_data.sections import SECTIONS
from ...report_data.where_memory import judgement_rows, process_where_rows
from .header import header, indented
from .section_lines import section_title, table_lines
from .style import Style

PARTS = (
    ("resident_bytes", "resident"),
    ("live_bytes", "live"),
    ("kept_bytes", "kept"),
    ("file_bytes", "files"),
    ("shared_bytes", "shared"),
    ("other_bytes", "other"),
)
MAX_PROCESSES = 20
MAX_MOMENTS = 20


def show(profile: Profile, console: Console) -> None:
    """Prints the head of the report, and where the memory is."""
    style = Style.of(console)
    style.print_lines(console, lines(profile, style, max(60, console.width)))


def lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The lines of the head, the parts, the judgements, the processes and the moments."""
    yield from header(profile, style, width)
    yield Text()
    section = SECTIONS["where"]
    rows = None if section.rows is None else section.rows(profile)
    if profile.memory is None or profile.memory.where is None or rows is None:
        yield Text(
            " where the memory is was not recorded: it needs memory, and processes of a quarter of a second", "dim"
        )
        return
    yield from table_lines(section, rows, style, width)
    yield from judgement_lines(profile, style, width)
    section = SECTIONS["referrers"]
    rows = None if section.rows is None else section.rows(profile)
    if rows:
        yield from table_lines(section, rows, style, width)
    yield from section_title(SECTIONS["where_processes"], style, width)
    heads = "".join(f"{head:>9}" for _, head in PARTS) + f"{'private':>9}{'copied':>9}"
    yield Text(f"{heads}  process", "dim")
    processes = process_where_rows(profile)
    for row in processes[:MAX_PROCESSES]:
        text = Text("".join(f"{short_size(row[name]) or '0':>9}" for name, _ in PARTS))
        text.append(f"{short_size(row['private_bytes']) or '0':>9}{short_size(row['copied_after_fork_bytes'], ''):>9}")
        yield text.append(f"  {row['name'] or ''} ({row['pid']})", "dim")
    if len(processes) > MAX_PROCESSES:
        yield Text(f"{'':>9}and {len(processes) - MAX_PROCESSES} more (--json has them all)", "dim")
    yield Text()
    timeline = profile.memory.where.timeline
    if len(profile.memory.where.processes) == 1 and len(timeline) > 1:
        yield from section_title(SECTIONS["where_time"], style, width)
        yield Text("".join(f"{head:>9}" for _, head in PARTS) + "  at", "dim")
        step = -(-len(timeline) // MAX_MOMENTS)
        for row in list(timeline.rows())[::-1][::step][::-1]:
            amounts = "".join(f"{short_size(row[name]) or '0':>9}" for name, _ in PARTS)
            yield Text(style.plain(f"{amounts}  {short_seconds(row['time_s'])}"))
        yield Text()


def judgement_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The judgements, each with what helps."""
    judged = judgement_rows(profile)
    for text, remedy in judged:
        yield from indented(Text(style.plain(f" ! {text}"), "yellow"), width, "")
        yield from indented(Text(style.plain(f"helps: {remedy}"), "dim"), width, "   ")
    if judged:
        yield Text()
