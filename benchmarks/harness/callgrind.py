"""Reads what valgrind's callgrind wrote: instructions by function, each function's own only."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r"c?(ob|fn)=\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"(?:[+-]?\d+|\*) (\d+)$")


@dataclass(frozen=True, order=True)
class Function:
    """A function, and the file name of the library that it is in."""

    library: str
    name: str


def own_instructions(lines: Iterable[str]) -> Counter[Function]:
    """Instructions by function, from the lines of a callgrind.out file of one event (Ir).

    Names are written once with a number and referred to by that number later, in callers' and callees' lines alike. The
    line after `calls=` has the cost of the callee, which is counted in the callee's own part of the file.
    """
    known: dict[tuple[str, str], str] = {}
    own: Counter[Function] = Counter()
    library = function = ""
    skip = False
    for line in lines:
        name = _NAME.match(line)
        if name is not None:
            kind, number, text = name.groups()
            if text is not None:
                known[kind, number] = text
            if line.startswith("ob="):
                library = known[kind, number].rpartition("/")[2]
            elif line.startswith("fn="):
                function = known[kind, number].split("'")[0]  # 'f'2' is f called by itself
        elif line.startswith("calls="):
            skip = True
        elif (cost := _COST.match(line)) is not None:
            if not skip:
                own[Function(library, function)] += int(cost[1])
            skip = False
    return own


def per_pass(few: Counter[Function], many: Counter[Function], passes: int) -> dict[Function, float]:
    """Instructions by function of one pass, from two runs of which the second made `passes` more of them."""
    found = {function: (many[function] - few[function]) / passes for function in few | many}
    return {function: value for function, value in found.items() if value}
