"""tachograph itself, to be read like a peer."""

import json
import subprocess
import sysconfig
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.arms import FULL, arms
from harness.peers import Peer, Shares, shares


def functions(recording: Path, _: Path) -> Shares:
    """Own CPU time of functions, as `analyze` tells it."""
    command = [str(Path(sysconfig.get_path("scripts")) / "tachograph"), "analyze", "--scope", "all", "--json", "-"]
    answer = subprocess.run([*command, str(recording)], check=True, capture_output=True, text=True)
    own: dict[str, float] = {}
    for function in json.loads(answer.stdout)["functions"]:
        own[function["function"]] = own.get(function["function"], 0.0) + function["cpu_s"]
    return shares(own)


def peak_bytes(recording: Path, _: Path) -> int:
    """The highest footprint in the table `memory`."""
    return int(pc.max(pq.read_table(recording / "memory.parquet")["peak_bytes"]).as_py())


OURS = Peer(
    package="",
    arms={"tachograph": next(arm.template for arm in arms([]) if arm.name == FULL)},
    functions=functions,
    peak_bytes=peak_bytes,
)
