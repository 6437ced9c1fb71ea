"""How the oracle runs a program, what it reads from the analysis, and how near the two must be.

The command is run as ``sys.executable -m tachograph`` in a folder outside the checkout, so that the tests see what is
installed for this interpreter. Nothing of tachograph is imported here.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from support.warm_command import run_alone, run_command

PROGRAMS = Path(__file__).parent / "programs"
NATIVE = Path(__file__).parent / "native"
LIBRARY_SOURCE = NATIVE / "burn.c"
ALLOCATIONS_SOURCE = NATIVE / "allocate.c"

POINT = 0.01
"""What a share may be wrong by, once there are enough samples (DESIGN.md): one percentage point."""
Z = 3.0
"""Standard deviations on each side of the statistical interval: 99.7 %, as a test run makes some 200 comparisons."""


def tolerance(share: float, samples: int) -> float:
    """How far a reported share may lie from the true ``share``, when it was found from ``samples`` samples.

    One percentage point, plus half the width of the score interval of a binomial share (Wilson 1927)::

        0.01 + z / (n + z^2) * sqrt(n * p * (1 - p) + z^2 / 4)        with z = 3

    The second term is what chance alone does; it goes to zero as the samples grow.
    """
    if samples <= 0:
        raise ValueError("a share of no samples has no interval")
    spread = Z / (samples + Z * Z) * math.sqrt(samples * share * (1 - share) + Z * Z / 4)
    return POINT + spread


def marked(program: Path, name: str) -> set[int]:
    """The numbers of the lines of ``program`` that carry the comment ``# @name``."""
    pattern = re.compile(rf"#\s*@{re.escape(name)}(?![\w-])")
    lines = program.read_text(encoding="utf-8").splitlines()
    found = {number for number, line in enumerate(lines, 1) if pattern.search(line)}
    if not found:
        raise LookupError(f"no line of {program.name} is marked @{name}")
    return found


@dataclass(frozen=True)
class Share:
    """Part of the CPU time, from the program's clocks or from the analysis."""

    part: float
    samples: int


@dataclass(frozen=True)
class Times:
    """Seconds by kind, added up over lines."""

    python_s: float = 0.0
    native_s: float = 0.0
    kernel_s: float = 0.0
    unknown_s: float = 0.0
    wait_s: float = 0.0
    samples: int = 0

    @property
    def cpu_s(self) -> float:
        return self.python_s + self.native_s + self.kernel_s + self.unknown_s

    @property
    def user_s(self) -> float:
        return self.python_s + self.native_s + self.unknown_s

    def __add__(self, other: "Times") -> "Times":
        return Times(
            self.python_s + other.python_s,
            self.native_s + other.native_s,
            self.kernel_s + other.kernel_s,
            self.unknown_s + other.unknown_s,
            self.wait_s + other.wait_s,
            self.samples + other.samples,
        )


def times(row: dict[str, Any]) -> Times:
    """The times of one object of the analysis (a line, a thread, the totals)."""
    python, native, kernel, unknown, wait = (
        float(row.get(name) or 0.0) for name in ("python_s", "native_s", "kernel_s", "unknown_s", "wait_s")
    )
    return Times(python, native, kernel, unknown, wait, int(row.get("samples") or 0))


@dataclass(frozen=True)
class Run:
    """One recorded run of a program: what its clocks said, and what the analysis says."""

    program: Path
    truth: dict[str, Any]
    report: dict[str, Any]
    recording: Path
    stderr: str = ""

    def line(self, *names: str) -> Times:
        """All that was reported for the lines marked with one of ``names``."""
        numbers = set[int]().union(*(marked(self.program, name) for name in names))
        return sum(
            (
                times(row)
                for row in self.report["lines"]
                if row["line"] in numbers and Path(row["file"] or "").name == self.program.name
            ),
            Times(),
        )

    def function(self, *names: str) -> Times:
        """All that was reported for the lines of the program's functions of these names."""
        return sum(
            (
                times(row)
                for row in self.report["lines"]
                if row["function"] in names and Path(row["file"] or "").name == self.program.name
            ),
            Times(),
        )

    @cached_property
    def totals(self) -> Times:
        return times(self.report["totals"])

    @cached_property
    def gap_s(self) -> float:
        """The longest CPU time between two samples of one thread in this recording.

        What a thread uses after its last sample is in no sample, and a sample stands for all since the one before it,
        also where the program has gone on to another line meanwhile: absolute times cannot agree better than this.
        The kernel fires CPU timers on its ticks, and later where the machine is busy.
        """
        weights: list[int] = pq.read_table(self.recording / "cpu.parquet", columns=["cpu_ns"])["cpu_ns"].to_pylist()
        return max(weights) / 1e9

    @cached_property
    def recorders_own_s(self) -> float:
        """CPU time that recording used in the process: in signal handlers and in threads of its own."""
        cost = json.loads((self.recording / "manifest.json").read_text("utf-8"))["sampler_cost"]
        return float(cost["handler_cpu_ns"] + cost["helper_cpu_ns"]) / 1e9

    @property
    def spent(self) -> dict[str, int]:
        return dict(self.truth["spent"])

    def true_share(self, names: Sequence[str], among: Iterable[str]) -> float:
        """The part that ``names`` have of the CPU time of ``among``, by the program's clocks."""
        return sum(self.spent[name] for name in names) / sum(self.spent[name] for name in among)

    def reported_share(self, names: Sequence[str], among: Iterable[str], *, by: str = "line") -> Share:
        """The part that ``names`` (of lines or functions) have of the CPU time of ``among``, by the analysis."""
        of = self.line if by == "line" else self.function
        whole = of(*among)
        assert whole.samples > 0, f"no sample of {self.program.name} was reported; stderr: {self.stderr!r}"
        return Share(of(*names).cpu_s / whole.cpu_s, whole.samples)

    def check_shares(self, *groups: str | tuple[str, ...], by: str = "line") -> None:
        """Assert that each group's share of all groups together agrees with the clocks, within :func:`tolerance`.

        ``by`` is ``"line"`` for the lines that are marked with a name, ``"function"`` for the function of that name.
        """
        sets = [group if isinstance(group, tuple) else (group,) for group in groups]
        among = [name for group in sets for name in group]
        wrong = []
        moments = self.moments()
        for group in sets:
            true, reported = self.true_share(group, among), self.reported_share(group, among, by=by)
            allowed = tolerance(true, min(reported.samples, moments))
            if abs(reported.part - true) > allowed:
                wrong.append(f"{'+'.join(group)}: {reported.part:.4f} for {true:.4f} ± {allowed:.4f}")
        assert not wrong, f"of {reported.samples} samples: " + "; ".join(wrong)

    def moments(self) -> int:
        """The number of moments at which samples were taken.

        The signal sampler charges all threads that execute with parts of one signal's time: that is one observation.
        """
        times: list[int] = pq.read_table(self.recording / "cpu.parquet", columns=["time_ns"])["time_ns"].to_pylist()
        return len(set(times))

    def loss(self, name: str) -> int:
        """How often the quality ledger says that ``name`` was lost."""
        return losses(self.report).get(name, 0)


def losses(report: dict[str, Any]) -> dict[str, int]:
    """The quality ledger's counts by name, over all processes."""
    counts: dict[str, int] = {}
    for entry in report["quality"]["losses"]:
        counts[entry["loss"]] = counts.get(entry["loss"], 0) + int(entry["count"])
    return counts


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what would turn a recording on, with ``changes``."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TACHOGRAPH_")}
    return {**kept, **changes}


def tachograph(
    *arguments: str | Path, cwd: Path, timeout: float = 120, env: dict[str, str] | None = None, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end, whatever its exit status.

    What records or reads a recording starts from imports that are made already, unless an environment is given.
    """
    run = run_command if env is None else run_alone
    return run(list(map(str, arguments)), cwd, environment() if env is None else env, timeout, stdin)


def analyze(recording: Path, *options: str, cwd: Path) -> dict[str, Any]:
    """The JSON object of ``tachograph analyze``."""
    done = tachograph("analyze", recording, "--json", "-", *options, cwd=cwd)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def record(
    folder: Path,
    program: str,
    *arguments: str,
    sampler: str = "native",
    interval: float = 5,
    options: Sequence[str] = (),
    timeout: float = 120,
) -> Run:
    """Record one of the oracle's programs into ``folder`` and analyse the recording."""
    path, truth, recording = PROGRAMS / program, folder / "truth.json", folder / "run.tacho"
    settings = ["-q", "-o", str(recording), "--interval", f"{interval:g}", "--sampler", sampler, *options]
    done = tachograph("record", *settings, path, truth, *arguments, cwd=folder, timeout=timeout)
    assert done.returncode == 0, f"{program} ended with {done.returncode}: {done.stderr}"
    return Run(
        path, json.loads(truth.read_text(encoding="utf-8")), analyze(recording, cwd=folder), recording, done.stderr
    )


def run_bare(folder: Path, program: str, *arguments: str, timeout: float = 120) -> dict[str, Any]:
    """Run one of the oracle's programs without any recorder; its truth."""
    truth = folder / "bare.json"
    command = [sys.executable, str(PROGRAMS / program), str(truth), *arguments]
    subprocess.run(command, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, check=True, timeout=timeout)
    document: dict[str, Any] = json.loads(truth.read_text(encoding="utf-8"))
    return document


def compile_library(source: Path, folder: Path, *flags: str) -> Path | None:
    """Build a C file as a shared library with the compiler that is there; None if there is none."""
    return _compiled(source, folder / f"{source.stem}.so", "-shared", "-fPIC", *flags)


def compile_program(source: Path, folder: Path, *flags: str) -> Path | None:
    """Build a C file as a program with the compiler that is there; None if there is none."""
    return _compiled(source, folder / source.stem, *flags)


def _compiled(source: Path, target: Path, *flags: str) -> Path | None:
    for compiler in (os.environ.get("CC"), "cc", "gcc", "clang", os.environ.get("CXX"), "c++", "g++"):
        if compiler and shutil.which(compiler.split()[0]):
            language = ["-x", "c++"] if "++" in compiler else []
            command = [*compiler.split(), "-O2", *flags, "-pthread", *language, str(source), "-o", str(target)]
            subprocess.run(command, check=True, timeout=120)
            return target
    return None


@cache
def native_recorder() -> bool:
    """Whether the native recorder is installed for this interpreter: asked of one, once."""
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('tachograph.recorder._native') is None)"
    return subprocess.run([sys.executable, "-c", code], cwd="/", check=False, timeout=60).returncode == 0
