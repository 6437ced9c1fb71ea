"""Two formats of plain text: collapsed stacks, and a table of lines as CSV (RFC 4180, UTF-8).

A line of collapsed stacks is one stack, its frames from root to leaf with semicolons between them, and a weight.
"""

from __future__ import annotations

import csv
import io
from typing import BinaryIO

from .extract import Extract, Options
from .frame_tree import FrameTree


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes the stacks of the exported threads, added up, the heaviest first; weights are nanoseconds or bytes."""
    tree = extract.tree(lines=options.lines, native=options.native)
    sums = extract.sums(tree).groupby("node", as_index=False)["weight"].sum()
    sums = sums[sums["weight"] > 0].sort_values("weight", ascending=False, kind="stable")
    labels = [frame_label(tree, frame) for frame in range(len(tree.frames))]
    out.writelines(
        f"{';'.join(labels[frame] for frame in tree.path(node))} {weight}\n".encode()
        for node, weight in zip(sums["node"].tolist(), sums["weight"].tolist(), strict=True)
    )
    return []


def frame_label(tree: FrameTree, number: int) -> str:
    """A frame as one word of a stack: name, file and line, without separators of frames."""
    frame = tree.frames[number]
    function = tree.functions[frame.function]
    if function.file is None:
        label = function.name
    else:
        short = function.file.replace("\\", "/").rpartition("/")[2]
        line = function.first_line if frame.line is None else frame.line
        label = f"{function.name} ({short})" if line is None else f"{function.name} ({short}:{line})"
    return label.replace(";", ":")


COLUMNS = ("file", "line", "function", "metric", "unit", "self", "total", "self_share", "samples")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(extract: Extract, _: Options, out: BinaryIO) -> list[str]:
    """Write one row per line of code, the heaviest first; ``total`` includes callees."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    tree = extract.tree(lines=True)
    own, total, samples = _by_frame(extract, tree)
    whole = sum(own.values())
    for number in sorted(total, key=lambda each: (-own.get(each, 0), -total[each])):
        frame = tree.frames[number]
        function = tree.functions[frame.function]
        self_weight = own.get(number, 0)
        share = f"{self_weight / whole:.6f}" if whole else ""
        row = [
            safe(function.file or ""),
            frame.line or "",
            safe(function.name),
            str(extract.metric),
            extract.metric.unit,
        ]
        writer.writerow([*row, self_weight, total[number], share, samples.get(number, 0)])
    out.write(text.getvalue().encode())
    return []


def safe(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _by_frame(extract: Extract, tree: FrameTree) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Self weight, total weight and samples of each frame; a stack counts once for each frame in it."""
    own: dict[int, int] = {}
    total: dict[int, int] = {}
    samples: dict[int, int] = {}
    sums = extract.sums(tree).groupby("node", as_index=False)[["weight", "samples"]].sum()
    for node, weight, count in sums.itertuples(index=False):
        path = tree.path(int(node))
        own[path[-1]] = own.get(path[-1], 0) + int(weight)
        samples[path[-1]] = samples.get(path[-1], 0) + int(count)
        for frame in set(path):
            total[frame] = total.get(frame, 0) + int(weight)
    return own, total, samples
