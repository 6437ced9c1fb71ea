"""How much of the time is native? Reported against true, from none to all, for every profiler that claims to know.

    python native_share.py                           # tachograph, its signal sampler, and all peers that tell
    python native_share.py --peers scalene

One program runs Python code and native code by turns (programs/mixture.py) and measures the CPU time of each; the truth
is what it measured in the very run that was profiled, which stands in brackets. Native is what is not the interpreter
at work: time in the kernel counts as native as well.
"""

from pathlib import Path
from typing import Any

import click

from harness.measure import PROGRAMS as FOLDER
from harness.peers import Peer
from harness.survey import Question, Survey, complaints, key, options, true_shares, worst

PROGRAM = FOLDER / "mixture.py"
SHARES = (0, 10, 25, 50, 75, 90, 100)
"""Percent of the time that shall be native, about."""
TRIAL = {"python": 200_000, "native": 200}
"""Passes of the run that tells how long one takes."""


@click.command()
@options("those that tell native time", "native_share")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="Time of a bare run.")
def main(peers: str, timeout: float, results: Path, seconds: float, *, fresh: bool) -> None:
    """Native time, against the truth."""
    with complaints("native_share"):
        survey = Survey(peers, Peer.tells_native_time, timeout, results, fresh=fresh)
        survey.ask_all(_questions(survey, seconds), _read)
    print(table(survey.known(), survey.profilers))


def _questions(survey: Survey, seconds: float) -> list[Question]:
    passes = {answer["wanted"]: answer["passes"] for answer in survey.known().values()}
    if not all(share in passes for share in SHARES):
        once = survey.try_bare([str(PROGRAM), str(TRIAL["python"]), str(TRIAL["native"])])
        for share in SHARES:
            parts = {"python": seconds * (100 - share) / 100, "native": seconds * share / 100}
            passes.setdefault(share, [round(parts[name] / once[name] * TRIAL[name]) for name in parts])
    return [
        Question(str(share), [str(PROGRAM), *map(str, passes[share])], {"wanted": share, "passes": passes[share]})
        for share in SHARES
    ]


def _read(peer: Peer, recording: Path, folder: Path) -> object:
    if peer.lines is None:
        return None
    times = peer.lines(recording, folder, PROGRAM).values()
    return {"total": sum(time.total for time in times), "native": sum(time.native or 0.0 for time in times)}


def reported(said: dict[str, float]) -> float | None:
    """Percent that is said to be native; None if nothing was seen."""
    return 100.0 * said["native"] / said["total"] if said["total"] else None


def measured(report: dict[str, float]) -> float:
    """Percent that is native by the clock inside the program."""
    return 100.0 * report["native"] / (report["native"] + report["python"])


def truth(known: dict[str, dict[str, Any]]) -> dict[int, float]:
    """Wanted share -> the true one, in percent, of those that were measured bare."""
    return true_shares(known, SHARES, measured)


def answers(known: dict[str, dict[str, Any]], profiler: str) -> dict[int, float]:
    """Wanted share -> reported one, in percent, where the profiler answered."""
    found = {}
    for share in SHARES:
        said = known.get(key(str(share), profiler), {}).get("said")
        told = reported(said) if said else None
        if told is not None:
            found[share] = told
    return found


def errors(known: dict[str, dict[str, Any]], profiler: str) -> dict[int, float]:
    """Wanted share -> reported minus true, in percentage points."""
    true = true_shares(known, SHARES, measured, profiler)
    return {share: told - true[share] for share, told in answers(known, profiler).items() if share in true}


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """What is reported and what was measured, and the largest difference of the two, in percentage points."""
    bare = truth(known)
    lines = [f"{'bare':<22}" + "".join(f"{f'({value:.1f})':>14}" for value in bare.values()) + f"{'worst':>9}"]
    for profiler in profilers:
        told, true, cells = answers(known, profiler), true_shares(known, SHARES, measured, profiler), []
        for share in bare:
            outcome = known.get(key(str(share), profiler), {}).get("outcome", "-")[:13]
            both = share in told and share in true
            cells.append(f"{f'{told[share]:.1f} ({true[share]:.1f})' if both else outcome:>14}")
        lines.append(f"{profiler:<22}" + "".join(cells) + worst(errors(known, profiler), "9.1f"))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
