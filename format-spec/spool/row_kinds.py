"""The kinds of spool records that become rows: their layouts, as in SPEC.md "Record", and what their values mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .records import BLOCK, COPY, CPU, FREED, GPU, MEMORY, NONE, ROW_LENGTHS, WAIT

if TYPE_CHECKING:
    import pyarrow as pa

Code = Literal["q", "Q", "I", "i", "B"]
Referred = Literal["thread", "stack", "pc"]
SIZES: Mapping[Code, int] = {"q": 8, "Q": 8, "I": 4, "i": 4, "B": 1}
_ARROW = {"q": "int64", "Q": "uint64", "I": "uint32", "i": "int32", "B": "uint8"}
_LEAST_INT64 = -(1 << 63)


@dataclass(frozen=True)
class Reference:
    """A field that holds an id or an address of the process; ``column`` is its place in the table.

    ``none`` is the value that stands for none; None where there is always one.
    """

    field: str
    column: str
    to: Referred
    none: int | None


@dataclass(frozen=True)
class RowKind:
    """A kind of record that becomes rows; ``name`` is that of its file in a part.

    ``table`` is the table that the rows are in, None where they only complete others. ``fields`` are (name, struct
    type, offset in the record), ``unknown`` the values that stand for "unknown". ``joined`` are references in columns
    that rows of another kind add. A part lacks the file of an ``optional`` kind where there are no rows.
    """

    name: str
    kind: int
    table: str | None
    time: str
    fields: tuple[tuple[str, Code, int], ...]
    references: tuple[Reference, ...]
    unknown: Mapping[str, int] = field(default_factory=dict)
    optional: bool = True
    joined: tuple[Reference, ...] = ()

    @property
    def length(self) -> int:
        """Bytes of a record, a multiple of 8."""
        return ROW_LENGTHS[self.kind]

    @property
    def raw_schema(self) -> pa.Schema:
        """Schema of the file in a part: the record's fields, as they are in the spool."""
        import pyarrow as pa

        types = [(name, pa.type_for_alias(_ARROW[code])) for name, code, _ in self.fields]
        return pa.schema([pa.field(name, arrow, nullable=False) for name, arrow in types])


_SOME_THREAD = Reference("thread", "thread", "thread", None)
_PERHAPS_A_THREAD = Reference("thread", "thread", "thread", NONE)
_PLACE = (Reference("stack", "stack", "stack", NONE), Reference("pc", "native_frame", "pc", 0))
DOMAINS = ("native", "mapped", "raw", "mem", "obj")

CPU_ROWS = RowKind(
    "cpu",
    CPU,
    "cpu",
    "time_ns",
    (
        ("time_ns", "q", 8),
        ("cpu_ns", "q", 16),
        ("system_ns", "q", 24),
        ("pc", "Q", 32),
        ("thread", "I", 40),
        ("stack", "I", 44),
        ("overruns", "I", 48),
        ("gil", "B", 52),
        ("opcode", "B", 53),
        ("origin", "B", 54),
        ("stack_state", "B", 55),
    ),
    (_SOME_THREAD, *_PLACE),
    {"system_ns": -1, "opcode": 0},
    optional=False,
)
WAIT_ROWS = RowKind(
    "waits",
    WAIT,
    "waits",
    "start_ns",
    (
        ("start_ns", "q", 8),
        ("end_ns", "q", 16),
        ("off_cpu_ns", "q", 24),
        ("pc", "Q", 32),
        ("thread", "I", 40),
        ("stack", "I", 44),
        ("syscall", "i", 48),
        ("target", "B", 52),
        ("stack_state", "B", 53),
    ),
    (_SOME_THREAD, *_PLACE),
    {"syscall": -1},
    optional=False,
)
_FLOWS = [f"{domain}_{what}_bytes" for domain in DOMAINS for what in ("allocated", "freed")]
MEMORY_ROWS = RowKind(
    "memory",
    MEMORY,
    "memory",
    "time_ns",
    (
        ("time_ns", "q", 8),
        ("footprint_bytes", "q", 16),
        ("peak_bytes", "q", 24),
        *((name, "q", 32 + 8 * index) for index, name in enumerate(_FLOWS)),
        ("resident_bytes", "q", 112),
        ("minor_faults", "q", 120),
        ("major_faults", "q", 128),
        ("pc", "Q", 136),
        ("thread", "I", 144),
        ("stack", "I", 148),
        ("kept_frames", "I", 152),
        ("event", "B", 156),
        ("stack_state", "B", 157),
    ),
    (_PERHAPS_A_THREAD, *_PLACE),
    {
        "footprint_bytes": _LEAST_INT64,
        "peak_bytes": _LEAST_INT64,
        "resident_bytes": -1,
        "minor_faults": -1,
        "major_faults": -1,
        "kept_frames": NONE,
    },
)
BLOCK_ROWS = RowKind(
    "blocks",
    BLOCK,
    "allocations",
    "time_ns",
    (
        ("time_ns", "q", 8),
        ("size_bytes", "q", 16),
        ("requested_bytes", "q", 24),
        ("mean_bytes", "q", 32),
        ("weight_bytes", "q", 40),
        ("pc", "Q", 48),
        ("block", "I", 56),
        ("thread", "I", 60),
        ("stack", "I", 64),
        ("domain", "B", 68),
        ("stack_state", "B", 69),
        ("followed", "B", 70),
    ),
    (_PERHAPS_A_THREAD, *_PLACE),
    joined=(Reference("freed_thread", "freed_thread", "thread", NONE),),
)
FREED_ROWS = RowKind(
    "freed",
    FREED,
    None,
    "time_ns",
    (("time_ns", "q", 8), ("block", "I", 16), ("thread", "I", 20)),
    (_PERHAPS_A_THREAD,),
)
COPY_ROWS = RowKind(
    "copies",
    COPY,
    "copies",
    "time_ns",
    (
        ("time_ns", "q", 8),
        ("bytes", "q", 16),
        ("size_bytes", "q", 24),
        ("mean_bytes", "q", 32),
        ("pc", "Q", 40),
        ("thread", "I", 48),
        ("stack", "I", 52),
        ("stack_state", "B", 56),
    ),
    (_SOME_THREAD, *_PLACE),
)
GPU_ROWS = RowKind(
    "gpu",
    GPU,
    "gpu",
    "time_ns",
    (
        ("time_ns", "q", 8),
        ("since_ns", "q", 16),
        ("memory_bytes", "q", 24),
        ("power_mw", "q", 32),
        ("device", "I", 40),
        ("pid", "i", 44),
        ("temperature_c", "i", 48),
        ("users", "I", 52),
        ("busy_percent", "B", 56),
        ("memory_busy_percent", "B", 57),
    ),
    (),
    {
        "since_ns": _LEAST_INT64,
        "memory_bytes": -1,
        "power_mw": -1,
        "temperature_c": -(1 << 31),
        "users": NONE,
        "busy_percent": 255,
        "memory_busy_percent": 255,
    },
)
"""Written by the recording command, so in no part: see ``gpu``."""
ROW_KINDS = {each.name: each for each in (CPU_ROWS, WAIT_ROWS, MEMORY_ROWS, BLOCK_ROWS, FREED_ROWS, COPY_ROWS)}
TABLE_KINDS = {each.table: each for each in ROW_KINDS.values() if each.table is not None}
"""The kind of the rows of each table that has rows."""
