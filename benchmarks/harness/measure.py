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
from harness.store import Row

_PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
_SOURCES = "files.parquet"
_RECORDING = "recording.tacho"
START_UP = "first line"
"""The name, among programs, of the one that does nothing but say when it started."""


@dataclass(frozen=True)
class Bench:
    """Where the programs are and how long one run may take."""

    site: Path
    benchmarks: Path
    timeout_s: float

    def calibrate(self, arm: Arm, program: str, seconds: float) -> int:
        """How many passes of a program take at least `seconds`."""
        loops = self._run(0, arm, program, ["--seconds", str(seconds)]).loops
        if not loops:
            raise BenchmarkError(f"{program} does not run bare within {self.timeout_s:g} s: nothing to compare with")
        return loops

    def program(self, round_number: int, arm: Arm, program: str, loops: int) -> Row:
        """Runs a program of the catalogue for a fixed number of passes."""
        return self._run(round_number, arm, program, ["--loops", str(loops)])

    def start_up(self, round_number: int, arm: Arm) -> Row:
        """Runs a program of one line, which notes the time at which it ran."""
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            answer = folder / "first-line"
            finished = self._start(arm, [str(_PROGRAMS / "first_line.py"), str(answer)], folder)
            first_ns = int(answer.read_text(encoding="utf-8"))
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
                recording_bytes=None,
                after_program_s=(finished.end_ns - first_ns) / 1e9,
                start_up_s=(first_ns - finished.start_ns) / 1e9,
            )

    def _run(self, round_number: int, arm: Arm, program: str, how_long: list[str]) -> Row:
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            folder = Path(name)
            report_file = folder / "report.json"
            script = [str(_PROGRAMS / "driver.py"), str(self.benchmarks), program, *how_long]
            finished = self._start(arm, [*script, "--report", str(report_file)], folder, patient=True)
            report = None
            if not finished.timed_out:
                report = json.loads(report_file.read_text(encoding="utf-8"))
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
                recording_bytes=_size(folder / _RECORDING),
                after_program_s=(finished.end_ns - report["end_ns"]) / 1e9 if report else None,
                start_up_s=None,
            )

    def _start(self, arm: Arm, program: list[str], folder: Path, *, patient: bool = False) -> process.Finished:
        environment = os.environ | {"PYTHONPATH": str(self.site), "PYTHONHASHSEED": "0"}
        command = arm.command(program, folder / _RECORDING)
        if shutil.which(command[0]) is None:
            raise BenchmarkError(f"arm {arm.name!r}: there is no command {command[0]}")
        finished = process.run(command, environment=environment, folder=folder, timeout_s=self.timeout_s)
        if finished.timed_out and patient:
            return finished  # a profiler under which a program never ends is a result
        if finished.status != 0:
            last_line = finished.stderr.splitlines()[-1] if finished.stderr else "it said nothing"
            raise BenchmarkError(f"arm {arm.name!r} ended with status {finished.status}: {last_line}")
        return finished


def _size(recording: Path) -> int | None:
    """Bytes that a profiler left behind, without the table that holds source texts; None if nothing."""
    if recording.is_dir():
        files = [file for file in recording.rglob("*") if file.is_file() and file.name != _SOURCES]
        return sum(file.stat().st_size for file in files)
    return recording.stat().st_size if recording.exists() else None
