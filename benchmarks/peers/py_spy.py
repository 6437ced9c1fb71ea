"""py-spy: samples from another process."""

from collections import Counter
from pathlib import Path

from harness.peers import Peer, Shares, shares


def functions(recording: Path, _: Path) -> Shares:
    """The leaves of the stacks: lines of `name (file:line);... count`."""
    counts: Counter[str] = Counter()
    for line in recording.read_text(encoding="utf-8").splitlines():
        stack, _space, count = line.rpartition(" ")
        counts[stack.rpartition(";")[2].partition(" (")[0]] += int(count)
    return shares(counts)


PEER = Peer(
    package="py-spy",
    arms={"py-spy": "{bin}/py-spy record --rate 100 --format raw --output {recording} -- {python} {program}"},
    functions=functions,
)
