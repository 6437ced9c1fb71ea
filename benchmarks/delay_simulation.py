"""Figure 3 of the first Scalene paper (arXiv 2020, section 3.1): how soon does the delay of signals tell native time?

    python delay_simulation.py                       # 1 to 64 seconds of simulated time, a few seconds

The estimator: a timer's signal is handled when the interpreter has control again. The interval counts as Python, the
delay beyond it as native. The simulation executes lines in turn, Python's part of each and then its native part, both
drawn from a Pareto distribution in which 20 % of the lines take 80 % of the time. Beside the paper's arrangement, in
which the native part of a line is one long phase, stand phases of 1 ms: signals then come late by less than the
interval most of the time, and the estimator takes native code for Python's.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
QUANTUM_S = 0.01
LINES = 100
TIMES_S = (1, 2, 4, 8, 16, 32, 64)
SHAPE = float(np.log(5) / np.log(4))
"""Pareto's shape for which a fifth has four fifths."""
SHORT_PHASE_S = 0.001


@dataclass(frozen=True)
class Point:
    """Mean over the runs of estimated divided by simulated time."""

    seconds: int
    phases: str
    """`long`: each line's native part in one piece; `short`: in pieces of `SHORT_PHASE_S`."""
    python_ratio: float
    native_ratio: float


@click.command()
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), help="Default: results/delay.json.")
def main(runs: int, seed: int, results: Path | None) -> None:
    """The delay estimator, simulated (figure 3 of 2020)."""
    random = np.random.default_rng(seed)
    points = [point(seconds, phases, runs, random) for phases in ("long", "short") for seconds in TIMES_S]
    print(table(points))
    target = results or ROOT / "results" / "delay.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps([asdict(one) for one in points], indent=1) + "\n", encoding="utf-8")


def point(seconds: float, phases: str, runs: int, random: np.random.Generator) -> Point:
    """The mean of several runs of a simulated program of that length."""
    ratios = []
    for _ in range(runs):
        true = draw(seconds, random)
        spans = true if phases == "long" else pieces(true, SHORT_PHASE_S)
        ratios.append(estimate(spans) / spans.sum(axis=0))
    python, native = np.mean(ratios, axis=0)
    return Point(int(seconds), phases, float(python), float(native))


def draw(seconds: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Seconds of Python and of native code for each line, `seconds` in all: shape (LINES, 2)."""
    times = 1 + random.pareto(SHAPE, size=(LINES, 2))
    scaled: NDArray[np.float64] = times * (seconds / times.sum())
    return scaled


def pieces(spans: NDArray[np.float64], longest_s: float) -> NDArray[np.float64]:
    """The same lines, each executed as often as its native part has phases of `longest_s`."""
    repeats = np.maximum(1, np.ceil(spans[:, 1] / longest_s)).astype(int)
    repeated: NDArray[np.float64] = np.repeat(spans / repeats[:, None], repeats, axis=0)
    return repeated


def estimate(spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Seconds of Python and of native code as the delays tell them.

    The timer rings every `QUANTUM_S`; what rings during native code is handled when that is over, and several rings are
    one signal then.
    """
    python = native = 0.0
    last, ring, now = 0.0, QUANTUM_S, 0.0
    for in_python, in_native in spans:
        now += in_python
        while ring <= now:  # handled at once
            python += QUANTUM_S
            native += ring - last - QUANTUM_S
            last, ring = ring, ring + QUANTUM_S
        now += in_native
        if ring <= now:  # handled late
            python += QUANTUM_S
            native += now - last - QUANTUM_S
            last, ring = now, now + QUANTUM_S
    return np.array([python, native])


def table(points: list[Point]) -> str:
    """Estimated over simulated time, by length of the run."""
    lines = ["estimated / simulated time" + "".join(f"{seconds:>8} s" for seconds in TIMES_S)]
    for phases in ("long", "short"):
        for part in ("python", "native"):
            of = [getattr(one, f"{part}_ratio") for one in points if one.phases == phases]
            lines.append(f"{f'{part}, {phases} phases':<26}" + "".join(f"{value:>10.3f}" for value in of))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
