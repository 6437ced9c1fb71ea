"""cProfile, which comes with Python: traces every call."""

from harness.peers import Peer, pstats_calls, pstats_shares

PEER = Peer(
    package="",
    arms={"cProfile": "{python} -m cProfile -o {recording} {program}"},
    functions=pstats_shares,
    calls=pstats_calls,
    slow=("cProfile",),
)
