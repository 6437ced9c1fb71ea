"""Which line holds how much, when what it holds is millions of small objects? Against tracemalloc in a run of its own.

    python live_bytes.py                            # tachograph and all peers that tell who holds the memory
    python live_bytes.py --peers memray,scalene

Four lines make floats, strings, tuples and dicts that are held together (programs/small_objects.py). tracemalloc
traces every block: what it says of the bare program is the truth. A profiler's answer is what was held at the peak.
"""

from pathlib import Path
from typing import Any

import click

from harness import by_name, tags
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, options

PROGRAM = FOLDER / "small_objects.py"
NAMES = tuple(tags.tagged(PROGRAM))
QUESTION = "small objects"


@click.command()
@options("those that tell who holds the memory", "live_bytes")
@click.option("--objects", default=1_000_000, show_default=True, help="Of each kind; of dicts a quarter.")
def main(peers: str, timeout: float, results: Path, objects: int, *, fresh: bool) -> None:
    """Bytes held by line, against tracemalloc."""
    with complaints("live_bytes"):
        survey = Survey(peers, Peer.tells_live_bytes, timeout, results, fresh=fresh)
        known = survey.known()
        truth = next((answer["truth"] for answer in known.values()), None) or _truth(survey, objects)
        program = [str(PROGRAM), str(objects)]
        survey.ask_all([Question(QUESTION, program, {"truth": truth})], _read, bare=False)
    print(table(survey.known(), survey.profilers))


def _truth(survey: Survey, objects: int) -> dict[str, float]:
    report = survey.try_bare([str(PROGRAM), str(objects)], "--truth")
    return tags.sums({int(line): size for line, size in report.items()}, PROGRAM)


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    return None if peer.live_bytes is None else tags.sums(peer.live_bytes(recording, folder, PROGRAM), PROGRAM)


def errors(known: dict[str, dict[str, Any]], profiler: str) -> dict[str, float]:
    """Error in percent of each line; nothing if the profiler did not answer."""
    return by_name.errors(known, QUESTION, profiler, "truth")


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Error in percent of each line."""
    return by_name.table(known, QUESTION, profilers, NAMES, "truth")


if __name__ == "__main__":
    main()
