"""Makes the golden recording with positions of Python threads, of version 1.4.

Run ``python -m unit.format.make_pool_vectors`` in tests.

It is as those of ``make_vectors.py``: a pool's thread is sampled while Python threads wait, run and move on; one row is
damaged, and one names a thread that is not known. Two threads wait, for the GIL and for a lock; one runs a template.
"""

from __future__ import annotations

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, unfinished, write_json

NO, YES, UNKNOWN = 0, 1, 2
HOLDS, HOLDS_NOT = 1, 2
TORN = 2
GIL, LOCK = 8, 9
UNREAD = 37  # place of the loss positions_unread


def program() -> SegmentBuilder:
    segment = SegmentBuilder(0, 4242, T0)
    segment.meta("python_version", "3.13.0")
    segment.thread_start(0, 4242, T0, main=True)
    segment.thread_start(1, 4243, T0 + MS)
    segment.thread_start(2, 4244, T0 + MS)
    segment.stack(0, NONE, NONE, 2)
    segment.stack(1, 0, NONE, 4)
    segment.cpu(T0 + 10 * MS, thread=2, state=1)
    segment.position(T0 + 10 * MS, 2, 0, stack=1, cpu_ns=3 * MS, running=NO, holds=HOLDS)
    segment.position(T0 + 10 * MS, 2, 1, stack=0, cpu_ns=0, running=YES, holds=HOLDS_NOT)
    segment.cpu(T0 + 20 * MS, thread=2, state=1)
    segment.position(T0 + 20 * MS, 2, 1, cpu_ns=8 * MS, running=UNKNOWN, state=TORN)
    segment.position(T0 + 20 * MS, 2, 9, stack=1, cpu_ns=8 * MS)
    segment.code(0, "/srv/page.html", "root", 4, b"\xe8\x01", template_lines="2=27&4=29")
    segment.stack(2, NONE, 0, 0)
    segment.wait(T0, T0 + 5 * MS, thread=0, stack=2, syscall=202, target=GIL)
    segment.wait(T0 + 5 * MS, T0 + 9 * MS, thread=1, stack=0, syscall=202, target=LOCK)
    return segment


def make_pools() -> None:
    """The program was killed."""
    path = fresh("pools")
    write_spool(path / "spool", [program().to_bytes()], control(start_ns=T0, state=1, losses={UNREAD: 3}), f"4242-{T0}")
    write_json(path / "manifest.json", unfinished(format_version="1.4"))
    counts = {"processes": 1, "threads": 4, "files": 1, "codes": 1, "stacks": 3, "modules": 0, "native_frames": 0}
    counts |= {"cpu": 2, "waits": 2, "positions": 4}
    expect(
        "pools",
        state="recording",
        rows=counts,
        sums={"cpu_ns": 20 * MS, "off_cpu_ns": 9 * MS},
        values={
            "codes": [{"row": 0, "qualname": "root", "first_line": 4, "template_lines": "2=27&4=29"}],
            "waits": [
                {"row": 0, "thread": 0, "stack": 2, "target": GIL},
                {"row": 1, "thread": 1, "stack": 0, "target": LOCK},
            ],
            "positions": [
                {"row": 0, "sampled": 2, "thread": 0, "stack": 1, "cpu_ns": 3 * MS, "running": False, "stack_state": 0},
                {"row": 1, "sampled": 2, "thread": 1, "stack": 0, "cpu_ns": 0, "running": True, "stack_state": 0},
                {"row": 0, "holds_work": True},
                {"row": 1, "holds_work": False},
                {"row": 2, "thread": 1, "stack": None, "cpu_ns": 8 * MS, "running": None, "stack_state": TORN},
                {"row": 2, "holds_work": None},
                {"row": 3, "sampled": 2, "thread": 3, "stack": 1, "running": False},
            ],
        },
        quality=[
            {"process": 0, "loss": "positions_unread", "count": 3},
            {"process": 0, "loss": "references_lost", "count": 1},
        ],
    )


MAKERS = {"pools": make_pools}

if __name__ == "__main__":
    make(MAKERS)
