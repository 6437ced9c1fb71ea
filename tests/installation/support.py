"""Building the package and installing it into environments of its own."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_NATIVE = ("--config-settings", "cmake.define.TACHOGRAPH_NATIVE=OFF")


def run(*command: str | Path, cwd: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command that must end with `status`."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
    return done


def pip(*arguments: str | Path, cwd: Path, python: Path = Path(sys.executable)) -> None:
    """Runs our pip for an environment."""
    command = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--no-deps"]
    run(*command, *arguments, cwd=cwd)


def environment(folder: Path) -> Path:
    """A virtual environment that finds our dependencies, but has its own tachograph; its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    dependencies = folder / "lib" / version / "site-packages" / "dependencies.pth"
    dependencies.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin"
