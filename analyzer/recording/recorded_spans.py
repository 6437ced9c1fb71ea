"""Named spans of the program: reading them, selecting some (``--span``), and the time ranges that they cover."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError
from tachograph.format.arrays import filled, ids, numbers

from .opened import Recording
from .text import printable
from .time_window import TimeRanges, Window

if TYPE_CHECKING:
    from .span_tracks import Tracks

_COLUMNS = ("span", "parent", "thread", "name", "fields", "start_ns", "end_ns")


@dataclass(frozen=True)
class Spans:
    """The spans of a recording; one whose end was not seen lasts as long as the recording."""

    number: NDArray[np.int64]
    """Their ids."""
    parent: NDArray[np.int64]
    """The id of the span that each began in; -1 where there is none."""
    thread: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name: NDArray[np.int64]
    """The number of its name."""
    names: list[str]
    fields: list[str | None]

    def __len__(self) -> int:
        return len(self.thread)

    def only(self, mask: NDArray[np.bool_]) -> Spans:
        """Some of them, names numbered as before."""
        fields = [text for text, kept in zip(self.fields, mask.tolist(), strict=True) if kept]
        number, parent, thread = self.number[mask], self.parent[mask], self.thread[mask]
        times = self.start_ns[mask], self.end_ns[mask]
        return Spans(number, parent, thread, *times, self.name[mask], self.names, fields)


def read_spans(recording: Recording) -> Spans:
    """The spans; none where the recording has no table of them."""
    schema = pa.schema([recording.specification.tables["spans"].schema.field(name) for name in _COLUMNS])
    table = pa.Table.from_batches(recording.batches("spans", _COLUMNS), schema=schema)
    if not table.num_rows:
        nothing = np.zeros(0, np.int64)
        return Spans(nothing, nothing, nothing, nothing, nothing, nothing, [], [])
    start_ns = numbers(table.column("start_ns"))
    last = max(recording.end_ns or 0, int(start_ns[-1]))
    end_ns = np.maximum(filled(table.column("end_ns"), last), start_ns)
    spelled = table.column("name").to_pylist()
    names = {name: each for each, name in enumerate(dict.fromkeys(spelled))}
    number, parent, thread = (ids(table.column(column)) for column in ("span", "parent", "thread"))
    fields, numbered = table.column("fields").to_pylist(), np.array([names[each] for each in spelled], np.int64)
    return Spans(number, parent, thread, start_ns, end_ns, numbered, list(names), fields)


def matching_spans(window: Window, recording: Recording, spans: Spans, pattern: str) -> Spans:
    """The spans in a window that ``pattern`` (``NAME`` or ``NAME[KEY=VALUE,...]``) means.

    Errors:
        FormatError: there is no such span, or ``pattern`` is not written like that.
    """
    matching = spans.only(_matching(spans, pattern))
    matching = matching.only((matching.end_ns > window.start_ns) & (matching.start_ns < window.end_ns))
    if not len(matching):
        names = ", ".join(printable(name, 40) for name in spans.names[:20])
        hint = f"there are: {names}" if names else "the program named none (with tachograph.recorder.span)"
        if not recording.recorded("spans"):
            hint = f"format {recording.manifest.format_version} had no spans"
        raise FormatError(f"no span matches --span {printable(pattern, 80)!r}; {hint}")
    return matching


def narrowed(window: Window, matching: Spans, tracks: Tracks | None) -> Window:
    """The window with no more than some spans; ``tracks`` were made with these as the chosen ones."""
    start_ns = max(window.start_ns, int(matching.start_ns.min()))
    end_ns = min(window.end_ns, int(matching.end_ns.max()))
    end_ns = max(end_ns, start_ns + 1)
    _, united = _sweep(replace(matching, name=np.zeros_like(matching.name), names=["chosen"]))
    united = united.cut(start_ns, end_ns)
    spans = united if tracks is None else united.followed_by(tracks.chosen.cut(start_ns, end_ns))
    return Window(start_ns, end_ns, spans, tracks, united.wall_ns())


def take_turns(spans: Spans, window: Window) -> bool:
    """True if two spans of a thread overlap and neither lies in the other: tasks or greenlets took turns."""
    mine = spans.only((spans.end_ns > window.start_ns) & (spans.start_ns < window.end_ns))
    order = np.lexsort((-mine.end_ns, mine.start_ns, mine.thread))
    of, open_until = -1, list[int]()
    for thread, start, end in zip(
        mine.thread[order].tolist(), mine.start_ns[order].tolist(), mine.end_ns[order].tolist(), strict=True
    ):
        if thread != of:
            of, open_until = thread, []
        while open_until and open_until[-1] <= start:
            open_until.pop()
        if open_until and end > open_until[-1]:
            return True
        open_until.append(end)
    return False


def _matching(spans: Spans, pattern: str) -> NDArray[np.bool_]:
    """Mask of the spans that match a pattern."""
    name, bracket, rest = pattern.partition("[")
    if bracket and not rest.endswith("]"):
        raise FormatError(f"--span {printable(pattern, 80)!r}: write NAME or NAME[KEY=VALUE,...]")
    names = np.array([fnmatchcase(each, name) for each in spans.names], np.bool_)
    mask = names[spans.name] if len(spans) else np.zeros(0, np.bool_)
    if not bracket:
        return mask
    pairs = [pair.partition("=") for pair in rest[:-1].split(",")]
    if not all(key and equals for key, equals, _ in pairs):
        raise FormatError(f"--span {printable(pattern, 80)!r}: write NAME or NAME[KEY=VALUE,...]")
    conditions = {key.strip(): value.strip() for key, _, value in pairs}
    for row in np.flatnonzero(mask).tolist():
        mask[row] = _fits(spans.fields[row], conditions)
    return mask


def _fits(fields: str | None, conditions: Mapping[str, str]) -> bool:
    """True if the fields have all the required values: texts as globs, all else as JSON has it."""
    try:
        values: Any = json.loads(fields) if fields is not None else {}
    except (ValueError, RecursionError):  # written by another recorder
        return False
    if not isinstance(values, dict):
        return False
    return all(key in values and fnmatchcase(_text(values[key]), value) for key, value in conditions.items())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _sweep(spans: Spans) -> tuple[TimeRanges, TimeRanges]:
    """The ranges in which each name was the innermost, and those in which it was open at all."""
    own: list[tuple[int, int, int, int]] = []
    total: list[tuple[int, int, int, int]] = []
    number = np.arange(len(spans))
    time = np.concatenate([spans.start_ns, spans.end_ns])
    kind = np.repeat([0, 1], len(spans))
    row = np.concatenate([number, number])
    # At one moment beginnings come first, so that one span right after another leaves no gap.
    order = np.lexsort((row, kind, time, spans.thread[row]))
    thread_of, name_of = spans.thread.tolist(), spans.name.tolist()
    thread, before, open_rows = -1, 0, dict[int, None]()
    depth: Counter[int] = Counter()
    since: dict[int, int] = {}
    for moment, ends, each in zip(time[order].tolist(), kind[order].tolist(), row[order].tolist(), strict=True):
        if thread_of[each] != thread:
            thread, open_rows = thread_of[each], {}
        if open_rows and moment > before:
            own.append((thread, before, moment, name_of[next(reversed(open_rows))]))
        before, name = moment, name_of[each]
        if ends:
            del open_rows[each]
            depth[name] -= 1
            if not depth[name] and moment > since[name]:
                total.append((thread, since[name], moment, name))
        else:
            open_rows[each] = None
            depth[name] += 1
            if depth[name] == 1:
                since[name] = moment
    return TimeRanges.of(own), TimeRanges.of(total)


def own_and_total(spans: Spans, window: Window, threads: NDArray[np.bool_] | None) -> tuple[TimeRanges, TimeRanges]:
    """The ranges of each name in a window and of some threads: as the innermost span, and at all."""
    mask = np.ones(len(spans), np.bool_) if threads is None else threads[spans.thread]
    own, total = (each.cut(window.start_ns, window.end_ns) for each in _sweep(spans.only(mask)))
    if window.spans is not None:
        own, total = own.within(window.spans), total.within(window.spans)
    return own, total
