"""yappi: traces every call."""

from harness.peers import Peer, pstats_shares

PEER = Peer(
    package="yappi",
    arms={"yappi": "{bin}/yappi -c cpu -f pstat -o {recording} {program}"},
    functions=pstats_shares,
    slow=("yappi",),
)
