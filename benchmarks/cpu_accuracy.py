"""Figure 5 of the Scalene paper (OSDI 2023): who says that a function with calls takes how much of the time?

    python benchmarks/cpu_accuracy.py                         # tachograph and all peers that tell functions apart
    python benchmarks/cpu_accuracy.py --peers scalene,py-spy

Two functions compute the same, one of them with a call in its loop. The truth is the share of the calling one in the
bare program, measured inside it. Every profiler gets the same number of passes. Beside its answer stands the share that
was measured inside the very run that it profiled: where that is not the truth, it changed what it measured.
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
SHARES = (10, 30, 50, 70, 90)
"""Percent of the time that the calling function shall take, about."""
PASSES = 200_000
"""Of each function, to see how long one takes."""


@click.command()
@click.option("--peers", default="all", show_default=True, help="Comma-separated; those that tell functions apart.")
@click.option("--seconds", type=click.FloatRange(min=0.1), default=3.0, show_default=True, help="Time of a bare run.")
@click.option("--timeout", type=float, default=60.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, file_okay=False), help="Default: results/function_bias.")
@click.option("--fresh", is_flag=True, help="Forget earlier results.")
def main(peers: str, seconds: float, timeout: float, results: Path | None, fresh: bool) -> None:
    """Function bias of CPU profilers (figure 5)."""
    answers = Answers((results or ROOT / "results" / "function_bias") / "answers.jsonl")
    if fresh:
        answers.clear()
    try:
        who = subjects(peers, ROOT / "build" / "benchmarks" / "peers", Peer.tells_functions)
        _measure(who, answers, seconds, timeout)
    except BenchmarkError as error:
        print(f"cpu_accuracy: {error}", file=sys.stderr)
        sys.exit(2)
    print(table(answers.known(), [subject.arm.name for subject in who]))


def _measure(who: list[Subject], answers: Answers, seconds: float, timeout: float) -> None:
    program = str(FOLDER / "function_bias.py")
    once = ask(who[0], [program, str(PASSES), str(PASSES)], _read, timeout)["report"]
    if once is None:
        raise BenchmarkError("the program does not run bare")
    steps = [(share, subject) for share in SHARES for subject in who]
    known = answers.known()
    passes = {answer["wanted"]: answer["passes"] for answer in known.values()}
    with progress(len(steps)) as show:
        for done, (share, subject) in enumerate(steps):
            key = f"{share} {subject.arm.name}"
            show(done, f"{share} %, {subject.arm.name}")
            if key in known:
                continue
            if share not in passes:
                passes[share] = [
                    round(seconds * share / 100 / once["calling"] * PASSES),
                    round(seconds * (100 - share) / 100 / once["inlined"] * PASSES),
                ]
            answer = ask(subject, [program, *map(str, passes[share])], _read, timeout)
            answers.append(key, answer | {"wanted": share, "passes": passes[share]})


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


def table(known: dict[str, dict[str, Any]], profilers: list[str]) -> str:
    """Reported minus true, in percentage points, for each share; in brackets what was true within that run."""
    truths = {share: known.get(f"{share} {BARE}", {}).get("report") for share in SHARES}
    truth = {share: measured(report) for share, report in truths.items() if report}
    lines = [f"{'':<22}" + "".join(f"{f'{value:.1f} %':>18}" for value in truth.values()) + f"{'worst':>9}"]
    for profiler in profilers:
        if profiler == BARE:
            continue
        cells, errors = [], []
        for share, true in truth.items():
            answer = known.get(f"{share} {profiler}", {})
            told = reported(answer["said"]) if answer.get("said") else None
            if told is None or not answer["report"]:
                cells.append(f"{answer.get('outcome', '-')[:17]:>18}")
                continue
            errors.append(told - true)
            moved = measured(answer["report"]) - true
            cells.append(f"{f'{told - true:+.1f} ({moved:+.1f})':>18}")
        worst = f"{max(errors, key=abs):+9.1f}" if errors else ""
        lines.append(f"{profiler:<22}" + "".join(cells) + worst)
    return "\n".join(lines)


if __name__ == "__main__":
    main()
