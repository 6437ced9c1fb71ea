"""Makes the golden recording with native call paths, of version 1.3.

Run ``python -m unit.format.make_native_vectors`` in tests.

It is as those of ``make_vectors.py``: a Python function calls C, which calls Python again; a thread of a pool; what an
earlier version wrote; and what was lost.
"""

from __future__ import annotations

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, manifest, unfinished, write_json

WHOLE, GUESSED, TRUNCATED = 1, 2, 3
PARAMETERS = {**manifest()["parameters"], "memory": True, "native_depth": 128}
LIBC, PYTHON, C_CODE = 0x10000, 0x40000, 0x70000
PATHS = {
    # id: (parent, address within the call, Python stack)
    1: (0, LIBC + 0x11, NONE),  # the C library calls main
    2: (1, PYTHON + 0x21, 0),  # the evaluation loop, which runs <module> as the innermost frame
    3: (2, C_CODE + 0x31, NONE),  # C, called by Python
    4: (3, PYTHON + 0x21, 1),  # the same place of the loop, called by C
    5: (0, LIBC + 0x99, NONE),  # the first frame of a pool's thread
    7: (6, C_CODE + 0x51, NONE),  # node 6 was lost
}


def program() -> SegmentBuilder:
    segment = SegmentBuilder(0, 4242, T0)
    segment.meta("python_version", "3.13.0")
    segment.thread_start(0, 4242, T0, main=True)
    segment.thread_start(1, 4243, T0 + MS)
    segment.thread_origin(1, 0, C_CODE + 0x100)
    segment.thread_start(2, 4244, T0 + MS)
    segment.thread_origin(2, NONE, C_CODE + 0x100)
    segment.module(0, "/usr/lib/libc.so.6", LIBC, LIBC + 0x1000, time_ns=T0)
    segment.module(1, "/usr/bin/python3.13", PYTHON, PYTHON + 0x1000, 0x1000, time_ns=T0, interpreter=True)
    segment.module(2, "/srv/app/fast.so", C_CODE, C_CODE + 0x1000, time_ns=T0)
    segment.stack(0, NONE, NONE, 2)
    segment.stack(1, 0, NONE, 4)
    for node, (parent, pc, stack) in PATHS.items():
        segment.native_stack(node, parent, pc, stack)
    segment.cpu(T0 + 10 * MS, stack=1, pc=C_CODE + 0x40, native=(4, WHOLE))
    segment.cpu(T0 + 20 * MS, stack=1, pc=PYTHON + 0x60, native=(3, GUESSED))
    segment.cpu(T0 + 30 * MS, thread=1, pc=C_CODE + 0x70, state=1, native=(5, WHOLE))
    segment.cpu(T0 + 40 * MS, pc=C_CODE + 0x41, native=(7, TRUNCATED))
    segment.cpu(T0 + 50 * MS, pc=C_CODE + 0x42, native=(0, TRUNCATED))  # not even the caller is known
    segment.cpu(T0 + 60 * MS, pc=C_CODE + 0x43)  # as version 1.2 wrote it
    segment.block(T0 + 15 * MS, 0, pc=C_CODE + 0x44, stack=1, native=(3, WHOLE))
    segment.block(T0 + 16 * MS, 1, pc=C_CODE + 0x45, stack=1)
    segment.copy(T0 + 17 * MS, 3000, 2000, pc=C_CODE + 0x46, stack=1, native=(3, WHOLE))
    segment.copy(T0 + 18 * MS, 3000, 2000, pc=C_CODE + 0x46, stack=1)
    return segment


def make_native() -> None:
    """The program was killed."""
    path = fresh("native")
    write_spool(path / "spool", [program().to_bytes()], control(start_ns=T0, state=1), f"4242-{T0}")
    write_json(path / "manifest.json", unfinished(format_version="1.3", parameters=PARAMETERS))
    # Rows of native_frames are in the order of modules and addresses.
    frames = [
        (0, 0x11), (0, 0x99), (1, 0x1021), (1, 0x1060), (2, 0x31), (2, 0x40), (2, 0x41), (2, 0x42), (2, 0x43),
        (2, 0x44), (2, 0x45), (2, 0x46), (2, 0x51), (2, 0x70), (2, 0x100),
    ]  # fmt: skip
    counts = {"processes": 1, "threads": 3, "files": 0, "codes": 0, "stacks": 2, "modules": 3}
    counts |= {"native_frames": len(frames), "native_stacks": 7, "cpu": 6, "waits": 0, "allocations": 2, "copies": 2}
    unknown = {"native_stack": None, "native_path": 0}
    expect(
        "native",
        state="recording",
        rows=counts,
        sums={"cpu_ns": 60 * MS, "off_cpu_ns": None},
        values={
            "threads": [
                {"row": 0, "tid": 4242, "creator": None, "start_frame": None},
                {"row": 1, "tid": 4243, "creator": 0, "start_frame": 14},
                {"row": 2, "tid": 4244, "creator": None, "start_frame": 14},
            ],
            "native_frames": [
                {"row": row, "module": module, "offset": offset} for row, (module, offset) in enumerate(frames)
            ],
            "native_stacks": [
                {"row": 0, "parent": None, "native_frame": 0, "stack": None},
                {"row": 1, "parent": 0, "native_frame": 2, "stack": 0},
                {"row": 2, "parent": 1, "native_frame": 4, "stack": None},
                {"row": 3, "parent": 2, "native_frame": 2, "stack": 1},
                {"row": 4, "parent": None, "native_frame": 1, "stack": None},
                {"row": 5, "parent": None, "native_frame": None, "stack": None},
                {"row": 6, "parent": 5, "native_frame": 12, "stack": None},
            ],
            "cpu": [
                {"row": 0, "stack": 1, "native_frame": 5, "native_stack": 3, "native_path": WHOLE},
                {"row": 1, "native_frame": 3, "native_stack": 2, "native_path": GUESSED},
                {"row": 2, "thread": 1, "native_frame": 13, "native_stack": 4, "native_path": WHOLE},
                {"row": 3, "native_stack": 6, "native_path": TRUNCATED},
                {"row": 4, "native_stack": None, "native_path": TRUNCATED},
                {"row": 5, "cpu_ns": 10 * MS, "native_frame": 8, **unknown},
            ],
            "allocations": [
                {"row": 0, "native_frame": 9, "native_stack": 2, "native_path": WHOLE},
                {"row": 1, "native_frame": 10, **unknown},
            ],
            "copies": [
                {"row": 0, "native_frame": 11, "native_stack": 2, "native_path": WHOLE},
                {"row": 1, "native_frame": 11, **unknown},
            ],
        },
        quality=[{"process": 0, "loss": "references_lost", "count": 1}],
    )


MAKERS = {"native": make_native}

if __name__ == "__main__":
    make(MAKERS)
