"""Figure 6 of the Scalene paper (OSDI 2023): how large is an array of which only a part was touched?

    python benchmarks/memory_accuracy.py                       # tachograph and all peers that tell memory
    python benchmarks/memory_accuracy.py --peers scalene,memray

The array has 512 MB and is fresh from the system; 0 to 100 % of it is touched. A profiler's answer is the peak that it
reports, less the peak that it reports for the same program with an empty array.
"""

import sys
from pathlib import Path
from typing import Any

import click

from harness.answers import Answers, Subject, ask, subjects
from harness.arms import BARE
from harness.errors import BenchmarkError
from harness.interleave import progress
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer

ROOT = Path(__file__).resolve().parent.parent
SIZE = 512 << 20
TOUCHED = (0, 25, 50, 75, 100)
EMPTY = "empty"
"""In place of a percentage: the run with an empty array."""


@click.command()
@click.option("--peers", default="all", show_default=True, help="Comma-separated; those that tell memory.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/memory_accuracy.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
def main(peers: str, timeout: float, results: Path | None, fresh: bool) -> None:
    """Accuracy of memory profilers (figure 6)."""
    answers = Answers((results or ROOT / "results" / "memory_accuracy") / "answers.jsonl")
    if fresh:
        answers.clear()
    try:
        who = [
            subject
            for subject in subjects(peers, ROOT / "build" / "benchmarks" / "peers", Peer.tells_memory)
            if subject.arm.name != BARE
        ]
        _measure(who, answers, timeout)
    except BenchmarkError as error:
        print(f"memory_accuracy: {error}", file=sys.stderr)
        sys.exit(2)
    print(table(answers.known(), [subject.arm.name for subject in who]))


def _measure(who: list[Subject], answers: Answers, timeout: float) -> None:
    steps = [(touched, subject) for touched in (EMPTY, *TOUCHED) for subject in who]
    known = answers.known()
    with progress(len(steps)) as show:
        for done, (touched, subject) in enumerate(steps):
            key = f"{touched} {subject.arm.name}"
            show(done, key)
            if key not in known:
                size, percent = (0, 0) if touched == EMPTY else (SIZE, touched)
                program = [str(FOLDER / "touched.py"), str(size), str(percent)]
                answers.append(key, ask(subject, program, _read, timeout))


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    return None if peer.peak_bytes is None else peer.peak_bytes(recording, folder)


def error_percent(said: int, empty: int) -> float:
    """How far the reported size of the array is from the true one, in percent of that."""
    return 100.0 * (said - empty - SIZE) / SIZE


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Error of the reported size, by the part that was touched."""
    lines = [f"{'touched':<22}" + "".join(f"{f'{touched} %':>12}" for touched in TOUCHED)]
    for profiler in profilers:
        empty = known.get(f"{EMPTY} {profiler}", {}).get("said")
        cells = []
        for touched in TOUCHED:
            answer = known.get(f"{touched} {profiler}", {})
            cell = answer.get("outcome", "-")[:11]
            if answer.get("said") is not None and empty is not None:
                cell = f"{error_percent(answer['said'], empty):+.3f} %"
            cells.append(f"{cell:>12}")
        lines.append(f"{profiler:<22}" + "".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
