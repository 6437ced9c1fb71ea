"""Figure 5 of the Scalene paper (OSDI 2023): who says that a function with calls takes how much of the time?

    python benchmarks/cpu_accuracy.py                         # tachograph and all peers that tell functions apart
    python benchmarks/cpu_accuracy.py --peers scalene,py-spy

Two functions compute the same, one of them with a call in its loop. The truth is the share of the calling one in the
bare program, measured inside it. Every profiler gets the same number of passes. Beside its answer stands the share that
was measured inside the very run that it profiled: where that is not the truth, it changed what it measured.
"""

from pathlib import Path
from typing import Any

import click

from harness.arms import BARE
from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, compared_with, complaints, key, options, true_shares, worst

SHARES = (10, 30, 50, 70, 90)
"""Percent of the time that the calling function shall take, about."""
PASSES = 200_000
"""Of each function, to see how long one takes."""


@click.command()
@options("those that tell functions apart", "function_bias")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="Time of a bare run.")
def main(peers: str, timeout: float, results: Path, seconds: float, *, fresh: bool) -> None:
    """Function bias of CPU profilers (figure 5)."""
    with complaints("cpu_accuracy"):
        survey = Survey(peers, Peer.tells_functions, timeout, results, fresh=fresh)
        survey.ask_all(_questions(survey, seconds), _read)
    print(table(survey.known(), survey.profilers))


def _questions(survey: Survey, seconds: float) -> list[Question]:
    program = str(FOLDER / "function_bias.py")
    passes = {answer["wanted"]: answer["passes"] for answer in survey.known().values()}
    if not all(share in passes for share in SHARES):
        once = survey.try_bare([program, str(PASSES), str(PASSES)])
        for share in SHARES:
            calling = round(seconds * share / 100 / once["calling"] * PASSES)
            inlined = round(seconds * (100 - share) / 100 / once["inlined"] * PASSES)
            passes.setdefault(share, [calling, inlined])
    return [
        Question(str(share), [program, *map(str, passes[share])], {"wanted": share, "passes": passes[share]})
        for share in SHARES
    ]


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    if peer.functions is None:
        return None
    own = peer.functions(recording, folder)
    return {name: own.get(name, 0.0) for name in ("calling", "step", "inlined")}


def reported(said: dict[str, float]) -> float | None:
    """Percent of the time of both loops that the profiler puts on the calling one and what it calls."""
    calling = said["calling"] + said["step"]
    both = calling + said["inlined"]
    return 100.0 * calling / both if both else None


def measured(report: dict[str, float]) -> float:
    """The same, by the clock inside the program."""
    return 100.0 * report["calling"] / (report["calling"] + report["inlined"])


def truth(known: dict[str, dict[str, Any]], profiler: str = BARE) -> dict[int, float]:
    """Wanted share -> the true one, in percent, of those that were measured bare, under the profiler's interpreter."""
    return true_shares(known, SHARES, measured, compared_with(known, profiler))


def errors(known: dict[str, dict[str, Any]], profiler: str) -> dict[int, float]:
    """Wanted share -> reported minus true, in percentage points, where the profiler answered."""
    found = {}
    for share, true in truth(known, profiler).items():
        answer = known.get(key(str(share), profiler), {})
        told = reported(answer["said"]) if answer.get("said") and answer["report"] else None
        if told is not None:
            found[share] = told - true
    return found


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Reported minus true, in percentage points, for each share; in brackets what was true within that run."""
    true = truth(known)
    lines = [f"{'':<22}" + "".join(f"{f'{value:.1f} %':>18}" for value in true.values()) + f"{'worst':>9}"]
    for profiler in profilers:
        found, cells = errors(known, profiler), []
        for share, value in (truth(known, profiler) or true).items():
            answer = known.get(key(str(share), profiler), {})
            if share in found:
                moved = measured(answer["report"]) - value
                cells.append(f"{f'{found[share]:+.1f} ({moved:+.1f})':>18}")
            else:
                cells.append(f"{answer.get('outcome', '-')[:17]:>18}")
        lines.append(f"{profiler:<22}" + "".join(cells) + worst(found, "9.1f"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
