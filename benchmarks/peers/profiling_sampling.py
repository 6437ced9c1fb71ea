"""profiling.sampling, which comes with Python 3.15: samples from another process."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from harness.peers import Lines, Peer, Shares, innermost, shares, times


def functions(recording: Path, folder: Path) -> Shares:
    """The leaves of the stacks."""
    counts: Counter[str] = Counter()
    for stack, count in _stacks(recording, folder):
        counts[stack[-1][1]] += int(count)
    return shares(counts)


def lines(recording: Path, folder: Path, program: Path) -> Lines:
    """Samples of stacks. No native time: its `--native` marks where native code calls Python, not what takes time."""
    return times(
        innermost(
            (([(file, line) for file, _name, line in stack], count) for stack, count in _stacks(recording, folder)),
            program,
        )
    )


def _stacks(recording: Path, folder: Path) -> Iterator[tuple[list[tuple[str, str, int]], float]]:
    """File, function and line of each frame, and samples: lines of `tid:N;file:function:line;... count`."""
    target = recording.with_suffix(".collapsed")
    command = [str(folder / "python"), "-m", "profiling.sampling", "replay", "--collapsed", "-o", str(target)]
    try:
        subprocess.run([*command, str(recording)], check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise ValueError(error.stderr.strip().splitlines()[-1]) from None
    for text in target.read_text(encoding="utf-8").splitlines():
        stack, _space, count = text.rpartition(" ")
        frames = [frame.rsplit(":", 2) for frame in stack.split(";") if frame.count(":") >= 2]
        if frames:
            yield [(file, name, int(line)) for file, name, line in frames], float(count)


_RUN = (
    "{python} -m profiling.sampling run --sampling-rate 100 --all-threads --mode cpu --binary -o {recording} {program}"
)
_REPLAY = "{python} -m profiling.sampling replay --flamegraph -o {report} {recording}"

PEER = Peer(
    package="",
    interpreter="python3.15",
    also=("setuptools",),  # sympy imports distutils
    arms={"profiling.sampling": _RUN},
    functions=functions,
    lines=lines,
    readers={"profiling.sampling": {"profiling.sampling replay": _REPLAY}},
)
