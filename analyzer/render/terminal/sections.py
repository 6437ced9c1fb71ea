"""Sections of the terminal report: leaks, repeated work, native functions, spans, suggestions, calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from rich.text import Text

from ...profile.profile import Profile
from ...recording.frame import Row
from ...recording.native_names import native_label, short_library, short_name
from ...recording.text import printable, shorten_left
from ...report_data.advice.program import HELP, Suggestion
from ...report_data.columns import Column
from ...report_data.numbers import percent, seconds, short_count, short_seconds, short_size, short_time, size
from ...report_data.sections import SECTIONS, Section, place_text
from .header import indented
from .line_columns import Columns
from .style import Style

MAX_LEAKS = 10
MAX_FRAMES = 4
"""Frames of a call path that are shown, the innermost."""


def leak_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about leaks; nothing if there are none."""
    leaks = profile.frames.leaks
    if leaks is None or not len(leaks):
        return
    yield section_title(SECTIONS["leaks"], style)
    for leak in leaks.take(slice(MAX_LEAKS)).rows():
        yield _leak(leak, style, width)
        if leak["source"] is not None:
            yield Text(f"{'':>4}{leak['source'].strip()}")
        if leak["native"] is not None:
            yield Text(f"{'':>4}allocated by {leak['native']}", "dim")
        callers = leak["path"][-MAX_FRAMES - 1 : -1]
        if callers:
            yield Text(f"{'':>4}called from " + style.plain(" > ").join(callers), "dim")
    if len(leaks) > MAX_LEAKS:
        yield Text(f"{'':>4}and {len(leaks) - MAX_LEAKS} more (--json has them all)", "dim")
    yield Text()


def _leak(leak: Row, style: Style, width: int) -> Text:
    rate = f"{size(round(leak['rate_bytes_per_s']))}/s"
    low, high = size(round(leak["rate_low"])), size(round(leak["rate_high"]))
    text = Text(" ").append(style.plain("• ") if style.unicode else "* ", "red").append(rate, "bold red")
    text.append(
        f" ({low} to {high}), {leak['likelihood'] * 100:.0f} % likely, {size(round(leak['leaked_bytes']))} so far  "
    )
    return text.append(shorten_left(place_text(leak), max(20, width - text.cell_len - 1)), "bold")


MAX_FINDINGS = 8
MAX_NATIVE = 5
"""Functions of a native path that are shown, the innermost."""


def redundancy_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about repeated work; nothing if it was not looked for, one line if there is none."""
    redundancies = profile.frames.redundancies
    if redundancies is None:
        return
    section = SECTIONS["redundancies"]
    yield section_title(section, style)
    if not len(redundancies):
        yield Text(f"    {section.nothing}", "dim")
    for row in redundancies.take(slice(MAX_FINDINGS)).rows():
        yield _place(row, style, width)
        yield from indented(Text(style.plain(row["why"])), width, "    ")
        if row["remedy"] is not None:
            yield from indented(Text(style.plain(f"Usually helps: {row['remedy']}")), width, "    ")
        yield from _paths(row, style, width)
    if len(redundancies) > MAX_FINDINGS:
        yield Text(f"{'':>4}and {len(redundancies) - MAX_FINDINGS} more (--json has them all)", "dim")
    yield Text()


def _place(row: Row, style: Style, width: int) -> Text:
    text = Text(" ").append(style.plain("• ") if style.unicode else "* ", "red")
    text.append(f"{seconds(row['quantity_s'])} of CPU time", "bold red")
    category = "" if row["category"] is None else f"{row['category']}, "
    text.append(f" ({seconds(row['quantity_s_low'])} to {seconds(row['quantity_s_high'])}), {category}{row['kind']}s  ")
    return text.append(shorten_left(place_text(row), max(20, width - text.cell_len - 1)), "bold")


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


MAX_FUNCTIONS = 10

MIN_SHARE = 0.005
"""Functions with less of the CPU time of their own are left out."""

GUESSED = 0.05
"""A part of a function's time with guessed native paths that is worth a remark."""


def native_lines(
    profile: Profile, style: Style, width: int, title: Callable[[str, str], Text], columns: Columns
) -> Iterator[Text]:
    """The table; nothing if native code took no time.

    Functions are chosen by the time that does not count as Python's (the interpreter's own functions run for Python
    code), and sorted by the time that is shown.
    """
    frame = profile.frames.native_functions
    own = np.maximum(frame["cpu_s"] - np.nan_to_num(frame["python_s"]), 0.0)
    order = np.argsort(-own, kind="stable")
    chosen = order[own[order] >= MIN_SHARE * profile.totals.cpu_s][:MAX_FUNCTIONS]
    frame = frame.take(chosen[np.argsort(-frame["cpu_s"][chosen], kind="stable")])
    if not len(frame) or profile.totals.cpu_s <= 0:
        return
    yield title("Native functions", "in part of the time above" if profile.paths.recorded else "callers not recorded")
    yield Text(f"{'self %':>8}{'total %':>9}{'':>6}{'wait':>8}  function", "dim")
    for row in frame.rows():
        has_paths = profile.paths.recorded
        text = Text().append(f"{percent(row['cpu_share']):>8}", "bold")
        text.append(f"{percent(row['total_cpu_share']) if has_paths else '?':>9}")
        text.append(f"{columns.margin(row, 'total_') if has_paths else '':>6}", "dim")
        text.append(f"{short_seconds(row['total_wait_s']) if has_paths else '':>8}  ")
        library = short_library(profile.paths.functions.paths[row["native"]])
        guessed = row["guessed_s"] / row["total_cpu_s"] if has_paths and row["total_cpu_s"] > 0 else 0.0
        remark = f"  ({guessed:.0%} guessed)" if guessed >= GUESSED else ""
        name = short_name(native_label(str(row["function"]), library))
        room = max(16, width - text.cell_len - min(len(library), 30) - len(remark) - 3)
        text.append(style.plain(name if len(name) <= room else name[: room - 1] + "…"))
        if not name.startswith("["):
            text.append("  ").append(shorten_left(library, max(8, width - text.cell_len - len(remark) - 1)), "dim")
        yield text.append(remark, "dim")
    yield Text()


MAX_SPANS = 15


def span_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about spans; nothing if there are none."""
    if not profile.frames.spans:
        return
    # What was in no span is not counted, and has no length.
    spans, unknown = list(profile.frames.spans.rows()), {"count": "", "duration_s": ""}
    yield from table_lines(SECTIONS["spans"], spans, style, width, MAX_SPANS, unknown=unknown, last=1)


OWN = ("spans", "leaks", "redundancies", "suggestions", "processes", "threads")
"""Sections that are more than a table here."""

MAX_ROWS = 15


def plain_sections(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """All other sections that anything is known of."""
    for name, section in SECTIONS.items():
        rows = None if section.rows is None or name in OWN else section.rows(profile)
        if rows is not None:
            yield from table_lines(section, rows, style, width, MAX_ROWS)


def table_lines(
    section: Section,
    rows: Sequence[Row],
    style: Style,
    width: int,
    most: int,
    *,
    unknown: Mapping[str, str] | None = None,
    last: int = 0,
) -> Iterator[Text]:
    """A section that is a table, of ``most`` rows and the ``last`` ones; the texts of a row are behind its figures."""
    texts = [column for column in section.columns if column.unit == "text" and not column.head]
    yield section_title(section, style)
    if not rows:
        yield Text(f"    {section.nothing}", "dim")
    else:
        yield Text("  ".join([section_heads(section), *(column.title for column in texts)]), "dim")
    first, end = rows[: len(rows) - last], rows[len(rows) - last :]
    for row in first[:most]:
        yield _table_row(row, section, texts, width, unknown or {})
    if len(first) > most:
        yield Text(f"{'':>8}and {len(first) - most} more (--json has them all)", "dim")
    for row in end:
        yield _table_row(row, section, texts, width, unknown or {})
    yield Text()


def _table_row(row: Row, section: Section, texts: Sequence[Column], width: int, unknown: Mapping[str, str]) -> Text:
    text = section_cells(row, section, unknown)
    for column in texts:
        text.append("  ").append(printable(str(row[column.name] or ""), max(8, width - text.cell_len - 3)))
    return text


def section_title(section: Section, style: Style, more: str = "") -> Text:
    """The title of a section with what is beside it, and ``more``."""
    text = Text().append(f" {section.title} ", "bold reverse" if style.colour else "bold")
    return text.append(style.plain(f"  {section.subtitle}{more}"), "dim")


def section_heads(section: Section) -> str:
    """The heads of a section's columns."""
    return "".join(f"{column.head:>{column.width}}" for column in section.in_terminal)


def section_cells(row: Row, section: Section, unknown: Mapping[str, str]) -> Text:
    """The cells of a row by their units; ``unknown`` has by column what stands for an unknown value, else ``?``."""
    text = Text()
    for column in section.in_terminal:
        value = row[column.name]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            cell = unknown.get(column.name, "?")
        else:
            cell = _CELLS[column.unit](value)
        text.append(f"{cell:>{column.width}}", "bold" if column.main else "")
    return text


_CELLS: Mapping[str, Callable[[Any], str]] = {
    "s": short_seconds,
    "bytes": short_size,
    "share": percent,
    "count": str,
    "text": str,
}


MOST = 5
"""Suggestions that are shown; --json has all."""


def suggestion_lines(suggestions: Sequence[Suggestion], style: Style, width: int) -> Iterator[Text]:
    """The section, or nothing where no rule is certain."""
    if not suggestions:
        return
    more = f"; {len(suggestions) - MOST} more with --json" if len(suggestions) > MOST else ""
    yield section_title(SECTIONS["suggestions"], style, more)
    for each in suggestions[:MOST]:
        text = Text(style.plain(" → "))
        if each.file is not None:
            text.append(style.plain(shorten_left(f"{each.file}:{each.line}", max(20, width // 3))), "bold").append("  ")
        yield text.append(style.plain(each.figure), "bold")
        advice = Text(style.plain(f"{each.text} Instead: {each.instead}.")).append(f" {each.rule}: {HELP}", "dim")
        yield from indented(advice, width, "   ")
    yield Text()


MAX_CALLED = 12


def call_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about calls, the functions with the most time in all of their calls first; nothing without calls."""
    frame = profile.frames.functions
    if np.isnan(frame["watched_s"]).all():
        return
    spent = np.nan_to_num(frame["calls"] * frame["call_mean_s"])
    order = np.argsort(-spent, kind="stable")
    frame = frame.take(order[spent[order] > 0][:MAX_CALLED])
    if not len(frame):
        return
    text = Text().append(" Calls ", "bold reverse" if style.colour else "bold")
    yield text.append(style.plain("  times of one call, with all that it calls; own: in its own lines"), "dim")
    heads = ("calls", "", "mean", "half", "90 %", "99 %", "longest", "own")
    yield Text("".join(f"{name:>8}" for name in heads) + "  function", "dim")
    for row in frame.rows():
        yield _function(row, style, width)
    yield Text()


def _function(row: Row, style: Style, width: int) -> Text:
    text = Text().append(f"{short_count(row['calls']):>8}", "bold")
    text.append(style.plain(f"{_margin(row):>8}"), "dim")
    text.append(style.plain(f"{short_time(row['call_mean_s']):>8}"), "bold")
    for name in ("call_p50_s", "call_p90_s", "call_p99_s", "call_max_s", "own_call_mean_s"):
        text.append(style.plain(f"{short_time(row[name]):>8}"))
    text.append(f"  {row['function']}  ")
    where = f"{row['file']}:{row['line']}"
    return text.append(shorten_left(where, max(10, width - text.cell_len - 1)), "dim")


def _margin(row: Row) -> str:
    """The margin of the number of calls, in percent; empty where it is exact."""
    calls, low, high = row["calls"], row["calls_low"], row["calls_high"]
    if math.isnan(calls) or math.isnan(high):
        return "?"
    if low == high or calls <= 0:
        return ""
    share = max(high - calls, calls - low) / calls
    return f"±{share:.0%}" if share < 9.995 else "?"
