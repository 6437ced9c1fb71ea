"""The workload of the Paikana paper: the HTML of a flame graph, read into a tree of objects line by line.

    python flame_html.py make FILE MEGABYTES     # writes such a page, always the same
    python flame_html.py read FILE REPORT        # reads it; writes the seconds that this took
    python flame_html.py loop FILE REPORT        # the same, in a loop that is marked for tachograph (listing 1)
    python flame_html.py truth FILE REPORT       # own seconds of each function, by clocks placed by hand

The page is so regular that regular expressions and string functions do, as in the paper. Garbage is not collected: a
collection falls on whichever function makes one object too many, and with clocks in between that is another one.

The truth is measured by readings of the clock before and after each call, in place, on the whole page. What the
readings and the call cost is measured beside, by an empty call for each line.
"""

import gc
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

FRAME = re.compile(r'<li class="frame" title="([^"]*)" style="width:([0-9.]+)%">')
NUMBER = re.compile(r"^(.*) \(([0-9,]+) samples, ([0-9.]+)%\)$")
PARTS = ("org", "apache", "spark", "sql", "catalyst", "util", "scheduler", "concurrent", "java", "lang", "netty", "io")
SLICE = 2_000
"""Lines for which one way to measure has its turn."""


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


FUNCTIONS = (
    "match_frame",
    "unescape",
    "split_title",
    "split_name",
    "depth_of",
    "to_number",
    "Node.__init__",
    "add_node",
)
"""What `read_line` calls."""


def empty(first: object, second: object) -> None:
    """What a call costs at least, which is its caller's."""


class Clocks:
    """Nanoseconds between readings of a clock that are placed by hand, by function."""

    def __init__(self) -> None:
        self.inclusive = dict.fromkeys(FUNCTIONS, 0)
        self.calls = dict.fromkeys(FUNCTIONS, 0)
        self.empty_calls = 0
        """Of an empty function between two readings, once for each line: what these and a call cost here and now."""


def read_line_by_the_clock(line: str, open_nodes: list[Node], clocks: Clocks) -> None:
    """What `read_line` does, with a reading of the clock before and after each call."""
    clock, spent, calls = time.perf_counter_ns, clocks.inclusive, clocks.calls
    begin = clock()
    empty(line, open_nodes)
    end = clock()
    clocks.empty_calls += end - begin
    begin = clock()
    found = match_frame(line)
    end = clock()
    spent["match_frame"] += end - begin
    calls["match_frame"] += 1
    if found is None:
        return
    begin = clock()
    text = unescape(found[0])
    end = clock()
    spent["unescape"] += end - begin
    begin = clock()
    name, samples, _ = split_title(text)
    end = clock()
    spent["split_title"] += end - begin
    begin = clock()
    package, method = split_name(name)
    end = clock()
    spent["split_name"] += end - begin
    begin = clock()
    depth = depth_of(line)
    end = clock()
    spent["depth_of"] += end - begin
    begin = clock()
    number = to_number(samples)
    end = clock()
    spent["to_number"] += end - begin
    width = float(found[1])
    node = Node.__new__(Node)
    begin = clock()
    Node.__init__(node, method, package, number, width)
    end = clock()
    spent["Node.__init__"] += end - begin
    begin = clock()
    add_node(open_nodes, depth, node)
    end = clock()
    spent["add_node"] += end - begin
    for each in ("unescape", "split_title", "split_name", "depth_of", "to_number", "Node.__init__", "add_node"):
        calls[each] += 1


def truth(path: Path) -> dict[str, float]:
    """Own seconds of each function, of the whole page.

    A function's own time is that between its two readings of the clock, less what is between them around an empty call.
    `read_line` has what is left of its time without any clock, less the time of a loop that makes empty calls. The
    three runs take turns, so that a busy machine is busy for all of them.
    """
    clocks, whole_ns = Clocks(), 0
    by_the_clock, plain = [Node("all", "", 0, 100.0)], [Node("all", "", 0, 100.0)]
    with path.open(encoding="utf-8") as file:
        while lines := list(islice(file, SLICE)):
            begin = time.perf_counter_ns()
            for line in lines:
                read_line(line, plain)
            middle = time.perf_counter_ns()
            for line in lines:
                empty(line, plain)
            whole_ns += 2 * middle - begin - time.perf_counter_ns()
            for line in lines:
                read_line_by_the_clock(line, by_the_clock, clocks)
    empty_call = clocks.empty_calls / clocks.calls["match_frame"]
    own = {name: max(clocks.inclusive[name] - clocks.calls[name] * empty_call, 0.0) / 1e9 for name in FUNCTIONS}
    own["read_line"] = max(whole_ns / 1e9 - sum(own.values()), 0.0)
    return own


def main() -> None:
    """Does what the command line says."""
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(path, float(sys.argv[3]))
        return
    gc.disable()
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
