"""The other profilers: each is a small module in benchmarks/peers, installed into a virtual environment of its own.

A peer's module has `PEER`, which says what to install and how to run a program under it, and how to read what it wrote.
"""

import importlib
import json
import pstats
import shlex
import shutil
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.arms import BARE, BARE_BRIEF, Arm
from harness.errors import BenchmarkError

FOLDER = Path(__file__).resolve().parent.parent / "peers"
Shares = dict[str, float]
"""Function name -> its own share of the time that was measured, in percent."""
ByLine = dict[int, float]
"""Line number of the program's file -> what a profiler says of it."""


@dataclass(frozen=True)
class LineTime:
    """What a profiler says of a line's time, in its own unit; `native` is None if it does not tell native time."""

    total: float
    native: float | None = None


Lines = dict[int, LineTime]


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
    calls: Callable[[Path, Path], Mapping[str, int]] | None = None
    """How often each function was called."""
    lines: Callable[[Path, Path, Path], Lines] | None = None
    """The time of each line of the program's file, given last. What it calls outside of that file counts for it."""
    tells_native: bool = False
    """Whether `lines` tell native time."""
    live_bytes: Callable[[Path, Path, Path], ByLine] | None = None
    """What each line of the program's file had allocated of what was held when most was held."""
    copied_bytes: Callable[[Path, Path, Path], ByLine] | None = None
    """What each line of the program's file copied."""
    leaks: Callable[[Path, Path, Path], list[int]] | None = None
    """The lines of the program's file that are reported as leaking."""
    readers: dict[str, dict[str, str]] = field(default_factory=dict)
    """Arm -> the commands that make a report of what it wrote, by name (see `reading.py`)."""
    peak_bytes: Callable[[Path, Path], int] | None = None
    """The memory that the profiler says was held at the peak."""
    without_memory: tuple[str, ...] = ()
    """The arms that say nothing of memory, if others do."""
    slow: tuple[str, ...] = ()
    """The arms under which programs take several times as long; they run fewer passes (see `harness.arms.Arm`)."""
    native: dict[str, str] = field(default_factory=dict)
    """The ways to run it that take native frames as well, as `arms`; `native_paths.py` compares those."""
    interpreter: str = ""
    """The command of the interpreter that it needs, if not ours; it takes part where there is one."""
    also: tuple[str, ...] = ()
    """What else to install, for the programs or to read what it writes."""

    @property
    def bare(self) -> str:
        """The name of the arm that runs a program bare, under the same interpreter."""
        return f"{BARE}, {self.interpreter}" if self.interpreter else BARE

    def arm(self, name: str, python: Path) -> Arm:
        """One of its arms."""
        return Arm(name, self.arms[name], python=str(python), peer=True, against=self.bare)

    def tells_functions(self) -> list[str]:
        """The arms that tell functions apart."""
        return list(self.arms) if self.functions is not None else []

    def tells_lines(self) -> list[str]:
        """The arms that tell the time of lines."""
        return list(self.arms) if self.lines is not None else []

    def tells_native_time(self) -> list[str]:
        """The arms that tell native time from Python's."""
        return self.tells_lines() if self.tells_native else []

    def tells_memory(self) -> list[str]:
        """The arms that tell memory."""
        return self._with_memory(self.peak_bytes)

    def tells_live_bytes(self) -> list[str]:
        """The arms that tell who holds the memory, by line."""
        return self._with_memory(self.live_bytes)

    def tells_copies(self) -> list[str]:
        """The arms that tell what was copied, by line."""
        return self._with_memory(self.copied_bytes)

    def tells_leaks(self) -> list[str]:
        """The arms that report leaks."""
        return self._with_memory(self.leaks)

    def _with_memory(self, reader: object) -> list[str]:
        return [arm for arm in self.arms if arm not in self.without_memory] if reader is not None else []


def shares(own: Mapping[str, float]) -> Shares:
    """Weights of functions as percentages of them all."""
    total = sum(own.values())
    if not total:
        raise ValueError("it saw nothing")
    return {name: 100.0 * value / total for name, value in own.items()}


def innermost(stacks: Iterable[tuple[list[tuple[str, int]], float]], program: Path) -> ByLine:
    """Weights of stacks (file and line of each frame, outermost first), each for its last frame in the program's file.

    A stack that has none is not counted. A file is the program's if its name is: some profilers shorten paths.
    """
    found: Counter[int] = Counter()
    for frames, weight in stacks:
        for file, line in reversed(frames):
            if Path(file).name == program.name:
                found[line] += weight  # type: ignore[assignment]  # typeshed has counts as integers
                break
    return dict(found)


def times(weights: ByLine) -> Lines:
    """Times of lines, of a profiler that does not tell native time."""
    return {line: LineTime(weight) for line, weight in weights.items()}


def ask_own(folder: Path, script: str, *arguments: Path) -> Any:
    """What a script prints as JSON in the environment of a peer, whose format only its own package reads."""
    command = [str(folder / "python"), "-c", script, *map(str, arguments)]
    try:
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    except subprocess.CalledProcessError as error:
        raise ValueError(error.stderr.strip().splitlines()[-1]) from None


def pstats_shares(recording: Path, _: Path) -> Shares:
    """Own times of functions in a file of the standard library's `pstats`."""
    own: Counter[str] = Counter()
    for (_file, _line, name), (_, _, seconds, _, _) in pstats.Stats(str(recording)).stats.items():  # type: ignore[attr-defined]
        own[name] += seconds
    return shares(own)


def pstats_calls(recording: Path, _: Path) -> Counter[str]:
    """Calls of functions in a file of the standard library's `pstats`."""
    calls: Counter[str] = Counter()
    for (_file, _line, name), (_, number, _, _, _) in pstats.Stats(str(recording)).stats.items():  # type: ignore[attr-defined]
        calls[name] += number
    return calls


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
    """The arms of the peers in a comma-separated list, installed below `parent` if needed, and the bare ones of theirs.

    The slow ones come last, as brief ones.
    """
    found: list[Arm] = []
    slow: list[Arm] = []
    for peer, python in installed(text, parent):
        if peer.bare != BARE:
            found.append(Arm(peer.bare, "{python}", python=str(python), peer=True, against=peer.bare))
        for name in peer.arms:
            arm = peer.arm(name, python)
            if name in peer.slow:
                slow.append(replace(arm, against=BARE_BRIEF, brief=True))
            else:
                found.append(arm)
    if slow:
        slow.insert(0, Arm(BARE_BRIEF, "{python}", peer=True, against=BARE_BRIEF, brief=True))
    return found + slow


def native_arms(text: str, parent: Path) -> list[Arm]:
    """The arms with native frames of the peers in a comma-separated list, installed as those of `peer_arms` are."""
    found: list[Arm] = []
    for peer, python in installed(text, parent):
        for name, template in peer.native.items():
            words = template.replace("{bin}", str(python.parent)).split()
            if shutil.which(words[0].replace("{python}", str(python))) is None:
                print(f"{name} is left out: it is not part of what pip installs here", file=sys.stderr)
                continue
            found.append(Arm(name, template, python=str(python), peer=True))
    return found


def installed(text: str, parent: Path) -> Iterator[tuple[Peer, Path]]:
    """The peers in a comma-separated list, each with its interpreter, installed below `parent` if needed.

    One whose interpreter this machine does not have is left out, which is said.
    """
    for name in chosen(text):
        peer = load(name)
        python = install(name, peer, parent)
        if python is None:
            print(f"{name} is left out: there is no {peer.interpreter} on PATH", file=sys.stderr)
        else:
            yield peer, python


def install(name: str, peer: Peer, parent: Path) -> Path | None:
    """Makes the peer's virtual environment if it is not there yet; its interpreter. None without the one it needs."""
    if not peer.package and not peer.interpreter:
        return Path(sys.executable)
    folder = parent / name
    python = folder / "bin" / "python"
    done = folder / ".complete"
    if done.exists() and python.exists():
        return python
    if peer.interpreter:
        command = shutil.which(peer.interpreter)
        if command is None:
            return None
        _make_environment(command, folder)
    else:
        venv.create(folder, with_pip=True)
    for package in (peer.package, *peer.older):
        _pip(python, *filter(None, [package, "numpy", *peer.also]))  # some of the programs need numpy
        if _runs(peer, python.parent):
            break
    done.touch()
    return python


def _make_environment(command: str, folder: Path) -> None:
    try:
        subprocess.run([command, "-m", "venv", "--clear", str(folder)], check=True, stdout=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        raise BenchmarkError(f"{command} could not make a virtual environment (status {error.returncode})") from None


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
        answer = subprocess.run([python, "--version"], check=True, capture_output=True, text=True)
        return answer.stdout.strip()
    code = "import importlib.metadata, json, sys; print(json.dumps(importlib.metadata.version(sys.argv[1])))"
    answer = subprocess.run([python, "-c", code, peer.package], check=True, capture_output=True, text=True)
    return str(json.loads(answer.stdout))
