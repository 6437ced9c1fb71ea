"""py-spy: samples from another process."""

import re
from collections import Counter
from pathlib import Path

from harness.peers import Lines, Peer, Shares, innermost, shares, times

_FRAME = re.compile(r"\((.*):(\d+)\)$")


def functions(recording: Path, _: Path) -> Shares:
    """The leaves of the stacks: lines of `name (file:line);... count`."""
    counts: Counter[str] = Counter()
    for line in recording.read_text(encoding="utf-8").splitlines():
        stack, _space, count = line.rpartition(" ")
        counts[stack.rpartition(";")[2].partition(" (")[0]] += int(count)
    return shares(counts)


def lines(recording: Path, _: Path, program: Path) -> Lines:
    """Samples of stacks; in the folded lines, `;` stands between frames and nowhere else."""
    stacks = []
    for text in recording.read_text(encoding="utf-8").splitlines():
        stack, _space, count = text.rpartition(" ")
        frames = [match for match in map(_FRAME.search, stack.split(";")) if match]
        stacks.append(([(match[1], int(match[2])) for match in frames], float(count)))
    return times(innermost(stacks, program))


_REST = "--rate 100 --format raw --output {recording} -- {python} {program}"

PEER = Peer(
    package="py-spy",
    arms={"py-spy": f"{{bin}}/py-spy record {_REST}"},
    native={"py-spy --native": f"{{bin}}/py-spy record --native {_REST}"},
    functions=functions,
    lines=lines,
)
