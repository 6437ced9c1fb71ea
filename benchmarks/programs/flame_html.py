"""The workload of the Paikana paper: the HTML of a flame graph, read into a tree of objects line by line.

    python flame_html.py make FILE MEGABYTES     # writes such a page, always the same
    python flame_html.py read FILE REPORT        # reads it; writes the seconds that this took
    python flame_html.py loop FILE REPORT        # the same, in a loop that is marked for tachograph (listing 1)
    python flame_html.py truth FILE CLOCK REPORT # own seconds of each function, by a clock that is marked by hand

The page is so regular that regular expressions and string functions do, as in the paper. Garbage is not collected: a
collection falls on whichever function makes one object too many, and with clocks in between that is another one.

The truth is measured by marks of a compiled clock (boundary_clock.c; CLOCK is the folder that has it) before and
after each call, in place, on the whole page. What a mark and a call cost is measured beside, by an empty call for each
line. Readings of `time.perf_counter_ns` did not do: `read_line`, which is left over, had 12 to 15 % of the time by
them and has 19 %. Each waits until all that was begun is done, and a function that is waited for is the longer.
"""

import gc
import importlib
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol, cast

FRAME = re.compile(r'<li class="frame" title="([^"]*)" style="width:([0-9.]+)%">')
NUMBER = re.compile(r"^(.*) \(([0-9,]+) samples, ([0-9.]+)%\)$")
PARTS = ("org", "apache", "spark", "sql", "catalyst", "util", "scheduler", "concurrent", "java", "lang", "netty", "io")
PASS_MEGABYTES = 0.4
"""Of a pass of `PROGRAMS`."""
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


READ_LINE, EMPTY, MARK, OUTSIDE = range(len(FUNCTIONS), len(FUNCTIONS) + 4)
"""Slots of the clock behind those of FUNCTIONS: `read_line` itself, an empty call, a mark alone, and the rest."""


class Clock(Protocol):
    """The module `boundary_clock`."""

    def mark(self, slot: int, /) -> None:
        """From here on the time is that of this slot."""

    def told(self) -> list[tuple[int, int]]:
        """Ticks and marks of each slot."""


def empty(first: object, second: object) -> None:
    """What a call costs at least, which is its caller's."""


def marked_reader(mark: Callable[[int], None]) -> Callable[[str, list[Node]], None]:
    """What `read_line` does, with a mark at each boundary."""

    def read_marked_line(line: str, open_nodes: list[Node]) -> None:
        mark(MARK)
        mark(EMPTY)
        empty(line, open_nodes)
        mark(READ_LINE)
        mark(0)
        found = match_frame(line)
        mark(READ_LINE)
        if found is None:
            return
        mark(1)
        text = unescape(found[0])
        mark(READ_LINE)
        mark(2)
        name, samples, _ = split_title(text)
        mark(READ_LINE)
        mark(3)
        package, method = split_name(name)
        mark(READ_LINE)
        mark(4)
        depth = depth_of(line)
        mark(READ_LINE)
        mark(5)
        number = to_number(samples)
        mark(READ_LINE)
        width = float(found[1])
        node = Node.__new__(Node)
        mark(6)
        Node.__init__(node, method, package, number, width)
        mark(READ_LINE)
        mark(7)
        add_node(open_nodes, depth, node)
        mark(READ_LINE)

    return read_marked_line


def truth(path: Path, clock: Clock) -> dict[str, float]:
    """Own seconds of each function, of the whole page, and their sum over the time that it takes without marks.

    A function's own time is that between its two marks, less what is between them around an empty call: a call is its
    caller's time. `read_line` has what is between all other marks, less what these take, and the calls. Both runs take
    turns, so that a busy machine is busy for both.
    """
    mark, read_marked_line = clock.mark, marked_reader(clock.mark)
    whole_ns = lines_read = 0
    marked, plain = [Node("all", "", 0, 100.0)], [Node("all", "", 0, 100.0)]
    begun_ns = time.perf_counter_ns()
    mark(OUTSIDE)
    with path.open(encoding="utf-8") as file:
        while lines := list(islice(file, SLICE)):
            lines_read += len(lines)
            begin = time.perf_counter_ns()
            for line in lines:
                read_line(line, plain)
            middle = time.perf_counter_ns()
            for line in lines:
                empty(line, plain)
            whole_ns += 2 * middle - begin - time.perf_counter_ns()
            for line in lines:
                read_marked_line(line, marked)
                mark(OUTSIDE)
    mark(OUTSIDE)
    told = clock.told()
    every_tick = sum(ticks for ticks, _ in told[: OUTSIDE + 1])
    seconds = [ticks * (time.perf_counter_ns() - begun_ns) / every_tick / 1e9 for ticks, _ in told]
    marks = [count for _, count in told]
    of_mark, of_empty = (seconds[slot] / marks[slot] for slot in (MARK, EMPTY))
    own = {name: max(seconds[slot] - marks[slot] * of_empty, 0.0) for slot, name in enumerate(FUNCTIONS)}
    calls = sum(marks[: len(FUNCTIONS)])
    own["read_line"] = seconds[READ_LINE] - marks[READ_LINE] * of_mark + calls * (of_empty - of_mark)
    return {**own, "closure": sum(own.values()) / whole_ns * 1e9}


def prepared(*, marked: bool) -> Callable[[], Node]:
    """A pass over a page that is short enough for many turns; in a loop that is marked for tachograph, or not."""
    gc.disable()
    with tempfile.TemporaryDirectory(prefix="page-") as folder:
        page = Path(folder) / "page.html"
        make(page, PASS_MEGABYTES)
        lines = page.read_text(encoding="utf-8").splitlines(keepends=True)
    mark = marker() if marked else iter
    return lambda: read_page(mark(lines))


def marker() -> Callable[[Iterable[str]], Iterable[str]]:
    """What marks a loop for tachograph."""
    from tachograph.recorder import loop

    return loop


PLAIN, MARKED = "flame page", "flame page in loop()"
PROGRAMS: dict[str, Callable[[], Callable[[], Node]]] = {
    PLAIN: partial(prepared, marked=False),
    MARKED: partial(prepared, marked=True),
}


def main() -> None:
    """Does what the command line says."""
    what, path = sys.argv[1], Path(sys.argv[2])
    if what == "make":
        make(path, float(sys.argv[3]))
        return
    gc.disable()
    report: dict[str, float] = {}
    if what == "truth":
        sys.path.insert(0, sys.argv[3])
        report = truth(path, cast("Clock", importlib.import_module("boundary_clock")))
    else:
        mark = marker() if what == "loop" else iter
        begin, begin_cpu = time.perf_counter(), time.process_time()
        with path.open(encoding="utf-8") as file:
            root = read_page(mark(file))
        report = {"elapsed_s": time.perf_counter() - begin, "cpu_s": time.process_time() - begin_cpu}
        assert root.children
    Path(sys.argv[-1]).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
