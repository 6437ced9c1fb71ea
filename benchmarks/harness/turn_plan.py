"""A comparison in turns: sets of processes for each program, those that are missing in what was taken before."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.arms import Arm
from harness.in_turn import Turns, take_turns
from harness.interleave import progress


@dataclass(frozen=True)
class Plan:
    """How many sets of processes take turns, how many, for how much CPU time, and when a set is given up."""

    sets: int
    turns: int
    seconds: float
    timeout_s: float


@dataclass(frozen=True)
class Catalogue:
    """The module of `programs` that has a program, and the folder of what it imports."""

    module: str
    site: Path


def take_missing(
    taken: Turns,
    programs: Mapping[str, Catalogue],
    arms: list[Arm],
    plan: Plan,
    instead: Mapping[str, str] | None = None,
) -> None:
    """Takes the turns that were not taken yet. `instead`: see `take_turns`.

    Errors:
        BenchmarkError: an arm ended, or took too long.
    """
    known = {(turn.round, turn.program) for turn in taken.all()}
    missing = [(number, name) for number in range(plan.sets) for name in programs if (number, name) not in known]
    with progress(len(missing)) as show:
        for done, (number, name) in enumerate(missing):
            show(done, f"set {number + 1} of {plan.sets}: {name}")
            turns = take_turns(
                number,
                programs[name].module,
                name,
                arms,
                turns=plan.turns,
                seconds=plan.seconds,
                timeout_s=plan.timeout_s,
                site=programs[name].site,
                instead=instead,
            )
            taken.append(turns)
