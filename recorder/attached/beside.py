"""The process beside a program that records itself: it does what the recording command does beside its program.

It is no child of the program's and in no process group of its, so that nothing the program does meets it. It ends when
it is told that the recording is over, or when the program has ended in whatever way.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tachograph.format import Manifest
from tachograph.recorder.attached.recording import COMPLETE, CONTROL, FOLDER, LISTENER
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.collect.output import MANIFEST
from tachograph.recorder.command.launch import Program
from tachograph.recorder.command.session import Session, leave_unneeded_out
from tachograph.recorder.labels.labels import Labels, gather_labels
from tachograph.recorder.problems import Refused


def main() -> None:
    """Accompany the program that ``sys.argv[1]`` describes, complete its recording, and say how that went."""
    facts = json.loads(sys.argv[1])
    leave_unneeded_out()
    with socket.socket(fileno=CONTROL) as control:
        problem = accompany(facts, control)
        with suppress(OSError):  # the program has ended
            control.sendall(COMPLETE if problem is None else problem.encode("utf-8", "replace"))
    os._exit(0)  # an orderly shutdown of pyarrow takes longer than all the rest


def accompany(facts: dict[str, Any], control: socket.socket) -> str | None:
    """Stay until ``control`` says something or is closed, then finish the recording; what went wrong, if anything did.

    ``facts`` are those that the program has sent (recording.py).
    """
    folder = HeldFolder(facts["directory"], FOLDER)
    manifest = Manifest.read(Path(folder.here, MANIFEST))
    arguments = facts["arguments"]
    program = Program(facts["pid"], facts["start_ns"], _executable(facts["pid"], arguments), arguments)
    session = Session(
        folder,
        program,
        manifest,
        arguments,
        _code(arguments),
        gpu=facts["gpu"],
        labels=_labels(facts["labels"], manifest),
        listener=socket.socket(fileno=LISTENER) if facts["listens"] else None,
        runs_already=True,
    )
    session.begin()
    try:
        told = control.recv(64)
    except OSError:
        told = b""
    outcome = session.end(None, lives=bool(told))
    return outcome.unfinished or outcome.not_recorded


def _executable(pid: int, arguments: list[str]) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return arguments[0] if arguments else ""


def _code(arguments: list[str]) -> str | None:
    """What ``python -c`` runs, where that is what it does."""
    place = arguments.index("-c") + 1 if "-c" in arguments[:-1] else 0
    return arguments[place] if 0 < place < len(arguments) and "-m" not in arguments[:place] else None


def _labels(given: dict[str, str], manifest: Manifest) -> Labels | None:
    try:
        return gather_labels(given.items(), os.environ, (str(Path.cwd()),))
    except Refused as refused:
        manifest.notes.append(f"no labels: {refused.message}")
        return None
