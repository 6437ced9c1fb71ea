"""The machine and the versions that a page of results is of."""

import os
import platform
from pathlib import Path


def cpu_model(info: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name, or its architecture where the system does not tell."""
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def memory_gb(info: Path = Path("/proc/meminfo")) -> float | None:
    """Memory in 10^9 bytes; None where the system does not tell."""
    lines = info.read_text(encoding="ascii", errors="replace").splitlines() if info.exists() else []
    sizes = [int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("MemTotal:")]
    return sizes[0] if sizes else None


def machine() -> str:
    """One line for the page."""
    memory = memory_gb()
    parts = [
        f"{os.cpu_count()} processors ({cpu_model()})",
        *([f"{memory:.0f} GB of memory"] if memory is not None else []),
        f"{platform.system()} {platform.release().partition('-')[0]}",
        f"CPython {platform.python_version()}",
    ]
    return ", ".join(parts)
