"""The sections of a report below its lines: title, words and columns of each, the same for all renderers.

A renderer formats: it takes a column's values from the profile's frame of the section (a page: from what it can sum up
for any window of time), writes them by the column's unit, and leaves out what it has no room for. What a section needs
beyond that, such as a tree or a bar, is the renderer's own. So a new section is an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..profile.profile import Profile
from ..recording.frame import Row
from ..recording.text import printable
from .columns import Column


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
    """Its rows of the whole time, None where nothing is known of it. A section that has rows and no renderer of its own
    is a table in the terminal, on a page and in Markdown."""

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


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""


def place_text(row: Row) -> str:
    """Where a row is: ``file.py:12``, or the function if it is on no line."""
    return str(row["function"]) if row["file"] is None else f"{row['file']}:{row['line']}"


_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
    10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 31: "SIGSYS",
}  # fmt: skip
"""Names of Linux's signals, which the machine that shows a recording may number otherwise."""


def exit_text(status: int | None) -> str:
    """The exit status of a process, or the name of the signal that ended it."""
    if status is None:
        return "?"
    return str(status) if status >= 0 else _SIGNALS.get(-status, f"signal {-status}")


def process_remarks(process: Mapping[str, object]) -> list[str]:
    """Words for what is not ordinary about a process."""
    remarks = ["fork"] if process["origin"] == "fork" else []
    words = {"listed": "not recorded", "native": "without Python stacks"}
    return remarks + [text for recorded, text in words.items() if process["recorded"] == recorded]


def leak_rows(profile: Profile) -> list[Row] | None:
    """The leaks with the call paths of their blocks; None if memory was not recorded."""
    leaks = profile.frames.leaks
    if leaks is None:
        return None
    return [{**leak, "path": [printable(str(step), 500) for step in leak["path"]]} for leak in leaks.rows()]


def repeated_work_rows(profile: Profile) -> list[Row] | None:
    """Repeated work, with the source of its lines; None if it was not looked for."""
    redundancies = profile.frames.redundancies
    if redundancies is None:
        return None
    files = dict(zip(profile.frames.files["file"], profile.frames.files["file_id"].tolist(), strict=True))

    def source(row: Row) -> str | None:
        return (profile.sources.line(files.get(row["file"], -1), row["line"] or 0) or "").strip() or None

    return [{**row, "source": source(row)} for row in redundancies.rows()]


def process_rows(profile: Profile) -> list[Row] | None:
    """The tree of processes, each behind its parent, with how it ended; None if there is only one."""
    frame = profile.frames.processes
    if len(frame) < 2:
        return None
    return [{**row, "exit": exit_text(row["exit_status"]), "remarks": process_remarks(row)} for row in frame.rows()]


SECTIONS: Mapping[str, Section] = {
    "lines": Section("Lines", "", page="open a line for its source and exact figures"),
    "functions": Section(
        "Functions",
        "self: in its own lines; total: with all that it calls",
        page="“with calls” counts everything that a function calls, once for each sample",
    ),
    "files": Section("Files", ""),
    "spans": Section(
        "Spans",
        "with the spans within them; of their own threads only",
        columns=(
            Column(
                *("total_cpu_s", "s", "CPU", "cpu", "CPU time of their threads while they lasted"),
                head="CPU",
                main=True,
            ),
            Column("total_wait_s", "s", "waiting", "wait", head="wait"),
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
    "leaks": Section(
        "Leaks",
        "memory that these lines keep allocating and nothing gives back",
        page="Leaks are lines whose blocks are not given back, with the likelihood of the paper's rule",
        nothing="no leak was found",
        rows=leak_rows,
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
        columns=(
            Column("quantity_s", "s", "CPU", hint="CPU time of what is repeated, with the 95 % interval", main=True),
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
    "suggestions": Section("Suggestions", "only where a rule is certain"),
    "processes": Section(
        "Processes",
        "user, system: its CPU time until its end; peak: most memory held",
        page="of the whole time. Each is below the one that started it; sort by process for the tree",
        rows=process_rows,
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
        columns=(
            Column("cpu_s", "s", "CPU", "cpu", main=True),
            Column("cpu_share", "share", "%", "share", rank=2),
            Column("wait_s", "s", "waiting", "wait"),
            Column("process", "text", "process", "owner", rank=2),
            Column("name", "text", "thread"),
        ),
    ),
}
"""All sections, by the name of their frame of the profile."""
