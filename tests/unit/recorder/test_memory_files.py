"""Memory of recorded processes, held and copied into files; and who may pass it on. The processes are of this test."""

import fcntl
import gc
import os
import resource
import socket
import struct
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tachograph.format.spool.directory import SpoolDirectory, decode_control
from tachograph.format.spool.ended_files import ENDED_NAME, EndedFiles, member
from tachograph.format.spool.layout import (
    CONTROL_MAGIC,
    CONTROL_SIZE,
    COPIED_NS_AT,
    CURRENT_SEGMENT_AT,
    REQUEST_FIELDS,
    REQUEST_MAGIC,
    SEGMENT_FIELDS,
    SEGMENT_MAGIC,
    SEGMENTS_COPIED_AT,
    SEGMENTS_QUIET_AT,
    START_NS_AT,
    STOP_REQUESTED_AT,
    Request,
)
from tachograph.format.spool.records import record_header
from tachograph.recorder.collect.memory_files import MemoryFiles
from tachograph.recorder.collect.running import is_over
from tachograph.recorder.fd_broker.broker import FdBroker
from tachograph.recorder.fd_broker.socket_name import listen_at

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's memory files")

PAGE = 4096
SEGMENT = 128 << 10
CONTROL = CONTROL_SIZE + 8192
SEALS = 1 | 2 | 4
"""F_SEAL_SEAL, F_SEAL_SHRINK and F_SEAL_GROW."""

U32, U64, I64 = struct.Struct("<I"), struct.Struct("<Q"), struct.Struct("<q")


def memory(size: int, *, seals: int = SEALS) -> int:
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, 1033, seals)
    return descriptor


class Writer:
    """A process that has passed its files on, as we see it: its descriptors are those of the holder as well."""

    def __init__(self, held: MemoryFiles, spool: Path, pid: int, start_ns: int) -> None:
        self.held, self.spool, self.pid, self.start_ns = held, spool, pid, start_ns
        self.control, self.segments = memory(CONTROL), [memory(SEGMENT)]
        self.put(self.control, CONTROL_MAGIC + U32.pack(1), 0)
        self.put(self.control, U32.pack(1), 52)  # recording
        self.put(self.control, I64.pack(start_ns), START_NS_AT)
        held.add_process(self.prefix, pid, (os.dup(self.control), CONTROL), (os.dup(self.segments[0]), SEGMENT))

    @property
    def prefix(self) -> str:
        return f"{self.pid}-{self.start_ns}"

    @staticmethod
    def put(descriptor: int, data: bytes, at: int) -> None:
        os.pwrite(descriptor, data, at)

    def say(self, value: int, at: int) -> None:
        self.put(self.control, U32.pack(value), at)

    def told(self, at: int) -> int:
        return int(U32.unpack(os.pread(self.control, 4, at))[0])

    def go_on(self) -> None:
        self.segments.append(memory(SEGMENT))
        self.held.add_segment(self.prefix, len(self.segments) - 1, (os.dup(self.segments[-1]), SEGMENT))
        self.say(len(self.segments) - 1, CURRENT_SEGMENT_AT)

    def file(self, end: str) -> bytes:
        return (self.spool / f"{self.prefix}.{end}").read_bytes()

    def is_copied(self, sequence: int) -> bool:
        return self.file(f"{sequence:06}.seg") == os.pread(self.segments[sequence], SEGMENT, 0)


@pytest.fixture
def held(tmp_path: Path) -> MemoryFiles:
    return MemoryFiles(tmp_path)


@pytest.fixture
def writer(held: MemoryFiles, tmp_path: Path) -> Writer:
    return Writer(held, tmp_path, os.getpid(), time.monotonic_ns())


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", "0"]) as child:
        child.wait()
        return child.pid


def test_what_is_new_is_copied(held: MemoryFiles, writer: Writer) -> None:
    """Also behind a record that has no byte yet, and that record when it has."""
    for at, data in ((64, b"first"), (60_000, b"behind a gap"), (4090, b"over two pages"), (60_050, b"last")):
        writer.put(writer.segments[0], data, at)
        held.copy()
        assert writer.is_copied(0)
    control = decode_control(writer.file("ctl"))
    assert (control.recording, control.behind, control.on_disk) == (True, True, False)
    assert held.settle(writer.prefix)
    assert writer.is_copied(0)


def test_full_segments_are_let_go(held: MemoryFiles, writer: Writer) -> None:
    writer.put(writer.segments[0], b"x" * (SEGMENT - 64), 64)
    writer.go_on()
    held.copy()
    assert (held.holds(writer.prefix, 0), writer.told(SEGMENTS_COPIED_AT)) == (True, 0)
    writer.put(writer.segments[0], b"last", 80)  # a thread that was in the middle of it
    writer.say(1, SEGMENTS_QUIET_AT)
    held.copy()
    assert (held.holds(writer.prefix, 0), writer.told(SEGMENTS_COPIED_AT)) == (False, 1)
    assert writer.is_copied(0)
    assert held.open_files == 2


def test_a_process_that_has_ended(held: MemoryFiles, tmp_path: Path) -> None:
    """Its files are whole, and take only the room that they need."""
    writer = Writer(held, tmp_path, ended_process(), time.monotonic_ns())
    writer.put(writer.segments[0], b"all", 64)
    held.copy()
    assert held.open_files == 0
    control = decode_control(writer.file("ctl"))
    assert (control.recording, control.behind, control.on_disk) == (True, False, False)
    assert writer.is_copied(0)
    assert (tmp_path / f"{writer.prefix}.000000.seg").stat().st_blocks * 512 < SEGMENT // 2


@pytest.mark.parametrize("begun", [False, True])
def test_a_segment_of_a_process_that_has_ended(held: MemoryFiles, tmp_path: Path, *, begun: bool) -> None:
    """It was on its way to us when the process ended: it is not lost, and not refused."""
    writer = Writer(held, tmp_path, ended_process(), time.monotonic_ns())
    if begun:
        writer.say(1, CURRENT_SEGMENT_AT)
    assert held.settle(writer.prefix)
    assert held.open_files == 0
    writer.segments.append(memory(SEGMENT))
    writer.put(writer.segments[1], b"the last that it wrote", 64)
    held.add_segment(writer.prefix, 1, (os.dup(writer.segments[1]), SEGMENT))
    assert held.open_files == 1
    assert held.settle_all() == []
    assert held.open_files == 0
    assert (tmp_path / f"{writer.prefix}.000001.seg").exists() == begun
    assert writer.is_copied(0)
    assert not begun or writer.is_copied(1)


def record(length: int, at: int, sequence: int) -> bytes:
    """A record whose last bytes are all zero."""
    return (U64.pack(record_header(at, length, 250, sequence)) + b"some").ljust(length, b"\0")


def test_files_of_processes_that_have_ended_soon(tmp_path: Path) -> None:
    """They share one file, which any program for archives lists; of a segment it has all records, and no more."""
    held = MemoryFiles(tmp_path, archives=True)
    writers = [Writer(held, tmp_path, ended_process(), time.monotonic_ns()) for _ in range(2)]
    for writer in writers:
        header = SEGMENT_FIELDS.pack(SEGMENT_MAGIC, 0, SEGMENT, writer.pid, writer.start_ns, 0)
        writer.put(writer.segments[0], header.ljust(64, b"\0") + record(40, 64, 0) + record(4096, 104, 0), 0)
    held.copy()
    assert held.open_files == 0
    assert [path.name for path in tmp_path.iterdir()] == [ENDED_NAME]
    names = [f"{writer.prefix}.{end}" for writer in writers for end in ("ctl", "000000.seg")]
    with tarfile.open(tmp_path / ENDED_NAME) as archive:
        assert archive.getnames() == names
    spool = SpoolDirectory(tmp_path)
    processes = spool.processes()
    assert sorted(process.prefix for process in processes) == sorted(writer.prefix for writer in writers)
    for process in processes:
        control = process.control
        assert control is not None
        assert (control.recording, control.behind, control.on_disk) == (True, False, False)
        assert [length for _, _, length in process.segment(0).others] == [40, 4096]
        assert len(process.segment_data(0)) == 104 + 4096
    large = Writer(held, tmp_path, ended_process(), time.monotonic_ns())
    header = SEGMENT_FIELDS.pack(SEGMENT_MAGIC, 0, SEGMENT, large.pid, large.start_ns, 0)
    large.put(large.segments[0], header.ljust(64, b"\0") + record(8192, 64, 0)[:16], 0)  # pages of zeros need no memory
    held.copy()
    assert [len(each.segment_data(0)) for each in spool.processes() if each.prefix == large.prefix] == [64 + 8192]
    late = memory(SEGMENT)
    writers[0].put(late, b"the last that it wrote", 64)
    held.add_segment(writers[0].prefix, 1, (late, SEGMENT))  # not begun, as far as is said
    assert held.settle_all() == []
    assert held.open_files == 0


@pytest.mark.parametrize("case", ["filled a segment", "one is not here yet", "its own files", "much"])
def test_other_processes_have_files_of_their_own(tmp_path: Path, case: str) -> None:
    held = MemoryFiles(tmp_path, archives=True)
    writer = Writer(held, tmp_path, ended_process(), time.monotonic_ns())
    if case == "filled a segment":
        writer.go_on()
        writer.put(writer.segments[1], record(40, 64, 1), 64)
        writer.say(0, CURRENT_SEGMENT_AT)  # killed before it could say so
    elif case == "one is not here yet":
        writer.say(1, CURRENT_SEGMENT_AT)
    elif case == "its own files":
        (tmp_path / f"{writer.prefix}.ctl").touch()
    else:
        for _ in range(9):
            writer.put(writer.segments[-1], b"\1" * (SEGMENT - 64), 64)
            writer.go_on()
    held.settle_all()
    assert not (tmp_path / ENDED_NAME).exists()
    assert (tmp_path / f"{writer.prefix}.000000.seg").exists()


def test_a_torn_archive(tmp_path: Path) -> None:
    """What was cut off by the end of the recording command is not there, and what comes before is."""
    whole = member("1-2.ctl", b"a" * 700) + member("3-4.000000.seg", b"b")
    for size, names in ((len(whole), 2), (len(whole) - 512, 1), (1024, 0), (511, 0), (0, 0)):
        (tmp_path / ENDED_NAME).write_bytes(whole[:size])
        archive = EndedFiles(tmp_path)
        assert len(archive.names()) == names
        assert archive.read("1-2.ctl", 1 << 20) == (b"a" * 700 if names else None)
        assert archive.read("3-4.000000.seg", 1 << 20) == (b"b" if names > 1 else None)
    assert archive.read("1-2.ctl", 1) is None
    (tmp_path / ENDED_NAME).write_bytes(whole)
    assert len(archive.names()) == 2  # it has grown
    (tmp_path / ENDED_NAME).write_bytes(b"\xff" * 4096)
    assert EndedFiles(tmp_path).names() == []
    (tmp_path / ENDED_NAME).unlink()
    os.mkfifo(tmp_path / ENDED_NAME)
    assert EndedFiles(tmp_path).names() == []


def test_another_program_in_the_same_process(held: MemoryFiles, writer: Writer, tmp_path: Path) -> None:
    """After an exec, what was before it is over, though the process lives."""
    writer.put(writer.segments[0], b"before", 64)
    assert held.lives(writer.prefix, 1, 0)
    after = Writer(held, tmp_path, writer.pid, writer.start_ns + 1)
    held.copy()
    assert held.open_files == 2
    assert writer.is_copied(0)
    assert held.lives(after.prefix, 1, 0)
    assert not decode_control(writer.file("ctl")).behind


def test_a_process_with_a_clock_of_its_own(held: MemoryFiles, tmp_path: Path) -> None:
    """In a time namespace the monotonic clock shows anything: it began long before it was there, or will some day."""
    for start_ns in (1, 10**17):
        writer = Writer(held, tmp_path, os.getpid(), start_ns)
        assert held.lives(writer.prefix, writer.pid, start_ns)


def test_a_control_file_that_lies(held: MemoryFiles, writer: Writer) -> None:
    writer.say(0xFFFFFFFF, CURRENT_SEGMENT_AT)
    writer.say(0xFFFFFFFF, SEGMENTS_QUIET_AT)
    held.copy()
    assert decode_control(writer.file("ctl")).current_segment == 0
    assert held.settle(writer.prefix)


def test_no_room(held: MemoryFiles, writer: Writer) -> None:
    """What is in memory stays there until there is room."""
    writer.put(writer.segments[0], b"data", 64)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (CONTROL, before[1]))
    try:
        held.copy()
        assert not held.settle(writer.prefix)
        assert held.settle_all() == [writer.prefix]
        assert decode_control(writer.file("ctl")).behind
        assert not (writer.spool / f"{writer.prefix}.000000.seg").exists()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert held.settle_all() == []
    assert writer.is_copied(0)


def test_no_room_from_the_start(held: MemoryFiles, writer: Writer) -> None:
    """Not even for the first file, which is then not one that was taken away: the recording goes on."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE, before[1]))
    try:
        held.copy()
        held.copy()
        assert list(writer.spool.iterdir()) == []
        assert writer.told(STOP_REQUESTED_AT) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    held.copy()
    assert writer.is_copied(0)
    assert held.settle_all() == []


def test_a_spool_that_is_taken_away(held: MemoryFiles, writer: Writer) -> None:
    held.copy()
    for path in writer.spool.iterdir():
        path.unlink()
    writer.put(writer.control, b"x", 4000)
    held.copy()
    assert held.open_files == 0
    assert writer.told(STOP_REQUESTED_AT) == 1


def test_files_that_the_process_made_itself(held: MemoryFiles, writer: Writer) -> None:
    """We may have been stopped for so long that it took us for dead."""
    (writer.spool / f"{writer.prefix}.ctl").write_bytes(b"old" * 1000)
    (writer.spool / f"{writer.prefix}.000000.seg").write_bytes(b"old" * 1000)
    held.copy()
    assert held.settle(writer.prefix)
    assert writer.is_copied(0)


def test_by_itself(held: MemoryFiles, writer: Writer) -> None:
    held.start()
    first = int(I64.unpack(os.pread(writer.control, 8, COPIED_NS_AT))[0])
    deadline = time.monotonic() + 60
    while int(I64.unpack(os.pread(writer.control, 8, COPIED_NS_AT))[0]) == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    held.stop()
    assert writer.is_copied(0)


def test_who_is_over() -> None:
    """A first thread that has ended before the others is a zombie of a process that lives."""
    now = time.monotonic_ns()
    assert not is_over(os.getpid(), now)
    assert is_over(os.getpid(), 1)  # its id was another's then
    assert is_over(ended_process(), now)
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print(flush=True); ctypes.CDLL(None).pthread_exit(None)\n"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        deadline = time.monotonic() + 60
        while ") Z " not in Path(f"/proc/{child.pid}/stat").read_text(encoding="utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not is_over(child.pid, time.monotonic_ns())
        child.kill()


@contextmanager
def broker(held: MemoryFiles, spool: Path) -> Iterator[tuple[FdBroker, str]]:
    name = f"tachograph-test-{os.urandom(8).hex()}"
    found = FdBroker(spool, os.getpid(), listen_at(name), SEGMENT, memory=False, held=held)
    found.start()
    yield found, name
    found.stop()


def pass_on(name: str, what: Request, sequence: int, start_ns: int, files: list[int], size: int = SEGMENT) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(f"\0{name}")
        request = REQUEST_FIELDS.pack(REQUEST_MAGIC, what, sequence, start_ns, CONTROL_SIZE, size)
        socket.send_fds(line, [request], files)


def first_files(start_ns: int, *, seals: int = SEALS) -> list[int]:
    control, segment = memory(CONTROL_SIZE, seals=seals), memory(SEGMENT, seals=seals)
    os.pwrite(control, CONTROL_MAGIC + struct.pack("<III", 1, 0, os.getpid()), 0)
    os.pwrite(control, I64.pack(start_ns), START_NS_AT)
    return [control, segment]


def one_segment(sequence: int, start_ns: int) -> int:
    segment = memory(SEGMENT)
    os.pwrite(segment, SEGMENT_FIELDS.pack(SEGMENT_MAGIC, sequence, SEGMENT, os.getpid(), start_ns, 0), 0)
    return segment


def test_passed_on(held: MemoryFiles, tmp_path: Path) -> None:
    """What was sent is held, also when its sender has closed everything at once."""
    start_ns = time.monotonic_ns()
    with broker(held, tmp_path) as (found, name):
        pass_on(name, Request.HELD_PROCESS, 0, start_ns, first_files(start_ns))
        pass_on(name, Request.HELD_SEGMENT, 1, start_ns, [one_segment(1, start_ns)])
        assert found.catch_up()
        assert (held.open_files, found.refused) == (3, 0)
        ((pid, since_ns),) = held.processes()
        assert pid == os.getpid()
        assert start_ns <= since_ns <= time.monotonic_ns()
    held.copy()
    assert len(list(tmp_path.iterdir())) == 3


def test_not_taken(held: MemoryFiles, tmp_path: Path) -> None:
    """Files that might shrink, or are none of memory, of another size, or of an unknown process; nothing stays open."""
    start_ns = time.monotonic_ns()
    (tmp_path / "file").write_bytes(bytes(SEGMENT))
    on_disk = os.open(tmp_path / "file", os.O_RDWR | os.O_CLOEXEC)
    good = first_files(start_ns)
    gc.collect()  # what earlier tests left has descriptors
    before = len(os.listdir("/proc/self/fd"))
    with broker(held, tmp_path) as (found, name):
        mine = len(os.listdir("/proc/self/fd"))
        loose = first_files(start_ns, seals=0)
        pass_on(name, Request.HELD_PROCESS, 0, start_ns, loose)
        pass_on(name, Request.HELD_PROCESS, 0, start_ns, [good[0], on_disk])
        pass_on(name, Request.HELD_PROCESS, 0, start_ns, [good[1], good[0]])
        pass_on(name, Request.HELD_PROCESS, 0, start_ns, good, SEGMENT * 2)
        pass_on(name, Request.HELD_PROCESS, 0, start_ns + 1, good)
        pass_on(name, Request.HELD_SEGMENT, 1, start_ns, [on_disk])
        unknown = one_segment(1, start_ns)
        pass_on(name, Request.HELD_SEGMENT, 1, start_ns, [unknown])
        assert found.catch_up()
        assert (held.open_files, found.refused) == (0, 7)
        assert len(os.listdir("/proc/self/fd")) == mine + len(loose) + 1
    for each in (*loose, unknown):
        os.close(each)
    assert len(os.listdir("/proc/self/fd")) <= before


LEFT = 10
"""Descriptors that are left: enough for one process that passes its files on."""


def limit_with_free(count: int) -> int:
    """The limit of descriptors below which ``count`` are free, whatever this process has open."""
    number = free = 0
    while free < count:
        try:
            os.fstat(number)
        except OSError:
            free += 1
        number += 1
    return number


def test_few_descriptors(held: MemoryFiles, tmp_path: Path) -> None:
    """What finds none waits, and is held once there are some again: those of processes that have ended."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    start_ns = time.monotonic_ns()
    pid = ended_process()
    gone = [Writer(held, tmp_path, pid, start_ns + 1 + number) for number in range(26)]
    for writer in gone:
        os.close(writer.control)
        os.close(writer.segments[0])
    files = first_files(start_ns)
    with broker(held, tmp_path) as (found, name):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit_with_free(LEFT), before[1]))
        try:
            pass_on(name, Request.HELD_PROCESS, 0, start_ns, files)
            assert found.catch_up()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
    ((pid, since_ns),) = held.processes()
    assert pid == os.getpid()
    assert start_ns <= since_ns <= time.monotonic_ns()
    assert not any(decode_control(writer.file("ctl")).behind for writer in gone)
    for each in files:
        os.close(each)
