"""The JSON documents of ``tachograph analyze --json``, ``--tree``, ``--tasks --tree`` and ``--line``.

docs/reference/json.md and calls-json.md describe them; names are kept stable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..profile.awaiters import Awaiting
from ..profile.call_branches import Branch, LineCalls
from ..profile.profile import Profile
from ..recording.frame import Column, Frame, WholeNumbers, falling, rows_of_pandas
from ..recording.output_file import write_text
from ..recording.question_options import Sort
from ..report_data.advice.table import Advice
from ..report_data.hot_spot import hot_spot
from ..report_data.line_selection import COLUMNS

VERSION = 1
"""Version of the document; names are only ever added to a version."""


class Records:
    """Rows of frames below one another, as a list of objects with the same names; a frame may lack some of them."""

    def __init__(self, names: Sequence[str], *frames: Frame, order: NDArray[np.int64] | None = None) -> None:
        self._names = names
        self._frames = frames
        self._order = order

    def __bool__(self) -> bool:
        return any(map(len, self._frames))

    def texts(self) -> Iterator[str]:
        """Each as JSON, in one line, in ``order`` (as they are, if that is None).

        They are made by column: what is unknown is so in a whole column as a rule, and names of files come again.
        """
        template = "{" + ", ".join(f"{json.dumps(name)}: %s" for name in self._names) + "}"
        made = _Made(json.dumps), _Made(_number_text)
        columns = (
            [_column_texts(frame.columns.get(name), len(frame), *made) for name in self._names]
            for frame in self._frames
        )
        rows = chain.from_iterable(zip(*each, strict=True) for each in columns)
        if self._order is None:
            return map(template.__mod__, rows)
        row_texts = list(rows)
        return (template % row_texts[row] for row in self._order.tolist())


def document(
    profile: Profile, *, top: int | None = None, sort: str = "cpu", advice: Advice | None = None
) -> dict[str, Any]:
    """The document as Python objects; a list of objects may be ``Records``.

    ``top`` limits lines, files and the functions of each language, which are sorted by ``sort``.
    """
    column = Sort(sort).column
    frames = profile.frames

    def first(frame: Frame) -> Frame:
        return frame.take(frame.largest_first(column)[:top] if column in frame else slice(top))

    functions = [first(frames.functions), first(frames.native_functions)]
    keys = [falling(frame[column]) if column in frame else np.full(len(frame), np.nan) for frame in functions]
    order = np.argsort(np.concatenate(keys), kind="stable")
    return {
        "tachograph": {"document": "profile", "version": VERSION},
        "recording": asdict(profile.metadata),
        "question": {**asdict(profile.question), "scope": profile.scope, "scope_widened": profile.widened},
        "totals": asdict(profile.totals),
        "quality": {
            "state": profile.quality.state,
            "being_written": profile.quality.being_written,
            "nothing_lost": profile.quality.nothing_lost,
            "losses": [asdict(loss) for loss in profile.quality.losses],
            "causes": [asdict(cause) for cause in profile.quality.causes],
            "recorder_cpu_s": profile.quality.recorder_cpu_s,
            "hooks": None if profile.quality.hooks is None else asdict(profile.quality.hooks),
            "recorder_bytes": profile.quality.recorder_bytes,
            "notes": profile.quality.notes,
        },
        "lines": Records(COLUMNS["lines"], first(frames.lines)),
        "functions": Records(COLUMNS["functions"], *functions, order=order),
        "files": Records(COLUMNS["files"], first(frames.files)),
        "threads": Records(COLUMNS["threads"], frames.threads),
        "tasks": Records(COLUMNS["tasks"], frames.tasks),
        "processes": Records(COLUMNS["processes"], frames.processes),
        "memory": _memory(profile),
        "leaks": None if frames.leaks is None else Records(COLUMNS["leaks"], frames.leaks),
        "spans": None if frames.spans is None else Records(COLUMNS["spans"], frames.spans),
        "redundancies": None if frames.redundancies is None else Records(COLUMNS["redundancies"], frames.redundancies),
        "gpu": _gpu(profile),
        "last_seconds": None if profile.last_seconds is None else asdict(profile.last_seconds),
        "parent_waits": None if profile.parent_waits is None else list(map(asdict, profile.parent_waits)),
        "suggestions": [asdict(each) for each in (advice or Advice()).about(profile)],
        "hot_spot": None if (spot := hot_spot(profile)) is None else asdict(spot),
    }


def _memory(profile: Profile) -> dict[str, Any] | None:
    """The processes' memory; its frames as lists of objects."""
    memory = profile.memory
    if memory is None:
        return None
    document: dict[str, Any] = {}
    for field in fields(memory):
        if field.name == "frames":
            for frame in fields(memory.frames):
                rows: Frame = getattr(memory.frames, frame.name)
                document[frame.name] = list(rows.rows())
        elif field.name == "where":
            document["where"] = None if memory.where is None else memory.where.document()
        elif field.name == "referrers":
            document["referrers"] = None if memory.referrers is None else list(memory.referrers.rows())
        else:
            document[field.name] = getattr(memory, field.name)
    return document


def _gpu(profile: Profile) -> dict[str, Any] | None:
    """The GPUs as wholes."""
    gpu = profile.gpu
    if gpu is None:
        return None
    return {
        "devices": rows_of_pandas(gpu.devices),
        "timeline": rows_of_pandas(gpu.timeline),
        "shared": gpu.shared,
    }


def write(
    profile: Profile, target: str, *, top: int | None = None, sort: str = "cpu", advice: Advice | None = None
) -> None:
    """Writes the document to a file, or to standard output if ``target`` is ``-``.

    Errors:
        FormatError: the file cannot be written.
    """
    write_text(pieces(document(profile, top=top, sort=sort, advice=advice)), target)


def pieces(value: Mapping[str, Any]) -> Iterator[str]:
    """JSON with null in place of NaN, in ASCII, so that any terminal and any locale can take it.

    It comes a record at a time: all of a large document would take a multiple of its memory. A record is a line: only
    without indentation is the encoder that is written in C used.
    """
    yield "{"
    before = "\n "
    for key, entry in value.items():
        yield f"{before}{json.dumps(str(key))}: "
        before = ",\n "
        if not isinstance(entry, (list, Records)) or not entry:
            # Line breaks in strings are escaped, so all that are left are those between lines.
            plain = [] if isinstance(entry, Records) else _plain(entry)
            yield json.dumps(plain, indent=1, allow_nan=False).replace("\n", "\n ")
            continue
        between = "["
        for record in _lines(entry):
            yield f"{between}\n  {record}"
            between = ","
        yield "\n ]"
    yield "\n}\n"


def _lines(entries: list[Any] | Records) -> Iterator[str]:
    """Each entry as JSON, in one line."""
    if isinstance(entries, Records):
        return entries.texts()
    return (json.dumps(_plain(entry), allow_nan=False) for entry in entries)


class _Made(dict[Any, str]):
    """Values as JSON, each made once: names of files and small numbers come again and again."""

    def __init__(self, make: Callable[[Any], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, value: Any) -> str:
        text = self[value] = self._make(value)
        return text


def _column_texts(column: Column | None, rows: int, texts: _Made, numbers: _Made) -> list[str]:
    """A column's values as JSON; null for all ``rows`` if there is none."""
    if column is None:
        return ["null"] * rows
    if isinstance(column, WholeNumbers):
        return ["null" if value is None else str(value) for value in column.tolist()]
    if column.dtype.kind in "iu":
        return [str(value) for value in column.tolist()]
    if column.dtype.kind != "f":
        return [texts[each] if type(each) is str else json.dumps(_plain(each)) for each in column.tolist()]
    result = ["null"] * rows
    finite = np.flatnonzero(np.isfinite(column))
    for row, value in zip(finite.tolist(), (column[finite] + 0.0).tolist(), strict=True):  # no zero is negative
        result[row] = numbers[value]
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return value.item() if hasattr(value, "item") else value


def _number_text(value: float) -> str:
    """A finite number as JSON."""
    text = f"{value:.9g}"
    # Else Python would write it in another way.
    return text if "." in text and "e" not in text else repr(float(text))


_PLAIN = tuple(each.name for each in fields(Branch) if each.name not in ("children", "module"))


def tree_document(profile: Profile, branches: Sequence[Branch]) -> dict[str, Any]:
    """The call tree of a program."""
    return {**_head(profile, "tree"), "calls": _rows(branches)}


def awaiting_document(profile: Profile) -> dict[str, Any]:
    """The tree of tasks that await one another; ``tasks`` is null where nothing is known of suspended tasks."""
    rows = None
    if profile.awaiting is not None:
        names = [each.name for each in fields(Awaiting) if each.name != "children"]
        rows = [
            {"depth": depth, **{name: getattr(each, name) for name in names}}
            for root in profile.awaiting
            for depth, each in root.walk()
        ]
    totals = {"await_s": profile.totals.await_s, "wall_s": profile.totals.wall_s}
    return {**_head(profile, "awaiting"), "totals": totals, "tasks": rows}


def line_document(profile: Profile, calls: LineCalls) -> dict[str, Any]:
    """The document of one line and its call tree."""
    line = {name: value for name, value in _row(calls.whole).items() if name.endswith(("_s", "_bytes"))}
    place = {"file": calls.file, "line": calls.line, "source": calls.source}
    return {**_head(profile, "line"), "line": {**place, **line}, "calls": _rows(calls.whole.children)}


def _head(profile: Profile, document: str) -> dict[str, Any]:
    return {
        "tachograph": {"document": document, "version": VERSION},
        "recording": asdict(profile.metadata),
        "question": {**asdict(profile.question), "scope": profile.scope, "scope_widened": profile.widened},
        "totals": {"cpu_s": profile.totals.cpu_s},
        "native_paths": dict(profile.paths.states) if profile.paths.recorded else None,
    }


def _rows(branches: Sequence[Branch]) -> list[dict[str, Any]]:
    return [{"depth": depth, **_row(each)} for branch in branches for depth, each in branch.walk()]


def _row(branch: Branch) -> dict[str, Any]:
    return {name: getattr(branch, name) for name in _PLAIN}
