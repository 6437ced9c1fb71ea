"""The JSON document of ``tachograph analyze --json`` (docs/reference/json.md); its names are kept stable."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from ..profile.profile import Profile
from ..recording.frame import Frame
from ..recording.output_file import write_text
from ..recording.question_options import Sort
from ..report_data.profile_columns import COLUMNS

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1
"""Version of the document; names are only ever added to a version."""


def document(profile: Profile, *, top: int | None = None, sort: str = "cpu") -> dict[str, Any]:
    """The document as Python objects.

    ``top`` limits lines, files and the functions of each language, which are sorted by ``sort``.
    """
    column = Sort(sort).column
    frames = profile.frames

    def first(frame: Frame) -> Frame:
        return frame.take(frame.largest_first(column)[:top] if column in frame else slice(top))

    functions = [*first(frames.functions).rows(), *first(frames.native_functions).rows()]
    functions.sort(key=lambda row: _falling(row.get(column)))
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
            "recorder_bytes": profile.quality.recorder_bytes,
            "notes": profile.quality.notes,
        },
        "lines": _records(first(frames.lines), COLUMNS["lines"]),
        "functions": [{name: row.get(name) for name in COLUMNS["functions"]} for row in functions],
        "files": _records(first(frames.files), COLUMNS["files"]),
        "threads": _records(frames.threads, COLUMNS["threads"]),
        "tasks": _records(frames.tasks, COLUMNS["tasks"]),
        "processes": _records(frames.processes, COLUMNS["processes"]),
        "memory": _memory(profile),
        "leaks": None if frames.leaks is None else _records(frames.leaks, COLUMNS["leaks"]),
        "spans": None if frames.spans is None else _records(frames.spans, COLUMNS["spans"]),
        "gpu": _gpu(profile),
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
                document[frame.name] = _records(rows, list(rows.columns))
        else:
            document[field.name] = getattr(memory, field.name)
    return document


def _gpu(profile: Profile) -> dict[str, Any] | None:
    """The GPUs as wholes."""
    gpu = profile.gpu
    if gpu is None:
        return None
    return {
        "devices": _of_pandas(gpu.devices),
        "timeline": _of_pandas(gpu.timeline),
        "shared": gpu.shared,
    }


def write(profile: Profile, target: str, *, top: int | None = None, sort: str = "cpu") -> None:
    """Writes the document to a file, or to standard output if ``target`` is ``-``.

    Errors:
        FormatError: the file cannot be written.
    """
    write_text(pieces(document(profile, top=top, sort=sort)), target)


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
        if not isinstance(entry, list) or not entry:
            # Line breaks in strings are escaped, so all that are left are those between lines.
            yield json.dumps(_plain(entry), indent=1, allow_nan=False).replace("\n", "\n ")
            continue
        between = "["
        for record in entry:
            yield f"{between}\n  {json.dumps(_plain(record), allow_nan=False)}"
            between = ","
        yield "\n ]"
    yield "\n}\n"


def _records(frame: Frame, columns: Sequence[str]) -> list[dict[str, Any]]:
    return list(frame.select(columns).rows())


def _falling(value: float | None) -> float:
    """A key by which the largest comes first, and what is unknown last."""
    return math.inf if value is None or math.isnan(value) else -value


def _of_pandas(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.astype(object).where(frame.notna(), None)
    return [dict(zip(plain.columns, row, strict=True)) for row in plain.itertuples(index=False, name=None)]


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
