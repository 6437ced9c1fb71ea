"""Findings of repeated work in the terminal report of a diff."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ...recording.text import shorten_left
from ...report_data.difference import DiffResult
from ...report_data.numbers import short_seconds
from ...report_data.redundancy_changes import GONE, NEW, redundancy_changes
from .style import Style

MOST = 10
COLOURS = {GONE: "#98c379", NEW: "#e06c75"}


def redundancy_change_lines(result: DiffResult, style: Style, width: int) -> Iterator[Text]:
    """The section; nothing where no run found any, or one did not look."""
    found = redundancy_changes(result)
    if not found:
        return
    text = Text().append(" Repeated work ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  CPU time of native code that does again what an earlier call did"), "dim")
    yield Text(f"{'base':>8}{'new':>8}  {'':<6} kind", "dim")
    for each in found[:MOST]:
        row = Text(f"{short_seconds(each.base_s) or '0':>8}{short_seconds(each.new_s) or '0':>8}  ")
        row.append(f"{each.verdict:<6}", COLOURS.get(each.verdict, "dim"))
        row.append(f" {each.category or 'not decided'}, {each.kind}s  ")
        line = each.new_line if each.new_line is not None else each.base_line
        where = f"{each.function}  {each.file}:{line}"
        yield row.append(shorten_left(where, max(20, width - row.cell_len - 1)))
    if len(found) > MOST:
        yield Text(f"{'':>8}and {len(found) - MOST} more (--json has them all)", "dim")
    yield Text()
