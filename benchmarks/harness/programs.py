"""Installs the pyperformance programs, and what they need, into a folder of the benchmark's own.

A folder and not a virtual environment: bare and recorded runs must use the very same interpreter, and the recorder is
installed in ours. The folder is put on PYTHONPATH of both arms.
"""

import platform
import subprocess
import sys
from pathlib import Path

from harness.errors import BenchmarkError
from harness.survey import ROOT

_BENCHMARKS = Path("pyperformance", "data-files", "benchmarks")
_NEED_PACKAGES = ("bm_docutils", "bm_sympy")


def installed() -> Path:
    """The folder that has them for this interpreter, made if needed: once, a minute."""
    folder = ROOT / "build" / "benchmarks" / f"pyperformance-{platform.python_version()}"
    benchmarks = folder / _BENCHMARKS
    done = folder / ".complete"
    if not done.exists():
        _pip(folder, "--no-deps", "pyperformance")
        # The versions that pyperformance itself pins, so that a program is the same on every machine and for years.
        requirements = [f"--requirement={benchmarks / name / 'requirements.txt'}" for name in _NEED_PACKAGES]
        _pip(folder, *requirements)
        done.touch()
    return folder


def _pip(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-qq", "--target", str(folder)]
    try:
        subprocess.run([*command, *arguments], check=True)
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(f"pip could not install {' '.join(arguments)} (exit status {error.returncode})") from None
