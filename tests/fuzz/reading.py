"""Reads hostile recordings in a process of its own, and fails where it did what it must not."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
VECTORS = HERE.parent.parent / "format-spec" / "vectors"
SECONDS_A_CASE, GIGABYTES = 120, 6


def read_hostile(folder: Path, first: int, count: int, timeout: float) -> dict[str, int]:
    """Read so many hostile recordings in a process of its own; its last words, after none of the cases failed."""
    arguments = [str(value) for value in (folder, first, count, SECONDS_A_CASE, GIGABYTES, VECTORS)]
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.worker", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE.parent), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    where = (folder / "current").read_text(encoding="ascii") if (folder / "current").exists() else "none"
    assert done.returncode == 0, f"case {where}: status {done.returncode}\n{done.stderr[-3000:]}"
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    faults = [line for line in lines if "fault" in line]
    assert not faults, "\n".join(f"case {line['case']}: {line['command']}: {line['fault']}" for line in faults[:10])
    return dict(lines[-1])
