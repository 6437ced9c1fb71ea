"""Lines of a program that are known by a name: those that end in a comment `# @name`."""

import re
from pathlib import Path

_TAG = re.compile(r"# @(\w+)$")


def tagged(program: Path) -> dict[str, list[int]]:
    """Name -> the numbers of its lines."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(program.read_text(encoding="utf-8").splitlines(), 1):
        if match := _TAG.search(line):
            found.setdefault(match[1], []).append(number)
    return found


def sums(by_line: dict[int, float], program: Path) -> dict[str, float]:
    """What is said of lines, as sums over the lines of each name."""
    return {name: sum(by_line.get(number, 0.0) for number in numbers) for name, numbers in tagged(program).items()}
