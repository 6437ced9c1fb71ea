"""How much was copied, by line? Against known numbers of bytes.

    python copy_volume.py                            # tachograph and all peers that tell copies
    python copy_volume.py --peers scalene

Six lines copy blocks of 4 MiB: `bytes()`, a slice, an array, `tobytes`, pickling, into a view (programs/copying.py).
"""

from pathlib import Path
from typing import Any

import click

from harness import by_name, tags
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, options

PROGRAM = FOLDER / "copying.py"
NAMES = tuple(tags.tagged(PROGRAM))
QUESTION = "copies"


@click.command()
@options("those that tell copies", "copy_volume")
@click.option("--repeats", type=click.IntRange(min=1), default=200, show_default=True, help="Copies by each line.")
def main(peers: str, timeout: float, results: Path, repeats: int, *, fresh: bool) -> None:
    """Copied bytes by line, against the truth."""
    with complaints("copy_volume"):
        survey = Survey(peers, Peer.tells_copies, timeout, results, fresh=fresh)
        survey.ask_all([Question(QUESTION, [str(PROGRAM), str(repeats)])], _read, bare=False)
    print(table(survey.known(), survey.profilers))


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    return None if peer.copied_bytes is None else tags.sums(peer.copied_bytes(recording, folder, PROGRAM), PROGRAM)


def errors(known: dict[str, dict[str, Any]], profiler: str) -> dict[str, float]:
    """Error in percent of each line; nothing if the profiler did not answer."""
    return by_name.errors(known, QUESTION, profiler, "report")


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Error in percent of each line."""
    return by_name.table(known, QUESTION, profilers, NAMES, "report")


if __name__ == "__main__":
    main()
