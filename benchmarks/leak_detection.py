"""Which leaks are found, which are missed, and who is blamed although innocent?

    python leak_detection.py                         # tachograph and all peers that report leaks
    python leak_detection.py --peers scalene,memray

Four programs leak 20 MB per second, six allocate as much and leak nothing (programs/leaking.py). A leak is found if a
line that leaks is reported, and a report of any other line of the program is a false one.
"""

from pathlib import Path
from typing import Any

import click

from harness import tags
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, key, options
from programs.leaking import INNOCENTS, LEAKS

PROGRAM = FOLDER / "leaking.py"
GUILTY = tags.tagged(PROGRAM)


@click.command()
@options("those that report leaks", "leak_detection")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="Time of a run.")
def main(peers: str, timeout: float, results: Path, seconds: float, *, fresh: bool) -> None:
    """Leaks found, missed and invented."""
    with complaints("leak_detection"):
        survey = Survey(peers, Peer.tells_leaks, timeout, results, fresh=fresh)
        questions = [Question(way, [str(PROGRAM), way, str(seconds)]) for way in (*LEAKS, *INNOCENTS)]
        survey.ask_all(questions, _read, bare=False)
    print(table(survey.known(), survey.profilers))


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    return None if peer.leaks is None else sorted(set(peer.leaks(recording, folder, PROGRAM)))


def verdict(way: str, reported: list[int]) -> str:
    """`found` or `missed` of a leak, with the number of lines that are blamed wrongly."""
    right = [line for line in reported if line in GUILTY.get(way, [])]
    false = f"{len(reported) - len(right)} false" if len(reported) > len(right) else ""
    if way in LEAKS:
        return ", ".join(filter(None, ["found" if right else "missed", false]))
    return false or "quiet"


def wrong(known: dict[str, dict[str, Any]], profiler: str) -> int | None:
    """Programs of which the profiler reports the wrong thing; None if it did not answer for all."""
    mistakes = 0
    for way in (*LEAKS, *INNOCENTS):
        said = known.get(key(way, profiler), {}).get("said")
        if said is None:
            return None
        mistakes += verdict(way, said) != ("found" if way in LEAKS else "quiet")
    return mistakes


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """What each profiler reports of each program."""
    lines = [f"{'':<22}" + "".join(f"{profiler:>20}" for profiler in profilers)]
    for way in (*LEAKS, *INNOCENTS):
        cells = []
        for profiler in profilers:
            answer = known.get(key(way, profiler), {})
            said = answer.get("said")
            cells.append(answer.get("outcome", "-")[:19] if said is None else verdict(way, said))
        lines.append(f"{way:<22}" + "".join(f"{cell:>20}" for cell in cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
