"""line_profiler: traces every line of the functions that are decorated."""

from pathlib import Path

from harness.peers import Lines, Peer, ask_own, innermost, times

_READ = """
import json, sys, line_profiler
stats = line_profiler.load_stats(sys.argv[1])
rows = [[key[0], line, time] for key, lines in stats.timings.items() for line, _, time in lines]
print(json.dumps(rows))
"""


def lines(recording: Path, folder: Path, program: Path) -> Lines:
    """Time of each line, with all that it calls."""
    rows = ask_own(folder, _READ, recording)
    return times(innermost((([(file, line)], time) for file, line, time in rows), program))


PEER = Peer(
    package="line_profiler",
    arms={"line_profiler": "{bin}/kernprof -l -q -o {recording} {program} --decorate"},
    lines=lines,
    slow=("line_profiler",),
)
