"""A profile as a summary in Markdown (docs/how-to/ask-an-assistant.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ...profile.call_branches import Branch, line_calls
from ...profile.profile import Profile
from ...recording.frame import Frame
from ...recording.frame import Row as Values
from ...recording.question_options import DEFAULT_TOKENS, Sort
from ...recording.text import printable, shorten_left
from ...report_data.advice.program import Suggestion
from ...report_data.advice.table import Advice
from ...report_data.columns import LINE_MEASURES
from ...report_data.head import (
    PART_NAMES,
    Figure,
    circumstances,
    gpu_figures,
    memory_figures,
    pool_figures,
    restrictions,
    time_figures,
)
from ...report_data.headline import (
    MEANING,
    Share,
    cause_text,
    is_severe,
    off_line_title,
    remarks,
    scope_text,
    share_of,
    verdict,
)
from ...report_data.hot_spot import hot_spot
from ...report_data.killed import killed_text, last_lines, last_title
from ...report_data.line_selection import important
from ...report_data.numbers import amount, rounded_size, seconds
from ...report_data.sections import SECTIONS
from ...report_data.waiting_parents import waiting_sentences
from ...report_data.where_memory import judgement_rows, process_where_rows, where_rows, where_sentence
from .document import MAX_NAME, MAX_PATH, MAX_SOURCE, Row, Section, compose

MIN_SHARE = 0.01
"""Functions and threads with a smaller part of the CPU time are left out."""

PARTS = ("python", "native", "kernel", "unknown")
HELD = sorted((each for each in LINE_MEASURES if each.brief), key=lambda each: each.key != "live")
"""Measures of memory, which have an interval; what was held at the peak comes first."""

MIN_BYTES = 1_000
INTERVAL = "Shares are of all CPU time, with the ends of the 95 % interval in parentheses"


def summary(
    profile: Profile,
    most: int = DEFAULT_TOKENS,
    *,
    sort: str = "cpu",
    top: int | None = None,
    advice: Advice | None = None,
) -> str:
    """The document, of at most ``most`` tokens; ``sort`` and ``top`` choose lines as in the terminal."""
    suggestions, by = (advice or Advice()).about(profile), Sort(sort)
    lines = [_times(profile, Sort.CPU if by.by_size else by, top, 2 if by.by_size else 6)]
    if profile.memory is not None or profile.totals.copied_bytes is not None:
        held = _sizes(profile, by if by.by_size else Sort.LIVE, top, 6 if by.by_size else 2)
        lines = [held, *lines] if by.by_size else [*lines, held]
    return compose(
        "tachograph: profile",
        [
            Section("Recording", "", list(_recording(profile)), needed=True),
            Section("Totals", f"{INTERVAL}; the rest is measured.", _totals(profile), needed=True),
            Section("Unknown or lost", "What the numbers leave out.", list(_unknown(profile)), turns=3),
            *lines,
            _suggested(suggestions, profile),
            _functions(profile),
            _native_functions(profile),
            _leaks(profile),
            _threads(profile),
            _processes(profile),
            _spans(profile),
            *_plain_sections(profile),
        ],
        most,
    )


PARTS_ALONE = ("lines", "memory", "where", "functions", "native functions", "leaks", "threads", "processes", "spans")
"""The values that ``part`` can show by itself."""


def part(profile: Profile, name: str, most: int = DEFAULT_TOKENS, *, sort: str = "cpu", top: int | None = None) -> str:
    """One of ``PARTS_ALONE`` as a document of at most ``most`` tokens; ``sort`` and ``top`` choose lines."""
    by = Sort(sort)
    sections: dict[str, Callable[[], Section]] = {
        "lines": lambda: _times(profile, Sort.CPU if by.by_size else by, top, 1),
        "memory": lambda: _sizes(profile, by if by.by_size else Sort.LIVE, top, 1),
        "where": lambda: _where(profile),
        "functions": lambda: _functions(profile),
        "native functions": lambda: _native_functions(profile),
        "leaks": lambda: _leaks(profile),
        "threads": lambda: _threads(profile),
        "processes": lambda: _processes(profile),
        "spans": lambda: _spans(profile),
    }
    recording = Section("Recording", "", list(_recording(profile)), needed=True)
    return compose(f"tachograph: {name}", [recording, sections[name]()], most)


MOST_CALLEES = 300
"""Callees of a line that are listed at most."""


def line_part(profile: Profile, where: str, most: int = DEFAULT_TOKENS) -> str:
    """The line ``FILE:N`` and its callees as a document of at most ``most`` tokens, as of ``analyze --line``.

    Errors:
        FormatError: there is no such line, or nothing was charged to it.
    """
    calls = line_calls(profile, where)
    lines = profile.frames.lines
    rows = [
        _line(profile, row, "; ".join(filter(None, (time_text(profile, row), held_text(row)))))
        for row in lines.rows()
        if row["file"] == calls.file and row["line"] == calls.line
    ]
    callees = [
        Row(f"callee, depth {depth}: {branch_text(branch)}")
        for depth, branch in islice(calls.whole.walk(), 1, MOST_CALLEES + 1)
    ]
    sections = [
        Section("Recording", "", list(_recording(profile)), needed=True),
        Section("Line", f"{INTERVAL}.", rows, needed=True),
        Section("Callees", "Outside of the scope or native, each with what it calls, callers first.", callees),
    ]
    return compose("tachograph: line", sections, most)


def _where(profile: Profile) -> Section:
    """Resident memory by what holds it, judgements with their remedies, and processes."""
    section = SECTIONS["where"]
    rows = [
        Row(f"{rounded_size(row['bytes'])} ({_percent_alone(row['share'])}): {row['part']}{_note(row['note'])}")
        for row in where_rows(profile) or ()
    ]
    rows += [Row(f"judgement: {text} | helps: {remedy}") for text, remedy in judgement_rows(profile)]
    rows += [
        Row(f"process {row['pid']}: {rounded_size(row['resident_bytes'])} | {printable(row['name'] or '', MAX_NAME)}")
        for row in process_where_rows(profile)
    ]
    return Section(section.title, section.page_hint, rows or [Row("not recorded")])


def _percent_alone(share: float) -> str:
    return "?" if math.isnan(share) else f"{share * 100:.1f} %"


def _note(note: str | None) -> str:
    return f" | {note}" if note else ""


def _recording(profile: Profile) -> Iterator[Row]:
    metadata = profile.metadata
    yield Row(f"program: {printable(metadata.program or metadata.path, MAX_NAME)}")
    yield Row(printable(f"recorded: {', '.join(circumstances(profile))}", MAX_PATH))
    if metadata.labels:
        labels = ", ".join(f"{name}={value}" for name, value in metadata.labels.items())
        yield Row(printable(f"labels: {labels}", MAX_PATH))
    yield Row(printable(f"question: {'; '.join([scope_text(profile.scope), *restrictions(profile)])}", MAX_PATH))
    yield Row(f"data: {verdict(profile).text}")


def _totals(profile: Profile) -> list[Row]:
    totals = profile.totals
    split = _split(profile, {f"{part}_s": getattr(totals, f"{part}_s") for part in PARTS})
    collected = (
        f"garbage collection, a part of Python: {_percent(share_of(totals, totals.gc_s))}" if totals.gc_s else ""
    )
    rows = [f"time: {_figures(time_figures(profile))}", f"CPU: {split}", collected]
    for name, figures in (
        ("native threads", pool_figures(profile)),
        ("memory", memory_figures(profile)),
        ("GPU", gpu_figures(profile)),
    ):
        if figures:
            rows.append(f"{name}: {_figures(figures)}")
    sentence = where_sentence(profile)
    if sentence is not None:
        rows.append(f"where the memory is: {sentence}")
    rows += [f"waiting: {sentence}" for sentence in waiting_sentences(profile)]
    rows += [f"memory, {text} | helps: {remedy}" for text, remedy in judgement_rows(profile)]
    killed = killed_text(profile)
    if killed is not None:
        rows.append(killed)
        rows += [f"{last_title(profile)}: {line}" for line in last_lines(profile)]
    return [Row(row) for row in rows]


def _figures(figures: Sequence[Figure]) -> str:
    return ", ".join(" ".join(filter(None, (figure.value, figure.text))) for figure in figures)


def _unknown(profile: Profile) -> Iterator[Row]:
    totals = profile.totals
    absent = {
        "waiting": totals.wait_s is None,
        "memory": profile.memory is None,
        "copies": totals.copied_bytes is None,
        "GPUs": profile.gpu is None,
        "native call paths": not profile.paths.recorded,
        "the kernel's part": totals.kernel_s is None,
        "spans": profile.frames.spans is None,
    }
    names = [name for name, missing in absent.items() if missing]
    if names:
        yield Row(f"not recorded: {', '.join(names)}")
    for cause in profile.quality.causes:
        kind = "lost" if is_severe(cause, profile) else "note"
        yield Row(f"{kind}: {cause_text(cause)}: {cause.advice}")
    for text in (*remarks(profile), *profile.quality.notes):
        yield Row(f"note: {text}")


def _times(profile: Profile, sort: Sort, top: int | None, turns: int) -> Section:
    rows = []
    for index in important(profile, sort, top).tolist():
        line = profile.frames.lines.row(index)
        rows.append(_line(profile, line, time_text(profile, line)))
    subtitle = (
        f"{INTERVAL}; waiting is measured, in all threads. What a line calls outside of the scope is the line's own."
        " Behind the bar is the source."
    )
    return Section("Lines by time", subtitle, rows, turns)


def _sizes(profile: Profile, sort: Sort, top: int | None, turns: int) -> Section:
    rows = []
    for index in important(profile, sort, top).tolist():
        line = profile.frames.lines.row(index)
        if held := held_text(line):
            rows.append(_line(profile, line, held))
    subtitle = "What each line held, allocated and copied: estimates from samples, with the ends of the 95 % interval."
    return Section("Lines by memory", subtitle, rows, turns)


def time_text(profile: Profile, line: Values) -> str:
    """The CPU time of a line with its interval and parts, and its waiting."""
    waited = line["wait_s"]
    wait = f"; waiting {seconds(waited)}" if waited >= 0.0005 else ""
    return f"CPU {_share(line)}{_parts(profile, line)}{wait}"


def held_text(line: Values) -> str:
    """Figures of what a line held, allocated and copied, with intervals; empty if next to nothing."""
    measures = (each for each in HELD if each.name in line and line[each.name] >= MIN_BYTES)
    return ", ".join(f"{each.brief} {_bytes(line, each.name)}" for each in measures)


def branch_text(branch: Branch) -> str:
    """A callee with its CPU time, waiting and memory, its own callees included."""
    wait = f", waiting {seconds(branch.wait_s)}" if (branch.wait_s or 0.0) >= 0.0005 else ""
    held = [
        f", {name} {rounded_size(value)}"
        for name, value in (("allocated", branch.allocated_bytes), ("copied", branch.copied_bytes))
        if value is not None and value >= MIN_BYTES
    ]
    module = f" in {printable(branch.module, MAX_NAME)}" if branch.module else ""
    return f"{printable(branch.name, MAX_NAME)}{module}: CPU {seconds(branch.cpu_s)}{wait}{''.join(held)}"


def _line(profile: Profile, line: Values, numbers: str) -> Row:
    """A row of a line of code, or of time that is on no line."""
    if line["line"] is None:
        meaning = MEANING.get(line["function"], "")
        text = f"{printable(line['function'], MAX_NAME)}: {numbers}"
        return Row(f"{text} | {meaning}" if meaning else text, off_line_title(profile.scope))
    source = "(source not in the recording)" if line["source"] is None else line["source"].strip()
    file = shorten_left(line["file"], MAX_PATH)
    return Row(f"line {line['line']}: {numbers} | {printable(source, MAX_SOURCE)}", f"file {file}", line["line"])


def _functions(profile: Profile) -> Section:
    frame = profile.frames.functions
    rows = [
        Row(
            f"with its calls {_share(function, 'total_')}, itself {_share(function)} |"
            f" {printable(function['function'], MAX_NAME)}{_place(function)}"
        )
        for function in _largest(frame, "total_cpu_share")
        if function["file"] is not None
    ]
    return Section(SECTIONS["functions"].title, f"{INTERVAL}.", rows, turns=2)


def _native_functions(profile: Profile) -> Section:
    rows = []
    for function in _largest(profile.frames.native_functions, "cpu_share"):
        library = "" if function["library"] is None else f" in {printable(function['library'], MAX_NAME)}"
        source = "" if function["file"] is None else f" from {_source_place(function)}"
        rows.append(Row(f"itself {_share(function)} | {printable(function['function'], MAX_NAME)}{library}{source}"))
    subtitle = f"They divide the same CPU time once more. {INTERVAL}."
    return Section(SECTIONS["native_functions"].title, subtitle, rows)


def _suggested(suggestions: Sequence[Suggestion], profile: Profile) -> Section:
    rows = []
    if not suggestions and (spot := hot_spot(profile)) is not None:
        return Section(SECTIONS["suggestions"].title, "No rule applies.", [Row(spot.text)])
    for each in suggestions:
        place = "the program" if each.file is None else f"{shorten_left(each.file, MAX_PATH)}:{each.line}"
        rows.append(Row(f"rule {each.rule}: {place}: {each.text} {each.remedy}"))
    return Section(SECTIONS["suggestions"].title, "By rule; “perhaps” where only the kind of work is known.", rows)


def _leaks(profile: Profile) -> Section:
    rows = []
    for leak in () if profile.frames.leaks is None else profile.frames.leaks.rows():
        where = (
            str(leak["function"]) if leak["file"] is None else f"{shorten_left(leak['file'], MAX_PATH)}:{leak['line']}"
        )
        rate, low, high = (rounded_size(leak[name]) for name in ("rate_bytes_per_s", "rate_low", "rate_high"))
        source = "" if leak["source"] is None else f" | {printable(leak['source'].strip(), MAX_SOURCE)}"
        rows.append(Row(f"{rate}/s ({low} to {high}), likelihood {leak['likelihood']:.2f}: {printable(where)}{source}"))
    return Section(
        SECTIONS["leaks"].title,
        "Bytes per second that nothing gives back, with the ends of the 95 % interval in parentheses.",
        rows,
    )


def _threads(profile: Profile) -> Section:
    frame = profile.frames.threads
    rows = []
    for thread in _largest(frame, "cpu_share") if len(frame) > 1 else ():
        name = "without a name" if thread["name"] is None else printable(thread["name"], MAX_NAME)
        wait = f", waiting {seconds(thread['wait_s'])}" if thread["wait_s"] >= 0.0005 else ""
        rows.append(Row(f"CPU {_share(thread)}{wait} | {name} (thread {thread['tid']})"))
    return Section(SECTIONS["threads"].title, f"{INTERVAL}; waiting is measured.", rows)


def _processes(profile: Profile) -> Section:
    frame = profile.frames.processes
    rows = []
    for process in frame.take(frame.largest_first("cpu_s")).rows() if len(frame) > 1 else ():
        share = share_of(profile.totals, process["cpu_s"])
        used = f"CPU {_percent(share)}" if process["samples"] else "not sampled"
        name = printable(process["name"] or "without a name", MAX_NAME)
        rows.append(Row(f"{used} | {name} (process {process['pid']}, {process['recorded']})"))
    return Section(SECTIONS["processes"].title, f"{INTERVAL}.", rows)


def _spans(profile: Profile) -> Section:
    rows = []
    spans = profile.frames.spans
    for span in () if spans is None or len(spans) < 2 else spans.rows():
        share = share_of(profile.totals, span["total_cpu_s"])
        wait = f", waiting {seconds(span['total_wait_s'])}" if span["total_wait_s"] >= 0.0005 else ""
        wait += f", awaiting {seconds(span['total_await_s'])}" if span["total_await_s"] >= 0.0005 else ""
        times = "" if span["count"] is None else f", {span['count']:,} times, {seconds(span['duration_s'])}"
        if (span["count"] or 0) > 1:
            times += f" (p50 {seconds(span['p50_s'])}, p95 {seconds(span['p95_s'])}, p99 {seconds(span['p99_s'])})"
            times += f", each {amount(span['each_cpu_s'], 's')} of CPU"
            times += "".join(
                f", {amount(span[name], 'bytes')} {word}"
                for name, word in (("each_allocated_bytes", "allocated"), ("each_live_at_end_bytes", "kept"))
                if (span[name] or 0) >= 1
            )
        rows.append(Row(f"CPU {_percent(share)}{wait}{times} | {printable(span['name'], MAX_NAME)}"))
    subtitle = f"With the spans within them. {INTERVAL}; waiting and durations are measured."
    return Section(SECTIONS["spans"].title, subtitle, rows)


OWN = ("lines", "suggestions", "leaks", "functions", "native_functions", "threads", "processes", "spans")
"""Sections that are no plain table here."""
ELSEWHERE = (
    "redundancies",
    "files",
    "calls",
    "tasks",
    "awaiting",
    "where",
    "where_processes",
    "where_time",
    "allocators",
)
"""Sections that a summary does not have."""


def _plain_sections(profile: Profile) -> Iterator[Section]:
    """All other sections, with each figure behind its name."""
    for name, section in SECTIONS.items():
        rows = None if section.rows is None or name in (*OWN, *ELSEWHERE) else section.rows(profile)
        texts = [column.name for column in section.columns if column.unit == "text"]
        figures = [column for column in section.columns if column.unit != "text"]
        shown = [
            Row(
                ", ".join(f"{column.title} {_figure(row[column.name], column.unit)}" for column in figures)
                + "".join(f" | {printable(str(row[text]), MAX_NAME)}" for text in texts if row[text] is not None)
            )
            for row in rows or []
        ]
        yield Section(section.title, section.page_hint, shown)


def _figure(value: float | None, unit: str) -> str:
    if value is None or math.isnan(value):
        return "unknown"
    return f"{value:,}" if unit == "count" else amount(value, unit)


def _largest(frame: Frame, column: str) -> Iterator[Values]:
    """The rows with at least 1 % in a column, the largest first."""
    for row in frame.take(frame.largest_first(column)).rows():
        if row[column] >= MIN_SHARE:
            yield row


def _place(function: Values) -> str:
    return f" in {_source_place(function)}"


def _source_place(function: Values) -> str:
    line = "" if function["line"] is None else f":{function['line']}"
    return f"{shorten_left(function['file'], MAX_PATH)}{line}"


def _parts(profile: Profile, line: Values) -> str:
    parts = _split(profile, line)
    return f" ({parts})" if parts else ""


def _split(profile: Profile, values: Values) -> str:
    """The parts of the CPU time, and those that are not known."""
    parts = []
    for part in PARTS:
        name, amount = PART_NAMES[part], values[f"{part}_s"]
        if amount is None or math.isnan(amount):
            parts.append(f"{name} not known")
        elif amount > 0:
            parts.append(f"{name} {_percent(share_of(profile.totals, amount))}")
    return ", ".join(parts)


def _share(values: Values, prefix: str = "") -> str:
    """A share of the CPU time that a frame has with its interval."""
    return _percent(Share(*(values[f"{prefix}cpu_share{end}"] for end in ("", "_low", "_high"))))


def _percent(share: Share) -> str:
    if math.isnan(share.value):
        return "?"
    ends = "unknown" if math.isnan(share.low) else f"{share.low * 100:.1f}-{share.high * 100:.1f}"
    return f"{share.value * 100:.1f} % ({ends})"


def _bytes(values: Values, column: str) -> str:
    low, high = values[f"{column}_low"], values[f"{column}_high"]
    ends = "unknown" if math.isnan(low) or math.isnan(high) else f"{rounded_size(low)}-{rounded_size(high)}"
    if math.isinf(high):
        ends = f"{rounded_size(low)} or more"
    return f"{rounded_size(values[column])} ({ends})"
