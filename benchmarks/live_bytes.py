"""Which line holds how much, when what it holds is millions of small objects? Against tracemalloc in a run of its own.

    python live_bytes.py                            # tachograph and all peers that tell who holds the memory
    python live_bytes.py --peers memray,scalene

Four lines make floats, strings, tuples and dicts that are held together (programs/small_objects.py). tracemalloc
traces every block: what it says of the bare program is the truth. A profiler's answer is what was held at the peak.
"""

from pathlib import Path
from typing import Any

import click

from harness import tags
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, key, options, worst

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
    """Error in percent of what each line holds; nothing if the profiler did not answer."""
    answer = known.get(key(QUESTION, profiler), {})
    if answer.get("said") is None:
        return {}
    truth = answer["truth"]
    return {name: 100.0 * (answer["said"][name] - truth[name]) / truth[name] for name in NAMES}


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Error in percent of what each line holds."""
    lines = [f"{'':<22}" + "".join(f"{name:>12}" for name in NAMES) + f"{'worst':>12}"]
    for profiler in profilers:
        found = errors(known, profiler)
        cells = "".join(f"{found[name]:>+10.2f} %" for name in NAMES) if found else ""
        outcome = known.get(key(QUESTION, profiler), {}).get("outcome", "-")
        lines.append(f"{profiler:<22}" + (cells + worst(found, "10.2f") + " %" if found else f"  {outcome}"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
