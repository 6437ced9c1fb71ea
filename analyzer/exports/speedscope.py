"""speedscope's own format (https://www.speedscope.app/file-format-schema.json): one profile for each thread."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, BinaryIO

import pandas as pd

from .extract import Extract, Options, TooManyRowsError
from .frame_tree import FrameTree

LIMIT = 200_000
"""Changes of stack that are kept in the order of time, some 10 events each; more of them are added up by stack."""


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes one profile per thread, the heaviest first. The axis is the metric itself, and not the time of day."""
    tree, remarks = extract.tree(lines=options.lines, native=options.native), []
    try:
        rows = extract.timeline(tree, LIMIT)
    except TooManyRowsError:
        tree = extract.tree(lines=options.lines, native=options.native)
        rows = extract.sums(tree)
        # In depth-first order no frame opens twice.
        rows = rows.assign(order=tree.order()[rows["node"]]).sort_values("order")
        remarks.append("too many samples for the order of time: stacks are added up, use the left-heavy view")
    profiles = [
        profile(tree, part, _name(extract, int(thread)), extract.metric.unit)
        for thread, part in rows.groupby("thread", sort=True)
    ]
    profiles.sort(key=lambda each: -each["endValue"])
    document = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "tachograph",
        "name": f"{extract.program} ({extract.metric.doc})",
        "activeProfileIndex": 0,
        "shared": {"frames": [_frame(tree, number) for number in range(len(tree.frames))]},
        "profiles": profiles or [_profile("nothing", extract.metric.unit, 0, [])],
    }
    out.write(json.dumps(document, separators=(",", ":")).encode())
    return remarks


def profile(tree: FrameTree, rows: pd.DataFrame, name: str, unit: str) -> dict[str, Any]:
    """A profile of rows in their order: frames open and close where stacks change."""
    events: list[dict[str, Any]] = []
    at = 0
    below: list[int] = []
    for node, weight in zip(rows["node"].tolist(), rows["weight"].tolist(), strict=True):
        stack = tree.chain(node)
        common = 0
        while common < min(len(stack), len(below)) and stack[common] == below[common]:
            common += 1
        events += _events("C", reversed(below[common:]), tree, at)
        events += _events("O", stack[common:], tree, at)
        at, below = at + weight, stack
    events += _events("C", reversed(below), tree, at)
    return _profile(name, unit, at, events)


def _events(kind: str, nodes: Iterable[int], tree: FrameTree, at: int) -> list[dict[str, Any]]:
    return [{"type": kind, "frame": tree.frame[node], "at": at} for node in nodes]


def _profile(name: str, unit: str, end: int, events: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "evented", "name": name, "unit": unit, "startValue": 0, "endValue": end, "events": events}


def _frame(tree: FrameTree, number: int) -> dict[str, Any]:
    frame = tree.frames[number]
    function = tree.functions[frame.function]
    line = function.first_line if frame.line is None else frame.line
    shown: dict[str, Any] = {"name": function.name}
    if function.file is not None:
        shown["file"] = function.file
    if line is not None and line > 0:
        shown["line"] = line
    return shown


def _name(extract: Extract, number: int) -> str:
    thread = extract.threads[number]
    tid = "" if thread.tid is None else f", tid {thread.tid}"
    return f"{thread.name} ({thread.process_name}, pid {thread.pid}{tid})"
