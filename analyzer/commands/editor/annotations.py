"""Annotations of the documents of an editor: hints, lenses, remarks and hovers, from a recording or a diff.

Lines are numbered from 1. All texts are plain: a recording is untrusted, so its names are never Markdown, links or
commands. A document belongs to the recorded file whose path has the longest end in common with its own; no path of a
recording is opened. Lines that were edited since are followed as ``diff`` follows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from tachograph.format import FormatError

from ...diff import diff
from ...diff.links import LIKE_NAMED, FunctionKey, Link, SourceFile, pair_files
from ...diff.runs import Run, number_or_nothing, read_run
from ...profile.call_branches import line_calls
from ...profile.question import Question
from ...recording.frame import Row
from ...recording.question_options import Sort
from ...recording.text import printable
from ...render.markdown.profile_parts import branch_text, held_text, time_text
from ...report_data.advice.program import Suggestion
from ...report_data.advice.table import suggestions
from ...report_data.difference import BY_NAME, NO_EVIDENCE, NOT_JUDGED, UNKNOWN, DiffResult
from ...report_data.line_selection import MIN_BYTES, MIN_MEMORY, MIN_SHARE, important
from ...report_data.numbers import rounded_size, seconds, short_count, short_time, signed, size
from ...report_data.section_rows import call_rows, leak_rows, repeated_work_rows
from ...report_data.where_memory import LEAK_REMEDY

CALLEES = 6
"""Callees of a line that a hover shows."""

SEPARATOR = " · "
LONGEST_HINT = 43
"""Characters of a hint: VS Code cuts what is longer (``editor.inlayHints.maximumLength``). The hover has the rest."""

COMPARED = ("cpu", "main_wait", "memory.live_at_peak", "memory.copied")
"""Metrics of a diff that hints show."""

Recorded = tuple[str, int]
"""A file's name as reports show it, and a line."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A text at a line of a document; ``rule`` says by which rule a remark was made."""

    line: int
    text: str
    rule: str = ""


@dataclass(frozen=True, eq=False)
class Reading:
    """A recording that was read for an editor, perhaps compared with another.

    ``advice`` are its suggestions. ``sort`` is the metric of hints, None for all that are worth a hint.
    """

    run: Run
    advice: list[Suggestion]
    sort: Sort | None = None
    difference: DiffResult | None = None

    @classmethod
    def of(cls, path: Path, question: Question, *, sort: Sort | None = None, base: Path | None = None) -> Reading:
        """Reads a recording; with ``base``, hints tell the difference from that recording.

        Errors:
            FormatError: it cannot be read, or the question does not fit it.
        """
        run = read_run(path, question)
        difference = None if base is None else diff([base], [path], question, anyway=True)
        return cls(run, suggestions(run.profile), sort, difference)

    def document(self, path: str, text: str) -> Document | None:
        """The annotations of a document as it is in the editor; None if the recording knows no such file."""
        chunk = pa.chunked_array([pa.array([text], pa.string())])
        edited = SourceFile(path, None, chunk)
        (file,) = [*pair_files(self.run.files, [edited], edited=False), None][:1]
        if file is None:
            return None
        recorded = self.run.files[file]
        if recorded.is_cell or _last(recorded.path) != _last(path):
            return None
        functions = [(0, *key[1:]) for key in self.run.functions() if key[0] == file]
        link = Link([replace(recorded)], [edited], functions, [], edited=False)
        return Document(self, file, link) if _is_followed(link, recorded) else None

    @cached_property
    def hints(self) -> dict[Recorded, str]:
        """Texts of hints by recorded line."""
        if self.difference is not None:
            return dict(_changes(self.difference))
        profile, sort = self.run.profile, self.sort or Sort.CPU
        beside = ("peak_bytes", "copied_bytes") if self.sort is None else ()
        rows = [profile.frames.lines.row(index) for index in important(profile, sort, beside=beside).tolist()]
        of_row = self._figures if self.sort is None else self._figure
        texts = {(row["file"], row["line"]): of_row(row) for row in rows if row["line"] is not None}
        return {place: text for place, text in texts.items() if text}

    def _figures(self, row: Row) -> str:
        """The figures of a line that are worth a hint."""
        totals, parts = self.run.profile.totals, []
        if row["cpu_share"] >= MIN_SHARE:
            mostly = [name for name in ("native", "kernel") if row[f"{name}_s"] > row["cpu_s"] / 2]
            parts.append(", ".join([f"{row['cpu_share'] * 100:.0f} % CPU", *mostly]))
        if row["main_wait_s"] >= max(MIN_SHARE * totals.main_s, 0.0005):
            parts.append(f"{seconds(row['main_wait_s'])} waiting")
        for column, whole, label in (
            ("live_at_peak_bytes", totals.live_at_peak_bytes, "at peak"),
            ("copied_bytes", totals.copied_bytes, "copied"),
        ):
            if row[column] >= max(MIN_MEMORY * (whole or 0.0), MIN_BYTES):
                parts.append(f"{size(round(row[column]))} {label}")
        while len(SEPARATOR.join(parts)) > LONGEST_HINT:
            parts.pop()
        return SEPARATOR.join(parts)

    def _figure(self, row: Row) -> str:
        """The one metric that was chosen."""
        sort = self.sort or Sort.CPU
        value = row[sort.column]
        if value is None or math.isnan(value):
            return ""
        return f"{rounded_size(value) if sort.by_size else seconds(value)} {sort}"

    @cached_property
    def remarks(self) -> list[tuple[Recorded, Mark]]:
        """Suggestions, leaks and repeated work, each with its remedy, by recorded line; ``Mark.line`` is that line."""
        profile = self.run.profile
        marks = [(each.file, each.line, each.rule, f"{each.figure}: {each.text} {each.remedy}") for each in self.advice]
        advised = {(each.file, each.line) for each in self.advice if each.rule == "leak"}
        for leak in leak_rows(profile) or ():
            if (leak["file"], leak["line"]) in advised:
                continue
            rate, low, high = (rounded_size(leak[name]) for name in ("rate_bytes_per_s", "rate_low", "rate_high"))
            text = f"leak: grows by {rate}/s ({low} to {high}), likelihood {leak['likelihood']:.2f}."
            marks.append((leak["file"], leak["line"], "leak", f"{text} Helps: {LEAK_REMEDY}."))
        for row in repeated_work_rows(profile) or ():
            text = f"repeated work: at least {seconds(row['quantity_s'])} of CPU time, {row['category']}."
            why = ". ".join(printable(str(row[name]), 400).rstrip(".") for name in ("why", "remedy") if row[name])
            marks.append((row["file"], row["line"], "repeated-work", f"{text} {why}".rstrip()))
        return [
            ((file, line), Mark(line, text, rule))
            for file, line, rule, text in marks
            if file is not None and line is not None
        ]


@dataclass(frozen=True, eq=False)
class Document:
    """The annotations of one document, which belongs to ``file`` of the recording."""

    reading: Reading
    file: int
    _link: Link

    @property
    def _name(self) -> str:
        return self.reading.run.files[self.file].name

    def _now(self, line: int) -> int | None:
        """The line of the document that a recorded line is now."""
        place = self._link.forward.line(0, line)
        return None if place is None else place[1]

    def hints(self) -> Iterator[Mark]:
        """Figures for the ends of lines."""
        for (file, line), text in self.reading.hints.items():
            if file == self._name and (now := self._now(line)) is not None:
                yield Mark(now, text)

    def remarks(self) -> Iterator[Mark]:
        """Suggestions, leaks and repeated work."""
        for (file, line), mark in self.reading.remarks:
            if file == self._name and (now := self._now(line)) is not None:
                yield replace(mark, line=now)

    def lenses(self) -> Iterator[Mark]:
        """Figures of functions, above their first lines."""
        profile = self.reading.run.profile
        counted = {(row["file_id"], row["function"], row["line"]) for row in call_rows(profile) or ()}
        for row in profile.frames.functions.rows():
            if row["file_id"] != self.file:
                continue
            key: FunctionKey = (0, row["function"], row["line"] or 0)
            place = self._link.forward.function(key)
            calls = (row["file_id"], *key[1:]) in counted
            unnamed = key[1].rpartition(".")[2].startswith("<")  # a module, a comprehension: its line has the figures
            if place is None or unnamed or not (row["total_cpu_share"] >= MIN_SHARE or calls):
                continue
            parts = [f"{row['total_cpu_share'] * 100:.0f} % CPU with its calls", f"{row['cpu_share'] * 100:.0f} % self"]
            if calls:
                mean = short_time(row["call_mean_s"])
                parts.append(f"{short_count(row['calls'])} calls of {mean}")
            yield Mark(place[2], SEPARATOR.join(parts))

    def hover(self, line: int) -> str | None:
        """The exact figures of a line with their intervals, its callees and its remarks; None if it has none."""
        place = self._link.backward.line(0, line)
        if place is None:
            return None
        profile = self.reading.run.profile
        lines = profile.frames.lines
        here = (lines["file_id"] == self.file) & (np.asarray(lines["line"].tolist(), object) == place[1])
        rows = [lines.row(index) for index in np.flatnonzero(here).tolist()]
        texts = [text for row in rows for text in (time_text(profile, row), held_text(row)) if text]
        if self.reading.difference is not None and (change := self.reading.hints.get((self._name, place[1]))):
            texts.append(f"compared with {self.reading.difference.base[0].name}: {change}")
        texts += [mark.text for (file, at), mark in self.reading.remarks if (file, at) == (self._name, place[1])]
        if not texts:
            return None
        return "\n".join([*texts, *self._callees(place[1]), f"recorded in {self.reading.run.name}"])

    def _callees(self, line: int) -> Iterator[str]:
        path = self.reading.run.profile.calls.tree.paths[self.file]
        try:
            calls = line_calls(self.reading.run.profile, f"{path}:{line}")
        except FormatError:  # Nothing was charged to the line itself.
            return
        for branch in calls.whole.children[:CALLEES]:
            yield f"  calls {branch_text(branch)}"


def _changes(difference: DiffResult) -> Iterator[tuple[Recorded, str]]:
    """Differences by line of the new recording: those with a verdict, and large ones where there can be none."""
    texts: dict[Recorded, list[str]] = {}
    for name in COMPARED:
        if not difference.lines.knows(name):
            continue
        metric = BY_NAME[name]
        judged = difference.judged.includes(metric)
        whole = difference.totals.metric(name)["base"]
        least = MIN_SHARE * float(whole.iloc[0]) if len(whole) else 0.0
        for row in difference.lines.metric(name).to_dict("records"):
            certain = row["verdict"] not in (NO_EVIDENCE, UNKNOWN, NOT_JUDGED)
            worth = certain if judged else abs(row["difference"]) > least
            line = number_or_nothing(row["new_line"])
            if row["new_file"] is None or line is None or not worth:
                continue
            text = f"{signed(row['difference'], metric.unit)} {metric.label}"
            known = f"{row['verdict']}: {text}" if certain else f"{text} (not judged)"
            texts.setdefault((row["new_file"], line), []).append(known)
    for place, parts in texts.items():
        yield place, " · ".join(parts)


def _is_followed(link: Link, recorded: SourceFile) -> bool:
    """True if the document is another version of the recorded file, and not a file that merely has its name."""
    if 0 in link.forward.same:
        return True
    lines = recorded.lines or []
    kept = sum(
        place is not None and bool(text.strip())
        for text, place in zip(lines, link.forward.lines.get(0, []), strict=False)
    )
    return kept >= max(1, LIKE_NAMED * sum(bool(text.strip()) for text in lines))


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
