"""What a running recording costs: the same process recorded and paused in turn.

    python benchmarks/on_and_off.py                    # about twenty minutes
    python benchmarks/on_and_off.py --seconds 2        # does it work?

A program that is run twice differs from itself by some percent: where its objects lie, what else the machine does. In
one process, with turns of 40 ms, recorded and paused, both are the same, and some hundred comparisons tell a few parts
of a thousand. What it leaves out: start-up, the end, and what merely being loaded costs (overhead.py has them), and
programs whose libraries are not installed (numpy, pandas, scikit-learn).
"""

import json
from pathlib import Path
from typing import Any

import click

from harness.arms import RECORD, Arm
from harness.in_turn import middle
from harness.self_measured import answers_of
from harness.survey import ROOT, complaints
from programs.native_code import PROGRAMS as LIBRARIES
from programs.on_and_off import WORKS as LOOPS

WORKS = (*LOOPS, *LIBRARIES)
ARMS = {
    "cpu only": f"{RECORD} --cpu-only",
    "cpu only, no paths": f"{RECORD} --cpu-only --native-depth 0",
    "full": RECORD,
}
ROUNDS = 3


@click.command()
@click.option("--seconds", type=click.FloatRange(min=1), default=15.0, show_default=True, help="Of each process.")
@click.option(
    "--results", type=click.Path(path_type=Path, dir_okay=False), default=ROOT / "results" / "on_and_off.json"
)
def main(seconds: float, results: Path) -> None:
    """What a running recording costs."""
    with complaints("on_and_off"):
        found: dict[str, Any] = {name: {work: {"ratios": [], "own_ms_per_s": []} for work in WORKS} for name in ARMS}
        for _ in range(ROUNDS):
            for work in WORKS:
                for name, template in ARMS.items():
                    said = answers_of(Arm(name, template), "on_and_off.py", work, seconds)
                    found[name][work]["ratios"] += said["ratios"]
                    found[name][work]["own_ms_per_s"].append(said["own_ms_per_s"])
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """CPU time recorded over paused, medians with 95 % intervals, and the CPU time of the recorder's thread."""
    names = list(next(iter(found.values())))
    lines = ["recorded, times paused".ljust(24) + "".join(arm.rjust(26) for arm in found)]
    for name in names:
        cells = [str(middle(works[name]["ratios"])).rjust(26) for works in found.values()]
        lines.append(name.ljust(24) + "".join(cells))
    own = [max(max(works[name]["own_ms_per_s"]) for name in LOOPS) for works in found.values()]
    lines.append("its own thread".ljust(24) + "".join(f"{each:.1f} ms per s".rjust(26) for each in own))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
