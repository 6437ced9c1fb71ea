"""Austin: samples from another process."""

from pathlib import Path

from harness.peers import Lines, Peer, innermost, times


def lines(recording: Path, _: Path, program: Path) -> Lines:
    """Samples of stacks: `P1;T1;file:function:line;... microseconds`, with comments that begin with `#`."""
    stacks = []
    for text in recording.read_text(encoding="utf-8").splitlines():
        stack, _space, weight = text.rpartition(" ")
        frames = [frame.rsplit(":", 2) for frame in stack.split(";") if frame.count(":") >= 2]
        # A frame that was read while it changed may have no line.
        found = [(file, int(line)) for file, _function, line in frames if line.isdecimal()]
        if not text.startswith("#") and found:
            stacks.append((found, float(weight)))
    return times(innermost(stacks, program))


PEER = Peer(
    package="austin-dist",
    older=("austin-dist==3.7.0",),  # 4.0.0 needs glibc 2.38
    probe="austin --version",
    also=("austin-python",),  # its readers
    arms={"austin": "{bin}/austin -C -i 10ms -o {recording} {python} {program}"},
    native={"austinp": "{bin}/austinp -C -i 10ms -o {recording} {python} {program}"},
    lines=lines,
    readers={"austin": {"austin2speedscope": "{bin}/austin2speedscope {recording} {report}"}},
)
