"""Programs under the restrictions of containers, bare and recorded: what they print and how they end is the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from integration import support

RESTRICTED = support.PROGRAMS / "restricted.py"
CONTAINED = support.PROGRAMS / "contained.py"
IMPOSSIBLE = 99
"""What restricted.py ends with where the machine does not let it."""

NAMES = (
    "docker", "no-ptrace", "old-kernel", "read-only-root", "small-shm", "address-space", "open-files", "file-size",
    "process-ids", "memory-group", "process-group",
)  # fmt: skip


class ImpossibleError(Exception):
    """This machine does not let us restrict a program so."""


def compare(folder: Path, name: str, target: Sequence[str | Path] = (CONTAINED,)) -> Path:
    """The recording, after the outcomes were the same and it was found to be whole and to have samples.

    Raises ImpossibleError, and AssertionError where something differs.
    """
    places = [folder / "bare", folder / "recorded"]
    for place in places:
        place.mkdir()
    command = [sys.executable, str(RESTRICTED), name]
    program = list(map(str, target))
    bare = support.run([*command, sys.executable, *program], places[0], timeout=120)
    if bare.status == IMPOSSIBLE:
        raise ImpossibleError(bare.stderr.strip())
    record = [*support.COMMAND, "record", "-qo", "run.tacho", *program]
    recorded = support.run([*command, *record], places[1], timeout=240)
    assert recorded == bare, f"{name}: bare {bare}, recorded {recorded}"
    recording = places[1] / "run.tacho"
    manifest = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "complete", f"{name}: {manifest['state']}"
    assert manifest["tables"]["cpu"]["rows"] > 0, f"{name}: nothing was recorded"
    return recording
