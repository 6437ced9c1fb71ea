"""Makes the golden recording with GPUs of version 1.1: ``python -m unit.format.make_gpu_vectors``, in tests.

It is as those of ``make_vectors.py``, with readings of two GPUs.
"""

from __future__ import annotations

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from support.vectors import MS, T0, expect, fresh, make, manifest, unfinished, write_json

GIB = 1 << 30
PARAMETERS = {**manifest()["parameters"], "memory": False, "gpu": True}


def program() -> SegmentBuilder:
    segment = SegmentBuilder(0, 4242, T0)
    segment.meta("python_version", "3.13.0")
    segment.thread_start(0, 4242, T0, main=True)
    segment.stack(0, NONE, NONE, 2)
    segment.cpu(T0 + 50 * MS, stack=0)
    return segment


def readings() -> list[SegmentBuilder]:
    """Two segments by the recording command; samples with times of the driver's go back behind the first's end."""
    first, second = (SegmentBuilder(seq, 4200, T0) for seq in (0, 1))
    first.gpu_device(0, 0, 80 * GIB, "NVIDIA H100 80GB HBM3", "GPU-00000000-0000-4000-8000-000000000000", "580.159.04")
    first.gpu_device(1, 3)  # nothing else is known of it
    first.gpu(T0 + 100 * MS, memory=GIB, power=118_500, temperature=31, users=2, busy=40, memory_busy=0)
    first.gpu(T0 + 100 * MS, 1)
    first.gpu(T0 + 100 * MS, 0, 4242, memory=GIB // 2)
    first.gpu(T0 + 101 * MS, 0, 31_337, memory=GIB // 4)  # of a process that was not recorded
    first.gpu(T0 + 150 * MS, 0, 4242, memory=-5)  # damaged
    first.gpu(T0 + 200 * MS, memory=0, power=0, temperature=-5, users=0, busy=100, memory_busy=100)
    first.loss("gpu_busy_unseen", 1)
    second.gpu(T0 + 167 * MS, since=T0, busy=66)
    second.gpu(T0 + 190 * MS, 0, 4242, since=T0 + 20 * MS, busy=7, memory_busy=1)
    second.gap(b"\x01" * 16)  # never finished
    second.gpu(T0 + 300 * MS, 2, memory=1)  # of a GPU whose definition was lost
    second.loss("gpu_readings_failed", 2)
    second.loss("gpu_readings_failed", 3)
    return [first, second]


def make_gpu() -> None:
    """The program was killed, and the recording command with it."""
    path = fresh("gpu")
    spool = path / "spool"
    write_spool(spool, [program().to_bytes()], control(start_ns=T0, state=1), f"4242-{T0}")
    for seq, segment in enumerate(readings()):
        (spool / f"gpu.{seq:06}.seg").write_bytes(bytes(segment.data))  # it grows: there is no unused tail
    write_json(path / "manifest.json", unfinished(format_version="1.1", parameters=PARAMETERS))
    unknown = {"since_ns": None, "memory_bytes": None, "power_mw": None, "temperature_c": None, "users": None}
    idle = {"busy_percent": None, "memory_busy_percent": None}
    counts = dict.fromkeys(("files", "codes", "modules", "native_frames", "waits"), 0)
    counts |= dict.fromkeys(("processes", "threads", "stacks", "cpu"), 1)
    expect(
        "gpu",
        state="recording",
        rows={**counts, "gpu_devices": 3, "gpu": 7},
        sums={"cpu_ns": 10 * MS, "off_cpu_ns": None},
        values={
            "gpu_devices": [
                {"row": 0, "device": 0, "index": 0, "name": "NVIDIA H100 80GB HBM3", "memory_bytes": 80 * GIB}
                | {"uuid": "GPU-00000000-0000-4000-8000-000000000000", "driver": "580.159.04"},
                {"row": 1, "device": 1, "index": 3, "name": None, "uuid": None, "memory_bytes": None, "driver": None},
                {"row": 2, "device": 2, "index": None, "name": None, "uuid": None, "memory_bytes": None}
                | {"driver": None},
            ],
            "gpu": [
                {"row": 0, "time_ns": T0 + 100 * MS, "since_ns": None, "device": 0, "process": None, "users": 2}
                | {"memory_bytes": GIB, "power_mw": 118_500, "temperature_c": 31, "busy_percent": 40}
                | {"memory_busy_percent": 0},
                {"row": 1, "time_ns": T0 + 100 * MS, "device": 1, "process": None, **unknown, **idle},
                {"row": 2, "device": 0, "process": 0, **unknown, **idle, "memory_bytes": GIB // 2},
                {"row": 3, "time_ns": T0 + 167 * MS, "process": None, **unknown, **idle, "since_ns": T0}
                | {"busy_percent": 66},
                {"row": 4, "time_ns": T0 + 190 * MS, "process": 0, **unknown, "since_ns": T0 + 20 * MS}
                | {"busy_percent": 7, "memory_busy_percent": 1},
                {"row": 5, "time_ns": T0 + 200 * MS, "memory_bytes": 0, "power_mw": 0, "temperature_c": -5, "users": 0}
                | {"busy_percent": 100, "memory_busy_percent": 100, "since_ns": None},
                {"row": 6, "time_ns": T0 + 300 * MS, "device": 2, "process": None, **unknown, **idle}
                | {"memory_bytes": 1},
            ],
        },
        quality=[
            {"process": None, "loss": "records_torn", "count": 2},
            {"process": None, "loss": "gpu_busy_unseen", "count": 1},
            {"process": None, "loss": "gpu_readings_failed", "count": 5},
            {"process": None, "loss": "references_lost", "count": 1},
        ],
    )


MAKERS = {"gpu": make_gpu}

if __name__ == "__main__":
    make(MAKERS)
