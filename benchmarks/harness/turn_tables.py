"""Ratios of arms that took turns, as a table."""

from collections.abc import Callable, Sequence

from harness.arms import BARE, BARE_AGAIN
from harness.in_turn import Interval, Turn, middle, middle_of_programs, ratios


def cpu(turn: Turn) -> float:
    """CPU time: what else runs on the machine makes a run longer, but this hardly."""
    return turn.cpu_s


def of_bare(turns: list[Turn], program: str, arm: str) -> list[float]:
    """CPU time of an arm over that of both bare arms, of the second over the first: by set of processes."""
    return ratios(turns, program, arm, [BARE] if arm == BARE_AGAIN else [BARE, BARE_AGAIN], cpu)


def by_program(
    turns: list[Turn], programs: Sequence[str], arms: Sequence[str], more: Callable[[str], str] | None = None
) -> list[str]:
    """CPU time over that of the bare arms, with intervals; the second of these over the first tells what chance does.

    `more` is what stands behind a program's row.
    """
    lines = []
    for program in programs:
        found = [of_bare(turns, program, arm) for arm in (BARE_AGAIN, *arms)]
        if all(found):
            text = "".join(f"{middle(values)!s:<25}" for values in found)
            lines.append((f"{program:<28}{text}" + (more(program) if more else "")).rstrip())
    return lines


def middle_and_worst(turns: list[Turn], programs: Sequence[str], arm: str) -> tuple[Interval, Interval, str] | None:
    """The median over programs and the slowest one, with its name; None if the arm took no turn."""
    found = {each: values for each in programs if (values := of_bare(turns, each, arm))}
    if not found:
        return None
    medians = {program: middle(values) for program, values in found.items()}
    slowest = max(medians, key=lambda program: medians[program].value)
    return middle_of_programs(found), medians[slowest], slowest


def costs(turns: list[Turn], programs: Sequence[str], arms: Sequence[str]) -> str:
    """A row for each program, then the median of programs and the worst one."""
    compared = [BARE_AGAIN, *arms]
    lines = [f"{'CPU time, bare = 1':<28}" + "".join(f"{arm:<25}" for arm in compared)]
    lines += by_program(turns, programs, arms)
    found = [each for arm in compared if (each := middle_and_worst(turns, programs, arm))]
    lines.append(f"{'median':<28}" + "".join(f"{median!s:<25}" for median, _, _ in found))
    lines.append(f"{'worst':<28}" + "".join(f"{worst!s:<25}" for _, worst, _ in found))
    return "\n".join(line.rstrip() for line in lines)
