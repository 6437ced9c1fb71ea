"""Makes the golden recording with calls of functions, of version 1.4.

Run ``python -m unit.format.make_call_vectors`` in tests.

It is as those of ``make_vectors.py``: one function was watched all the time, another in drawn intervals;
one row names a stack that is not known.
"""

from __future__ import annotations

from typing import Any

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, manifest, write_json

UNWATCHED = 43  # place of the loss call_functions_unwatched
SECOND = 1000 * MS


def program() -> SegmentBuilder:
    segment = SegmentBuilder(0, 4242, T0)
    segment.meta("python_version", "3.13.0")
    segment.thread_start(0, 4242, T0, main=True)
    segment.code(0, "/app/work.py", "rare", 3, b"")
    segment.code(1, "/app/work.py", "often", 9, b"")
    segment.stack(0, NONE, 0, -1)
    segment.stack(1, NONE, 1, -1)
    rare = {
        "cpu_ns": SECOND,
        "watched_cpu_ns": SECOND,
        "calls": 3,
        "ended": 2,
        "total_ns": 50 * MS,
        "longest_ns": 30 * MS,
        "total_squared": 1.3e15,
    }
    segment.calls(T0 + SECOND, T0, 0, watched_ns=SECOND, **rare)
    segment.call_times(T0 + SECOND, 0, 25, 2)
    drawn = {"intervals": 3, "drawn_calls": 1041.5, "drawn_ns": 100 * MS, "drawn_cost_calls": 35.5}
    drawn |= {"cpu_ns": 800 * MS, "watched_cpu_ns": 29 * MS, "drawn_chance": 3_750.25}
    drawn |= {"drawn_calls_squared": 363_000.5, "drawn_calls_ns": 3.48e10, "drawn_ns_squared": 3.34e15}
    often = {"calls": 300, "ended": 300, "total_ns": 300_000, "longest_ns": 2_000, "total_squared": 3.5e8}
    own = {"own_begun": 100, "own_ended": 100, "own_ns": 90_000, "own_longest_ns": 950, "own_squared": 8.2e7}
    segment.calls(T0 + SECOND, T0 + 100 * MS, 1, watched_ns=30 * MS, **often, **own, **drawn)
    segment.call_times(T0 + SECOND, 1, 10, 299)
    segment.call_times(T0 + SECOND, 1, 11, 1)
    segment.call_times(T0 + SECOND, 1, 10, 100, own=True)
    segment.calls(T0 + 3 * SECOND, T0 + SECOND, 1, watched_ns=0)
    segment.calls(T0 + 3 * SECOND, T0 + SECOND, 9, watched_ns=2 * SECOND, calls=1)
    return segment


def make_calls() -> None:
    """The program was killed."""
    path = fresh("calls")
    losses = {UNWATCHED: 7}
    write_spool(path / "spool", [program().to_bytes()], control(start_ns=T0, state=1, losses=losses), f"4242-{T0}")
    changes: dict[str, Any] = {"state": "recording", "clock": None, "ended_ns": None, "quality": [], "sampler_cost": {}}
    write_json(path / "manifest.json", manifest(format_version="1.4", **changes))
    counts = {"processes": 1, "threads": 1, "files": 1, "codes": 2, "stacks": 3, "modules": 0, "native_frames": 0}
    counts |= {"cpu": 0, "waits": 0, "calls": 4, "call_times": 4}
    expect(
        "calls",
        state="recording",
        rows=counts,
        sums={"cpu_ns": None, "off_cpu_ns": None},
        values={
            "calls": [
                {"row": 0, "since_ns": T0, "watched_ns": SECOND, "stack": 0, "calls": 3, "ended": 2},
                {"row": 0, "total_ns": 50 * MS, "total_squared": 1.3e15, "longest_ns": 30 * MS, "intervals": 0},
                {"row": 1, "stack": 1, "calls": 300, "own_begun": 100, "own_ended": 100, "own_ns": 90_000},
                {"row": 1, "intervals": 3, "drawn_calls": 1041.5, "drawn_ns": 100 * MS, "drawn_cost_calls": 35.5},
                {"row": 1, "cpu_ns": 800 * MS, "watched_cpu_ns": 29 * MS},
                {"row": 1, "drawn_chance": 3_750.25, "drawn_calls_squared": 363_000.5},
                {"row": 1, "drawn_calls_ns": 3.48e10, "drawn_ns_squared": 3.34e15},
                {"row": 2, "stack": 1, "calls": 0, "watched_ns": 0, "time_ns": T0 + 3 * SECOND},
            ],
            "call_times": [
                {"row": 0, "stack": 0, "own": False, "bucket": 25, "calls": 2},
                {"row": 3, "stack": 1, "own": True, "bucket": 10, "calls": 100},
            ],
        },
        quality=[
            {"process": 0, "loss": "call_functions_unwatched", "count": 7},
            {"process": 0, "loss": "references_lost", "count": 1},
        ],
    )


MAKERS = {"calls": make_calls}

if __name__ == "__main__":
    make(MAKERS)
