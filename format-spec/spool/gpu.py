"""Builds the tables gpu and gpu_devices from what the recording command wrote about GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import FormatError, clean_text
from ..schema import Specification
from .arrow_columns import call, column, converted, index_in, scalar, sorted_by, table_of, total
from .directory import SpoolDirectory
from .layout import GPU_ROWS, GpuDevice, LossCount
from .process_definitions import ProcessFacts
from .rows import mentioned, raw_table
from .segment import Segment

if TYPE_CHECKING:
    import pyarrow as pa

WHOLE_GPU = 0
"""The pid of readings that are of no process in particular."""

_NOT_NEGATIVE = ("memory_bytes", "power_mw")


@dataclass
class GpuFacts:
    """The GPU devices and readings of a spool; the readings stay on the disk until they are requested.

    ``owners`` has the recorded processes by pid: (start in ns, process id in the recording), in the order of start.
    ``losses`` are counts by the name of the loss.
    """

    spool: SpoolDirectory
    owners: dict[int, list[tuple[int, int]]]
    devices: dict[int, GpuDevice] = field(default_factory=dict)
    mentioned: set[int] = field(default_factory=set)
    losses: dict[str, int] = field(default_factory=dict)
    _pieces: list[tuple[int, int]] = field(default_factory=list)

    def add(self, segment: Segment) -> None:
        """Note what a segment defines, and which readings it has."""
        for record in segment.definitions():
            if isinstance(record, GpuDevice):
                self.devices.setdefault(record.device, record)
            elif isinstance(record, LossCount):
                self.count(record.loss, record.times)
        self.count("records_torn", segment.torn)
        raw = raw_table(GPU_ROWS, segment.rows(GPU_ROWS.kind))
        sound = _sound(raw)
        self.count("records_torn", raw.num_rows - sound.num_rows)
        self.mentioned |= mentioned(sound, "device")
        if sound.num_rows:
            self._pieces.append((min(sound.column("time_ns").to_pylist()), segment.seq))

    def count(self, loss: str, count: int) -> None:
        """Add to the count of a loss."""
        if count:
            self.losses[loss] = self.losses.get(loss, 0) + count

    def devices_table(self, spec: Specification) -> pa.Table:
        """One row per GPU, in the order of the spool's ids; one that is only mentioned has unknowns."""
        rows: list[tuple[object, ...]] = []
        for row, number in enumerate(self._numbers()):
            device = self.devices.get(number)
            if device is None:
                self.count("references_lost", 1)
                rows.append((row, *[None] * 5))
                continue
            memory = device.memory_bytes if device.memory_bytes >= 0 else None
            texts = (clean_text(text) or None for text in (device.name, device.uuid, device.driver))
            name, uuid, driver = texts
            rows.append((row, device.number, name, uuid, memory, driver))
        return table_of(rows, spec.tables["gpu_devices"].schema)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The rows of the table gpu in the order of time, a segment's worth at a time.

        Errors:
            FormatError, OSError: a segment has been changed or removed since.
        """
        import pyarrow as pa

        pieces = sorted(self._pieces)
        pending = table_of([], schema)
        for place, (_, seq) in enumerate(pieces):
            raw = _sound(raw_table(GPU_ROWS, self.spool.gpu_segment(seq).rows(GPU_ROWS.kind)))
            merged = sorted_by(pa.concat_tables([pending, self._final(raw, schema)]), [("time_ns", "ascending")])
            ready = merged.num_rows
            if place + 1 < len(pieces):
                later = scalar(pieces[place + 1][0], pa.int64())
                ready = total(call("less", merged.column("time_ns"), later))
            if ready:
                yield merged.slice(0, ready)
            pending = merged.slice(ready)

    def _numbers(self) -> list[int]:
        return sorted(self.devices.keys() | self.mentioned)

    def _final(self, raw: pa.Table, schema: pa.Schema) -> pa.Table:
        """Readings with the recording's ids; those of processes that were not recorded are left out."""
        import pyarrow as pa

        owner = self._owners(raw)
        ours = call("or", call("is_valid", owner), call("equal", raw.column("pid"), scalar(WHOLE_GPU, pa.int32())))
        columns = {name: raw.column(name) for name in raw.column_names} | {"process": owner}
        numbers = self._numbers()
        places = index_in(columns["device"], column(numbers, pa.uint32()))
        columns["device"] = converted(places, pa.uint32())
        for name, unknown in GPU_ROWS.unknown.items():
            missing = call("equal", columns[name], scalar(unknown, columns[name].type))
            columns[name] = call("if_else", missing, scalar(None, columns[name].type), columns[name])
        return call("filter", pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema), ours)

    def _owners(self, raw: pa.Table) -> pa.ChunkedArray:
        """The process of each reading: the latest of that pid that had begun."""
        import pyarrow as pa

        owner = pa.chunked_array([pa.nulls(raw.num_rows, pa.uint32())])
        for pid in mentioned(raw, "pid", WHOLE_GPU) & self.owners.keys():
            mine = call("equal", raw.column("pid"), scalar(pid, pa.int32()))
            for start_ns, process in self.owners[pid]:
                begun = call("greater_equal", raw.column("time_ns"), scalar(start_ns, pa.int64()))
                owner = call("if_else", call("and", mine, begun), scalar(process, pa.uint32()), owner)
        return owner


def read_gpu(spool: SpoolDirectory, processes: Sequence[ProcessFacts]) -> GpuFacts:
    """Reads the GPU segments of a spool; damage is counted, never an error. ``processes`` are in the order of start.

    Errors:
        FormatError: the spool cannot be listed.
    """
    owners: dict[int, list[tuple[int, int]]] = {}
    for process in processes:
        owners.setdefault(process.pid, []).append((process.start_ns, process.number))
    facts = GpuFacts(spool, owners)
    present = spool.gpu_segments()
    if present:
        facts.count("segments_missing", present[-1] + 1 - present[0] - len(present))
    for seq in present:
        try:
            facts.add(spool.gpu_segment(seq))
        except (OSError, FormatError):
            facts.count("segments_missing", 1)
    return facts


def _sound(raw: pa.Table) -> pa.Table:
    """The readings without those that hold an amount below 0, which are damaged (-1 stands for unknown)."""
    import pyarrow as pa

    for name in _NOT_NEGATIVE:
        least = scalar(GPU_ROWS.unknown[name], pa.int64())
        raw = call("filter", raw, call("greater_equal", raw.column(name), least))
    return raw
