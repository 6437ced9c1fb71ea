"""The session of a recording in the process beside the program, from ready to the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tachograph.format import Manifest
from tachograph.recorder import clock
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.collect.output import MANIFEST
from tachograph.recorder.command.launch import Program
from tachograph.recorder.command.session import RecordingPlan, Session, leave_unneeded_out
from tachograph.recorder.labels.labels import Labels, gather_labels
from tachograph.recorder.problems import Refused

if TYPE_CHECKING:
    import _socket
    import socket

LOOK_S = 0.2
"""How often it is looked whether a program records that has closed its connection."""

HEARTBEAT_S = 1.0
"""How often the program is told, while it waits for the end, that there is something to wait for."""


def accompany(
    facts: dict[str, Any], folder: HeldFolder, control: socket.socket, listener: _socket.socket | None
) -> str | None:
    """Stay until ``control`` says something or is closed, then finish the recording; what went wrong, if anything did.

    A program that closes all its descriptors closes ``control`` as well: then it is stayed until it records no more.
    ``facts`` are those that the program has sent (recording.py), ``folder`` is the directory of the recording,
    ``listener`` the fd broker's socket.
    """
    leave_unneeded_out()
    session = _session(facts, folder, listener)
    session.begin()
    try:
        message = control.recv(64)
    except OSError:
        message = b""
    while not message and session.program_records():
        clock.rest(LOOK_S)
    lives = bool(message) or session.program_left()
    with _heartbeats(control):
        outcome = session.end(None, lives=lives)
    return outcome.unfinished or outcome.not_recorded


def _session(facts: dict[str, Any], folder: HeldFolder, listener: _socket.socket | None) -> Session:
    manifest = Manifest.read(Path(folder.here, MANIFEST))
    arguments = facts["arguments"]
    plan = RecordingPlan(
        folder,
        manifest,
        Program(facts["pid"], facts["start_ns"], _executable(facts["pid"], arguments), arguments),
        arguments,
        _code(arguments),
        gpu=facts["gpu"],
        labels=_labels(facts["labels"], facts["environment"], manifest),
        listener=listener,
        runs_already=True,
    )
    return Session(plan)


@contextmanager
def _heartbeats(control: socket.socket) -> Iterator[None]:
    over = clock.Flag()

    def beat() -> None:
        while not over.wait(HEARTBEAT_S):
            try:
                control.sendall(b"\n")
            except OSError:
                return  # the program has ended

    thread = threading.Thread(target=beat, name="tachograph heartbeats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _executable(pid: int, arguments: list[str]) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return arguments[0] if arguments else ""


def _code(arguments: list[str]) -> str | None:
    """The code that ``python -c`` runs; None of other programs."""
    place = arguments.index("-c") + 1 if "-c" in arguments[:-1] else 0
    return arguments[place] if 0 < place < len(arguments) and "-m" not in arguments[:place] else None


def _labels(given: Mapping[str, str], environment: Mapping[str, str], manifest: Manifest) -> Labels | None:
    try:
        return gather_labels(given.items(), environment, (str(Path.cwd()),))
    except Refused as refused:
        manifest.notes.append(f"no labels: {refused.message}")
        return None
