"""A test-only writer of spools, byte by byte after SPEC.md; it shares no code with tachograph.format."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

NONE = 0xFFFFFFFF
UNKNOWN = -(1 << 63)
FLOWS = [f"{domain}_{what}" for domain in ("native", "mapped", "raw", "mem", "obj") for what in ("allocated", "freed")]


def check(offset: int, length: int, kind: int, seq: int) -> int:
    value = 0xA5C3 ^ (length >> 3) ^ (kind * 0x1F35 & NONE) ^ ((offset >> 3) * 0x2545 & NONE) ^ (seq * 0x3D4D & NONE)
    return value & 0xFFFF


def record(kind: int, body: bytes, offset: int, seq: int) -> bytes:
    padded = body + bytes(-len(body) % 8)
    length = 8 + len(padded)
    header = check(offset, length, kind, seq) << 48 | kind << 32 | length
    return struct.pack("<Q", header) + padded


def text_width(text: str) -> tuple[int, bytes]:
    widest = max(map(ord, text), default=0)
    if widest < 0x100:
        return 1, text.encode("latin-1")
    if widest < 0x10000:
        return 2, b"".join(struct.pack("<H", ord(c)) for c in text)
    return 4, b"".join(struct.pack("<I", ord(c)) for c in text)


class SegmentBuilder:
    """One segment; every method appends one record."""

    def __init__(self, seq: int = 0, pid: int = 4242, start_ns: int = 1_000_000_000, size: int = 8192) -> None:
        self.seq = seq
        self.size = size
        self.data = bytearray(struct.pack("<8sIIiIq", b"TACHSEG1", seq, size, pid, 0, start_ns).ljust(64, b"\0"))

    def __len__(self) -> int:
        return len(self.data)

    def to_bytes(self) -> bytes:
        assert len(self.data) <= self.size
        return bytes(self.data).ljust(self.size, b"\0")

    def add(self, kind: int, body: bytes) -> None:
        self.data += record(kind, body, len(self.data), self.seq)

    def gap(self, data: bytes) -> None:
        """Bytes that are no record, such as one that was never committed."""
        self.data += data

    def meta(self, key: str, value: str) -> None:
        names, values = key.encode(), value.encode()
        self.add(1, struct.pack("<HHI", len(names), 0, len(values)) + names + values)

    def thread_start(self, thread: int, tid: int, time_ns: int, *, main: bool = False) -> None:
        self.add(2, struct.pack("<IiqII", thread, tid, time_ns, main, 0))

    def thread_name(self, thread: int, name: str, source: int = 1) -> None:
        data = name.encode()
        self.add(3, struct.pack("<IHH", thread, source, len(data)) + data)

    def thread_end(self, thread: int, time_ns: int, cpu_ns: int) -> None:
        self.add(4, struct.pack("<IIqq", thread, 0, time_ns, cpu_ns))

    def code(
        self,
        code: int,
        filename: str,
        qualname: str,
        first_line: int,
        line_table: bytes | None,
        flags: int = 3,
        template_lines: str = "",
    ) -> None:
        file_width, file = text_width(filename)
        name_width, name = text_width(qualname)
        table_length = NONE if line_table is None else len(line_table)
        head = struct.pack(
            "<IiIIIBBHII",
            *(code, first_line, flags, table_length, len(filename), file_width, name_width, 0, len(qualname)),
            len(template_lines),
        )
        self.add(5, head + file + name + (line_table or b"") + template_lines.encode())

    def stack(self, stack: int, parent: int, code: int, instruction: int) -> None:
        self.add(6, struct.pack("<IIIi", stack, parent, code, instruction))

    def task_stack(self, stack: int, parent: int, code: int, instruction: int, name: str) -> None:
        width, text = text_width(name)
        self.add(21, struct.pack("<IIIiIBBBB", stack, parent, code, instruction, len(name), width, 0, 0, 0) + text)

    def native_stack(self, native_stack: int, parent: int, pc: int, stack: int = NONE) -> None:
        self.add(22, struct.pack("<IIQII", native_stack, parent, pc, stack, 0))

    def thread_origin(self, thread: int, creator: int, start: int) -> None:
        self.add(23, struct.pack("<IIQ", thread, creator, start))

    def position(
        self,
        time_ns: int,
        sampled: int,
        thread: int,
        *,
        stack: int = NONE,
        cpu_ns: int = 0,
        running: int = 0,
        state: int = 0,
        holds: int = 0,
    ) -> None:
        """``thread`` stood there when ``sampled``, a thread without Python frames, was sampled."""
        self.add(24, struct.pack("<qqIIIBBBB", time_ns, cpu_ns, sampled, thread, stack, running, state, holds, 0))

    def touched(self, time_ns: int, block: int, resident: int) -> None:
        """So much of the block was in memory then."""
        self.add(29, struct.pack("<qqII", time_ns, resident, block, 0))

    def calls(self, time_ns: int, since_ns: int, stack: int, **values: float) -> None:
        """A function was watched; ``values`` are the other fields of CALLS by name, 0 if they are not given."""
        names = (
            *("watched_ns", "calls", "ended", "total_ns", "longest_ns", "own_begun", "own_ended", "own_ns"),
            *("own_longest_ns", "cpu_ns", "watched_cpu_ns", "drawn_ns"),
        )
        whole = [int(values.get(name, 0)) for name in names]
        parts = (
            *("total_squared", "own_squared", "drawn_calls", "drawn_cost_calls", "drawn_chance"),
            *("drawn_calls_squared", "drawn_calls_ns", "drawn_ns_squared"),
        )
        sums = [float(values.get(name, 0)) for name in parts]
        counted = [int(values.get(f"counted_{name}", 0)) for name in ("ns", "cpu_ns", "calls")]
        of_stack = (stack, int(values.get("intervals", 0)))
        self.add(27, struct.pack("<14q8dII3q", time_ns, since_ns, *whole, *sums, *of_stack, *counted))

    def call_times(
        self, time_ns: int, stack: int, bucket: int, calls: int, *, own: bool = False, eighth: int = 0
    ) -> None:
        """So many calls of a function lasted so long."""
        self.add(28, struct.pack("<qqIBBBB", time_ns, calls, stack, own, bucket, eighth, 0))

    def redundancy(
        self,
        time_ns: int,
        *,
        thread: int = 0,
        stack: int = NONE,
        access: int = 0,
        outcome: int = 0,
        equal: int = 2,
        crossed: int = 2,
        partner_ns: int = 0,
        partner_stack: int = NONE,
        pc: int = 0,
        partner_pc: int = 0,
        cpu_ns: int = 10_000_000,
        width: int = 8,
    ) -> None:
        """A sampled access; by default a load of 8 bytes that met no partner."""
        partner = width if partner_ns else 0
        opcodes = (0x8B, 0x8B if partner_ns else NONE)
        numbers = struct.pack("<qqQqQ", time_ns, cpu_ns, pc, partner_ns, partner_pc)
        numbers += struct.pack("<IIIIIII", thread, stack, 0, partner_stack, 0, *opcodes)
        partner_state = 0 if partner_ns else 5
        rest = (width, partner, access, outcome, equal, crossed, 0, 0, 0, partner_state, 0)
        self.add(30, numbers + struct.pack("<11Bx", *rest))

    def module(
        self,
        module: int,
        path: str,
        start: int,
        end: int,
        offset: int = 0,
        *,
        time_ns: int = 0,
        interpreter: bool = False,
        build_id: bytes = b"",
    ) -> None:
        data = path.encode()
        head = struct.pack("<IIQQQqHHI", module, interpreter, start, end, offset, time_ns, len(build_id), len(data), 0)
        self.add(7, head + build_id + data)

    def cpu(
        self,
        time_ns: int,
        thread: int = 0,
        stack: int = NONE,
        *,
        cpu_ns: int = 10_000_000,
        system_ns: int = 0,
        pc: int = 0,
        overruns: int = 0,
        gil: int = 1,
        opcode: int = 0,
        origin: int = 0,
        state: int = 0,
        native: tuple[int, int] | None = None,
        span: int | None = None,
    ) -> None:
        """``native`` are the native stack and how it was got; None is a record of a version before 1.3.

        So is that without a ``span`` one before 1.5.
        """
        fields = (time_ns, cpu_ns, system_ns, pc, thread, stack, overruns, gil, opcode, origin, state)
        more = b"" if native is None else struct.pack("<IB3x", *native)
        if span is not None:
            more = struct.pack("<IB3xI4x", *(native or (0, 0)), span)
        self.add(8, struct.pack("<qqqQIIIBBBB", *fields) + more)

    def wait(
        self,
        start_ns: int,
        end_ns: int,
        thread: int = 0,
        stack: int = NONE,
        *,
        off_cpu_ns: int | None = None,
        pc: int = 0,
        syscall: int = -1,
        target: int = 0,
        state: int = 0,
        span: int | None = None,
    ) -> None:
        more = b"" if span is None else struct.pack("<II", 0, span)
        off = end_ns - start_ns if off_cpu_ns is None else off_cpu_ns
        self.add(
            9, struct.pack("<qqqQIIiBBH", start_ns, end_ns, off, pc, thread, stack, syscall, target, state, 0) + more
        )

    def state(self, time_ns: int, event: int, detail: int = 0) -> None:
        self.add(10, struct.pack("<qII", time_ns, event, detail))

    def awaiting(
        self,
        time_ns: int,
        since_ns: int,
        stack: int = NONE,
        awaiter: int = NONE,
        tasks: int = 0,
        chance: float = 1.0,
        span: int = 0,
    ) -> None:
        self.add(34, struct.pack("<qqdIIII", time_ns, since_ns, chance, stack, awaiter, tasks, span))

    def memory(
        self,
        time_ns: int,
        flows: dict[str, int] | None = None,
        *,
        footprint: int = UNKNOWN,
        peak: int = UNKNOWN,
        resident: int = -1,
        faults: tuple[int, int] = (-1, -1),
        pc: int = 0,
        thread: int = NONE,
        stack: int = NONE,
        kept: int = NONE,
        event: int = 2,
        state: int = 5,
    ) -> None:
        """``flows`` are bytes by the names native_allocated, native_freed and so on; what is not there is 0."""
        amounts = [(flows or {}).get(name, 0) for name in FLOWS]
        fields = (time_ns, footprint, peak, *amounts, resident, *faults, pc, thread, stack, kept, event, state, 0)
        self.add(11, struct.pack("<16qQIIIBBH", *fields))

    def block(
        self,
        time_ns: int,
        block: int,
        size: int = 1024,
        *,
        requested: int | None = None,
        mean: int = 524288,
        weight: int | None = None,
        pc: int = 0,
        thread: int = NONE,
        stack: int = NONE,
        domain: int = 0,
        state: int = 0,
        followed: int = 1,
        native: tuple[int, int] | None = None,
        span: int = 0,
    ) -> None:
        asked = size if requested is None else requested
        stands_for = mean + size // 2 if weight is None else weight
        numbers = (time_ns, size, asked, mean, stands_for, pc, block, thread, stack)
        path, more = (0, b"") if native is None else (native[1], struct.pack("<II", native[0], span))
        self.add(12, struct.pack("<qqqqqQIIIBBBB", *numbers, domain, state, followed, path) + more)

    def freed(self, time_ns: int, block: int, thread: int = NONE) -> None:
        self.add(13, struct.pack("<qII", time_ns, block, thread))

    def copy(
        self,
        time_ns: int,
        amount: int,
        size: int,
        *,
        mean: int = 1048576,
        pc: int = 0,
        thread: int = 0,
        stack: int = NONE,
        state: int = 0,
        native: tuple[int, int] = (0, 0),
        span: int | None = None,
    ) -> None:
        more = b"" if span is None else struct.pack("<I4x", span)
        numbers = (time_ns, amount, size, mean, pc, thread, stack, state)
        self.add(14, struct.pack("<qqqqQIIBBHI", *numbers, native[1], 0, native[0]) + more)

    def span(
        self, span: int, start_ns: int, end_ns: int, name: str, fields: str = "", *, thread: int = 0, parent: int = NONE
    ) -> None:
        names, values = name.encode(), fields.encode()
        head = struct.pack("<qqIIIHHII", start_ns, end_ns, thread, span, parent, len(names), 0, len(values), 0)
        self.add(15, head + names + values)

    def gpu_device(
        self, device: int, index: int, memory: int = -1, name: str = "", uuid: str = "", driver: str = ""
    ) -> None:
        texts = [text.encode() for text in (name, uuid, driver)]
        self.add(16, struct.pack("<IIqHHHH", device, index, memory, *map(len, texts), 0) + b"".join(texts))

    def gpu(
        self,
        time_ns: int,
        device: int = 0,
        pid: int = 0,
        *,
        since: int = UNKNOWN,
        memory: int = -1,
        power: int = -1,
        temperature: int = -(1 << 31),
        users: int = NONE,
        busy: int = 255,
        memory_busy: int = 255,
    ) -> None:
        fields = (time_ns, since, memory, power, device, pid, temperature, users, busy, memory_busy)
        self.add(17, struct.pack("<qqqqIiiIBB6x", *fields))

    def loss(self, name: str, count: int) -> None:
        text = name.encode()
        self.add(18, struct.pack("<QHHI", count, len(text), 0, 0) + text)


def control(
    *,
    pid: int = 4242,
    parent: int = 4200,
    start_ns: int = 1_000_000_000,
    utc_ns: int = 1_800_000_000_000_000_000,
    segment_size: int = 8192,
    seq: int = 0,
    state: int = 2,
    error: int = 0,
    paused: int = 0,
    end_ns: int = 0,
    helper_ns: int = 5_000_000,
    handler_ns: int = 7_000_000,
    samples: int = 0,
    ticks: int = 0,
    losses: dict[int, int] | None = None,
    major: int = 1,
    stop_requested: int = 0,
    own_bytes: int = 0,
    pending_unkept: int = 0,
    snapshots: int = 0,
    footprint: int = 0,
    unrecorded: Sequence[int] = (),
    copied_ns: int = 0,
    pending: Sequence[bytes] = (),
) -> bytes:
    """A control file; ``pending`` are the records in the first places behind it, each 72 bytes or empty."""
    head = struct.pack(
        "<8sIIiiqqQIIIIqqqQQI4xQII",
        *(b"TACHCTL1", major, 0, pid, parent, start_ns, utc_ns, segment_size, seq, state, error, paused, end_ns),
        *(helper_ns, handler_ns, samples, ticks, stop_requested, own_bytes, pending_unkept, snapshots),
    )
    counters = [0] * 64
    for index, count in (losses or {}).items():
        counters[index] = count
    memory = struct.pack("<q10q", footprint, *unrecorded, *[0] * (10 - len(unrecorded)))
    body = head.ljust(128, b"\0") + struct.pack("<64Qq", *counters, copied_ns)
    body = body.ljust(656, b"\0") + memory
    return body.ljust(4096, b"\0") + b"".join(place.ljust(72, b"\0") for place in pending)


def pending_block(place: int, time_ns: int, size: int, *, stack: int = NONE, seq: int = 0) -> bytes:
    """The record of a pending block in a place behind a control file."""
    numbers = (time_ns, size, size, 524288, 524288 + size // 2, 0, 0xFFFF0000 + place, NONE, stack)
    return record(12, struct.pack("<qqqqqQIIIBBBB", *numbers, 0, 0, 1, 0), 4096 + 72 * place, seq)


def log_record(
    kind: int,
    pid: int,
    time_ns: int,
    *,
    parent: int = 4200,
    status: int = -(1 << 31),
    numbers: tuple[int, int, int] = (-1, -1, -1),
    executable: bytes = b"",
    command: bytes = b"",
) -> bytes:
    """A record of the process log; ``command`` has the arguments with NUL between them."""
    head = (b"TACHPRC1", kind, pid, parent, status, time_ns, *numbers, len(executable), len(command))
    return (struct.pack("<8sIiiiqqqqII", *head) + executable + command).ljust(512, b"\0")


def short_record(record: bytes) -> bytes:
    """A record of the process log without what follows its texts."""
    return b"TACHPRC2" + record[8 : 64 + sum(struct.unpack_from("<II", record, 56))]


def write_spool(
    spool: Path, segments: list[bytes], control_file: bytes | None, prefix: str = "4242-1000000000"
) -> None:
    spool.mkdir(parents=True, exist_ok=True)
    if control_file is not None:
        (spool / f"{prefix}.ctl").write_bytes(control_file)
    for seq, data in enumerate(segments):
        (spool / f"{prefix}.{seq:06}.seg").write_bytes(data)
