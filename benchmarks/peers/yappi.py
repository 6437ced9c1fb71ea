"""yappi: traces every call."""

from harness.peers import Peer, pstats_shares

PEER = Peer(
    package="yappi",
    arms={
        "yappi cpu": "{bin}/yappi -c cpu -f pstat -o {recording} {program}",
        "yappi wall": "{bin}/yappi -c wall -f pstat -o {recording} {program}",
    },
    functions=pstats_shares,
)
