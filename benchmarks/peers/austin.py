"""Austin: samples from another process."""

from harness.peers import Peer

PEER = Peer(
    package="austin-dist",
    older=("austin-dist==3.7.0",),  # 4.0.0 needs glibc 2.38
    probe="austin --version",
    arms={"austin": "{bin}/austin -C -i 10ms -o {recording} {python} {program}"},
)
