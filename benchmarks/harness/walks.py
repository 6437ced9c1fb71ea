"""What the unwinder of native call paths takes for one walk, alone, timed in the library of the tests' judge.

The stack is Python that C called that Python called, a little less and a little more than `FRAMES` deep. *Warm* is one
walk after another; *cold* is each after 48 MB were written, which is more than the processor's caches hold.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.errors import BenchmarkError
from harness.measure import PROGRAMS

FRAMES = 20
TESTS = Path(__file__).resolve().parents[2] / "tests"
_BUILD = "import sys, pathlib; from native import building; building.judge(pathlib.Path(sys.argv[1]))"


@dataclass(frozen=True)
class Walk:
    """Walks over one stack."""

    caches: str
    """`warm` or `cold`."""
    frames: int
    middle_us: float
    fast_us: float
    """A tenth of the walks are at least so fast: on a busy machine others' work lengthens the rest."""
    walks: int


def walk_costs(folder: Path) -> list[Walk]:
    """Builds the unwinder with its judge into `folder` and times it, warm and cold.

    Errors:
        BenchmarkError: it cannot be built, or its walks end nowhere.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-c", _BUILD, str(folder)], TESTS)
    answer = _run([sys.executable, str(PROGRAMS / "walking.py"), str(folder / "judge.so"), str(FRAMES)], folder)
    return [Walk(**walk) for walk in json.loads(answer)]


def _run(command: list[str], where: Path) -> str:
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"the unwinder alone: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
    return done.stdout
