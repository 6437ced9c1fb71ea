"""How often `tachograph compare` is wrong, and what it takes: real experiments whose truth is known.

    python benchmarks/compare_experiments.py                       # all of it: about two hours
    python benchmarks/compare_experiments.py --experiments 2       # two of each kind
    python benchmarks/compare_experiments.py --load                # beside one busy loop

A program of four functions runs for about two seconds; `price` has a third of its time. The other side does the same
work (any verdict is wrong), or has 5 % or 20 % more to do in `price` (right is `slower`, and `price` as the place).
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import click

PROGRAM = """
import sys

FACTOR = {factor}


def parse(count):
    return sum(len(str(number)) for number in range(count))


def price(count):
    total = 0
    for number in range(int(count * FACTOR)):
        total = (total * 31 + number) % 1000003
    return total


def collect(count):
    table = {{}}
    for number in range(count):
        table[number % 977] = table.get(number % 977, 0) + 1
    return len(table)


def show(count):
    return len(" ".join(map(hex, range(count))))


for _ in range({rounds}):
    parse(60_000)
    price(110_000)
    collect(60_000)
    show(60_000)
"""
ROUNDS = 48
BURN = "while True: pass"


@dataclass(frozen=True)
class Kind:
    """A change, and the longest that an experiment about it may take."""

    name: str
    factor: float
    time: str


KINDS = (
    Kind("none", 1.0, "120s"),
    Kind("+5 % in a third of the time", 1.05, "300s"),
    Kind("+20 % in a third of the time", 1.2, "90s"),
)


@click.command()
@click.option("--experiments", type=click.IntRange(1), default=20, show_default=True, help="Of each kind.")
@click.option("--rounds", type=click.IntRange(1), default=ROUNDS, show_default=True, help="Length of a run.")
@click.option("--kind", "kinds", type=click.IntRange(0, len(KINDS) - 1), multiple=True, help="Only this kind.")
@click.option("--load", is_flag=True, help="Beside one busy loop.")
def main(experiments: int, rounds: int, kinds: tuple[int, ...], load: bool) -> None:
    """Makes the experiments, and prints the table of docs/benchmarks/compare_experiments.txt."""
    print("| change | experiments | verdicts | right | wrong | pairs | seconds |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for kind in [KINDS[number] for number in kinds or range(len(KINDS))]:
        with _load(load):
            answers = [_experiment(kind, rounds) for _ in range(experiments)]
        verdicts = ", ".join(f"{answers_of} {word}" for word, answers_of in _counts(answers).items())
        right = sum(_is_right(kind, answer) for answer in answers)
        wrong = sum(_is_wrong(kind, answer) for answer in answers)
        pairs, took = ([answer[name] for answer in answers] for name in ("pairs", "took_s"))
        cells = (kind.name, experiments, verdicts, right, wrong, f"{median(pairs):g}", f"{median(took):.0f}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


@contextmanager
def _load(wanted: bool) -> Iterator[None]:
    burning = [subprocess.Popen([sys.executable, "-c", BURN])] if wanted else []
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def _experiment(kind: Kind, rounds: int) -> dict[str, Any]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for side, factor in (("old", 1.0), ("new", kind.factor)):
            (folder / f"{side}.py").write_text(PROGRAM.format(factor=factor, rounds=rounds), encoding="utf-8")
        command = [str(Path(sysconfig.get_path("scripts")) / "tachograph"), "compare", "--time", kind.time]
        sides = [f"{sys.executable} {side}.py" for side in ("old", "new")]
        done = subprocess.run([*command, "--json", "answer.json", *sides], cwd=folder, check=False, capture_output=True)
        if done.returncode not in (0, 1):
            raise click.ClickException(done.stderr.decode(errors="replace").strip())
        answer: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
        return answer


def _counts(answers: list[dict[str, Any]]) -> dict[str, int]:
    words = [answer["verdict"] for answer in answers]
    return {word: words.count(word) for word in sorted(set(words))}


def _is_right(kind: Kind, answer: dict[str, Any]) -> bool:
    """The change and its place; of none, that it is the same."""
    if kind.factor == 1:
        return bool(answer["verdict"] == "same")
    return bool(answer["verdict"] == "slower" and _names_price(answer))


def _names_price(answer: dict[str, Any]) -> bool:
    place = answer["place"]
    return place is not None and bool(place["function"] == "price")


def _is_wrong(kind: Kind, answer: dict[str, Any]) -> bool:
    """A verdict that is not the truth; `not_judged` is none.

    That more is allocated in `price` is true as well: its loop makes more integers. It is not what is looked for.
    """
    if kind.factor > 1 and answer["verdict"] == "more" and _names_price(answer):
        return False
    return not _is_right(kind, answer) and answer["verdict"] != "not_judged"


if __name__ == "__main__":
    main()
