"""One recording of one of the ten programs, to be looked at."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.arms import Arm
from harness.errors import BenchmarkError
from harness.measure import PROGRAMS, RECORDING


@contextmanager
def record_program(arm: Arm, program: str, site: Path, seconds: float) -> Iterator[Path]:
    """Runs a program of the suite for at least so many seconds; what the arm recorded, while the context lasts."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        script = [str(PROGRAMS / "passes.py"), "suite", program, "--seconds", str(seconds)]
        command = arm.command([*script, "--report", str(folder / "report.json")], folder / RECORDING)
        environment = os.environ | {"PYTHONPATH": str(site), "PYTHONHASHSEED": "0"}
        try:
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=30 + 10 * seconds)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            raise BenchmarkError(f"{program} could not be recorded: {error}") from None
        yield folder / RECORDING
