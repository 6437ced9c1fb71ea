"""Callgrind's format (https://valgrind.org/docs/manual/cl-format.html): costs by line, and calls with theirs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO

from ..recording.text import printable
from .extract import Extract, Options
from .frame_tree import FrameTree
from .pprof import call_counts

Call = tuple[int, int]
"""The line of a call (0: unknown) and the function that is called."""


@dataclass
class _Costs:
    own: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """By line."""
    calls: dict[Call, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))
    """Samples and cost below each call; a stack counts once for each call in it, however often it is there."""


def write(extract: Extract, options: Options, out: BinaryIO) -> list[str]:
    """Writes the costs of all threads that are exported, added up.

    The format wants a number of calls from one function to another; samples do not tell it, so it holds the number of
    samples in the call. Where calls were watched, the number of calls of each function is an event of its own.
    """
    tree = extract.tree(lines=True, native=options.native)
    costs_of = _costs(extract, tree)
    counts = call_counts(extract, tree)
    names = _Names(tree)
    head = [
        "# callgrind format",
        "version: 1",
        "creator: tachograph",
        f"cmd: {printable(extract.program, 300)}",
        "desc: Numbers of calls are numbers of samples",
        "positions: line",
        f"event: {extract.metric} : {extract.metric.doc} ({extract.metric.unit})",
        *(["event: Calls : calls of a function"] if counts else []),
        f"events: {extract.metric}" + (" Calls" if counts else ""),
    ]
    total = 0
    body = []
    for function in sorted({*costs_of, *counts}):
        costs = costs_of.get(function, _Costs())
        body += ["", f"fl={names.file(function)}", f"fn={names.function(function)}"]
        if function in counts:
            body.append(f"{tree.functions[function].first_line or 0} 0 {counts[function]}")
        for line, cost in sorted(costs.own.items()):
            body.append(f"{line} {cost}")
            total += cost
        for (line, called), (samples, cost) in sorted(costs.calls.items()):
            body += [f"cfi={names.file(called)}", f"cfn={names.function(called)}"]
            body += [f"calls={samples} {tree.functions[called].first_line or 0}", f"{line} {cost}"]
    whole = f"{total} {sum(counts.values())}" if counts else f"{total}"
    out.write("\n".join([*head, f"summary: {whole}", *body, "", f"totals: {whole}", ""]).encode())
    return ["the numbers of calls in a callgrind file are numbers of samples"]


def _costs(extract: Extract, tree: FrameTree) -> dict[int, _Costs]:
    """Costs of each function."""
    costs: dict[int, _Costs] = defaultdict(_Costs)
    sums = extract.sums(tree).groupby("node", as_index=False)[["weight", "samples"]].sum()
    for node, weight, samples in sums.itertuples(index=False):
        path = [tree.frames[frame] for frame in tree.path(int(node))]
        costs[path[-1].function].own[path[-1].line or 0] += int(weight)
        calls = {(above.function, (above.line or 0, below.function)) for above, below in pairwise(path)}
        for function, call in calls:
            entry = costs[function].calls[call]
            entry[0] += int(samples)
            entry[1] += int(weight)
    return costs


class _Names:
    """Names in the format's compression: the first use defines a number. Equal names of different functions differ."""

    def __init__(self, tree: FrameTree) -> None:
        self._functions = tree.functions
        self._numbers: dict[tuple[str, str], int] = {}
        self._defined: set[tuple[str, int]] = set()
        uses: dict[tuple[str, str | None], int] = defaultdict(int)
        self._labels = []
        for each in tree.functions:
            uses[each.name, each.file] += 1
        for each in tree.functions:
            same = uses[each.name, each.file] > 1
            self._labels.append(f"{each.name}:{each.first_line}" if same and each.first_line else each.name)

    def file(self, function: int) -> str:
        return self._short("file", self._functions[function].file or "???")

    def function(self, function: int) -> str:
        # The same name in two files is two functions, and their numbers must differ.
        key = f"{self._labels[function]}\0{self._functions[function].file}"
        return self._short("function", key).partition("\0")[0]

    def _short(self, kind: str, name: str) -> str:
        number = self._numbers.setdefault((kind, name), len(self._numbers) + 1)
        if (kind, number) in self._defined:
            return f"({number})"
        self._defined.add((kind, number))
        return f"({number}) {name}"
