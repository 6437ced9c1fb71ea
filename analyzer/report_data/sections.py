"""The sections of a report: title, words and columns of each, the same for all renderers, in a report's order.

A renderer formats: it takes a column's values from the section's rows (``section_rows.py``; a page: from what it can
sum up for any window of time), writes them by the column's unit, and leaves out what it has no room for. What a section
needs beyond that, such as a tree or a bar, is the renderer's own. So a new section is an entry here, and its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..profile.profile import Profile
from ..recording.frame import Row
from .columns import Column
from .section_rows import (
    allocator_rows,
    awaiting_rows,
    call_rows,
    function_rows,
    leak_rows,
    native_function_rows,
    process_rows,
    repeated_work_rows,
    span_rows,
    thread_rows,
)
from .where_memory import referrer_rows, where_rows


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report; its texts are parts of sentences."""

    title: str
    subtitle: str
    """Beside the title."""
    page: str | None = None
    """The subtitle on a page, where the hints of columns say the rest; None for ``subtitle``."""
    nothing: str = ""
    """In place of rows where there are none."""
    columns: tuple[Column, ...] = ()
    rows: Callable[[Profile], list[Row] | None] | None = None
    """Its rows of the whole time, None where it has nothing to say. Without a renderer of its own it is a table in the
    terminal, on a page and in Markdown."""

    most: int = 15
    """Rows that a terminal shows."""

    @property
    def page_hint(self) -> str:
        """The text beside the title on a page, as sentences."""
        return _sentence(self.subtitle if self.page is None else self.page)

    @property
    def page_nothing(self) -> str:
        """The text that a page shows in place of rows."""
        return _sentence(self.nothing)

    @property
    def in_terminal(self) -> tuple[Column, ...]:
        """The columns of a terminal's table, in its order."""
        return tuple(sorted((each for each in self.columns if each.head), key=lambda column: column.first))


def more_text(left_out: int) -> str:
    """The line below a table that does not show all of its rows."""
    return f"and {left_out:,} more (--json has them all)"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


_OWN_TIMES = (
    Column("cpu_s", "s", "CPU", "cpu", head="CPU"),
    Column("python_s", "s", head="Python", part="python"),
    Column("native_s", "s", head="native", part="native"),
    Column("kernel_s", "s", head="kernel", part="kernel"),
)

SECTIONS: Mapping[str, Section] = {
    "lines": Section("Lines", "", page="open a line for its source and exact figures"),
    "suggestions": Section("Suggestions", "by rule; “perhaps” where only the kind of work is known", most=5),
    "leaks": Section(
        "Leaks",
        "memory that these lines keep allocating and nothing gives back",
        page="Leaks are lines whose blocks are not given back; the likelihood is by how many of them were",
        nothing="no leak was found",
        rows=leak_rows,
        most=10,
        columns=(
            Column("rate_bytes_per_s", "bytes", "grows by", hint="Bytes per second, with the 95 % interval"),
            Column("likelihood", "share", "likelihood"),
            Column("leaked_bytes", "bytes", "not given back"),
            Column("file", "text", "line", "place"),
            Column("source", "text", "source"),
        ),
    ),
    "redundancies": Section(
        "Repeated work",
        "native code that loads or stores again what an earlier call did",
        page="native code that loads or stores again what an earlier call did, in the whole recording",
        nothing="none above what is usual",
        rows=repeated_work_rows,
        most=8,
        columns=(
            Column("quantity_s", "s", "CPU", hint="At least so much of the line's CPU time repeats work", main=True),
            Column(
                *("redundant_share", "share", "repeated"),
                hint="Of the pairs of accesses in two calls, those that met the same value; behind it what is usual",
            ),
            Column("traps", "count", "pairs"),
            Column("category", "text", "kind"),
            Column("file", "text", "line", "place"),
            Column("source", "text", "source"),
        ),
    ),
    "functions": Section(
        "Functions",
        "self: in its own lines; total: with all that it calls",
        page="“with calls” counts everything that a function calls, once for each sample",
        rows=function_rows,
        most=10,
        columns=(
            Column("cpu_share", "share", head="self %", main=True),
            Column("total_cpu_share", "share", head="total %", width=9, interval=True),
            Column("total_wait_s", "s", head="wait"),
            Column("function", "text", "function"),
        ),
    ),
    "files": Section("Files", ""),
    "native_functions": Section(
        "Native functions",
        "in part of the time above",
        rows=native_function_rows,
        most=10,
        columns=(
            Column("cpu_share", "share", head="self %", main=True),
            Column("total_cpu_share", "share", head="total %", width=9, interval=True),
            Column("total_wait_s", "s", head="wait"),
            Column("function", "text", "function"),
        ),
    ),
    "calls": Section(
        "Calls",
        "times of one call, with all that it calls; own: in its own lines",
        rows=call_rows,
        most=12,
        columns=(
            Column(
                *("calls", "calls", "calls"),
                hint="How often it was called, and how far that may be off; without ± it is exact",
                head="calls",
                main=True,
                whole=True,
                interval=True,
                exact="calls",
            ),
            Column(
                *("call_mean_s", "time", "one call"),
                hint="Mean time of one call, with all that it calls",
                head="mean",
                main=True,
                whole=True,
                exact="mean",
            ),
            Column("call_p50_s", "time", head="half", exact="half of them within"),
            Column("call_p90_s", "time", head="90 %", exact="90 %"),
            Column(
                *("call_p99_s", "time", "99 % within"),
                hint="99 of 100 calls took no longer",
                rank=3,
                whole=True,
                head="99 %",
                exact="99 %",
            ),
            Column("call_max_s", "time", head="longest", exact="longest seen"),
            Column("own_call_mean_s", "time", head="own", exact="mean in its own lines"),
            Column(
                *("call_times", "histogram", "times of calls"),
                hint="How many calls took how long: a bar for each power of two, from the shortest to the longest",
                rank=2,
                whole=True,
            ),
            Column("function", "text", "function"),
        ),
    ),
    "spans": Section(
        "Spans",
        "with the spans within them; p50: half of them took at most so long",
        rows=span_rows,
        columns=(
            Column(
                *("total_cpu_s", "s", "CPU", "cpu", "CPU time in them"),
                head="CPU",
                main=True,
            ),
            Column("total_wait_s", "s", "waiting", "wait", head="wait"),
            Column("total_await_s", "s", "await", hint="What tasks in them awaited", head="await", whole=True),
            Column("p50_s", "s", "p50", hint="Half of them lasted at most so long", head="p50", whole=True),
            Column("p95_s", "s", "p95", hint="19 of 20 lasted at most so long", head="p95", whole=True),
            Column("p99_s", "s", "p99", hint="99 of 100 lasted at most so long", head="p99", whole=True),
            Column("each_cpu_s", "time", "CPU each", hint="CPU time of one, in the mean", rank=2, whole=True),
            Column("each_allocated_bytes", "bytes", "allocated each", hint="By one", rank=2, whole=True),
            Column("each_live_at_end_bytes", "bytes", "kept each", hint="By one, in the mean", rank=3, whole=True),
            Column(
                *("duration_s", "s", "lasted", "lasted", "Time in which one was open, added up over threads"),
                head="time",
                first=-1,
            ),
            Column("total_allocated_bytes", "bytes", "allocated", "allocated", head="alloc.", width=9),
            Column(
                *("total_live_at_end_bytes", "bytes", "kept", "kept"),
                hint="What was allocated in them and still held at the end",
                head="kept",
                width=9,
            ),
            Column("total_copied_bytes", "bytes", "copied", "copied", head="copied", width=9),
            Column(
                *("count", "count", "times", "times", "How many there are in all of the time"),
                head="count",
                first=-2,
                whole=True,
            ),
            Column("name", "text", "span"),
        ),
    ),
    "tasks": Section(
        "Tasks",
        "by the coroutine at the root of a task's step; blocked: off the CPU in a step",
        most=30,
        columns=(
            Column("cpu_share", "share", head="CPU %", width=7, main=True, interval=True),
            *_OWN_TIMES,
            Column("blocked_s", "s", head="blocked", width=9),
            Column("await_s", "s", head="await"),
            Column("function", "text", "coroutine"),
        ),
    ),
    "awaiting": Section(
        "Awaiting",
        "tasks below those that await them; tasks, most: how many stood there at a time",
        page="suspended tasks, each below the one that awaits it, with the line where it stands",
        rows=awaiting_rows,
        most=60,
        columns=(
            Column("await_s", "s", "await", hint="Time that they stood there, added up", head="await", main=True),
            Column("tasks_mean", "mean", "tasks", hint="How many at a time, on average", head="tasks"),
            Column("tasks_peak", "mean", "most", hint="The most at a time", head="most"),
            Column("function", "text", "coroutine"),
            Column("file", "text", "line", "place"),
            Column("awaited", "text", "awaits", hint="The library's coroutines that it is in"),
        ),
    ),
    "processes": Section(
        "Processes",
        "user, system: its CPU time until its end; peak: most memory held",
        page="of the whole time. Each is below the one that started it; sort by process for the tree",
        rows=process_rows,
        most=1000,
        columns=(
            Column("wall_s", "s", "lived", head="wall", width=7, rank=2),
            Column(
                *("user_s", "s", "user"),
                hint="CPU time in user mode until its end, as the kernel counts it",
                head="user",
                width=7,
            ),
            Column("system_s", "s", "system", "", "CPU time in the kernel until its end", 2, "system", 7),
            Column("samples", "count", "samples", head="samples", rank=2),
            Column("peak_bytes", "bytes", "peak", hint="Most memory held", head="peak", width=7),
            Column("exit_status", "count", "exit", head="exit"),
            Column("name", "text", "process"),
        ),
    ),
    "threads": Section(
        "Threads",
        "waiting of idle threads counts only here and in lines",
        page="",
        rows=thread_rows,
        most=12,
        columns=(
            *_OWN_TIMES,
            Column("cpu_share", "share", "%", "share", rank=2, head="CPU %", first=-1, main=True, interval=True),
            Column("wait_s", "s", "waiting", "wait", head="wait"),
            Column("process", "text", "process", "owner", rank=2),
            Column("name", "text", "thread"),
        ),
    ),
    "where": Section(
        "Where the memory is",
        "what is resident, by what holds it",
        page="what is resident, by what holds it: of one process at its end, of several when they had most",
        rows=where_rows,
        columns=(
            Column("bytes", "bytes", "bytes", head="bytes", main=True, part="memory"),
            Column("share", "share", "%", hint="Of what is resident", head="%"),
            Column("part", "text", "part"),
            Column("note", "text", "note"),
        ),
    ),
    "referrers": Section(
        "What keeps it",
        "chains of references to sampled live blocks of the largest sites",
        rows=referrer_rows,
        columns=(
            Column(
                *("held", "bytes", "held"), hint="What the line holds at the end", head="held", main=True, part="memory"
            ),
            Column("blocks", "count", "blocks", hint="Sampled blocks that were looked for", head="blocks"),
            Column("place", "text", "allocated on"),
            Column("object", "text", "object"),
            Column("kept_by", "text", "kept by"),
        ),
    ),
    "where_processes": Section("By process", "each at its last reading; copied: pages copied after its fork", most=20),
    "where_time": Section("Over time", "", most=20),
    "allocators": Section(
        "Memory by allocator",
        "",
        rows=allocator_rows,
        columns=(
            Column("allocated_bytes", "bytes", "allocated", main=True, part="memory"),
            Column("freed_bytes", "bytes", "freed"),
            Column("by", "text", "by"),
        ),
    ),
}
"""All sections in the order of a report; most names are those of frames of the profile."""


def task_section(profile: Profile) -> Section:
    """The section of tasks; without the column of awaiting where nothing is known of that."""
    section = SECTIONS["tasks"]
    if profile.totals.await_s is not None:
        return section
    return replace(section, columns=tuple(each for each in section.columns if each.name != "await_s"))


def functions_by_size() -> Section:
    """The section of functions of a report that is sorted by bytes, which are in the rows as ``own`` and ``total``."""
    columns = (
        Column("own", "bytes", head="self", main=True),
        Column("total", "bytes", head="total", width=9),
        Column("total_allocated_bytes", "bytes", head="alloc.", width=9),
        Column("total_copied_bytes", "bytes", head="copied", width=9),
    )
    return replace(SECTIONS["functions"], columns=(*columns, SECTIONS["functions"].columns[-1]))
