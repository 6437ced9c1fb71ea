"""How much was copied, by line? Against known numbers of bytes.

    python copy_volume.py                            # tachograph and all peers that tell copies
    python copy_volume.py --peers scalene

Six lines copy blocks of 4 MiB: `bytes()`, a slice, an array, `tobytes`, pickling, into a view (programs/copying.py).
"""

from pathlib import Path
from typing import Any

import click

from harness import tags
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, key, options, worst

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
    """Error in percent of what each line copied; nothing if the profiler did not answer."""
    answer = known.get(key(QUESTION, profiler), {})
    if answer.get("said") is None:
        return {}
    truth = answer["report"]
    return {name: 100.0 * (answer["said"][name] - truth[name]) / truth[name] for name in NAMES}


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Error in percent of what each line copied."""
    lines = [f"{'':<22}" + "".join(f"{name:>12}" for name in NAMES) + f"{'worst':>12}"]
    for profiler in profilers:
        found = errors(known, profiler)
        cells = "".join(f"{found[name]:>+10.2f} %" for name in NAMES) if found else ""
        outcome = known.get(key(QUESTION, profiler), {}).get("outcome", "-")
        lines.append(f"{profiler:<22}" + (cells + worst(found, "10.2f") + " %" if found else f"  {outcome}"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
