"""Reduces the stream to facts: one row for each distinct combination of stack, thread and what attribution looks at.

CPU samples come as the sums of their groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..recording.frame import Frame
from ..recording.tree import NOTHING
from .accumulate import Keys, Totals, summed
from .cells import CELLS, STATES, unpacked
from .groups import COLLECTING_UNKNOWN
from .stream import CpuBatch, Stream, WaitBatch
from .wait_reasons import REASONS

_KINDS = ("world", "gpu", "cpu")
"""Names of what was waited for, in the order of ``stream.WORLD``, GPU and CPU."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was sampled, reduced.

    ``cpu`` has the columns stack, thread (ids; stack -1 is none), frame_class, opcode_class, origin, stack_state,
    kernel_known, samples, cpu_ns, and the parts by the rule: python_ns, native_ns, kernel_ns, unknown_ns. Where the
    kernel's part was not recorded kernel_ns is 0 and the others hold all of the time. ``weight_squared`` is that of all
    samples (``CpuBatch.squared``). ``waits`` has stack, thread, stack_state, kind (world, gpu, cpu), reason
    (``wait_reasons``), spans, wait_ns, or is None where waiting was not recorded. ``collections_known`` says whether
    any sample tells if it was taken in a garbage collection.
    """

    cpu: Frame
    collections_known: bool
    weight_squared: float
    waits: Frame | None


class Reduction:
    """The sink that makes ``Facts``."""

    times = False

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._threads = max(stream.recording.rows("threads"), 1)
        sizes = {"stack": stream.nodes + 1, "thread": self._threads, "reason": len(REASONS), "kind": len(_KINDS)}
        self._wait_keys = Keys({**sizes, "stack_state": STATES})
        self._waits = Totals(("wait_ns",))

    def cpu(self, batch: CpuBatch) -> None:
        """CPU samples are added up by group."""

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        columns = {"stack": batch.stack, "thread": batch.thread, "reason": batch.reason, "kind": batch.kind}
        number = self._wait_keys.of({**columns, "stack_state": batch.state})
        self._waits.add(number, len(self._wait_keys), {"wait_ns": batch.weight_ns})

    def facts(self) -> Facts:
        """What was taken."""
        waits = self._wait_facts() if self._stream.waits_known else None
        collections_known = bool((self._stream.groups.columns["collecting"] != COLLECTING_UNKNOWN).any())
        return Facts(self._cpu_facts(), collections_known, self._stream.sums.weight_squared, waits)

    def _cpu_facts(self) -> Frame:
        groups, totals = self._stream.groups, self._stream.sums.totals
        place = groups.columns["stack"] * self._threads + groups.columns["thread"]
        key, number = np.unique(place * CELLS + groups.cell, return_inverse=True)
        place, cell = np.divmod(key, CELLS)
        sums = {name: summed(number, totals[name], len(key)) for name in ("count", "cpu_ns", "system_ns", "delay_ns")}
        parts = self._stream.division.parts(cell, sums["cpu_ns"], sums["system_ns"], sums["delay_ns"])
        stack, thread = np.divmod(place, self._threads)
        return Frame(
            {
                "stack": stack,
                "thread": thread,
                **unpacked(cell),
                "samples": sums["count"].astype(np.int64),
                "cpu_ns": sums["cpu_ns"],
                **{f"{name}_ns": values for name, values in parts._asdict().items()},
            }
        )

    def _wait_facts(self) -> Frame:
        found = self._wait_keys.columns()
        return Frame(
            {
                "stack": np.where(found["stack"] == self._stream.nodes, NOTHING, found["stack"]),
                "thread": found["thread"],
                "stack_state": found["stack_state"],
                "kind": np.array(_KINDS, object)[found["kind"]],
                "reason": found["reason"],
                "spans": self._waits["count"].astype(np.int64),
                "wait_ns": self._waits["wait_ns"],
            }
        )
