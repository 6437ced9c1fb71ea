"""Measures one row: a program in an arm."""

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.arms import Arm
from harness.errors import BenchmarkError
from harness.store import ENDED, NEVER_ENDED, Row

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
_SOURCES = "files.parquet"
RECORDING = "recording.tacho"
"""What a profiler is told to write, in the folder in which it runs."""
START_UP = "first line"
"""The name, among programs, of the one that does nothing but say when it started."""


@dataclass(frozen=True)
class Bench:
    """Which catalogue of programs is run, with what on PYTHONPATH (or nothing), and how long one run may take.

    A brief arm may take half of that, for a third of the passes.
    """

    catalogue: str
    site: Path | None
    timeout_s: float

    def calibrate(self, arm: Arm, program: str, seconds: float) -> int:
        """How many passes of a program take at least `seconds`."""
        loops = self._run(0, arm, program, ["--seconds", str(seconds)]).loops
        if not loops:
            raise BenchmarkError(f"{program} does not run bare within {self.timeout_s:g} s: nothing to compare with")
        return loops

    def program(self, round_number: int, arm: Arm, program: str, loops: int) -> Row:
        """Runs a program of the catalogue for a fixed number of passes."""
        return self._run(round_number, arm, program, ["--loops", str(loops), *(["--no-warm-up"] if arm.brief else [])])

    def start_up(self, round_number: int, arm: Arm) -> Row:
        """Runs a program of one line, which notes the time at which it ran."""
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            answer = folder / "first-line"
            program = [str(PROGRAMS / "first_line.py"), str(answer)]
            finished, outcome, _ = start(arm, program, folder, self.site, self.timeout_s)
            first_ns = int(answer.read_text(encoding="utf-8")) if answer.exists() else None
            return Row(
                round=round_number,
                program=START_UP,
                arm=arm.name,
                loops=1,
                in_program_s=None,
                in_program_cpu_s=None,
                whole_s=finished.elapsed_s,
                whole_cpu_s=finished.cpu_s,
                peak_rss_bytes=finished.peak_rss_bytes,
                program_peak_bytes=None,
                recording_bytes=None,
                after_program_s=(finished.end_ns - first_ns) / 1e9 if first_ns else None,
                start_up_s=(first_ns - finished.start_ns) / 1e9 if first_ns else None,
                outcome=outcome,
            )

    def _run(self, round_number: int, arm: Arm, program: str, how_long: list[str]) -> Row:
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            report_file = folder / "report.json"
            script = [str(PROGRAMS / "passes.py"), self.catalogue, program, *how_long]
            program_line = [*script, "--report", str(report_file)]
            bound_s = self.timeout_s / 2 if arm.brief else self.timeout_s
            finished, outcome, run = start(arm, program_line, folder, self.site, bound_s)
            report = None
            if outcome == ENDED and report_file.exists():
                report = json.loads(report_file.read_text(encoding="utf-8"))
            elif outcome == ENDED:
                outcome = _failed(arm, "status 0, but the program's work was not done")
            return Row(
                round=round_number,
                program=program,
                arm=arm.name,
                loops=report["loops"] if report else 0,
                in_program_s=report["elapsed_s"] if report else None,
                in_program_cpu_s=report["cpu_s"] if report else None,
                whole_s=finished.elapsed_s,
                whole_cpu_s=finished.cpu_s,
                peak_rss_bytes=finished.peak_rss_bytes,
                program_peak_bytes=report["peak_rss_bytes"] if report else None,
                recording_bytes=_left_behind(run),
                after_program_s=(finished.end_ns - report["end_ns"]) / 1e9 if report else None,
                start_up_s=None,
                outcome=outcome,
            )


def start(
    arm: Arm, program: list[str], folder: Path, site: Path | None, timeout_s: float
) -> tuple[process.Finished, str, Path]:
    """Runs the arm's command in a new folder below `folder`; how it went, as a row says it, and that folder."""
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    where = folder / "run"
    where.mkdir()
    command = arm.command(program, where / RECORDING)
    if shutil.which(command[0]) is None:
        raise BenchmarkError(f"arm {arm.name!r}: there is no command {command[0]}")
    finished = process.run(command, environment, where, folder / "stderr.txt", timeout_s)
    if finished.timed_out:
        return finished, NEVER_ENDED, where  # a profiler under which a program never ends is a result
    if finished.status == 0:
        return finished, ENDED, where
    last_line = finished.stderr.splitlines()[-1] if finished.stderr else "it said nothing"
    return finished, _failed(arm, f"status {finished.status}: {last_line}"), where


def _failed(arm: Arm, outcome: str) -> str:
    """The outcome of a peer; an arm of ours must not fail."""
    if not arm.peer:
        raise BenchmarkError(f"arm {arm.name!r} failed: {outcome}")
    return outcome


def _left_behind(folder: Path) -> int | None:
    """Bytes in the folder, without the table that holds source texts; None if there is nothing."""
    files = [file for file in folder.rglob("*") if file.is_file() and file.name != _SOURCES]
    return sum(file.stat().st_size for file in files) if files else None


def size_of(recording: Path) -> int | None:
    """Bytes of a recording, be it a file or a folder, without the table that holds source texts."""
    return recording.stat().st_size if recording.is_file() else _left_behind(recording)
