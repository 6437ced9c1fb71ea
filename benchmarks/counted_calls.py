"""Numbers of calls that `--calls` reports, beside those that programs have counted themselves.

    python benchmarks/counted_calls.py                                    # once each: five minutes on a quiet machine
    python benchmarks/counted_calls.py --runs 5 --programs threads,pool   # some of them, several times
    python benchmarks/counted_calls.py --peers cprofile,yappi,viztracer   # and what profilers say that trace all calls
    python benchmarks/counted_calls.py --page                             # the section alone, from the last results

The programs are those of tests/oracle/programs/calls, and any others that write their numbers where TRUTH says:
`--programs` takes paths as well. A function counts if it was called at least 20 times.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from harness.arms import BARE, RECORD, Arm
from harness.errors import BenchmarkError
from harness.ours import analysis
from harness.peers import installed
from harness.survey import ENVIRONMENTS, ROOT
from page.one_section import put_section
from page.sections import COUNTED_CALLS

FOLDER = ROOT / "tests" / "oracle" / "programs" / "calls"
NO_PROGRAM = "counts"
"""The module that the programs count with."""
LEAST = 20
OURS = "--calls"
BOUND_S = 600
Reader = Callable[[Path, Path], Mapping[str, Any]]


@dataclass(frozen=True)
class Told:
    """A profiler's number of a function's calls, with its interval; None is unknown."""

    calls: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Row:
    """A function of one run: what is true and what was told."""

    arm: str
    program: str
    run: int
    function: str
    truth: int
    told: Told

    @property
    def inside(self) -> bool | None:
        """Whether the interval holds the truth; None where an end is not known."""
        if self.told.low is None or self.told.high is None:
            return None
        return self.told.low <= self.truth <= self.told.high

    @property
    def half_width(self) -> float | None:
        """As a part of the truth."""
        if self.told.low is None or self.told.high is None:
            return None
        return (self.told.high - self.told.low) / 2 / self.truth

    @property
    def error(self) -> float | None:
        """The signed error, as a part of the truth."""
        return None if self.told.calls is None else self.told.calls / self.truth - 1


@click.command()
@click.option("--programs", help="Comma-separated names or paths; all of the oracle's, if not given.")
@click.option("--runs", type=int, default=1, show_default=True)
@click.option("--peers", default="", help="Comma-separated profilers that trace every call.")
@click.option("--results", type=click.Path(path_type=Path), default=ROOT / "results" / "counted_calls")
@click.option("--page", "page_alone", is_flag=True, help="Measure nothing; write the section from the results.")
def main(programs: str | None, runs: int, peers: str, results: Path, page_alone: bool) -> None:
    """Numbers of calls, beside those that programs have counted themselves."""
    try:
        if page_alone:
            print(put_section(COUNTED_CALLS, results, ROOT / "docs"))
            return
        results.mkdir(parents=True, exist_ok=True)
        arms: list[tuple[Arm, Reader | None]] = [(Arm(BARE, "{python}"), None)]
        arms.append((Arm(OURS, f"{RECORD} --calls"), ours))
        for peer, python in installed(peers, ENVIRONMENTS):
            if peer.calls is not None:
                arms += [(peer.arm(name, python), peer.calls) for name in peer.arms]
        rows, cpu = measure(list(chosen(programs)), runs, arms)
    except BenchmarkError as error:
        print(f"counted calls: {error}", file=sys.stderr)
        sys.exit(2)
    (results / "functions.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    text = table(rows, cpu)
    (results / "table.txt").write_text(text + "\n", encoding="utf-8")
    print(text)


def chosen(text: str | None) -> Iterable[Path]:
    """The programs of that text."""
    if text is None:
        yield from (path for path in sorted(FOLDER.glob("*.py")) if path.stem != NO_PROGRAM)
        return
    for name in text.split(","):
        path = Path(name) if name.endswith(".py") else FOLDER / f"{name}.py"
        if not path.exists():
            raise BenchmarkError(f"there is no program {name}")
        yield path


def ours(recording: Path, program: Path) -> dict[str, Told]:
    """Numbers and intervals of the program's own functions."""
    return {
        row["function"].split(".")[-1]: Told(row["calls"], row["calls_low"], row["calls_high"])
        for row in analysis(recording, "--scope", "all")["functions"]
        if row["file"] and Path(row["file"]).name == program.name
    }


def measure(
    programs: list[Path], runs: int, arms: list[tuple[Arm, Reader | None]]
) -> tuple[list[Row], dict[str, list[float]]]:
    """Rows of all arms but the bare one, and the CPU time of each run over that of the bare run before it."""
    rows: list[Row] = []
    cpu: dict[str, list[float]] = {}
    for program in programs:
        for run in range(runs):
            bare = math.nan
            for arm, read in arms:
                with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                    truth = run_once(arm, program, Path(folder))
                    if read is None:
                        bare = truth["cpu"]
                        continue
                    cpu.setdefault(arm.name, []).append(truth["cpu"] / bare)
                    told = {} if truth["failed"] else read(Path(folder) / "recording", program)
                for function, calls in truth["n"].items():
                    if calls >= LEAST:
                        rows.append(Row(arm.name, program.stem, run, function, calls, as_told(told.get(function))))
            print(f"{program.stem}, run {run + 1} of {runs}", file=sys.stderr, flush=True)
    return rows, cpu


def as_told(value: Any) -> Told:
    """A number without an interval is meant to be exact; one that is missing says nothing."""
    if isinstance(value, Told):
        return value
    return Told(None, None, None) if value is None else Told(value, value, value)


def run_once(arm: Arm, program: Path, folder: Path) -> dict[str, Any]:
    """What the program has counted; `failed` if a peer did not come to its end."""
    counted = folder / "truth"
    command = arm.command([str(program)], folder / "recording")
    environment = {**os.environ, "TRUTH": str(counted)}
    try:
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=BOUND_S)
        failed = done.returncode != 0
    except subprocess.TimeoutExpired:
        failed = True
    if not counted.exists() or (failed and not arm.peer):
        raise BenchmarkError(f"{program.stem} did not end under {arm.name}")
    return {**json.loads(counted.read_text(encoding="utf-8")), "failed": failed}


def table(rows: list[Row], cpu: dict[str, list[float]]) -> str:
    """A line for each arm; then, in detail, each program and each function of ours."""
    lines = [
        f"{'':<12}{'functions':>10}{'inside':>9}{'told':>8}{'half width':>12}{'error':>9}{'bias':>9}{'CPU':>8}",
    ]
    for arm, ratios in cpu.items():
        mine = [row for row in rows if row.arm == arm]
        lines.append(f"{arm:<12}" + figures(mine) + f"{statistics.median(ratios):>8.2f}")
    own = [row for row in rows if row.arm == OURS]
    lines += [
        "",
        "",
        f"{'program':<12}{'functions':>10}{'inside':>9}{'told':>8}{'half width':>12}{'error':>9}{'bias':>9}",
    ]
    lines += [
        f"{name:<12}" + figures([row for row in own if row.program == name])
        for name in dict.fromkeys(row.program for row in own)
    ]
    lines += ["", "", f"{'program':<12}{'function':<14}{'true':>12}{'told':>12}{'from':>12}{'to':>12}"]
    for row in own:
        numbers = (row.told.calls, row.told.low, row.told.high)
        shown = "".join(f"{'-' if each is None else f'{each:.0f}':>12}" for each in numbers)
        lines.append(f"{row.program:<12}{row.function:<14}{row.truth:>12}{shown}")
    return "\n".join(lines)


def figures(rows: list[Row]) -> str:
    """Medians of some rows, and how many hold the truth."""
    widths = [row.half_width for row in rows if row.half_width is not None]
    errors = [row.error for row in rows if row.error is not None]
    inside = [row.inside for row in rows if row.inside is not None]
    held = f"{sum(inside) / len(inside):.0%}" if inside else "-"
    told = len(errors) / len(rows)
    middle = [
        f"{statistics.median(values):.1%}" if values else "-" for values in (widths, [abs(each) for each in errors])
    ]
    bias = f"{statistics.median(errors):+.1%}" if errors else "-"
    return f"{len(rows):>10}{held:>9}{told:>8.0%}{middle[0]:>12}{middle[1]:>9}{bias:>9}"


if __name__ == "__main__":
    main()
