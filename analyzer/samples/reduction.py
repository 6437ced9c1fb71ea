"""Reduces the stream to facts: one row for each distinct combination of stack, thread and what attribution looks at.

Time grows with the number of samples and memory with the number of distinct stacks: the rule divides sums, which is the
same as the sums of what it would divide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..recording.frame import Frame
from .accumulate import Accumulator
from .cells import CELLS, STATES, unpacked
from .stream import CpuBatch, Stream, WaitBatch
from .wait_reasons import REASONS

_KINDS = ("world", "gpu", "cpu")
"""Names of what was waited for, in the order of ``stream.WORLD``, GPU and CPU."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was sampled, reduced.

    ``cpu`` has the columns stack, thread (ids; stack -1 is none), frame_class, opcode_class, origin, stack_state,
    kernel_known, samples, cpu_ns, weight_squared, and the parts by the rule: python_ns, native_ns, kernel_ns,
    unknown_ns. Where the kernel's part was not recorded kernel_ns is 0 and the others hold all of the time. ``waits``
    has stack, thread, stack_state, kind (world, gpu, cpu), reason (``wait_reasons``), spans, wait_ns, or is None where
    waiting was not recorded.
    """

    cpu: Frame
    waits: Frame | None


class Reduction:
    """The sink that makes ``Facts``."""

    times = False

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._threads = max(stream.recording.rows("threads"), 1)
        places = (stream.nodes + 1) * self._threads
        self._cpu = Accumulator(places, CELLS, ("cpu_ns", "system_ns", "delay_ns", "weight_squared"))
        self._waits = Accumulator(places, len(REASONS) * len(_KINDS) * STATES, ("wait_ns",))

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        place = np.multiply(batch.stack, self._threads, dtype=np.int64)
        place += batch.thread
        self._cpu.add(place, batch.cell, (batch.weight_ns, batch.system_ns, batch.delay_ns, batch.squared))

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        place = batch.stack * self._threads + batch.thread
        cell = (batch.reason * len(_KINDS) + batch.kind) * STATES + batch.state
        self._waits.add(place, cell, (batch.weight_ns,))

    def facts(self) -> Facts:
        """What was taken."""
        return Facts(self._cpu_facts(), self._wait_facts() if self._stream.waits_known else None)

    def _cpu_facts(self) -> Frame:
        place, cell, sums = self._cpu.sums()
        parts = self._stream.division.parts(cell, sums["cpu_ns"], sums["system_ns"], sums["delay_ns"])
        return Frame(
            {
                **self._ids(place),
                **unpacked(cell),
                "samples": sums["count"].astype(np.int64),
                "cpu_ns": sums["cpu_ns"],
                "weight_squared": sums["weight_squared"],
                **{f"{name}_ns": values for name, values in parts._asdict().items()},
            }
        )

    def _wait_facts(self) -> Frame:
        place, cell, sums = self._waits.sums()
        return Frame(
            {
                **self._ids(place),
                "stack_state": cell % STATES,
                "kind": np.array(_KINDS, object)[cell // STATES % len(_KINDS)],
                "reason": cell // (STATES * len(_KINDS)),
                "spans": sums["count"].astype(np.int64),
                "wait_ns": sums["wait_ns"],
            }
        )

    def _ids(self, place: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        stack, thread = np.divmod(place, self._threads)
        return {"stack": np.where(stack == self._stream.nodes, -1, stack), "thread": thread}
