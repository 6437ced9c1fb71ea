"""One recording of one of the ten programs, to be looked at."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from harness import programs
from harness.arms import Arm
from harness.errors import BenchmarkError
from harness.interleave import progress
from harness.measure import PROGRAMS, RECORDING

Made = TypeVar("Made")


def over_programs(names: list[str], make: Callable[[str, Path], Made]) -> list[Made]:
    """What `make` makes of each program's name and the folder in which the programs' own packages are installed."""
    site = programs.installed()
    made = []
    with progress(len(names)) as show:
        for done, name in enumerate(names):
            show(done, name)
            made.append(make(name, site))
    return made


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
