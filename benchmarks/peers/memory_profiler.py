"""memory_profiler: the resident set after every line of the functions that are decorated."""

import re
from pathlib import Path

from harness.peers import Peer

_USAGE = re.compile(r" *\d+ +([\d.]+) MiB ")


def peak_bytes(recording: Path, _: Path) -> int:
    """The highest resident set in its table of lines: line number, usage, increment, occurrences."""
    usages = [
        float(match[1]) for match in map(_USAGE.match, recording.read_text(encoding="utf-8").splitlines()) if match
    ]
    return round(max(usages) * 2**20)


PEER = Peer(
    package="memory_profiler",
    arms={"memory_profiler": "{python} -m memory_profiler -o {recording} {program} --decorate"},
    peak_bytes=peak_bytes,
    slow=("memory_profiler",),
)
