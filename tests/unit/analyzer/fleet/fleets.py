"""Fleets made by hand: many small recordings of which every number is known."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from unit.analyzer.recordings import Builder

SOURCE = "def handle(request):\n    parse(request)\n    query(request)\n    render(request)\n\n\nhandle(1)\n"


def one(path: Path, number: int, milliseconds: dict[int, int], source: str = SOURCE, **more: Any) -> Path:
    """A recording in which lines 2, 3 and 4 of ``handle`` have so many milliseconds of CPU time each.

    ``waits`` is the same of waiting; ``folder`` is where the program lay on its host.
    """
    waits, folder = more.pop("waits", {}), more.pop("folder", "/srv/shop")
    known = {"uuid": f"uuid-{path.name}-{number}", "host": f"web-{number}", "created_utc": "2026-11-20T10:00:00+00:00"}
    builder = Builder(path / f"run-{number:03}.tacho", **{**known, **more})
    file = builder.file(f"{folder}/shop.py", source)
    builder.rows["files"][file]["sha256"] = hashlib.sha256(source.encode()).hexdigest()
    module, handle = builder.code(file, "<module>", 1), builder.code(file, "handle", 1)
    last = source.rstrip().count("\n")
    for line, amount in milliseconds.items():
        for _ in range(amount // 10):
            builder.cpu(builder.stack((module, last), (handle, line - 1)), 10)
    for line, amount in waits.items():
        builder.wait(builder.stack((module, last), (handle, line - 1)), 0, amount)
    path.mkdir(exist_ok=True, parents=True)
    return builder.write()
