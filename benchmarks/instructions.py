"""Where recording's instructions go: callgrind counts those of a loop, bare and recorded, function by function.

    python benchmarks/instructions.py                          # four loops, about four minutes
    python benchmarks/instructions.py --loops 'json.loads'     # one of them

Instruction counts are the same in every run, unlike times. What they do not show is what an instruction costs: cache
misses, locked instructions and system calls weigh more. valgrind runs the program some fifty times slower and its CPU
timer with it, so the CPU sampler is set to its longest interval and the wait sampler sees next to nothing: the table is
about memory's hooks. The program is run twice, the second time with more passes: the difference is free of start-up.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

from harness.callgrind import Function, own_instructions, per_pass
from harness.errors import BenchmarkError
from harness.interleave import progress
from harness.measure import PROGRAMS as FOLDER
from programs.loops import PROGRAMS
from tachograph.recorder.command.launch import Settings
from tachograph.recorder.command.options import Options
from tachograph.recorder.command.support import preload_library

ROOT = Path(__file__).resolve().parent.parent
DEFAULT = "list.insert(0, x),dict inserts,json.loads,copies of 1 KB"
PASSES = 2
"""Further passes of the second run."""
ARMS: dict[str, bool | None] = {"bare": None, "cpu only": False, "full": True}
"""Name -> whether memory is recorded; None: nothing is."""
INTERVAL_MS = 1000
SEGMENT = 1 << 20


@dataclass(frozen=True)
class Count:
    """The instructions of one pass of a loop in each arm."""

    loop: str
    functions: dict[str, dict[Function, float]]

    def total(self, arm: str) -> float:
        """Instructions of the whole pass."""
        return sum(self.functions[arm].values())

    def added(self, arm: str) -> list[tuple[Function, float]]:
        """What each function takes more in `arm` than in the bare run, most first."""
        mine, bare = self.functions[arm], self.functions["bare"]
        more = {function: mine.get(function, 0.0) - bare.get(function, 0.0) for function in mine.keys() | bare.keys()}
        return sorted(more.items(), key=lambda item: (-abs(item[1]), item[0]))


@click.command()
@click.option(
    "--loops", default=DEFAULT, show_default=True, help=f"Separated by commas; there are {', '.join(PROGRAMS)}."
)
@click.option("--top", default=12, show_default=True, help="Functions to show of each loop.")
@click.option("--timeout", type=float, default=300.0, show_default=True, help="Seconds after which a run is given up.")
@click.option("--results", type=click.Path(path_type=Path, dir_okay=False), help="Default: results/instructions.json.")
def main(loops: str, top: int, timeout: float, results: Path | None) -> None:
    """Where recording's instructions go."""
    try:
        counts = _count(_chosen(loops), timeout)
    except BenchmarkError as error:
        print(f"instructions: {error}", file=sys.stderr)
        sys.exit(2)
    for count in counts:
        print(_table(count, top))
    target = results or ROOT / "results" / "instructions.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps([_plain(count) for count in counts], indent=1) + "\n", encoding="utf-8")


def _chosen(text: str) -> list[str]:
    # One of the names has a comma in it.
    names = [name for name in PROGRAMS if name in text]
    rest = text
    for name in names:
        rest = rest.replace(name, "")
    if not names or rest.strip(" ,"):
        raise BenchmarkError(f"--loops: there is no loop {rest.strip(' ,')!r}; there are {', '.join(PROGRAMS)}")
    return names


def _count(loops: list[str], timeout: float) -> list[Count]:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise BenchmarkError("there is no valgrind: install it")
    steps = [(loop, arm) for loop in loops for arm in ARMS]
    found: dict[str, dict[str, dict[Function, float]]] = {loop: {} for loop in loops}
    with progress(len(steps)) as show:
        for done, (loop, arm) in enumerate(steps):
            show(done, f"{loop}, {arm}")
            few, many = (_run(valgrind, loop, ARMS[arm], passes, timeout) for passes in (1, 1 + PASSES))
            found[loop][arm] = per_pass(few, many, PASSES)
    return [Count(loop, found[loop]) for loop in loops]


def _run(valgrind: str, loop: str, memory: bool | None, passes: int, timeout: float) -> Counter[Function]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        if memory is not None:
            spool = folder / "spool"
            spool.mkdir()
            options = Options(interval_ms=INTERVAL_MS, memory=memory)
            settings = Settings(
                str(spool),
                {"waits": True, "segment": SEGMENT, **options.as_settings("setting")},
                preload_library(allocations=memory),
            )
            environment = settings.environment(environment)
        out = folder / "callgrind.out"
        command = [valgrind, "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}", sys.executable]
        command += [
            str(FOLDER / "passes.py"),
            "loops",
            loop,
            "--loops",
            str(passes),
            "--report",
            str(folder / "report"),
        ]
        try:
            subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            raise BenchmarkError(f"{loop} did not end within {timeout:g} s under callgrind") from None
        except subprocess.CalledProcessError as error:
            last = error.stderr.strip().splitlines()[-1:] or ["it said nothing"]
            raise BenchmarkError(f"{loop} ended with status {error.returncode} under callgrind: {last[0]}") from None
        if memory is not None and not any(spool.glob("*.seg")):
            raise BenchmarkError(f"{loop} was not recorded under callgrind")
        with out.open(encoding="utf-8", errors="replace") as lines:
            return own_instructions(line.rstrip("\n") for line in lines)


def _table(count: Count, top: int) -> str:
    bare = count.total("bare")
    lines = [f"{count.loop}: {bare / 1e6:.1f} million instructions a pass, bare"]
    for arm in [name for name in ARMS if name != "bare"]:
        lines.append(f"  {arm}: {count.total(arm) / bare:.3f} times bare; of what is added,")
        added = count.added(arm)
        whole = count.total(arm) - bare
        for function, value in added[:top]:
            if abs(value) >= 0.0005 * bare:
                lines.append(
                    f"    {value / bare:+8.3f}  {value / whole:6.1%}  {function.library}  {function.name[:90]}"
                )
    return "\n".join([*lines, ""])


def _plain(count: Count) -> dict[str, object]:
    return {
        "loop": count.loop,
        "instructions": {arm: count.total(arm) for arm in ARMS},
        "added": {
            arm: [[function.library, function.name, value] for function, value in count.added(arm)[:50]]
            for arm in ARMS
            if arm != "bare"
        },
    }


if __name__ == "__main__":
    main()
