"""What native call paths cost, beside the profilers that have them: py-spy --native, memray --native, austinp.

    python benchmarks/native_paths.py                  # five rounds, about fifteen minutes
    python benchmarks/native_paths.py --short          # two rounds, at most ten minutes
    python benchmarks/native_paths.py --quick          # one short round: does it work?

Bare, bare again (the noise floor), recorded with call paths and without (`--native-depth 0`), without memory and in
full, and the peers with native frames: interleaved as in `overhead.py`. The programs are in programs/native_code.py;
they need numpy, pandas and scikit-learn beside tachograph. Then each program is recorded once more, for what only the
recording tells: the time of a sample in the handler, frames of a path, how paths were got, and bytes of the log. First
of all the unwinder alone is timed on a stack of about 20 frames, with its rules and the stack in the processor's caches
and out of them (harness/walks.py; it needs a C++ compiler).

`perf` sees no Python frames without the interpreter's trampolines, and its stacks are copies of the stack's top, which
are unwound later; what it costs is the time of copying them.
"""

import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.arms import RECORD, Arm, beside_bare
from harness.comparison import options, pick, show, store_of
from harness.errors import BenchmarkError
from harness.interleave import Plan, measure
from harness.measure import PROGRAMS as SCRIPTS
from harness.measure import Bench, size_of
from harness.peers import native_arms
from harness.survey import ENVIRONMENTS
from harness.walks import Walk, walk_costs
from programs.native_code import PROGRAMS

PEERS = "py-spy,memray,austin,perf"
WITH, WITHOUT = "cpu only", "cpu only, no paths"
OURS = {
    WITH: f"{RECORD} --cpu-only",
    WITHOUT: f"{RECORD} --cpu-only --native-depth 0",
    "full": RECORD,
    "full, no paths": f"{RECORD} --native-depth 0",
}
PATHS = ("unrecorded", "whole", "guessed", "truncated", "torn")
LEAST_KNOWN = 0.9
"""The part of its samples that has native call paths, however cut, in a recording with them."""


@dataclass(frozen=True)
class Taken:
    """What one recording tells of its samples."""

    samples: int
    handler_us: float
    """CPU time of a sample in the handler, in the mean."""
    frames: float
    """Native frames of a path, in the mean."""
    paths: dict[str, float]
    """Share of the samples by how their paths were got."""
    bytes: int
    """Of the recording, without source texts."""


@dataclass(frozen=True)
class Length:
    """How long everything takes part."""

    rounds: int
    peer_rounds: int | None
    seconds: float
    """Least time of a bare run."""
    recorded_s: float
    """Of the recordings that tell of their samples."""
    timeout: float


@click.command()
@click.option("--short", is_flag=True, help="Two rounds, the peers in one of them: at most ten minutes.")
@options("native_paths", rounds=5)
def main(
    short: bool,
    rounds: int,
    names: str | None,
    seconds: float,
    quick: bool,
    others: tuple[str, ...],
    peers: str,
    peer_rounds: int | None,
    timeout: float,
    results: Path | None,
    fresh: bool,
) -> None:
    """What native call paths cost, beside other profilers that have them."""
    try:
        if others:
            raise BenchmarkError("--arm: the arms of this benchmark are fixed")
        length = Length(rounds, peer_rounds, seconds, 10.0, timeout)
        if quick:
            length = Length(1, None, 0.2, 0.5, timeout)
        elif short:
            length = Length(2, 1, 2.0, 3.0, 40.0)
        begin, load = datetime.now(UTC), os.getloadavg()[0]
        store = store_of("native_paths", results, quick=quick, fresh=fresh)
        walks = walk_costs(store.folder)
        chosen = pick(names, list(PROGRAMS))
        compared = beside_bare(OURS) + native_arms(peers or PEERS, ENVIRONMENTS)
        plan = Plan(chosen, compared, length.rounds, length.seconds, peer_rounds=length.peer_rounds)
        # The peers' environments have none of the libraries that the programs need; they are of our Python.
        measure(plan, Bench("native_code", Path(sysconfig.get_path("purelib")), length.timeout), store)
        taken = {name: {arm: asdict(samples_of(name, arm, length.recorded_s)) for arm in (WITH, WITHOUT)}
                 for name in chosen}  # fmt: skip
        (store.folder / "samples.json").write_text(json.dumps(taken, indent=1) + "\n", encoding="utf-8")
        print(busy(begin, load) + "\n")
        print(walked(walks) + "\n")
        print(table(taken) + "\n")
        show(plan, store)
    except BenchmarkError as error:
        print(f"native_paths: {error}", file=sys.stderr)
        sys.exit(2)


def samples_of(program: str, arm: str, seconds: float) -> Taken:
    """Records a program for so many seconds; what the recording tells of its samples."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        recording = Path(name) / "recording.tacho"
        script = [str(SCRIPTS / "passes.py"), "native_code", program, "--seconds", str(seconds)]
        command = Arm(arm, OURS[arm]).command([*script, "--report", str(Path(name) / "report.json")], recording)
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise BenchmarkError(f"{program}: recording failed: {done.stderr[-200:]}")
        cost = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["sampler_cost"]
        samples = sum(each["samples"] for each in cost["processes"])
        cpu = pq.read_table(recording / "cpu.parquet", columns=["native_stack", "native_path"])
        states = [0 if value is None else value for value in cpu.column("native_path").to_pylist()]
        taken = Taken(
            samples,
            cost["handler_cpu_ns"] / max(samples, 1) / 1e3,
            _mean_depth(recording, cpu),
            {state: states.count(number) / max(len(states), 1) for number, state in enumerate(PATHS)},
            size_of(recording) or 0,
        )
    check(program, arm, taken)
    return taken


def check(program: str, arm: str, taken: Taken) -> None:
    """An arm is what its name says.

    Errors:
        BenchmarkError: it has no samples, or paths where none were asked for, or hardly any where they were.
    """
    known = 1.0 - taken.paths[PATHS[0]]
    wrong = known > 0 if arm == WITHOUT else known < LEAST_KNOWN
    if taken.samples == 0 or wrong:
        raise BenchmarkError(f"{program}, {arm}: {known:.0%} of {taken.samples} samples have native call paths")


def _mean_depth(recording: Path, cpu: Any) -> float:
    """Frames of the paths, with the one that was interrupted."""
    if not (recording / "native_stacks.parquet").exists():
        return 0.0
    depth: list[int] = []
    for parent in pq.read_table(recording / "native_stacks.parquet").column("parent").to_pylist():
        depth.append(1 if parent is None else depth[parent] + 1)
    known = pc.drop_null(cpu.column("native_stack")).to_pylist()
    return statistics.fmean(depth[row] + 1 for row in known) if known else 0.0


def busy(begin: datetime, load: float) -> str:
    """When this was measured, and what else the machine did."""
    loads = f"{load:.1f} at the beginning and {os.getloadavg()[0]:.1f} at the end"
    return f"Measured on {begin:%Y-%m-%d %H:%M} UTC; load average {loads}, on {os.cpu_count()} processors."


def walked(walks: list[Walk]) -> str:
    """The unwinder alone."""
    lines = [f"{'a walk, alone':<18}{'frames':>9}{'middle':>13}{'fastest tenth':>16}{'walks':>9}"]
    lines += [
        f"{walk.caches:<18}{walk.frames:>9}{walk.middle_us:>10.1f} us{walk.fast_us:>13.1f} us{walk.walks:>9}"
        for walk in walks
    ]
    return "\n".join(lines)


def table(taken: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The samples of each program, with and without call paths."""
    lines = [
        f"{'':<18}{'samples':>9}{'handler':>10}{'without':>10}{'frames':>8}{'whole':>8}{'guessed':>9}"
        f"{'log':>10}{'without':>10}"
    ]
    for program, arms in taken.items():
        paths, plain = arms[WITH], arms[WITHOUT]
        lines.append(
            f"{program:<18}{paths['samples']:>9}{paths['handler_us']:>7.1f} us{plain['handler_us']:>7.1f} us"
            f"{paths['frames']:>8.1f}{paths['paths']['whole']:>8.1%}{paths['paths']['guessed']:>9.1%}"
            f"{paths['bytes'] / 1024:>6.0f} KiB{plain['bytes'] / 1024:>6.0f} KiB"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
