"""Scalene: CPU, memory and copies by line; the tool of the papers."""

import json
from pathlib import Path
from typing import Any

from harness.peers import Peer, Shares


def functions(recording: Path, _: Path) -> Shares:
    """Scalene charges a function what its own lines took, Python, native and system together."""
    profile = _profile(recording)
    shares: Shares = {}
    for file in profile["files"].values():
        for function in file["functions"]:
            parts = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
            shares[function["line"]] = shares.get(function["line"], 0.0) + sum(function[part] for part in parts)
    return shares


def peak_bytes(recording: Path, _: Path) -> int:
    """The highest footprint that it saw."""
    # Absent where nothing was ever large enough to be sampled.
    megabytes: float = _profile(recording).get("max_footprint_mb", 0.0)
    return round(megabytes * 2**20)


def _profile(recording: Path) -> Any:
    return json.loads(recording.with_suffix(".json").read_text(encoding="utf-8"))  # it chooses the suffix itself


PEER = Peer(
    package="scalene",
    arms={
        "scalene": "{bin}/scalene run -o {recording} {script} --- {arguments}",
        "scalene cpu": "{bin}/scalene run --cpu-only -o {recording} {script} --- {arguments}",
    },
    functions=functions,
    peak_bytes=peak_bytes,
    without_memory=("scalene cpu",),
)
