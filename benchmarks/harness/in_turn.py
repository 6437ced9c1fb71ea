"""Arms of a comparison side by side: all of them are started, and each runs the same few passes in its turn.

A machine that others share changes its speed from second to second. Runs of a program that follow each other differ by
ten percent then; turns of a fifth of a second, one after the other in processes that are there already, differ much
less, and hundreds of pairs fit into the time of a few runs. What a process has of its own (where its arrays lie, which
can make 30 percent) is the same in all its turns: so there are several sets of processes, of which each counts once,
and in each of them memory lies elsewhere.
"""

import json
import math
import os
import random
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from harness.arms import Arm
from harness.errors import BenchmarkError
from harness.measure import PROGRAMS, RECORDING

DOUBT = 0.025
"""On each side of an interval."""
RESAMPLES = 1000


@dataclass(frozen=True)
class Turn:
    """The same passes of a program in an arm. Times in seconds."""

    round: int
    """Number of the set of processes."""
    program: str
    arm: str
    turn: int
    passes: int
    cpu_s: float
    """Of the process: with the recorder's own thread, whose work follows the clock, and with the program's pools."""
    thread_s: float
    """CPU time of the main thread."""
    elapsed_s: float
    peak_rss_bytes: int | None
    """Largest resident set of the process, to its end."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.3f} (one set)"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


class _Running:
    """An arm's process, ready for its turns."""

    def __init__(self, arm: Arm, catalogue: str, program: str, folder: Path, environment: dict[str, str]) -> None:
        self.arm = arm
        self._errors = folder / "stderr.txt"
        command = arm.command([str(PROGRAMS / "in_turn.py"), catalogue, program], folder / RECORDING)
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                start_new_session=True,
            )

    def line(self) -> str:
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        if not text:
            said = self._errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise BenchmarkError(
                f"arm {self.arm.name!r} ended or took too long: {said[-1] if said else 'said nothing'}"
            )
        return text

    def run(self, passes: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(passes, file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def end(self) -> int | None:
        """The largest resident set, in bytes; the process is over then."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        peak: int | None = json.loads(self.line())["peak_rss_bytes"]
        if self.process.wait():
            raise BenchmarkError(f"arm {self.arm.name!r} ended with status {self.process.returncode}")
        return peak

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def _started(
    arms: list[Arm], catalogue: str, programs: list[str], site: Path | None, timeout_s: float
) -> Iterator[list[_Running]]:
    environment = os.environ | {"PYTHONHASHSEED": "0"} | ({} if site is None else {"PYTHONPATH": str(site)})
    with ExitStack() as stack:
        running = []
        for arm, program in zip(arms, programs, strict=True):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            each = _Running(arm, catalogue, program, folder, environment)
            stack.callback(each.kill)
            running.append(each)

        def give_up() -> None:
            for each in running:
                each.kill()

        guard = threading.Timer(timeout_s, give_up)
        guard.start()
        stack.callback(guard.cancel)
        for each in running:
            if each.line() != "ready\n":
                raise BenchmarkError(f"arm {each.arm.name!r}: no program that takes turns")
        yield running


def take_turns(
    number: int,
    catalogue: str,
    program: str,
    arms: list[Arm],
    *,
    turns: int,
    seconds: float,
    timeout_s: float,
    site: Path | None = None,
    instead: Mapping[str, str] | None = None,
) -> list[Turn]:
    """Turns of a program in all arms, the first of which is bare: each takes at least `seconds` of CPU time there.

    `instead` has the programs of arms that run another one, which does the same.
    """
    found: list[tuple[str, int, dict[str, Any]]] = []
    programs = [(instead or {}).get(arm.name, program) for arm in arms]
    with _started(arms, catalogue, programs, site, timeout_s) as running:
        passes = math.ceil(seconds / max(running[0].run(1)["cpu_s"], 1e-6))
        for turn in range(turns):
            first = turn % len(running)
            found += [(each.arm.name, turn, each.run(passes)) for each in running[first:] + running[:first]]
        peaks = {each.arm.name: each.end() for each in running}
    return [Turn(number, program, arm, turn, passes, **said, peak_rss_bytes=peaks[arm]) for arm, turn, said in found]


class Turns:
    """The file of the turns that were taken; an interrupted benchmark goes on where it was."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.parent.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        """Forgets everything."""
        self._file.unlink(missing_ok=True)

    def all(self) -> list[Turn]:
        """The turns so far."""
        if not self._file.exists():
            return []
        return [Turn(**json.loads(line)) for line in self._file.read_text(encoding="utf-8").splitlines()]

    def append(self, turns: list[Turn]) -> None:
        """Adds those of a program."""
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(turn)) + "\n" for turn in turns)


Figure = Callable[[Turn], float]


def ratios(turns: Iterable[Turn], program: str, arm: str, against: Sequence[str], figure: Figure) -> list[float]:
    """The figure of an arm over the mean of others in the same turn: of each set of processes the median of its turns.

    Two bare arms tell better than one what the program takes without a recorder.
    """
    by_turn: dict[tuple[int, int], dict[str, float]] = {}
    for turn in turns:
        if turn.program == program:
            by_turn.setdefault((turn.round, turn.turn), {})[turn.arm] = figure(turn)
    sets: dict[int, list[float]] = {}
    for (number, _), values in sorted(by_turn.items()):
        base = [values[each] for each in against if each in values]
        if arm in values and base and all(base):
            sets.setdefault(number, []).append(values[arm] / mean(base))
    return [median(each) for each in sets.values()]


def middle(values: list[float]) -> Interval:
    """The median, with its interval by the sign test: of fewer than six values, from the least to the most."""
    ordered = sorted(values)
    place, below = 0, math.ldexp(1.0, -len(ordered))
    while below <= DOUBT:
        place += 1
        below += math.ldexp(math.comb(len(ordered), place), -len(ordered))
    cut = max(place - 1, 0)
    return Interval(median(ordered), ordered[cut], ordered[-1 - cut])


def middle_of_programs(values: dict[str, list[float]]) -> Interval:
    """The median over programs of their medians; its interval is from sets drawn again (bootstrap, percentiles)."""
    draw = random.Random(1)
    drawn = sorted(
        median(median(draw.choices(each, k=len(each))) for each in values.values()) for _ in range(RESAMPLES)
    )
    cut = round(DOUBT * RESAMPLES)
    return Interval(median(median(each) for each in values.values()), drawn[cut], drawn[-1 - cut])


def added_memory(turns: Iterable[Turn], program: str, arm: str, against: str) -> float | None:
    """Bytes that the largest resident set of an arm is above that of another one; None if the system does not tell."""
    peaks = {(turn.arm, turn.round): turn.peak_rss_bytes for turn in turns if turn.program == program}
    rounds = {number for _, number in peaks}
    both = [(peaks.get((arm, number)), peaks.get((against, number))) for number in rounds]
    found = [mine - base for mine, base in both if mine is not None and base is not None]
    return median(found) if found else None
