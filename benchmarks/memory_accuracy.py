"""Figure 6 of the Scalene paper (OSDI 2023): how large is an array of which only a part was touched?

    python benchmarks/memory_accuracy.py                       # tachograph and all peers that tell memory
    python benchmarks/memory_accuracy.py --peers scalene,memray

The array has 512 MB and is fresh from the system; 0 to 100 % of it is touched. A profiler's answer is the peak that it
reports, less the peak that it reports for the same program with an empty array.
"""

from pathlib import Path
from typing import Any

import click

from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, key, options

SIZE = 512 << 20
TOUCHED = (0, 25, 50, 75, 100)
EMPTY = "empty"
"""In place of a percentage: the run with an empty array."""


@click.command()
@options("those that tell memory", "memory_accuracy")
def main(peers: str, timeout: float, results: Path, *, fresh: bool) -> None:
    """Accuracy of memory profilers (figure 6)."""
    program = str(FOLDER / "touched.py")
    questions = [Question(EMPTY, [program, "0", "0"])]
    questions += [Question(str(percent), [program, str(SIZE), str(percent)]) for percent in TOUCHED]
    with complaints("memory_accuracy"):
        survey = Survey(peers, Peer.tells_memory, timeout, results, fresh=fresh)
        survey.ask_all(questions, _read, bare=False)
    print(table(survey.known(), survey.profilers))


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    return None if peer.peak_bytes is None else peer.peak_bytes(recording, folder)


def error_percent(said: int, empty: int) -> float:
    """How far the reported size of the array is from the true one, in percent of that."""
    return 100.0 * (said - empty - SIZE) / SIZE


def errors(known: dict[str, dict[str, Any]], profiler: str) -> dict[int, float]:
    """Percent touched -> error of the reported size in percent, where the profiler answered."""
    empty = known.get(key(EMPTY, profiler), {}).get("said")
    said = {touched: known.get(key(str(touched), profiler), {}).get("said") for touched in TOUCHED}
    return {
        touched: error_percent(size, empty) for touched, size in said.items() if size is not None and empty is not None
    }


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Error of the reported size, by the part that was touched."""
    lines = [f"{'touched':<22}" + "".join(f"{f'{touched} %':>12}" for touched in TOUCHED)]
    for profiler in profilers:
        found, cells = errors(known, profiler), []
        for touched in TOUCHED:
            outcome = known.get(key(str(touched), profiler), {}).get("outcome", "-")[:11]
            cells.append(f"{f'{found[touched]:+.3f} %' if touched in found else outcome:>12}")
        lines.append(f"{profiler:<22}" + "".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
