"""CPU time of the recorder's own hooks: the samples that met the program in them.

A hook takes less time than reading a clock would, so nothing measures it when it runs. What it calls in place of the
program, the C library's allocator or the interpreter's, is not in it.
"""

from __future__ import annotations

import re

import numpy as np

from tachograph.format.arrays import ids

from ..recording.quality import HooksTime
from ..samples.stream import Stream
from ..statistics.intervals import effective_samples, wilson

_LIBRARY = re.compile(r"(.*/)?libtachograph(-cpu)?\.so$")
_MEASURED = re.compile(r"tachograph::native_path::")
"""Walks of the stack for blocks that are sampled: their time is measured, and among that of the handlers."""


def hooks_time(stream: Stream, weight_squared: float) -> HooksTime | None:
    """The time of the hooks in the samples of a stream; None if memory or native frames were not recorded."""
    recording = stream.recording
    frames, modules = recording.table("native_frames"), recording.table("modules")
    library = np.array([bool(_LIBRARY.match(path)) for path in modules.column("path").to_pylist()], np.bool_)
    if not recording.recorded("memory") or not library.any():
        return None
    inside = np.append(library, False)[ids(frames.column("module"), modules.num_rows)]
    for index in np.flatnonzero(inside):
        inside[index] = not _MEASURED.match(frames.column("symbol")[index].as_py() or "")
    cpu_ns, native = stream.sums.totals["cpu_ns"], stream.groups.columns["native"]
    whole = float(cpu_ns.sum())
    if whole <= 0:
        return None
    hooks = float(cpu_ns[(native >= 0) & np.append(inside, False)[native]].sum())
    low, high = wilson(np.array([hooks / whole]), effective_samples(whole, weight_squared))
    return HooksTime(hooks / 1e9, float(low[0]) * whole / 1e9, float(high[0]) * whole / 1e9)
