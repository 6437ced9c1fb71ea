"""Fil: the allocations that make up the peak."""

from pathlib import Path

from harness.peers import Peer


def peak_bytes(recording: Path, _: Path) -> int:
    """The sum of its table of stacks at the peak: lines of `frame;frame bytes`."""
    (table,) = recording.glob("*/peak-memory.prof")
    return sum(int(line.rpartition(" ")[2]) for line in table.read_text(encoding="utf-8").splitlines())


PEER = Peer(
    package="filprofiler",
    arms={"fil": "{bin}/fil-profile --no-browser -o {recording} run {program}"},
    peak_bytes=peak_bytes,
    slow=("fil",),
)
