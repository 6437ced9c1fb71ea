"""The data of a page: ``ReportData`` as JSON with packed grids, with calls and GPUs, for assets/data.js to read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from ...profile.profile import Profile
from ...profile.span_sums import COLLECTOR_COLUMN as COLLECTOR
from ...profile.span_sums import COLUMN as WAIT_FOR
from ...recording.frame import Frame, Row
from ...recording.native_names import short_library
from ...recording.text import printable
from ...report_data.advice.program import HELP
from ...report_data.advice.table import Advice
from ...report_data.columns import ON_PAGES
from ...report_data.flame_tree import FOLDED, KERNEL, LABEL
from ...report_data.headline import GC_SHARE, MEANING, UNKNOWN_CODE, first_waiting, scope_sentence
from ...report_data.hot_spot import hot_spot
from ...report_data.line_selection import other_functions
from ...report_data.native_callees import (
    Allocator,
    Callee,
    Waiter,
    native_allocators,
    native_callees,
    native_waiters,
)
from ...report_data.report_data import Part, ReportData, View
from ...report_data.sections import SECTIONS, Section
from ...report_data.series import MEASURES
from ...report_data.spans_over_time import SpanPart
from .pack import Names, Packer, Texts, number
from .page_head import summary

MAX_DEVICES = 8
"""GPUs that are drawn at most: those that the program used come first."""


def gpu_document(picture: ReportData) -> list[dict[str, Any]] | None:
    """Busy share of each GPU in each bin of time (null: unknown), and its memory; None if GPUs were not read."""
    gpu, bins = picture.profile.gpu, picture.bins
    if gpu is None:
        return None
    order = gpu.devices.sort_values("used", ascending=False, kind="stable")
    shown = order[order["used"]] if order["used"].any() else order
    documents = []
    for row in shown.head(MAX_DEVICES).itertuples():
        mine = gpu.timeline[gpu.timeline["device"] == row.device]
        held = mine[mine["memory_bytes"].notna()]
        documents.append(
            {
                "label": "GPU" if len(gpu.devices) == 1 else f"GPU {int(row.device)}",
                "name": None if pd.isna(row.name) else row.name,
                "share": number(row.busy_share),
                "busy": [number(value, 4) for value in busy_by_span(mine, bins.start_s, bins.width_s, bins.count)],
                "memory": [
                    [number(float(at), 6), number(float(size), 5)]
                    for at, size in thinned(held[["time_s", "memory_bytes"]], 4 * bins.count).to_numpy()
                ],
            }
        )
    return documents


def busy_by_span(timeline: pd.DataFrame, start_s: float, width_s: float, count: int) -> list[float]:
    """The mean of what is known in each span of time, NaN where nothing is; each value holds since the one before."""
    readings = timeline[timeline["busy_share"].notna()]
    end, share = readings["time_s"].to_numpy(np.float64), readings["busy_share"].to_numpy(np.float64)
    if len(end) < 2:
        return [float("nan")] * count
    edges = start_s + np.arange(count + 1) * width_s
    work = np.concatenate(([0.0], np.cumsum(share[1:] * np.diff(end))))
    done = np.diff(np.interp(edges, end, work))
    covered = np.diff(np.clip(edges, end[0], end[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(covered > 0.05 * width_s, done / covered, np.nan)
    return [float(value) for value in means]


def thinned(points: pd.DataFrame, limit: int) -> pd.DataFrame:
    """Points without those in the middle of a run of equal values; the highest of each group where there are many."""
    value = points["memory_bytes"]
    points = points[(value != value.shift()) | (value != value.shift(-1))]
    if len(points) <= limit:
        return points
    group = np.arange(len(points)) * limit // len(points)
    return points.loc[points.groupby(group)["memory_bytes"].idxmax()]


COLUMNS = (
    *("calls", "calls_low", "calls_high", "watched_s", "own_call_mean_s"),
    *(f"call_{name}_s" for name in ("mean", "p50", "p90", "p99", "max")),
)


def call_columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """The columns about calls of a part of the profile; nothing if none were watched.

    ``call_times`` is by row a list of (binary digits of the time in ns, calls), or None.
    """
    if "watched_s" not in frame or frame["watched_s"].isna().all():
        return {}
    columns: dict[str, list[Any]] = {
        name: [number(value, 7) for value in frame[name].to_numpy(np.float64).tolist()] for name in COLUMNS
    }
    columns["call_times"] = [
        [[round(math.log2(end * 1e9)), number(calls, 4)] for end, calls in times] if isinstance(times, list) else None
        for times in frame["call_times"]
    ]
    return columns


VERSION = 1

WHOLE_TIME = (*(measure.name for measure in ON_PAGES), "leak_likelihood", "leak_rate_bytes_per_s")
"""Columns of the profile that belong to the whole of the question; shown whatever window is chosen, and marked so."""

NOT_TABLES = ("functions", "native_functions", "calls", "spans", "threads")
"""Sections that are drawn from sums over any window, or that are columns of another one."""

MICROSECOND = 1_000.0

MAX_FUNCTION_NAME = 1_000
"""Characters of a function's name: those of C++ with its types are long, and the page shortens them."""
MAX_ROWS = 2_000
"""Rows of the whole time that a section has at most."""


def payload(
    picture: ReportData,
    texts: Texts,
    left_out: list[str],
    advice: Advice,
    views: Sequence[View] = (),
    sort: str = "cpu",
) -> str:
    """The data block of a page. The ``views`` share its names and the source texts."""
    packer, names = Packer(), Names()
    document = {
        "version": VERSION,
        "sort": sort,
        **_document(picture, advice, packer, names),
        "sources": _sources([picture, *(view.data for view in views)], texts, names),
        "meaning": dict(MEANING),
        "sections": {name: _section(each) for name, each in SECTIONS.items()},
        "measures": [asdict(measure) for measure in ON_PAGES],
        "generated": _generated([picture, *(view.data for view in views)], names),
        "left_out": left_out,
        "views": [
            {"kind": view.kind, "label": view.label, "document": _document(view.data, advice, packer, names)}
            for view in views
        ],
    }
    document["names"] = names.texts
    return packer.block(document)


def _section(section: Section) -> dict[str, Any]:
    """A section for a page, without its rows."""
    columns = [{**asdict(column), "key": column.key or column.name} for column in section.columns]
    return {
        "title": section.title,
        "hint": section.page_hint,
        "nothing": section.page_nothing,
        "columns": [{name: value for name, value in column.items() if name in _SECTION_COLUMN} for column in columns],
    }


_SECTION_COLUMN = ("key", "unit", "title", "hint", "rank", "main", "whole", "exact")


def _document(picture: ReportData, advice: Advice, packer: Packer, names: Names) -> dict[str, Any]:
    """The answer to one question."""
    profile, bins = picture.profile, picture.bins
    return {
        "head": summary(profile),
        "other_code": [
            [each.name, each.file, each.line, number(each.amount), number(each.wait_s)]
            for each in other_functions(profile)
        ],
        "waiting": asdict(first_waiting(profile)),
        "totals": {key: number(value) for key, value in asdict(profile.totals).items()},
        "scope": profile.scope,
        "charged": scope_sentence(profile.scope),
        "bins": {"start": bins.start_s, "width": bins.width_s, "count": bins.count},
        "overall": _overall(picture, packer),
        "lines": _part(
            picture.lines, packer, names, ("file", "function"), native_callees(profile, picture.lines.frame)
        ),
        "functions": _part(picture.functions, packer, names, ("file", "function")),
        "files": _part(picture.files, packer, names, ("file",)),
        "threads": _threads(picture, packer, names),
        "tables": _tables(profile),
        "spans": _spans(picture.spans, packer, names),
        "allocators": _allocators(picture, names),
        "waiters": _waiters(picture, names),
        "flame": _flame(picture, packer, names),
        "memory": memory_document(picture),
        "gpu": gpu_document(picture),
        "suggestions": [asdict(replace(each, link=f"{each.rule}: {HELP}")) for each in advice.about(profile)],
        "hot_spot": None if (spot := hot_spot(profile)) is None else spot.text,
    }


def _allocators(picture: ReportData, names: Names) -> dict[str, list[list[float | int | None]]]:
    """Native functions that allocated for each row of the lines: name, module, place, bytes at peak, at end, allocated.

    Rows without any are left out.
    """
    by_row = native_allocators(picture.profile, picture.lines.frame)
    return {
        str(row): [
            [
                *_native(each, names),
                *(number(size, 5) for size in (each.live_at_peak_bytes, each.live_at_end_bytes, each.allocated_bytes)),
            ]
            for each in allocators
        ]
        for row, allocators in enumerate(by_row)
        if allocators
    }


def _native(each: Callee | Waiter | Allocator, names: Names) -> list[int]:
    return [names.number(each.name), names.number(each.module), names.number(each.place)]


def _waiters(picture: ReportData, names: Names) -> dict[str, list[list[float | int | None]]]:
    """Native functions that each row of the lines waited in: name, module, place, seconds; only rows that have any."""
    by_row = native_waiters(picture.profile, picture.lines.frame)
    return {
        str(row): [[*_native(each, names), number(each.wait_s, 5)] for each in waiters]
        for row, waiters in enumerate(by_row)
        if waiters
    }


def _overall(picture: ReportData, packer: Packer) -> dict[str, Any]:
    plain = ("samples", "weight", "weight_squared")
    return {
        name: [number(value, 9) for value in values] if name in plain else _grid(packer, name, values[np.newaxis])
        for name, values in picture.overall.items()
    }


def _grid(packer: Packer, measure: str, values: Any) -> dict[str, Any]:
    is_bytes = measure in ("allocated", "net", "copied")
    return packer.grid(values, 1.0 if is_bytes else MICROSECOND)


def _part(
    part: Part,
    packer: Packer,
    names: Names,
    texts: tuple[str, ...],
    natives: list[list[Callee]] | None = None,
) -> dict[str, Any]:
    frame = part.frame
    columns: dict[str, Any] = {name: names.numbers(frame[name]) for name in texts}
    if "line" in frame:
        columns["line"] = [None if value is pd.NA else int(value) for value in frame["line"].tolist()]
    columns.update(_exact(frame))
    columns.update(call_columns(frame))
    if natives is not None:
        columns["natives"] = [
            [[*_native(each, names), number(each.cpu_s, 5)] for each in callees] for callees in natives
        ]
    return {
        "count": len(frame),
        "left_out": part.left_out,
        "columns": columns,
        "own": {name: _grid(packer, name, grid) for name, grid in part.series.own.items() if name in MEASURES},
        "total": {name: _grid(packer, name, grid) for name, grid in part.series.total.items()},
    }


def _exact(frame: pd.DataFrame) -> dict[str, list[Any]]:
    """Columns of the whole time, where anything is known: memory with its intervals, pools, what waits were for."""
    names = [name + end for name in WHOLE_TIME for end in ("", "_low", "_high")]
    values = {name: frame[name].to_numpy(np.float64) for name in names if name in frame}
    measured = {name: each for name, each in values.items() if not np.isnan(each).all()}
    if not (frame["pool_cpu_s"] > 0).any():
        measured.pop("pool_cpu_s", None)
    if np.nansum(frame[COLLECTOR]) < GC_SHARE * np.nansum(frame["cpu_s"]):
        measured.pop(COLLECTOR, None)
    columns: dict[str, list[Any]] = {
        name: [number(value, 5) for value in each.tolist()] for name, each in measured.items()
    }
    if WAIT_FOR in frame and frame[WAIT_FOR].notna().any():
        columns[WAIT_FOR] = [
            [[reason, number(amount, 5)] for reason, amount in reasons] if isinstance(reasons, list) else None
            for reasons in frame[WAIT_FOR]
        ]
    if "timeline" in frame and frame["timeline"].notna().any():
        columns["timeline"] = [
            [[number(float(at), 5), number(float(held), 4)] for at, held in points]
            if isinstance(points, list)
            else None
            for points in frame["timeline"]
        ]
    return columns


def _threads(picture: ReportData, packer: Packer, names: Names) -> dict[str, Any]:
    part, start = picture.threads, picture.bins.start_ns - round(picture.bins.start_s * 1e9)
    frame = part.frame
    return {
        "count": len(frame),
        "left_out": part.left_out,
        "columns": {
            "name": names.numbers(frame["name"]),
            "tid": [None if value is pd.NA else int(value) for value in frame["tid"].tolist()],
            "process": [int(value) for value in frame["process"]],
            "main": [bool(value) for value in frame["main"]],
            "start": [None if value is pd.NA else number((int(value) - start) / 1e9) for value in frame["start_ns"]],
            "end": [None if value is pd.NA else number((int(value) - start) / 1e9) for value in frame["end_ns"]],
        },
        "own": {name: _grid(packer, name, grid) for name, grid in part.series.own.items()},
    }


def _spans(part: SpanPart | None, packer: Packer, names: Names) -> dict[str, Any] | None:
    """Time and memory by the names of spans; the last row is what was in none."""
    if part is None:
        return None
    units = dict.fromkeys(("allocated", "kept", "copied"), 1.0)
    return {
        "count": len(part.names),
        "left_out": part.left_out,
        "columns": {"name": names.numbers(part.names), "times": part.counts},
        "whole": {name: [number(value) for value in values] for name, values in part.whole.items()},
        "own": {name: packer.grid(grid, units.get(name, MICROSECOND)) for name, grid in part.grids.items()},
    }


def _tables(profile: Profile) -> dict[str, list[dict[str, Any]]]:
    """Rows of each section that has rows of the whole time, where anything is known of it."""
    tables: dict[str, list[dict[str, Any]]] = {}
    for name, section in SECTIONS.items():
        rows = None if name in NOT_TABLES or section.rows is None else section.rows(profile)
        if rows is not None:
            keys = {column.key: column.name for column in section.columns if column.key}
            tables[name] = [table_row(row, keys) for row in rows[:MAX_ROWS]]
    return tables


def table_row(row: Row, keys: Mapping[str, str]) -> dict[str, Any]:
    """A row with the values that columns look for by a short name (``keys``, to the row's own) under that name too."""
    values = {key: _plain(value) for key, value in row.items()}
    return {key: values[name] for key, name in keys.items() if name in values} | values


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, bool)) else number(value)


def _flame(picture: ReportData, packer: Packer, names: Names) -> dict[str, Any]:
    flame, paths = picture.flame, picture.flame_paths
    tree, python = paths.tree, len(picture.tree.function_names)
    functions = np.unique(flame.function[flame.function >= 0])
    number_of = {int(function): place for place, function in enumerate(functions)}
    files = {f: None if tree.function_files[f] < 0 else tree.paths[tree.function_files[f]] for f in functions.tolist()}
    modules = [short_library(paths.functions.paths[f - python]) if f >= python else None for f in functions.tolist()]
    places = [paths.functions.place(f - python) if f >= python else None for f in functions.tolist()]
    return {
        "parent": packer.ids(flame.parent),
        "function": packer.ids(np.array([number_of.get(int(f), int(f)) for f in flame.function], np.int64)),
        "functions": {
            "name": names.numbers(printable(tree.function_names[f], MAX_FUNCTION_NAME) for f in functions),
            "file": names.numbers(None if path is None else printable(path, 4096) for path in files.values()),
            "line": [int(tree.function_lines[f]) for f in functions],
            "inside": [int(f < python and picture.in_scope[f]) for f in functions],
            "module": names.numbers(modules),
            "place": names.numbers(places),
        },
        "special": {
            "-1": UNKNOWN_CODE,
            str(FOLDED): "(small functions)",
            str(KERNEL): "kernel",
            **{str(LABEL - place): label for place, label in enumerate(picture.labels)},
        },
        "folded": flame.folded,
        "own": {name: _grid(packer, name, grid) for name, grid in picture.flame_series.own.items()},
        "held": {name: packer.ids(np.rint(values).astype(np.int64)) for name, values in picture.flame_held.items()},
    }


def _generated(pictures: Sequence[ReportData], names: Names) -> list[int]:
    """The numbers of the files that code was generated from, and whose lines are not known."""
    paths = {path for picture in pictures for path in picture.lines.frame["file"].dropna()}
    generated = frozenset[str]().union(*(picture.profile.sources.generated for picture in pictures))
    return sorted(names.number(path) for path in paths & generated)


def _sources(pictures: Sequence[ReportData], texts: Texts, names: Names) -> list[list[Any]]:
    paths: dict[int, str] = {}
    for picture in pictures:
        paths.update(zip(picture.lines.frame["file_id"], picture.lines.frame["file"], strict=True))
    return [
        [names.number(paths[file]), first, "\n".join(lines)]
        for file, pieces in texts.pieces.items()
        for first, lines in pieces
    ]


def memory_document(picture: ReportData) -> dict[str, Any] | None:
    """The process's memory over time, if it was recorded."""
    memory = picture.profile.memory
    if memory is None:
        return None
    frames = memory.frames

    def points(frame: Frame) -> list[list[Any]]:
        by_process: dict[int, list[Any]] = {}
        for row in frame.rows():
            by_process.setdefault(int(row["process"]), []).append([number(row["time_s"], 6), number(row["bytes"], 5)])
        return [[process, by_process[process]] for process in sorted(by_process)]

    together = frames.footprint_sum.with_columns({"process": np.zeros(len(frames.footprint_sum))})
    single = len(frames.processes) <= 1
    return {
        "peak": number(memory.peak_bytes),
        "peak_at": number(memory.peak_s),
        "end": number(memory.end_bytes),
        "end_at": number(memory.end_s),
        "start": number(memory.start_bytes),
        "resident_peak": number(memory.resident_peak_bytes),
        "resident_peak_at": number(memory.resident_peak_s),
        # Of several processes what they hold together is drawn; their resident sets share pages, and have no sum.
        "footprint": points(frames.footprint if single else together),
        "resident": points(frames.resident) if single else [],
    }
