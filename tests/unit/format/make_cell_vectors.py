"""Makes the golden recording of a notebook, of version 1.4: ``python -m unit.format.make_cell_vectors`` in tests.

It is as those of ``make_vectors.py``: two cells were told, one of them twice; a third file is none, and two lines of
told texts are damaged.
"""

from __future__ import annotations

import hashlib
import json

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, unfinished, write_json

FIRST, SECOND, MODULE = "/tmp/ipykernel_4242/1.py", "<ipython-input-4-ab>", "/srv/app/main.py"
TEXT = "total = 0  # \u00fc\ntotal += 1\n"
TOLD: tuple[list[object], ...] = (
    [{"path": FIRST, "text": "old\n", "cell": 2}, {"path": SECOND, "text": "main()\n", "cell": 4}, ["no object"]],
    [{"path": FIRST, "text": TEXT, "cell": 3, "cell_id": "a1b2"}, {"path": FIRST, "text": "bad", "cell": -1}],
)


def notebook() -> SegmentBuilder:
    segment = SegmentBuilder(0, 4242, T0)
    segment.meta("python_version", "3.13.0")
    segment.thread_start(0, 4242, T0, main=True)
    for number, path in enumerate((FIRST, SECOND, MODULE)):
        segment.code(number, path, "<module>", 1, b"\xe8\x01")
        segment.stack(number, NONE, number, 0)
        segment.cpu(T0 + (number + 1) * 10 * MS, stack=number)
    segment.wait(T0, T0 + 5 * MS, thread=0, stack=0, syscall=202)
    return segment


def make_cells() -> None:
    """The kernel was killed."""
    path = fresh("cells")
    write_spool(path / "spool", [notebook().to_bytes()], control(start_ns=T0, state=1), f"4242-{T0}")
    for number, rows in enumerate(TOLD):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (path / "spool" / f"texts.{number:06}.jsonl").write_text(lines, encoding="ascii")
    write_json(path / "manifest.json", unfinished(format_version="1.4"))
    counts = {"processes": 1, "threads": 1, "files": 3, "codes": 3, "stacks": 3, "modules": 0, "native_frames": 0}
    counts |= {"cpu": 3, "waits": 1}
    data = TEXT.encode()
    digest = hashlib.sha256(data).hexdigest()
    expect(
        "cells",
        state="recording",
        rows=counts,
        sums={"cpu_ns": 30 * MS, "off_cpu_ns": 5 * MS},
        values={
            "files": [
                {"row": 0, "path": FIRST, "source": TEXT, "size": len(data), "sha256": digest}
                | {"cell": 3, "cell_id": "a1b2"},
                {"row": 1, "path": SECOND, "source": "main()\n", "size": 7, "cell": 4, "cell_id": None},
                {"row": 2, "path": MODULE, "source": None, "size": None, "cell": None, "cell_id": None},
            ],
        },
        quality=[{"process": None, "loss": "records_torn", "count": 2}],
    )


MAKERS = {"cells": make_cells}

if __name__ == "__main__":
    make(MAKERS)
