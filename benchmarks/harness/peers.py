"""The other profilers: each is a small module in benchmarks/peers, installed into a virtual environment of its own.

A peer's module has `PEER`, which says what to install and how to run a program under it, and how to read what it wrote.
"""

import importlib
import json
import pstats
import shlex
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.arms import Arm
from harness.errors import BenchmarkError

FOLDER = Path(__file__).resolve().parent.parent / "peers"
Shares = dict[str, float]
"""Function name -> its own share of the time that was measured, in percent."""


@dataclass(frozen=True)
class Peer:
    """A profiler of others.

    `arms` maps the names of the ways to run it to command templates (see `harness.arms`). The readers take what such a
    run left behind, and the folder of the arm's commands; they raise `ValueError` if it is not what they expect.
    """

    package: str
    """What pip installs; empty for what comes with Python."""
    arms: dict[str, str]
    older: tuple[str, ...] = ()
    """What to install instead, one after another, where `probe` says that the newest does not run."""
    probe: str = ""
    """A command, in the folder of the peer's commands, that succeeds where the peer runs."""
    functions: Callable[[Path, Path], Shares] | None = None
    """Each function's own share of the time."""
    peak_bytes: Callable[[Path, Path], int] | None = None
    """The memory that the profiler says was held at the peak."""
    without_memory: tuple[str, ...] = ()
    """The arms that say nothing of memory, if others do."""

    def tells_functions(self) -> list[str]:
        """The arms that tell functions apart."""
        return list(self.arms) if self.functions is not None else []

    def tells_memory(self) -> list[str]:
        """The arms that tell memory."""
        return [arm for arm in self.arms if arm not in self.without_memory] if self.peak_bytes is not None else []


def shares(own: Mapping[str, float]) -> Shares:
    """Weights of functions as percentages of them all."""
    total = sum(own.values())
    if not total:
        raise ValueError("it saw nothing")
    return {name: 100.0 * value / total for name, value in own.items()}


def pstats_shares(recording: Path, _: Path) -> Shares:
    """Own times of functions in a file of the standard library's `pstats`."""
    own: Counter[str] = Counter()
    for (_file, _line, name), (_, _, seconds, _, _) in pstats.Stats(str(recording)).stats.items():  # type: ignore[attr-defined]
        own[name] += seconds
    return shares(own)


def names() -> list[str]:
    """The peers that there are."""
    return sorted(file.stem.replace("_", "-") for file in FOLDER.glob("*.py") if file.stem != "__init__")


def load(name: str) -> Peer:
    """The peer of that name."""
    if name not in names():
        raise BenchmarkError(f"--peers: there is no peer {name!r}; there are {', '.join(names())}")
    peer = importlib.import_module(f"peers.{name.replace('-', '_')}").PEER
    if not isinstance(peer, Peer):
        raise BenchmarkError(f"peers/{name.replace('-', '_')}.py: PEER is no Peer")
    return peer


def chosen(text: str) -> list[str]:
    """The names in a comma-separated list; `all` is all of them, nothing is none."""
    return names() if text == "all" else [name.strip() for name in text.split(",") if name.strip()]


def peer_arms(text: str, parent: Path) -> list[Arm]:
    """The arms of the peers in a comma-separated list, installed below `parent` if needed."""
    found: list[Arm] = []
    for name in chosen(text):
        peer = load(name)
        python = install(name, peer, parent)
        found += [Arm(arm, template, python=str(python), peer=True) for arm, template in peer.arms.items()]
    return found


def install(name: str, peer: Peer, parent: Path) -> Path:
    """Makes the peer's virtual environment if it is not there yet; its interpreter."""
    if not peer.package:
        return Path(sys.executable)
    folder = parent / name
    python = folder / "bin" / "python"
    done = folder / ".complete"
    if not done.exists():
        venv.create(folder, with_pip=True)
        for package in (peer.package, *peer.older):
            _pip(python, package, "numpy")  # some of the programs need it
            if _runs(peer, python.parent):
                break
        done.touch()
    return python


def _pip(python: Path, *packages: str) -> None:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "-qq", *packages]
    try:
        subprocess.run(command, check=True)
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(f"pip could not install {packages[0]} (exit status {error.returncode})") from None


def _runs(peer: Peer, folder: Path) -> bool:
    if not peer.probe:
        return True
    name, *arguments = shlex.split(peer.probe)
    return subprocess.run([str(folder / name), *arguments], check=False, capture_output=True).returncode == 0


def version(peer: Peer, python: Path) -> str:
    """The release that is installed."""
    if not peer.package:
        return f"Python {sys.version.split()[0]}"
    code = "import importlib.metadata, json, sys; print(json.dumps(importlib.metadata.version(sys.argv[1])))"
    answer = subprocess.run([python, "-c", code, peer.package], check=True, capture_output=True, text=True)
    return str(json.loads(answer.stdout))
