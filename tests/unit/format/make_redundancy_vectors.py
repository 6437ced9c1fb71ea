"""Makes the golden recording with watched memory accesses, of version 1.4.

Run ``python -m unit.format.make_redundancy_vectors`` in tests.

It is as those of ``make_vectors.py``: a load and a store that met their partners, a load whose memory was released, a
sample without operand, and an access of a thread that is not known.
"""

from __future__ import annotations

from typing import Any

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, manifest, write_json

NO, YES = 0, 1
LOAD, STORE, NO_ACCESS = 0, 1, 255
PAIR, RELEASED, NO_OPERAND = 0, 2, 9
UNSEEN = 5
REFUSED = 49  # place of the loss watchpoints_refused


def program() -> SegmentBuilder:
    segment = SegmentBuilder(0, 4242, T0)
    segment.meta("python_version", "3.13.0")
    segment.thread_start(0, 4242, T0, main=True)
    segment.stack(0, NONE, NONE, 2)
    segment.stack(1, 0, NONE, 4)
    segment.cpu(T0 + 10 * MS, thread=0, stack=1)
    segment.redundancy(
        T0 + 10 * MS, stack=1, equal=YES, crossed=YES, partner_ns=T0 + 12 * MS, partner_stack=0, pc=0x1000
    )
    segment.redundancy(
        T0 + 20 * MS, stack=0, access=STORE, equal=NO, crossed=NO, partner_ns=T0 + 21 * MS, partner_stack=1, width=4
    )
    segment.redundancy(T0 + 30 * MS, stack=0, outcome=RELEASED)
    segment.redundancy(T0 + 40 * MS, access=NO_ACCESS, outcome=NO_OPERAND, width=0)
    segment.redundancy(T0 + 50 * MS, thread=7)
    return segment


def make_redundancy() -> None:
    """The program was killed."""
    path = fresh("redundancy")
    lost = control(start_ns=T0, state=1, losses={REFUSED: 2})
    write_spool(path / "spool", [program().to_bytes()], lost, f"4242-{T0}")
    changes: dict[str, Any] = {"state": "recording", "clock": None, "ended_ns": None, "quality": [], "sampler_cost": {}}
    parameters = {**manifest()["parameters"], "redundancy": True, "accesses": "both"}
    write_json(path / "manifest.json", manifest(format_version="1.4", parameters=parameters, **changes))
    counts = {"processes": 1, "threads": 2, "files": 0, "codes": 0, "stacks": 2, "modules": 0, "native_frames": 1}
    counts |= {"cpu": 1, "waits": 0, "redundancies": 5}
    pair = {"outcome": PAIR, "opcode": 0x8B, "partner_opcode": 0x8B, "partner_stack_state": 0, "stores_between": 0}
    nothing = {"partner_time_ns": None, "partner_stack": None, "partner_stack_state": UNSEEN, "equal": None}
    nothing |= {"crossed": None, "partner_opcode": None, "partner_width": None, "partner_native_frame": None}
    expect(
        "redundancy",
        state="recording",
        rows=counts,
        sums={"cpu_ns": 10 * MS, "off_cpu_ns": None},
        values={
            "redundancies": [
                {"row": 0, **pair, "access": LOAD, "equal": True, "crossed": True, "stack": 1, "partner_stack": 0},
                {"row": 0, "native_frame": 0, "width": 8, "partner_width": 8, "partner_native_frame": None},
                {"row": 1, **pair, "access": STORE, "equal": False, "crossed": False, "width": 4, "partner_width": 4},
                {"row": 2, **nothing, "access": LOAD, "outcome": RELEASED, "width": 8},
                {"row": 3, **nothing, "access": None, "outcome": NO_OPERAND, "width": None, "stack": None},
                {"row": 4, "thread": 1, "native_frame": None, "cpu_ns": 10 * MS},
            ],
        },
        quality=[
            {"process": 0, "loss": "watchpoints_refused", "count": 2},
            {"process": 0, "loss": "references_lost", "count": 1},
        ],
    )


MAKERS = {"redundancy": make_redundancy}

if __name__ == "__main__":
    make(MAKERS)
