"""The workload of the Paikana paper: the HTML of a flame graph, read into a tree of objects line by line.

    python flame_html.py make FILE MEGABYTES     # writes such a page, always the same
    python flame_html.py read FILE REPORT        # reads it; writes the seconds that this took
    python flame_html.py loop FILE REPORT        # the same, in a loop that is marked for tachograph (listing 1)
    python flame_html.py truth FILE REPORT       # own seconds of each function, by clocks placed by hand

The page is so regular that regular expressions and string functions do, as in the paper.

The truth is measured without a clock in any call: for a slice of the page every function is called again with the
arguments that it had, many calls between two readings of the clock, less what an empty call costs (which is the
caller's). Its own time is that less the time of what it calls.
"""

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FRAME = re.compile(r'<li class="frame" title="([^"]*)" style="width:([0-9.]+)%">')
NUMBER = re.compile(r"^(.*) \(([0-9,]+) samples, ([0-9.]+)%\)$")
PARTS = ("org", "apache", "spark", "sql", "catalyst", "util", "scheduler", "concurrent", "java", "lang", "netty", "io")
SLICE = 20_000
"""Lines on which the truth is measured."""


class Node:
    """A frame of the flame graph."""

    __slots__ = ("children", "method", "package", "samples", "width")

    def __init__(self, method: str, package: str, samples: int, width: float) -> None:
        self.method, self.package, self.samples, self.width = method, package, samples, width
        self.children: list[Node] = []


def depth_of(line: str) -> int:
    """How deep a line is indented."""
    return (len(line) - len(line.lstrip(" "))) // 2


def match_frame(line: str) -> tuple[str, str] | None:
    """Title and width of a line's frame; None on lines without one."""
    found = FRAME.search(line)
    return None if found is None else (found.group(1), found.group(2))


def unescape(text: str) -> str:
    """The text that HTML wrote otherwise."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def split_title(title: str) -> tuple[str, str, str]:
    """Name, samples and percentage of a title."""
    found = NUMBER.match(title)
    assert found is not None
    return found.group(1), found.group(2), found.group(3)


def to_number(text: str) -> int:
    """A number with commas."""
    return int(text.replace(",", ""))


def split_name(name: str) -> tuple[str, str]:
    """Package and method of a qualified name."""
    path, _, method = name.rpartition(".")
    return path.replace("/", "."), method


def add_node(open_nodes: list[Node], depth: int, node: Node) -> None:
    """Hangs a node under the last one that is less deep."""
    del open_nodes[depth + 1 :]
    open_nodes[-1].children.append(node)
    open_nodes.append(node)


def read_line(line: str, open_nodes: list[Node]) -> None:
    """Reads one line of the page."""
    found = match_frame(line)
    if found is None:
        return
    name, samples, _ = split_title(unescape(found[0]))
    package, method = split_name(name)
    add_node(open_nodes, depth_of(line), Node(method, package, to_number(samples), float(found[1])))


def read_page(lines: Iterable[str]) -> Node:
    """Reads the page into a tree."""
    root = Node("all", "", 0, 100.0)
    open_nodes = [root]
    for line in lines:
        read_line(line, open_nodes)
    return root


def make(path: Path, megabytes: float) -> None:
    """Writes a page of about so many megabytes."""
    chance = random.Random(17)
    depth, written = 0, 0
    with path.open("w", encoding="utf-8") as file:
        while written < megabytes * 1e6:
            depth = max(0, min(60, depth + chance.choice((1, 1, 1, 0, -1, -3))))
            name = "/".join(chance.choices(PARTS, k=chance.randint(2, 7))) + f".lambda$run${chance.randint(1, 400)}"
            samples, share = chance.randint(1, 4_000_000), chance.random() * 100
            title = f"{name.replace('$', '&lt;', 1)} ({samples:,} samples, {share:.2f}%)"
            written += file.write(f'{"  " * depth}<li class="frame" title="{title}" style="width:{share:.3f}%">\n')
            if chance.random() < 0.3:
                written += file.write(f"{'  ' * depth}</li>\n")


EMPTY: dict[int, Callable[..., Any]] = {
    1: lambda a: None,
    2: lambda a, b: None,
    3: lambda a, b, c: None,
    5: lambda a, b, c, d, e: None,
}
"""Functions of so many arguments that do nothing: what a call costs at least."""


def seconds_of(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> float:
    """Time of the calls with these arguments, of the fastest of some runs."""
    best = float("inf")
    for _ in range(5):
        begin = time.perf_counter()
        for each in arguments:
            function(*each)
        best = min(best, time.perf_counter() - begin)
    return best


def truth(path: Path) -> dict[str, float]:
    """Own seconds of each function on a slice of the page."""
    with path.open(encoding="utf-8") as file:
        lines = [line for _, line in zip(range(SLICE), file, strict=False)]
    frames = [(line, match_frame(line)) for line in lines]
    titles = [unescape(found[0]) for _, found in frames if found]
    parts = [split_title(title) for title in titles]
    names = [split_name(name) for name, _, _ in parts]
    numbers = [to_number(samples) for _, samples, _ in parts]
    made = [(method, package, number, 1.0) for (package, method), number in zip(names, numbers, strict=True)]
    depths = [depth_of(line) for line, found in frames if found]
    open_nodes = [Node("all", "", 0, 100.0)]
    nodes = [Node(*each) for each in made]
    calls: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]]]] = {
        "match_frame": (match_frame, [(line,) for line in lines]),
        "depth_of": (depth_of, [(line,) for line, found in frames if found]),
        "unescape": (unescape, [(found[0],) for _, found in frames if found]),
        "split_title": (split_title, [(title,) for title in titles]),
        "split_name": (split_name, [(name,) for name, _, _ in parts]),
        "to_number": (to_number, [(samples,) for _, samples, _ in parts]),
        "Node.__init__": (Node.__init__, [(node, *each) for node, each in zip(nodes, made, strict=True)]),
        "add_node": (add_node, [(open_nodes, depth, node) for depth, node in zip(depths, nodes, strict=True)]),
    }
    own = {}
    for name, (function, arguments) in calls.items():
        # What the loop around the calls takes is not the function's.
        own[name] = seconds_of(function, arguments) - seconds_of(EMPTY[len(arguments[0])], arguments)
    whole = seconds_of(read_line, [(line, [Node("all", "", 0, 100.0)] * 61) for line in lines])
    own["read_line"] = max(whole - sum(own.values()), 0.0)
    return own


def main() -> None:
    """Does what the command line says."""
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(path, float(sys.argv[3]))
        return
    report: dict[str, float] = {}
    if what == "truth":
        report = truth(path)
    else:
        mark: Callable[[Iterable[str]], Iterable[str]] = iter
        if what == "loop":
            from tachograph.recorder import loop as mark
        begin, begin_cpu = time.perf_counter(), time.process_time()
        with path.open(encoding="utf-8") as file:
            root = read_page(mark(file))
        report = {"elapsed_s": time.perf_counter() - begin, "cpu_s": time.process_time() - begin_cpu}
        assert root.children
    Path(sys.argv[3]).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
