"""What recording takes of a busy server's throughput: the same process recorded and paused in turn, under load.

    python benchmarks/requests_served.py                    # about five minutes
    python benchmarks/requests_served.py --seconds 3        # does it work?

Throughput is by the clock, and so are all that shares the machine; CPU time by request is of the server's process
alone, with the recorder's own thread, and says the same where the server is what limits. What it leaves out: what
merely being loaded costs (overhead.py has it).
"""

import json
from pathlib import Path
from typing import Any

import click

from harness.arms import RECORD, Arm
from harness.in_turn import middle
from harness.self_measured import answers_of
from harness.survey import ROOT, complaints

WORKS = ("tasks", "spans")
ARMS = {"cpu only": f"{RECORD} --no-children --cpu-only", "full": f"{RECORD} --no-children"}


@click.command()
@click.option("--seconds", type=click.FloatRange(min=1), default=30.0, show_default=True, help="Of each process.")
@click.option("--rounds", type=click.IntRange(min=1), default=2, show_default=True, help="Processes of each kind.")
@click.option(
    "--results", type=click.Path(path_type=Path, dir_okay=False), default=ROOT / "results" / "requests_served.json"
)
def main(seconds: float, rounds: int, results: Path) -> None:
    """What recording takes of a busy server's throughput."""
    with complaints("requests_served"):
        found: dict[str, Any] = {
            f"{work}, {arm}": {"throughput": [], "cpu": [], "rate": []} for work in WORKS for arm in ARMS
        }
        for _ in range(rounds):
            for work in WORKS:
                for name, template in ARMS.items():
                    answers = answers_of(Arm(name, template), "served_requests.py", work, seconds)
                    rows = found[f"{work}, {name}"]
                    rows["throughput"] += answers["throughput"]
                    rows["cpu"] += answers["cpu"]
                    rows["rate"].append(answers["rate"])
        results.parent.mkdir(parents=True, exist_ok=True)
        results.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """Recorded over paused: throughput, and CPU time by request, medians with 95 % intervals; and the paused rate."""
    heads = ("throughput", "CPU time by request", "requests by CPU second")
    lines = ["recorded, times paused".ljust(24) + "".join(head.rjust(26) for head in heads)]
    for name, rows in found.items():
        rate = f"{sum(rows['rate']) / len(rows['rate']):,.0f}"
        lines.append(
            name.ljust(24)
            + "".join(str(middle(rows[each])).rjust(26) for each in ("throughput", "cpu"))
            + rate.rjust(26)
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
