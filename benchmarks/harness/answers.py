"""What profilers say of programs whose truth is known: one line of JSON for each answer, kept as it is measured."""

import json
import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.arms import BARE, Arm
from harness.measure import RECORDING, start
from harness.ours import OURS
from harness.peers import Peer, chosen, installed, load, version
from harness.store import ENDED


@dataclass(frozen=True)
class Subject:
    """A way to run a profiler, and the profiler that can read what it leaves; None is the bare program."""

    arm: Arm
    peer: Peer | None
    version: str


def subjects(text: str, parent: Path, tells: Callable[[Peer], list[str]]) -> list[Subject]:
    """The bare program, and the arms named by `tells` of tachograph and of the peers in a comma-separated list."""
    found = [Subject(Arm(BARE, "{python}"), None, platform.python_version())]
    found += [Subject(Arm(name, OURS.arms[name]), OURS, "") for name in tells(OURS)]
    asked = ",".join(name for name in chosen(text) if tells(load(name)))
    for peer, python in installed(asked, parent):
        release = version(peer, python)
        if peer.bare != BARE:
            found.append(Subject(Arm(peer.bare, "{python}", python=str(python), peer=True), None, release))
        found += [Subject(peer.arm(arm, python), peer, release) for arm in tells(peer)]
    return found


class Answers:
    """A file of lines of JSON, each with a key that says what was asked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def known(self) -> dict[str, dict[str, Any]]:
        """Key -> answer."""
        if not self._path.exists():
            return {}
        lines = [json.loads(line) for line in self._path.read_text(encoding="utf-8").splitlines()]
        return {line["key"]: line for line in lines}

    def append(self, key: str, answer: dict[str, Any]) -> None:
        """Adds an answer, durably."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key} | answer) + "\n")

    def clear(self) -> None:
        """Forgets everything."""
        self._path.unlink(missing_ok=True)


def ask(
    subject: Subject,
    program: list[str],
    read: Callable[[Peer, Path, Path], object],
    timeout_s: float,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs a program, which writes a report of its own to the path given behind its arguments, and reads the profiler.

    The answer has `outcome` (see `harness.store.Row`), `report` (the program's own words) and `said` (the profiler's);
    what is not known is None.
    """
    answer: dict[str, Any] = {"profiler": subject.arm.name, "version": subject.version, "report": None, "said": None}
    answer["against"] = subject.arm.against
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        report = folder / "report.json"
        finished, outcome, run = start(subject.arm, [*program, str(report), *options], folder, None, timeout_s)
        answer |= {"outcome": outcome, "whole_s": finished.elapsed_s}
        if outcome == ENDED and report.exists():
            answer["report"] = json.loads(report.read_text(encoding="utf-8"))
        if outcome == ENDED and subject.peer is not None:
            try:
                answer["said"] = read(subject.peer, run / RECORDING, Path(subject.arm.python).parent)
            except (ValueError, KeyError, OSError) as error:
                answer["outcome"] = f"its result cannot be read: {error!r}"
    return answer
