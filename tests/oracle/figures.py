"""Shares of the CPU time by programs' own clocks and by the analysis: a table of one platform, as Markdown.

`python -m oracle.figures record FOLDER` in tests/ on that platform, then `python -m oracle.figures read FOLDER` where
reading is quick. Under emulation the former is
`make test-arm ARGS="--exec env PYTHONPATH=/checkout/tests python3 -m oracle.figures record /checkout/build/figures"`,
which leaves the recordings in build/arm/tests-VERSION/figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from oracle import support

INTERVAL_MS = 2
LOOPS = ("for", "while", "comprehension", "generator", "recursion")


@dataclass(frozen=True)
class Question:
    """A part of a program's CPU time: of marked lines among others, or of a kind of time in the others."""

    text: str
    program: str
    arguments: tuple[str, ...]
    part: tuple[str, ...]
    among: tuple[str, ...]
    kind: str = "lines"


QUESTIONS = (
    Question("Python: a loop of five", "python_loops.py", (), ("recursion",), LOOPS),
    Question(
        "Python: the same work in a function", "function_bias.py", ("2", "0.8"), ("called",), ("called", "inlined")
    ),
    Question(
        "native: calls of zlib and hashlib",
        "native_mix.py",
        (),
        ("compress", "digest", "checksum"),
        ("compress", "digest", "checksum", "python"),
        "native",
    ),
    Question("threads: the first of four", "four_threads.py", (), ("first",), ("first", "second", "third", "fourth")),
    Question("kernel: reads of /dev/zero", "kernel.py", (), ("reading",), ("reading", "python"), "kernel"),
)


def row(question: Question, run: support.Run) -> str:
    """`| text | clocks | analysis | what chance and one point allow | samples |`, in percent."""
    among = run.line(*question.among)
    true = run.true_share(question.part, question.among)
    if question.kind == "native":
        reported = (among.cpu_s - among.python_s) / among.cpu_s
    elif question.kind == "kernel":
        reported = among.kernel_s / among.cpu_s
    else:
        reported = run.reported_share(question.part, question.among).part
    allowed = support.tolerance(true, among.samples)
    return f"| {question.text} | {true:.1%} | {reported:.1%} | ±{100 * allowed:.1f} | {among.samples:,} |"


def record(question: Question, folder: Path) -> None:
    """Record the question's program into a folder: `truth.json` and `run.tacho`."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = ("-q", "-f", "-o", folder / "run.tacho", "--interval", str(INTERVAL_MS))
    words = ["record", *settings, support.PROGRAMS / question.program, folder / "truth.json", *question.arguments]
    command = [sys.executable, "-m", "tachograph", *map(str, words)]
    subprocess.run(command, cwd=folder, env=support.environment(), check=True, timeout=600)


def read(question: Question, folder: Path) -> str:
    """The row of a question whose program was recorded, here or elsewhere."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    recording = folder / "run.tacho"
    report = support.analyze(recording, cwd=folder)
    return row(question, support.Run(support.PROGRAMS / question.program, truth, report, recording))


if __name__ == "__main__":
    folders = {question: Path(sys.argv[2]).resolve() / question.program for question in QUESTIONS}
    if sys.argv[1] == "record":
        for question, folder in folders.items():
            record(question, folder)
    else:
        for question, folder in folders.items():
            print(read(question, folder), flush=True)
