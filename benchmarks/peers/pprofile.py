"""pprofile: samples, or traces every line."""

from pathlib import Path

from harness.peers import ByLine, Lines, Peer, times


def lines(recording: Path, _: Path, program: Path) -> Lines:
    """Own cost of lines in callgrind's format, and that of calls, which stands below `calls=`."""
    found: ByLine = {}
    file, cost = "", -1
    for text in recording.read_text(encoding="utf-8").splitlines():
        name, _is, value = text.partition("=")
        if name == "fl":
            file = value.partition(") ")[2] or value
        elif text.startswith("events:"):
            cost = text.split().index("microseconds") if "microseconds" in text else 1
        elif text[:1].isdigit() and Path(file).name == program.name:
            fields = text.split()
            found[int(fields[0])] = found.get(int(fields[0]), 0.0) + float(fields[cost])
    return times(found)


PEER = Peer(
    package="pprofile",
    arms={
        "pprofile, statistic": "{bin}/pprofile -s 0.01 -f callgrind -o {recording} {program}",
        "pprofile": "{bin}/pprofile -f callgrind -o {recording} {program}",
    },
    lines=lines,
    slow=("pprofile, statistic", "pprofile"),
)
