"""Programs that measure themselves while a recording is on and off, and write down what they found."""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from harness.arms import Arm
from harness.errors import BenchmarkError
from harness.measure import PROGRAMS, RECORDING

PATIENCE_S = 60.0
"""Seconds that a program may take beyond those that it measures."""


def answers_of(arm: Arm, program: str, work: str, seconds: float) -> Any:
    """The JSON that a program of benchmarks/programs wrote, which was told its work, the seconds, and the file.

    Errors:
        BenchmarkError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        answers = folder / "answers.json"
        command = arm.command([str(PROGRAMS / program), work, str(seconds), str(answers)], folder / RECORDING)
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=seconds + PATIENCE_S
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise BenchmarkError(f"{arm.name}, {work}: status {done.returncode}: {lines[-1] if lines else 'silent'}")
        return json.loads(answers.read_text(encoding="utf-8"))
