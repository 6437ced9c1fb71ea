"""Collapsed stacks: one line per stack, frames from root to leaf with semicolons between them, and a weight."""

from __future__ import annotations

from typing import BinaryIO

from .extract import Extract, Options
from .frames import FrameTree


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
    """A frame as one word of a stack: name, file and line, without what separates frames."""
    frame = tree.frames[number]
    function = tree.functions[frame.function]
    if function.file is None:
        label = function.name
    else:
        short = function.file.replace("\\", "/").rpartition("/")[2]
        line = function.first_line if frame.line is None else frame.line
        label = f"{function.name} ({short})" if line is None else f"{function.name} ({short}:{line})"
    return label.replace(";", ":")
