"""Building the package and installing it into environments of its own."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_NATIVE = ("--config-settings", "cmake.define.TACHOGRAPH_NATIVE=OFF")


def run(*command: str | Path, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command, bare of our PYTHONPATH, that must end with `status`."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=bare, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def pip(*arguments: str | Path, cwd: Path, python: Path = Path(sys.executable)) -> None:
    """Runs our pip for the environment of `python`."""
    options = ["--disable-pip-version-check", "install", "--no-deps", "--ignore-installed"]
    run(sys.executable, "-m", "pip", "--python", python, *options, *arguments, cwd=cwd)


def environment(folder: Path) -> Path:
    """A virtual environment that finds our dependencies, but has its own tachograph; its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    dependencies = folder / "lib" / version / "site-packages" / "dependencies.pth"
    dependencies.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin"
