"""line_profiler: traces every line of the functions that are decorated."""

from harness.peers import Peer

PEER = Peer(
    package="line_profiler",
    arms={"line_profiler": "{bin}/kernprof -l -q -o {recording} {program} --decorate"},
)
