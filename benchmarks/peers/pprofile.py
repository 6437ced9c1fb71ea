"""pprofile: samples, or traces every line."""

from pathlib import Path

from harness.peers import ByLine, Lines, Peer, times


def lines(recording: Path, _: Path, program: Path) -> Lines:
    """Own cost of lines in callgrind's format, and that of calls, which stands below `calls=`.

    Cost is time; where it samples it has no times, and cost is hits.
    """
    hits: ByLine = {}
    microseconds: ByLine = {}
    file = ""
    for text in recording.read_text(encoding="utf-8").splitlines():
        name, _is, value = text.partition("=")
        if name == "fl":
            file = value.partition(") ")[2] or value
        elif text[:1].isdigit() and Path(file).name == program.name:
            line, *costs = text.split()
            for found, cost in zip((hits, microseconds), costs, strict=False):
                found[int(line)] = found.get(int(line), 0.0) + float(cost)
    return times(microseconds if any(microseconds.values()) else hits)


PEER = Peer(
    package="pprofile",
    arms={
        "pprofile, statistic": "{bin}/pprofile -s 0.01 -f callgrind -o {recording} {program}",
        "pprofile": "{bin}/pprofile -f callgrind -o {recording} {program}",
    },
    lines=lines,
    slow=("pprofile, statistic", "pprofile"),
)
