"""yappi: traces every call."""

from harness.peers import Peer, pstats_calls, pstats_shares

PEER = Peer(
    package="yappi",
    arms={"yappi": "{bin}/yappi -c cpu -f pstat -o {recording} {program}"},
    functions=pstats_shares,
    calls=pstats_calls,
    slow=("yappi",),
)
