"""Writes spools by hand."""

import struct
from pathlib import Path

from tachograph.recorder.inprocess.spool_layout import CODE, CPU, META, NONE, STACK, THREAD_START
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body, meta_body

SEGMENT = 8192


def write_spool(
    spool: Path, samples: int, *, file: str = "<string>", close: bool = True, segment_size: int = SEGMENT
) -> SpoolWriter:
    """One process with one thread, one stack of two frames, and so many samples, a millisecond apart."""
    writer = SpoolWriter(str(spool), segment_size)
    for key, value in {"sampler": "signal", "interval_ns": "10000000", "python_version": "3.11.7"}.items():
        writer.append(META, meta_body(key, value))
    writer.append(THREAD_START, struct.pack("<IiqII", 0, 4711, writer.start_ns, 1, 0))
    code = compile("def f():\n  pass\nf()", file, "exec")
    writer.append(CODE, code_body(0, code))
    writer.append(STACK, struct.pack("<IIIi", 0, NONE, 0, 2))
    writer.append(STACK, struct.pack("<IIIi", 1, 0, 0, 4))
    add_samples(writer, samples)
    if close:
        writer.close()
    return writer


def add_samples(writer: SpoolWriter, samples: int) -> None:
    """Append CPU rows of 10 ms each."""
    for number in range(samples):
        time_ns = writer.start_ns + number * 1_000_000
        writer.append(CPU, struct.pack("<qqqQIIIBBBB", time_ns, 10_000_000, -1, 0, 0, 1, 0, 1, 0, 2, 0))
