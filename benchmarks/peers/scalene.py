"""Scalene: CPU, memory and copies by line; the tool of the papers."""

import json
from pathlib import Path
from typing import Any

from harness.peers import ByLine, Lines, LineTime, Peer, Shares


def functions(recording: Path, _: Path) -> Shares:
    """Scalene charges a function what its own lines took, Python, native and system together."""
    profile = _profile(recording)
    shares: Shares = {}
    for file in profile["files"].values():
        for function in file["functions"]:
            parts = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
            shares[function["line"]] = shares.get(function["line"], 0.0) + sum(function[part] for part in parts)
    return shares


def lines(recording: Path, _: Path, program: Path) -> Lines:
    """Percent of the time, Python, native and system together; the two latter are native."""
    found: Lines = {}
    for line in _lines(recording, program):
        native = line["n_cpu_percent_c"] + line["n_sys_percent"]
        found[line["lineno"]] = LineTime(native + line["n_cpu_percent_python"], native)
    return found


def live_bytes(recording: Path, _: Path, program: Path) -> ByLine:
    """The most that was held by each line."""
    return {line["lineno"]: line["n_peak_mb"] * 2**20 for line in _lines(recording, program)}


def copied_bytes(recording: Path, _: Path, program: Path) -> ByLine:
    """Copy volume; its report has megabytes per second of the whole run."""
    seconds = _profile(recording)["elapsed_time_sec"]
    return {line["lineno"]: line["n_copy_mb_s"] * 2**20 * seconds for line in _lines(recording, program)}


def leaks(recording: Path, _: Path, program: Path) -> list[int]:
    """Lines that it reports as leaking."""
    return [
        int(line)
        for file, found in _profile(recording)["files"].items()
        if Path(file).name == program.name
        for line in found.get("leaks", {})
    ]


def _lines(recording: Path, program: Path) -> list[Any]:
    files = _profile(recording)["files"].items()
    return [line for file, found in files if Path(file).name == program.name for line in found["lines"]]


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
    lines=lines,
    tells_native=True,
    live_bytes=live_bytes,
    copied_bytes=copied_bytes,
    leaks=leaks,
    peak_bytes=peak_bytes,
    without_memory=("scalene cpu",),
    slow=("scalene",),
)
