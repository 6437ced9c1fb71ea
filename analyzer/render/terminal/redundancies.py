"""Repeated work in the terminal: what native code does again, where, which kind it is, and both native call paths."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from ...profile.profile import Profile
from ...recording.frame import Row
from ...recording.text import shorten_left
from ...report_data.numbers import seconds
from .header import indented
from .style import Style

MAX_FINDINGS = 8
MAX_NATIVE = 5
"""Functions of a native path that are shown, the innermost."""


def redundancy_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about repeated work; nothing if it was not looked for, one line if there is none."""
    found = profile.frames.redundancies
    if found is None:
        return
    text = Text().append(" Repeated work ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  native code that loads or stores again what an earlier call did"), "dim")
    if not len(found):
        yield Text("    none above what is usual", "dim")
    for row in found.take(slice(MAX_FINDINGS)).rows():
        yield _place(row, style, width)
        yield from indented(Text(style.plain(row["why"])), width, "    ")
        if row["remedy"] is not None:
            yield from indented(Text(style.plain(f"Usually helps: {row['remedy']}")), width, "    ")
        yield from _paths(row, style, width)
    if len(found) > MAX_FINDINGS:
        yield Text(f"{'':>4}and {len(found) - MAX_FINDINGS} more (--json has them all)", "dim")
    yield Text()


def _place(row: Row, style: Style, width: int) -> Text:
    text = Text(" ").append(style.plain("• ") if style.unicode else "* ", "red")
    text.append(f"{seconds(row['quantity_s'])} of CPU time", "bold red")
    category = "" if row["category"] is None else f"{row['category']}, "
    text.append(f" ({seconds(row['quantity_s_low'])} to {seconds(row['quantity_s_high'])}), {category}{row['kind']}s  ")
    where = str(row["function"]) if row["file"] is None else f"{row['file']}:{row['line']}"
    return text.append(shorten_left(where, max(20, width - text.cell_len - 1)), "bold")


def _paths(row: Row, style: Style, width: int) -> Iterator[Text]:
    first, second = (_path(row[name], style) for name in ("native_path", "partner_native_path"))
    elsewhere = (row["partner_file"], row["partner_line"]) != (row["file"], row["line"])
    if first == second and not elsewhere:
        yield from indented(Text(f"both times in {first}", "dim"), width, "    ")
        return
    yield from indented(Text(f"first in {first}", "dim"), width, "    ")
    at = f", called on line {row['partner_line']}" if elsewhere and row["partner_line"] is not None else ""
    yield from indented(Text(f"again in {second}{at}", "dim"), width, "    ")


def _path(path: list[str], style: Style) -> str:
    more = [style.plain("…")] if len(path) > MAX_NATIVE else []
    return style.plain(" < ").join([*path[:MAX_NATIVE], *more])
