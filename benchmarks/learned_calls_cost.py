"""What watching calls takes: arms that take turns, for the paper's program and for nineteen others.

learned_calls.py measures it and puts it beside what profilers tell of the paper's program.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness import programs
from harness.arms import BARE, BARE_AGAIN, RECORD, Arm
from harness.in_turn import Turn, Turns, ratios, take_turns
from harness.interleave import progress
from harness.turn_tables import by_program, cpu, middle_and_worst
from programs.flame_html import MARKED, PLAIN
from programs.small_calls import PROGRAMS as SMALL
from programs.suite import PROGRAMS as TABLE_1

CALLS = f"{RECORD} --cpu-only --calls"
LOOP = "loop(), racing"
"""The arm whose program marks its loop."""
OURS = {"sampling": f"{RECORD} --cpu-only", "--calls": CALLS}
OTHERS = [*TABLE_1, *SMALL]
MEDIAN, WORST = 1.02, 1.05
"""What sampling and calls together may take of the programs."""


@dataclass(frozen=True)
class Plan:
    """How many sets of processes take turns, how many, for how much CPU time, and when a set is given up."""

    sets: int
    turns: int
    seconds: float
    timeout_s: float


def usual_arms() -> list[Arm]:
    """Bare twice, sampled, and with calls."""
    return [Arm(BARE, "{python}"), Arm(BARE_AGAIN, "{python}"), *(Arm(*each) for each in OURS.items())]


def measure_cost(taken: Turns, chosen: Sequence[str], arms: list[Arm], plan: Plan) -> None:
    """Takes the turns that were not taken yet.

    Errors:
        BenchmarkError: an arm ended, or took too long.
    """
    known = {(turn.round, turn.program) for turn in taken.all()}
    missing = [(number, name) for number in range(plan.sets) for name in chosen if (number, name) not in known]
    site = programs.installed()
    with progress(len(missing)) as show:
        for done, (number, name) in enumerate(missing):
            show(done, f"set {number + 1} of {plan.sets}: {name}")
            turns = take_turns(
                number,
                "called",
                name,
                arms,
                turns=plan.turns,
                seconds=plan.seconds,
                timeout_s=plan.timeout_s,
                site=site,
                instead={LOOP: MARKED},
            )
            taken.append(turns)


def paper_ratios(turns: list[Turn]) -> dict[str, list[float]]:
    """Of the paper's program: CPU time of each arm over the bare one, by set of processes."""
    arms = dict.fromkeys(turn.arm for turn in turns if turn.program == PLAIN)
    return {arm: found for arm in arms if arm != BARE and (found := ratios(turns, PLAIN, arm, BARE, cpu))}


def over_programs(turns: list[Turn], names: Sequence[str]) -> str:
    """CPU time over that of the bare program in the same turn, and what it may be."""
    arms = [BARE_AGAIN, *OURS]
    lines = [f"{'CPU time, bare = 1':<28}" + "".join(f"{arm:<25}" for arm in arms)]
    lines += by_program(turns, list(names), list(OURS))
    found = [each for arm in arms if (each := middle_and_worst(turns, list(names), arm))]
    lines.append(f"{'median':<28}" + "".join(f"{median!s:<25}" for median, _, _ in found))
    lines.append(f"{'worst':<28}" + "".join(f"{worst!s:<25}" for _, worst, _ in found))
    lines.append(f"--calls may take {MEDIAN} in the median and {WORST} at worst.")
    return "\n".join(line.rstrip() for line in lines)
