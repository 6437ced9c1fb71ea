"""pprofile: samples, or traces every line."""

from harness.peers import Peer

PEER = Peer(
    package="pprofile",
    arms={
        "pprofile, statistic": "{bin}/pprofile -s 0.01 -f callgrind -o {recording} {program}",
        "pprofile": "{bin}/pprofile -f callgrind -o {recording} {program}",
    },
)
