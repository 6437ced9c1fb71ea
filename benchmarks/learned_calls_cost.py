"""What watching calls takes: arms that take turns, for the paper's program and for nineteen others.

learned_calls.py measures it and puts it beside what profilers tell of the paper's program.
"""

from collections.abc import Sequence

from harness import programs
from harness.arms import BARE, RECORD, Arm
from harness.in_turn import Turn, Turns
from harness.turn_plan import Catalogue, Plan, take_missing
from harness.turn_tables import costs, of_bare
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


def measure_cost(taken: Turns, chosen: Sequence[str], arms: list[Arm], plan: Plan) -> None:
    """Takes the turns that were not taken yet.

    Errors:
        BenchmarkError: an arm ended, or took too long.
    """
    catalogue = Catalogue("called", programs.installed())
    take_missing(taken, dict.fromkeys(chosen, catalogue), arms, plan, instead={LOOP: MARKED})


def paper_ratios(turns: list[Turn]) -> dict[str, list[float]]:
    """Of the paper's program: CPU time of each arm over the bare one, by set of processes."""
    arms = dict.fromkeys(turn.arm for turn in turns if turn.program == PLAIN)
    return {arm: found for arm in arms if arm != BARE and (found := of_bare(turns, PLAIN, arm))}


def over_programs(turns: list[Turn], names: Sequence[str]) -> str:
    """CPU time over that of the bare arms in the same turn, and what it may be."""
    return f"{costs(turns, names, list(OURS))}\n--calls may take {MEDIAN} in the median and {WORST} at worst."
