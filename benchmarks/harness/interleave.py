"""Runs every step of a comparison that has not been run yet, arms interleaved, and keeps each row at once."""

import math
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from harness.arms import BARE, Arm, is_bare
from harness.measure import START_UP, Bench
from harness.store import NEVER_ENDED, Row, Store

GIVEN_UP = 2
"""Kinds of programs under which a peer runs over the bound before it is tried no more."""


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
    """Rounds in which the peers take part, from the first on; None for all. The slow ones take part in one."""

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
                long = self.long is not None and name == self.long.name
                for arm in self.arms[turn:] + self.arms[:turn]:
                    if number < self._rounds_of(arm) and not (long and arm.peer):
                        yield number, name, arm

    def compared(self) -> tuple[list[str], dict[str, str]]:
        """The names of the arms that are not bare; what those are compared with that have another than `BARE`."""
        shown = [arm for arm in self.arms if not is_bare(arm.name)]
        return [arm.name for arm in shown], {arm.name: arm.against for arm in shown if arm.against != BARE}

    def _rounds_of(self, arm: Arm) -> int:
        most = max(self.rounds, self.start_ups)
        if not arm.peer:
            return most
        return 1 if arm.brief else min(most, self.peer_rounds or most)


def measure(plan: Plan, bench: Bench, store: Store) -> None:
    """Measures what `store` does not have yet.

    An arm that failed or took too long with a program is not tried again with that. A peer that took too long is not
    tried with programs of the same kind either, nor with any if it ended with none and took too long with `GIVEN_UP`.
    """
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
            if (
                (number, name, arm.name) in known
                or (name, arm.name) in failed
                or (arm.peer and hopeless(rows, name, arm.name))
            ):
                continue
            row = _run(plan, bench, loops, number, name, arm)
            store.append(row)
            rows.append(row)
            if not row.whole:
                failed.add((name, arm.name))


def hopeless(rows: list[Row], program: str, arm: str) -> bool:
    """Whether an arm would take too long with a program too, as far as its rows tell."""
    mine = [row for row in rows if row.arm == arm]
    unended = {kind(row.program) for row in mine if row.outcome == NEVER_ENDED}
    return kind(program) in unended or (len(unended) >= GIVEN_UP and not any(row.whole for row in mine))


def kind(program: str) -> str:
    """What programs have in common that differ in one thing: the four of async_tree."""
    return program.partition("_")[0]


def _run(plan: Plan, bench: Bench, loops: dict[str, int], number: int, name: str, arm: Arm) -> Row:
    """Measures one step. `loops` holds, and gets, the number of passes for each program."""
    if name == START_UP:
        return bench.start_up(number, arm)
    program, seconds = name, plan.seconds
    if plan.long is not None and name == plan.long.name:
        program, seconds = plan.long.program, plan.long.seconds
    if name not in loops:
        loops[name] = bench.calibrate(plan.arms[0], program, seconds)
    passes = math.ceil(loops[name] / 3) if arm.brief else loops[name]
    return replace(bench.program(number, arm, program, passes), program=name)


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
