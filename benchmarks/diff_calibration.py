"""How often `tachograph diff` is wrong, and how often it is silent: verdicts on programs that are known to be the same.

    python benchmarks/diff_calibration.py record FOLDER         # about fifteen minutes; goes on where it stopped
    python benchmarks/diff_calibration.py judge FOLDER          # counts verdicts; a table
    python benchmarks/diff_calibration.py same FOLDER           # only what did not change, five a side in turns

Programs of five kinds (`programs/calibration.py`) are recorded in rounds. A round is six recordings of each kind in
a row, in which nothing changes; those of the kind `loops` take turns with six in which one function has 5 % more to do.
In every other round the machine is loaded with two busy processes, and the programs have a low priority; `--no-load`
is for a machine that is busy with other work anyway.
"""

import json
import os
import random
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from tachograph.analyzer.diff.comparison import diff_runs
from tachograph.analyzer.diff.gate import judge as judge_conditions
from tachograph.analyzer.diff.gate import parse_condition
from tachograph.analyzer.diff.runs import Run, read_run
from tachograph.analyzer.profile.question import Question
from tachograph.analyzer.report_data.difference import FASTER, LESS, MORE, SLOWER, Outcome

PROGRAM = Path(__file__).parent / "programs" / "calibration.py"
KINDS = ("loops", "allocation", "waiting", "arrays", "imports")
CHANGED = "changed"
FACTOR = "1.05"
A_ROUND = 6
BURN = "while True: pass"


@click.group()
def main() -> None:
    """Calibration of `tachograph diff`."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--rounds", type=click.IntRange(1), default=6, show_default=True)
@click.option("--load/--no-load", default=True, show_default=True, help="Busy processes in every other round.")
@click.option("--changed/--no-changed", default=True, show_default=True, help="Record the changed program as well.")
def record(folder: Path, rounds: int, load: bool, changed: bool) -> None:
    """Records all rounds; what is there already is left alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(rounds):
        with _load(load and number % 2 == 1) as loaded:
            for kind in KINDS:
                for turn in range(A_ROUND):
                    _record(folder, kind, "1", number * A_ROUND + turn, loaded)
                    if changed and kind == "loops":
                        _record(folder, CHANGED, FACTOR, number * A_ROUND + turn, loaded)


@contextmanager
def _load(wanted: bool) -> Iterator[bool]:
    """Two busy processes, if they are wanted."""
    burning = [subprocess.Popen(["nice", sys.executable, "-c", BURN]) for _ in range(2 * wanted)]
    try:
        yield wanted
    finally:
        for process in burning:
            process.kill()
            process.wait()


def _record(folder: Path, name: str, factor: str, number: int, loaded: bool) -> None:
    target = folder / f"{name}-{number:03d}.tacho"
    if target.exists():
        return
    kind = "loops" if name == CHANGED else name
    command = [str(Path(sysconfig.get_path("scripts")) / "tachograph"), "record", "--quiet", "--output"]
    before = os.getloadavg()[0]
    subprocess.run(
        [*(["nice"] * loaded), *command, str(target), str(PROGRAM), kind, factor], check=True, stdout=subprocess.DEVNULL
    )
    with (folder / "recorded.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"name": target.stem, "loaded": loaded, "load_average": before}) + "\n")


Pair = tuple[list[str], list[str]]


@dataclass
class Count:
    """What became of some pairs."""

    pairs: int = 0
    unknown: int = 0
    verdicts: int = 0
    """Pairs with any verdict, in any table."""
    cpu: int = 0
    """Pairs in which the CPU time of the whole, or of the function `changed`, is said to have grown."""
    alarms: int = 0
    """Pairs in which a condition of GATE failed."""


GATE = ("cpu>0%", "cpu>5%", "wall>5%", "memory.peak>5%", "function * cpu>5%")
WORDS = (SLOWER, FASTER, MORE, LESS)


class Pool:
    """The recordings of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runs: dict[str, Run] = {}

    def names(self, kind: str) -> list[str]:
        """The recordings of a kind, oldest first."""
        return sorted(path.stem for path in self._folder.glob(f"{kind}-*.tacho"))

    def count(self, pairs: Sequence[Pair], *, anyway: bool = False) -> Count:
        """Compares each pair, and counts; with `anyway` the rule about busy machines is left out."""
        found = Count()
        conditions = [parse_condition(text) for text in GATE]
        for pair in pairs:
            base, new = ([self._run(name) for name in side] for side in pair)
            result = diff_runs(base, new, Question(), anyway=anyway)
            found.pairs += 1
            found.unknown += result.summary.verdict == "not_judged"
            found.verdicts += any(level.values["verdict"].isin(WORDS).any() for level in result.levels.values())
            functions = result.functions.metric("total_cpu")
            grown = [result.totals.metric("cpu"), functions[functions["function"] == "changed"]]
            found.cpu += any((frame["verdict"] == SLOWER).any() for frame in grown)
            found.alarms += any(each.outcome is Outcome.FAILED for each in judge_conditions(result, conditions))
        return found

    def _run(self, name: str) -> Run:
        if name not in self._runs:
            self._runs[name] = read_run(self._folder / f"{name}.tacho", Question())
        return self._runs[name]


def identical(names: list[str], runs: int, wanted: int, *, turns: bool) -> list[Pair]:
    """Pairs of sides of `runs` recordings in which nothing changed, of neighbours in time.

    First those that share no recording, then others that overlap with them, up to `wanted`. The sides are one after the
    other, or recorded in turns.
    """
    starts = sorted(range(len(names) - 2 * runs + 1), key=lambda start: (start % (2 * runs), start))[:wanted]
    found = []
    for start in starts:
        both = names[start : start + 2 * runs]
        found.append((both[::2], both[1::2]) if turns else (both[:runs], both[runs:]))
    return found


def different(pool: Pool, runs: int, wanted: int) -> list[Pair]:
    """Pairs of which the new side has 5 % more to do in one function: neighbours in turns, chosen at random."""
    base, new, draw = pool.names("loops"), pool.names(CHANGED), random.Random(runs)
    chosen = [sorted(draw.sample(range(min(len(base), len(new))), runs)) for _ in range(wanted)]
    return [([base[n] for n in numbers], [new[n] for n in numbers]) for numbers in chosen]


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--pairs", type=click.IntRange(10), default=200, show_default=True, help="Pairs of identical programs.")
def judge(folder: Path, pairs: int) -> None:
    """Counts verdicts, and prints the table of docs/benchmarks/diff_calibration.txt."""
    pool = Pool(folder)
    print("| what | runs a side | pairs | unknown | any verdict | CPU slower | --fail-if failed |")
    print("|---|---|---|---|---|---|---|", flush=True)
    kinds = [pool.names(kind) for kind in KINDS]
    for runs, turns, anyway in (
        *((1, False, False), (3, False, False), (3, True, False), (5, True, False)),
        *((3, False, True), (3, True, True)),
    ):
        same = [pair for names in kinds for pair in identical(names, runs, pairs // len(kinds), turns=turns)]
        how = ("in turns" if turns else "one side after the other") + (", busy or not" if anyway else "")
        _show(f"nothing changed, {how}", runs, pool.count(same, anyway=anyway))
    for runs in (1, 3, 5, 10):
        _show("5 % more in one function, in turns", runs, pool.count(different(pool, runs, pairs // 2)))
    _show("5 % more in one function, in turns, busy or not", 3, pool.count(different(pool, 3, pairs // 2), anyway=True))


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--runs", type=click.IntRange(1), default=5, show_default=True, help="Recordings a side.")
@click.option("--pairs", type=click.IntRange(1), default=40, show_default=True, help="Pairs of each kind.")
def same(folder: Path, runs: int, pairs: int) -> None:
    """Counts verdicts on programs that did not change, sides in turns, kind by kind."""
    pool = Pool(folder)
    print("| kind | runs a side | pairs | unknown | any verdict | CPU slower | --fail-if failed |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for kind in KINDS:
        _show(kind, runs, pool.count(identical(pool.names(kind), runs, pairs, turns=True)))


def _show(what: str, runs: int, count: Count) -> None:
    cells = (what, runs, count.pairs, count.unknown, count.verdicts, count.cpu, count.alarms)
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
