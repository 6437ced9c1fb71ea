"""Runs every step of a comparison that has not been run yet, arms interleaved, and keeps each row at once."""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from harness.arms import BARE, Arm
from harness.measure import START_UP, Bench
from harness.store import Row, Store


@dataclass(frozen=True)
class LongRun:
    """A longer run of one of the programs, under a name of its own in the table of rows."""

    name: str
    program: str
    seconds: float
    rounds: int


@dataclass(frozen=True)
class Plan:
    """What is measured. Times in seconds."""

    programs: list[str]
    arms: list[Arm]
    rounds: int
    seconds: float
    long: LongRun | None = None
    start_ups: int = 0
    peer_rounds: int | None = None
    """Rounds in which the peers take part, from the first on; None for all. Some take twenty times as long."""

    def steps(self) -> Iterator[tuple[int, str, Arm]]:
        """Everything to run, in order: round, program, arm. The order of the arms turns with the round."""
        for number in range(max(self.rounds, self.start_ups)):
            names: list[str] = []
            if number < self.rounds:
                names += self.programs
            if self.long is not None and number < min(self.rounds, self.long.rounds):
                names.append(self.long.name)
            if number < self.start_ups:
                names.append(START_UP)
            turn = number % len(self.arms)
            for name in names:
                for arm in self.arms[turn:] + self.arms[:turn]:
                    if not arm.peer or self.peer_rounds is None or number < self.peer_rounds:
                        yield number, name, arm


def measure(plan: Plan, bench: Bench, store: Store) -> None:
    """Measures what `store` does not have yet. A peer that failed or never ended with a program is not tried again."""
    store.agree(
        {
            "python": platform.python_version(),
            "cpu_count": os.cpu_count(),
            "seconds": plan.seconds,
            "arms": {arm.name: arm.template for arm in plan.arms},
        }
    )
    rows = store.rows()
    known = {row.key for row in rows}
    loops = {row.program: row.loops for row in rows if row.arm == BARE}
    failed = {(row.program, row.arm) for row in rows if not row.whole}
    steps = list(plan.steps())
    with progress(len(steps)) as show:
        for done, (number, name, arm) in enumerate(steps):
            show(done, f"round {number + 1}: {name}, {arm.name}")
            if (number, name, arm.name) in known or (name, arm.name) in failed:
                continue
            row = _run(plan, bench, loops, number, name, arm)
            store.append(row)
            if not row.whole:
                failed.add((name, arm.name))


def _run(plan: Plan, bench: Bench, loops: dict[str, int], number: int, name: str, arm: Arm) -> Row:
    """Measures one step. `loops` holds, and gets, the number of passes for each program."""
    if name == START_UP:
        return bench.start_up(number, arm)
    program, seconds = name, plan.seconds
    if plan.long is not None and name == plan.long.name:
        program, seconds = plan.long.program, plan.long.seconds
    if name not in loops:
        loops[name] = bench.calibrate(plan.arms[0], program, seconds)
    return replace(bench.program(number, arm, program, loops[name]), program=name)


@contextmanager
def progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """A progress bar on a terminal, nothing anywhere else."""
    if not sys.stderr.isatty():
        yield lambda _done, _text: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda done, text: bar.update(task, completed=done, description=text)
