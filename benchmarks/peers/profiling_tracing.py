"""profiling.tracing, which comes with Python 3.15: traces every call. It is cProfile by another name."""

from harness.peers import Peer, pstats_shares

PEER = Peer(
    package="",
    interpreter="python3.15",
    also=("setuptools",),  # sympy imports distutils
    arms={"profiling.tracing": "{python} -m profiling.tracing -o {recording} {program}"},
    functions=pstats_shares,
    slow=("profiling.tracing",),
)
