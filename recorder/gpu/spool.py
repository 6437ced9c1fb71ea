"""Writes readings of GPUs into the spool: SPOOL.md, "Segment" and the records GPU_DEVICE, GPU and LOSS.

The file grows by whole records with every write, so what was written is there whatever happens to this process.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import NamedTuple

from tachograph.format.spool.layout import (
    GPU,
    GPU_DEVICE,
    GPU_ROWS,
    LOSS,
    SEGMENT_FIELDS,
    SEGMENT_HEADER,
    SEGMENT_MAGIC,
    SHAPES,
)
from tachograph.format.spool.records import record_header

SEGMENT_LIMIT = 1 << 20
"""Bytes after which the next segment is begun."""

WHOLE_GPU = 0


class Reading(NamedTuple):
    """A row of the table ``gpu``; None is unknown."""

    time_ns: int
    device: int
    pid: int = WHOLE_GPU
    since_ns: int | None = None
    memory_bytes: int | None = None
    power_mw: int | None = None
    temperature_c: int | None = None
    users: int | None = None
    busy: int | None = None
    memory_busy: int | None = None


class GpuSpool:
    """The segments of GPU readings of one recording. Every method raises OSError if there is no room."""

    def __init__(self, spool: Path, limit: int = SEGMENT_LIMIT) -> None:
        self._spool = spool
        self._limit = limit
        self._descriptor: int | None = None
        self._sequence = -1
        self._offset = 0
        self._pending = bytearray()
        self._devices: list[bytes] = []

    @property
    def next_segment(self) -> int:
        """The number of the segment that is begun next."""
        return self._sequence + 1

    def device(self, device: int, index: int, memory_bytes: int | None, name: str, uuid: str, driver: str) -> None:
        """A GPU; ``index`` is the driver's number of it."""
        texts = [text.encode("utf-8", "replace")[:1000] for text in (name, uuid, driver)]
        memory = -1 if memory_bytes is None else memory_bytes
        body = SHAPES[GPU_DEVICE].fixed.pack(device, index, memory, *map(len, texts)) + b"".join(texts)
        self._devices.append(body)
        self._add(GPU_DEVICE, body)

    def turn(self) -> None:
        """Begin another segment, which can be read without those before it."""
        self.flush()
        self.close()
        for body in self._devices:
            self._add(GPU_DEVICE, body)
        self.flush()

    def reading(self, row: Reading) -> None:
        """A row."""
        numbers = (
            row.time_ns,
            _known(row.since_ns, "since_ns"),
            _known(row.memory_bytes, "memory_bytes"),
            _known(row.power_mw, "power_mw"),
            row.device,
            row.pid,
            _known(row.temperature_c, "temperature_c"),
            _known(row.users, "users"),
            _known(row.busy, "busy_percent"),
            _known(row.memory_busy, "memory_busy_percent"),
        )
        self._add(GPU, GPU_ROWS.fixed.pack(*numbers))

    def loss(self, name: str, count: int) -> None:
        """Something could not be recorded, ``count`` times."""
        text = name.encode("ascii")
        self._add(LOSS, SHAPES[LOSS].fixed.pack(count, len(text)) + text)

    def flush(self) -> None:
        """Write what was given since the last time."""
        if not self._pending:
            return
        assert self._descriptor is not None
        data, self._pending = bytes(self._pending), bytearray()
        if os.write(self._descriptor, data) != len(data):
            raise OSError("the disk is full")
        if self._offset >= self._limit:
            self.close()

    def close(self) -> None:
        """Close the segment; the next record begins another."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _add(self, kind: int, body: bytes) -> None:
        if self._descriptor is None:
            self._begin()
        padded = body + bytes(-len(body) % 8)
        length = 8 + len(padded)
        self._pending += struct.pack("<Q", record_header(self._offset, length, kind, self._sequence)) + padded
        self._offset += length

    def _begin(self) -> None:
        self._sequence += 1
        self._descriptor = os.open(
            self._spool / f"gpu.{self._sequence:06}.seg",
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o600,
        )
        head = SEGMENT_FIELDS.pack(SEGMENT_MAGIC, self._sequence, 0, os.getpid(), time.monotonic_ns(), 0)
        self._pending = bytearray(head)
        self._offset = SEGMENT_HEADER


def _known(value: int | None, field: str) -> int:
    return GPU_ROWS.unknown[field] if value is None else value
