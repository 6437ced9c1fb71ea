"""tachograph itself, to be read like a peer."""

import json
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.arms import FULL, RECORD, arms
from harness.peers import ByLine, Lines, LineTime, Peer, Shares, shares


def functions(recording: Path, _: Path) -> Shares:
    """Own CPU time of functions, as `analyze` tells it."""
    own: dict[str, float] = {}
    for function in analysis(recording, "--scope", "all")["functions"]:
        own[function["function"]] = own.get(function["function"], 0.0) + function["cpu_s"]
    return shares(own)


def lines(recording: Path, _: Path, program: Path) -> Lines:
    """CPU time of the program's lines."""
    return {
        line["line"]: LineTime(line["cpu_s"], (line["native_s"] or 0.0) + (line["kernel_s"] or 0.0))
        for line in _lines(recording, program)
        if line["cpu_s"]
    }


def live_bytes(recording: Path, _: Path, program: Path) -> ByLine:
    """What was held at the peak, in bytes that were asked for: others do not count what allocators round up to."""
    return {line["line"]: line["requested_at_peak_bytes"] or 0.0 for line in _lines(recording, program)}


def copied_bytes(recording: Path, _: Path, program: Path) -> ByLine:
    """What was copied."""
    return {line["line"]: line["copied_bytes"] or 0.0 for line in _lines(recording, program)}


def leaks(recording: Path, _: Path, program: Path) -> list[int]:
    """Lines that are reported."""
    return [leak["line"] for leak in analysis(recording)["leaks"] if Path(leak["file"]).name == program.name]


def _lines(recording: Path, program: Path) -> list[Any]:
    return [line for line in analysis(recording)["lines"] if line["line"] and Path(line["file"]).name == program.name]


def analysis(recording: Path, *options: str) -> Any:
    """What `analyze --json` says of a recording."""
    command = [str(Path(sysconfig.get_path("scripts")) / "tachograph"), "analyze", *options, "--json", "-"]
    return json.loads(subprocess.run([*command, str(recording)], check=True, capture_output=True, text=True).stdout)


def peak_bytes(recording: Path, _: Path) -> int:
    """The highest footprint in the table `memory`."""
    return int(pc.max(pq.read_table(recording / "memory.parquet")["peak_bytes"]).as_py())


OURS = Peer(
    package="",
    arms={
        "tachograph": next(arm.template for arm in arms([]) if arm.name == FULL),
        "tachograph, signal": f"{RECORD} --sampler signal",
    },
    functions=functions,
    lines=lines,
    tells_native=True,
    live_bytes=live_bytes,
    copied_bytes=copied_bytes,
    leaks=leaks,
    peak_bytes=peak_bytes,
    without_memory=("tachograph, signal",),
)
