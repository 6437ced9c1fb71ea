"""perf, which comes with Linux's tools: it copies the top of the stack at each sample, and unwinds later."""

from harness.peers import Peer

PEER = Peer(
    package="",
    arms={},
    native={"perf": "perf record --quiet -F 100 --call-graph dwarf -o {recording} {python} {program}"},
)
