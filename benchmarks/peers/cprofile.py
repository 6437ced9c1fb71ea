"""cProfile, which comes with Python: traces every call."""

from harness.peers import Peer, pstats_shares

PEER = Peer(
    package="",
    arms={"cProfile": "{python} -m cProfile -o {recording} {program}"},
    functions=pstats_shares,
    slow=("cProfile",),
)
