"""Sections of the terminal report below its lines: tables by their columns, and those that are more than a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.text import Text

from ...profile.profile import Profile
from ...profile.span_sums import QUANTILES
from ...recording.frame import Row
from ...recording.question_options import Sort
from ...recording.text import printable, shorten_left
from ...report_data.advice.program import HELP, Suggestion
from ...report_data.hot_spot import hot_spot
from ...report_data.numbers import (
    calls_margin,
    margin,
    percent,
    rounded_size,
    seconds,
    short_count,
    short_mean,
    short_seconds,
    short_size,
    short_time,
)
from ...report_data.section_rows import (
    call_rows,
    function_rows,
    leak_rows,
    native_function_rows,
    native_subtitle,
    place_text,
    span_rows,
    thread_rows,
)
from ...report_data.sections import SECTIONS, Section, functions_by_size, more_text
from .header import indented
from .style import COLOURS, Style

FIRST_TO_GO = ("total_copied_bytes", "p95_s", "total_live_at_end_bytes", "duration_s")
"""Columns of spans that are left out where there is no room for names."""
ROOM_FOR_NAMES = 22
MAX_FRAMES = 4
"""Frames of a call path that are shown, the innermost."""


def leak_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about leaks; nothing if there are none."""
    section, leaks = SECTIONS["leaks"], leak_rows(profile)
    if not leaks:
        return
    yield from section_title(section, style, width)
    for leak in leaks[: section.most]:
        yield _leak(leak, style, width)
        if leak["source"] is not None:
            yield Text(f"{'':>4}{leak['source'].strip()}")
        if leak["native"] is not None:
            yield Text(f"{'':>4}allocated by {leak['native']}", "dim")
        callers = leak["path"][-MAX_FRAMES - 1 : -1]
        if callers:
            yield Text(f"{'':>4}called from " + style.plain(" > ").join(callers), "dim")
    if len(leaks) > section.most:
        yield Text(f"{'':>4}{more_text(len(leaks) - section.most)}", "dim")
    yield Text()


def _leak(leak: Row, style: Style, width: int) -> Text:
    rate, low, high = (rounded_size(leak[name]) for name in ("rate_bytes_per_s", "rate_low", "rate_high"))
    text = Text(" ").append(style.plain("• ") if style.unicode else "* ", "red").append(f"{rate}/s", "bold red")
    text.append(
        f" ({low} to {high}), {leak['likelihood'] * 100:.0f} % likely, {rounded_size(leak['leaked_bytes'])} so far  "
    )
    return text.append(shorten_left(place_text(leak), max(20, width - text.cell_len - 1)), "bold")


MAX_NATIVE = 5
"""Functions of a native path that are shown, the innermost."""


def redundancy_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about repeated work; nothing if it was not looked for, one line if there is none."""
    redundancies = profile.frames.redundancies
    if redundancies is None:
        return
    section = SECTIONS["redundancies"]
    yield from section_title(section, style, width)
    if not len(redundancies):
        yield Text(f"    {section.nothing}", "dim")
    for row in redundancies.take(slice(section.most)).rows():
        yield from _repeated_work(row, style, width)
    if len(redundancies) > section.most:
        yield Text(f"{'':>4}{more_text(len(redundancies) - section.most)}", "dim")
    yield Text()


def _repeated_work(row: Row, style: Style, width: int) -> Iterator[Text]:
    """The place on a line of its own, which is never cut at its end, then time, reason, remedy and paths."""
    mark = style.plain("• ") if style.unicode else "* "
    yield Text(" ").append(mark, "red").append(shorten_left(place_text(row), max(width - 4, 20)), "bold")
    category = "not decided which kind" if row["category"] is None else row["category"]
    text = Text(f"at least {seconds(row['quantity_s_low'])}", "bold red")
    text.append(f" of the line's {seconds(row['line_cpu_s'])} of CPU time, {category}, {row['kind']}s")
    yield from indented(text, width, "    ")
    yield from indented(Text(style.plain(row["why"])), width, "    ")
    if row["remedy"] is not None:
        yield from indented(Text(style.plain(f"Usually helps: {row['remedy']}")), width, "    ")
    yield from _paths(row, style, width)


def _paths(row: Row, style: Style, width: int) -> Iterator[Text]:
    first, second = (_path(row[name], style) for name in ("native_path", "partner_native_path"))
    elsewhere = (row["partner_file"], row["partner_line"]) != (row["file"], row["line"])
    if not row["partner_native_path"]:
        yield from indented(Text(f"filled in {first}", "dim"), width, "    ")
        return
    if first == second and not elsewhere:
        yield from indented(Text(f"both times in {first}", "dim"), width, "    ")
        return
    yield from indented(Text(f"first in {first}", "dim"), width, "    ")
    at = f", called on line {row['partner_line']}" if elsewhere and row["partner_line"] is not None else ""
    yield from indented(Text(f"again in {second}{at}", "dim"), width, "    ")


def _path(path: list[str], style: Style) -> str:
    more = [style.plain("…")] if len(path) > MAX_NATIVE else []
    return style.plain(" < ").join([*path[:MAX_NATIVE], *more])


def suggestion_lines(suggestions: Sequence[Suggestion], style: Style, width: int) -> Iterator[Text]:
    """The section, or nothing where no rule is certain."""
    if not suggestions:
        return
    section = SECTIONS["suggestions"]
    yield from section_title(section, style, width)
    for each in suggestions[: section.most]:
        text = Text()
        if each.file is not None:
            text.append(style.plain(shorten_left(f"{each.file}:{each.line}", max(20, width // 3))), "bold").append("  ")
        text.append(style.plain(each.figure), "bold")
        first, *more = indented(text, width, "   ")
        first.plain = style.plain(" → ") + first.plain[3:]
        yield from (first, *more)
        advice = Text(style.plain(f"{each.text} {each.remedy}")).append(f" {each.rule}: {HELP}", "dim")
        yield from indented(advice, width, "   ")
    if len(suggestions) > section.most:
        yield Text(f"{'':>3}{more_text(len(suggestions) - section.most)}", "dim")
    yield Text()


def hot_spot_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """In place of suggestions where no rule applies: on what the line with most of the time spends it."""
    spot = hot_spot(profile)
    if spot is None:
        return
    yield from section_title(replace(SECTIONS["suggestions"], subtitle="no rule applies"), style, width)
    yield from indented(Text(style.plain(spot.text)), width, "   ")
    yield Text()


def function_lines(profile: Profile, sort: Sort, style: Style, width: int) -> Iterator[Text]:
    """The table of functions; nothing if none has anything to tell."""
    section = functions_by_size() if sort.by_size else SECTIONS["functions"]
    rows = function_rows(profile, sort)[: section.most]
    if rows:
        yield from table_lines(section, rows, style, width, texts=_function_text, unknown={"total": ""})


def _function_text(text: Text, row: Row, style: Style, width: int) -> Text:
    where = f"{row['file']}:{row['line']}"
    text.append(f"  {row['function']}  ")
    return text.append(shorten_left(where, max(10, width - text.cell_len - 1)), "dim")


def native_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The table of native functions; nothing if native code took no time."""
    rows = native_function_rows(profile)
    if rows:
        section, subtitle = SECTIONS["native_functions"], native_subtitle(profile, rows)
        yield from table_lines(section, rows, style, width, texts=_native_text, subtitle=subtitle)


def _native_text(text: Text, row: Row, style: Style, width: int) -> Text:
    name, module = str(row["name"]), str(row["module"])
    remark = f"  {row['remark']}" if row["remark"] else ""
    room = max(16, width - text.cell_len - min(len(module), 30) - len(remark) - 5)
    text.append(style.plain("  " + (name if len(name) <= room else name[: room - 1] + "…")))
    if module:
        text.append("  ").append(shorten_left(module, max(8, width - text.cell_len - len(remark) - 1)), "dim")
    return text.append(remark, "dim")


def call_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about calls; nothing without calls."""
    rows, section = call_rows(profile), SECTIONS["calls"]
    if rows is not None:
        yield from table_lines(section, rows[: section.most], style, width, texts=_function_text)


def span_lines(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """The section about spans; nothing if there are none."""
    rows = span_rows(profile)
    if rows is not None:
        # What was in no span is not counted, and has no length.
        unknown = {"count": "", "duration_s": "", **dict.fromkeys(QUANTILES, "")}
        section = _with_room(SECTIONS["spans"], rows, width)
        yield from table_lines(section, rows, style, width, unknown=unknown, last=1)


def _with_room(section: Section, rows: Sequence[Row], width: int) -> Section:
    """The section of spans without what is not known of any, and with room for names."""
    awaiting = any(row["total_await_s"] > 0 for row in rows)
    columns = [each for each in section.columns if awaiting or each.name != "total_await_s"]
    for name in FIRST_TO_GO:
        if sum(each.width for each in columns if each.head) + ROOM_FOR_NAMES > width:
            columns = [each for each in columns if each.name != name]
    return replace(section, columns=tuple(columns))


def thread_lines(profile: Profile, sort: Sort, style: Style, width: int) -> Iterator[Text]:
    """The table of threads; nothing if there is only one."""
    rows = thread_rows(profile, sort)
    if rows is not None:
        yield from table_lines(SECTIONS["threads"], rows, style, width, texts=_thread_text)


def _thread_text(text: Text, row: Row, style: Style, width: int) -> Text:
    text.append(f"  {'unnamed' if row['name'] is None else row['name']}")
    return text.append("".join(f"  {each}" for each in (row["owner"], row["tid"]) if each is not None), "dim")


OWN = ("lines", "suggestions", "leaks", "redundancies", "functions", "native_functions", "calls", "spans", "threads")
"""Sections that are more than a table in the report."""
ELSEWHERE = ("files", "tasks", "awaiting", "processes", "where", "where_processes", "where_time", "allocators")
"""Sections that it does not have, or that an option of their own shows."""


def plain_sections(profile: Profile, style: Style, width: int) -> Iterator[Text]:
    """All other sections that have something to say."""
    for name, section in SECTIONS.items():
        rows = None if section.rows is None or name in (*OWN, *ELSEWHERE) else section.rows(profile)
        if rows is not None:
            yield from table_lines(section, rows, style, width)


Texts = Callable[[Text, Row, Style, int], Text]
"""Appends the texts of a row to its figures, in a width."""


def table_lines(
    section: Section,
    rows: Sequence[Row],
    style: Style,
    width: int,
    *,
    texts: Texts | None = None,
    subtitle: str | None = None,
    unknown: Mapping[str, str] | None = None,
    last: int = 0,
) -> Iterator[Text]:
    """A section as a table, its first rows and the ``last`` ones; the texts of a row are behind its figures."""
    words = [column for column in section.columns if column.unit == "text" and not column.head]

    def plain(text: Text, row: Row, style: Style, width: int) -> Text:
        for column in words:
            text.append("  ").append(printable(str(row[column.name] or ""), max(8, width - text.cell_len - 3)))
        return text

    append, heads = (plain, words) if texts is None else (texts, words[-1:])
    yield from section_title(section, style, width, subtitle)
    if not rows:
        yield Text(f"    {section.nothing}", "dim")
    else:
        yield Text("  ".join([section_heads(section), *(column.title for column in heads)]), "dim")
    first, end = rows[: len(rows) - last], rows[len(rows) - last :]
    for row in first[: section.most]:
        yield append(section_cells(row, section, style, unknown or {}), row, style, width)
    if len(first) > section.most:
        yield Text(f"{'':>8}{more_text(len(first) - section.most)}", "dim")
    for row in end:
        yield append(section_cells(row, section, style, unknown or {}), row, style, width)
    yield Text()


def section_title(section: Section, style: Style, width: int, subtitle: str | None = None) -> Iterator[Text]:
    """The title of a section with its subtitle, or another, beside it; below it if there is no room."""
    beside = section.subtitle if subtitle is None else subtitle
    line = title_line(section.title, beside, style)
    if line.cell_len <= width:
        yield line
        return
    yield title_line(section.title, "", style)
    yield from indented(Text(style.plain(beside), "dim"), width, "   ")


def title_line(title: str, subtitle: str, style: Style) -> Text:
    """A title, and what is beside it."""
    text = Text().append(f" {title} ", "bold reverse" if style.colour else "bold")
    return text.append(style.plain(f"  {subtitle}"), "dim")


INTERVALS = {"share": 6, "calls": 8}
"""Characters that the interval of a figure has behind it, by the figure's unit."""


def section_heads(section: Section) -> str:
    """The heads of a section's columns."""
    heads = ""
    for column in section.in_terminal:
        heads += f"{column.head:>{column.width}}" + (" " * INTERVALS[column.unit] if column.interval else "")
    return heads


def section_cells(row: Row, section: Section, style: Style, unknown: Mapping[str, str]) -> Text:
    """The cells of a row by their units; ``unknown`` has by column what stands for an unknown value, else ``?``."""
    text = Text()
    for column in section.in_terminal:
        value = row[column.name]
        if value is None or (isinstance(value, float) and math.isnan(value)):
            cell = unknown.get(column.name, "?")
        else:
            cell = _CELLS[column.unit](value)
        text.append(f"{style.plain(cell):>{column.width}}", "bold" if column.main else COLOURS.get(column.part, ""))
        if column.interval:
            ends = row[f"{column.name}_low"], row[f"{column.name}_high"]
            reach = "" if not cell else margin(*ends) if column.unit == "share" else calls_margin(value, *ends)
            text.append(f"{style.plain(reach):>{INTERVALS[column.unit]}}", "dim")
    return text


_CELLS: Mapping[str, Callable[[Any], str]] = {
    "s": short_seconds,
    "time": short_time,
    "bytes": short_size,
    "share": percent,
    "count": str,
    "calls": short_count,
    "mean": short_mean,
    "text": str,
}
