"""Who is given files of the spool, and which. The asking side is a forked child, as a process of a recording is one."""

import errno
import os
import resource
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tachograph.format.spool.process_log import BOUND
from tachograph.recorder.collect.memory_files import MemoryFiles, MemoryLog
from tachograph.recorder.fd_broker.broker import FdBroker
from tachograph.recorder.fd_broker.socket_name import listen, listen_at, open_log
from tachograph.recorder.inprocess.spool_layout import CONTROL_SIZE
from tachograph.recorder.inprocess.spool_writer import SpoolWriter

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's sockets")

SEGMENT = 8192
PROCESS, LOG = 2, 3
REAPED = 8
REQUEST = struct.Struct("<8sIIqQQ")
LOG_HEAD = struct.Struct("<8sIii")


class Told(NamedTuple):
    """An answer: the errno (-1: none came), and the sizes of the files."""

    error: int
    sizes: tuple[int, ...] = ()


NOTHING = Told(-1)


class Place(NamedTuple):
    """A broker at work."""

    spool: Path
    name: str


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    name = f"tachograph-test-{os.urandom(8).hex()}"
    listener = listen_at(name)
    spool = tmp_path / "spool"
    spool.mkdir(mode=0o700)
    broker = FdBroker(spool, os.getpid(), listener, SEGMENT, memory=False)
    broker.start()
    yield Place(spool, name)
    broker.stop()


def message(
    what: int, sequence: int = 0, start_ns: int = 0, *, control: int = CONTROL_SIZE, segment: int = SEGMENT
) -> bytes:
    return REQUEST.pack(b"TACHASK1", what, sequence, start_ns, control, segment)


def ask(name: str, request: bytes, *, confirm: bool = True) -> Told:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.settimeout(30)
        line.connect(f"\0{name}")
        try:
            line.send(request)
            data, descriptors, _, _ = socket.recv_fds(line, 64, 8)
        except (BrokenPipeError, ConnectionResetError):
            return NOTHING
        if len(data) != 16:
            return NOTHING
        assert data[:8] == b"TACHGIV1"
        error, files = struct.unpack_from("<II", data, 8)
        assert files == len(descriptors)
        sizes = tuple(os.fstat(each).st_size for each in descriptors)
        for each in descriptors:
            assert os.pread(each, SEGMENT * 2, 0).strip(b"\0") == b""
            os.pwrite(each, b"\1", CONTROL_SIZE - 1)  # we may write
            os.pwrite(each, b"\0", CONTROL_SIZE - 1)
            os.close(each)
        if confirm and descriptors:
            line.send(b"\1")
        return Told(error, sizes)


def in_a_child(function: Callable[[], list[Told]]) -> list[Told]:
    """What the function returns in a forked child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = repr([tuple(each) for each in function()])
        except BaseException:  # noqa: BLE001 - shown by the parent
            text = traceback.format_exc()
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    assert text.startswith("["), text
    return [Told(*each) for each in eval(text)]  # noqa: S307 - our own list


def names(spool: Path) -> list[str]:
    return sorted(path.name.partition(".")[2] for path in spool.iterdir())


def test_the_files_of_a_process(place: Place) -> None:
    def child() -> list[Told]:
        return [ask(place.name, message(PROCESS, start_ns=time.monotonic_ns()))]

    assert in_a_child(child) == [Told(0, (CONTROL_SIZE, SEGMENT))]
    assert names(place.spool) == ["000000.seg", "ctl"]
    assert {path.stat().st_mode & 0o777 for path in place.spool.iterdir()} == {0o600}
    assert {path.stat().st_uid for path in place.spool.iterdir()} == {os.geteuid()}
    assert {path.stat().st_blocks * 512 for path in place.spool.iterdir()} >= {SEGMENT}


def test_files_of_a_process_that_ended_before_it_took_them(place: Place) -> None:
    """They are removed."""

    def child() -> list[Told]:
        return [ask(place.name, message(PROCESS, start_ns=time.monotonic_ns()), confirm=False)]

    assert in_a_child(child)[0].error == 0
    limit = time.monotonic() + 30
    while names(place.spool) and time.monotonic() < limit:
        time.sleep(0.01)
    assert names(place.spool) == []


def test_segments_of_a_recorded_process(place: Place) -> None:
    """The next ones, and no others; one that it did not get to use is given again."""

    def child() -> list[Told]:
        start_ns = SpoolWriter(str(place.spool), SEGMENT).start_ns
        return [
            ask(place.name, message(1, sequence, start + start_ns, segment=segment))
            for sequence, start, segment in [
                (1, 0, SEGMENT),
                (1, 0, SEGMENT),  # not begun yet
                (3, 0, SEGMENT),
                (0, 0, SEGMENT),  # the current one
                (4, 0, SEGMENT),  # too far ahead
                (2, 1, SEGMENT),  # of a process that there is not
                (2, 0, 2 * SEGMENT),
            ]
        ]

    given = Told(0, (SEGMENT,))
    assert in_a_child(child) == [given, given, given, NOTHING, NOTHING, NOTHING, NOTHING]
    assert names(place.spool) == ["000000.seg", "000001.seg", "000003.seg", "ctl"]


def test_a_segment_that_is_in_use_is_not_given_again(place: Place) -> None:
    def child() -> list[Told]:
        writer = SpoolWriter(str(place.spool), SEGMENT)
        used = place.spool / f"{writer.pid}-{writer.start_ns}.000001.seg"
        used.write_bytes(b"TACHSEG1".ljust(SEGMENT, b"\0"))
        linked = place.spool / f"{writer.pid}-{writer.start_ns}.000002.seg"
        linked.symlink_to(used)
        return [ask(place.name, message(1, sequence, writer.start_ns)) for sequence in (1, 2)]

    assert in_a_child(child) == [NOTHING, Told(errno.ELOOP)]


def test_the_processs_own_segments_only(place: Place) -> None:
    """Not its parent's, whose numbers it knows."""
    writer = SpoolWriter(str(place.spool), SEGMENT)

    def child() -> list[Told]:
        return [ask(place.name, message(1, 1, writer.start_ns))]

    assert in_a_child(child) == [NOTHING]
    assert ask(place.name, message(1, 1, writer.start_ns)) == Told(0, (SEGMENT,))


def test_what_is_not_granted(place: Place) -> None:
    def child() -> list[Told]:
        now = time.monotonic_ns()
        return [
            ask(place.name, request)
            for request in [
                message(PROCESS, start_ns=now, control=CONTROL_SIZE + 1),
                message(PROCESS, start_ns=now, segment=1 << 40),
                message(PROCESS, start_ns=now, segment=0),
                message(PROCESS, start_ns=now + 10**15),
                message(PROCESS, start_ns=1),  # before it was there
                message(PROCESS, start_ns=-1),
                message(9, start_ns=now),
                message(PROCESS, start_ns=now)[:-1],
                message(PROCESS, start_ns=now) + b"x",
                b"TACHASK2" + message(PROCESS, start_ns=now)[8:],
                b"",
            ]
        ]

    assert set(in_a_child(child)) == {NOTHING}
    assert names(place.spool) == []


def test_sent_by_another_than_who_connected(place: Place) -> None:
    """A number of a process could be another's by now: the kernel names who sends, too."""

    def child() -> list[Told]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
            line.connect(f"\0{place.name}")
            pid = os.fork()
            if pid == 0:
                with suppress(OSError):
                    line.send(message(PROCESS, start_ns=time.monotonic_ns()))
                os._exit(0)
            os.waitpid(pid, 0)
            line.settimeout(30)
            with suppress(ConnectionResetError):
                assert line.recv(64) == b""
        return [NOTHING]

    assert in_a_child(child) == [NOTHING]
    assert names(place.spool) == []


def test_a_stranger(place: Place) -> None:
    """No process's child any more, and of no recorded process."""

    def child() -> list[Told]:
        reader, writer = os.pipe()
        if os.fork() == 0:
            parent = os.getpid()
            if os.fork() == 0:
                while os.getppid() == parent:
                    time.sleep(0.01)
                told = ask(place.name, message(PROCESS, start_ns=time.monotonic_ns()))
                os.write(writer, repr(tuple(told)).encode())
            os._exit(0)
        os.close(writer)
        with open(reader, "rb") as file:
            return [Told(*eval(file.read().decode()))]  # noqa: S307

    if os.getpid() == 1:
        pytest.skip("every process is our child here")
    assert in_a_child(child) == [NOTHING]


def record(pid: int, kind: int = 2, magic: bytes = b"TACHPRC1", parent: int = 0) -> bytes:
    return (LOG_HEAD.pack(magic, kind, pid, parent)).ljust(512, b"\0")


def test_rows_of_the_process_log(place: Place) -> None:
    """Each process tells of itself alone."""

    def child() -> list[Told]:
        own = os.getpid()
        return [
            ask(place.name, message(LOG) + more)
            for more in (record(own), record(os.getppid()), record(own, kind=0), record(own, magic=b"x" * 8), b"")
        ]

    assert in_a_child(child) == [Told(0), NOTHING, NOTHING, NOTHING, NOTHING]
    log = place.spool / "processes.log"
    assert len(log.read_bytes()) == 512
    assert log.stat().st_mode & 0o777 == 0o600
    os.truncate(log, BOUND)
    assert in_a_child(lambda: [ask(place.name, message(LOG) + record(os.getpid(), kind=4))]) == [Told(0)]
    assert log.stat().st_size == BOUND + 1


def test_a_process_tells_of_the_ends_of_its_children(place: Place) -> None:
    def child() -> list[Told]:
        own, other = os.getpid(), os.getppid()
        ends = (record(other, REAPED, parent=own), record(own, REAPED, parent=other), record(other, REAPED))
        return [ask(place.name, message(LOG) + each) for each in ends]

    assert in_a_child(child) == [Told(0), NOTHING, NOTHING]
    assert len((place.spool / "processes.log").read_bytes()) == 512


def test_a_row_for_the_process_log_waits_for_no_disk(tmp_path: Path) -> None:
    """It goes into the log in memory, from where it is copied."""
    name, spool, log = f"tachograph-test-{os.urandom(8).hex()}", tmp_path / "spool", open_log()
    assert log is not None
    spool.mkdir()
    held = MemoryFiles(spool, MemoryLog(spool, log))
    broker = FdBroker(spool, os.getpid(), listen_at(name), SEGMENT, memory=False, held=held)
    broker.start()
    try:
        assert in_a_child(lambda: [ask(name, message(LOG) + record(os.getpid()))]) == [Told(0)]
    finally:
        broker.stop()
    assert list(spool.iterdir()) == []
    held.copy()
    assert (spool / "processes.log").stat().st_size == 64  # it names no executable: the rest is left out


def test_no_room(place: Place) -> None:
    """The errno goes to the process that asked: its recording stops with it. Nothing is left behind."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SEGMENT - 1, before[1]))
    try:
        told = in_a_child(lambda: [ask(place.name, message(PROCESS, start_ns=time.monotonic_ns()))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert told == [Told(errno.EFBIG)]
    assert names(place.spool) == []


def test_it_goes_on_after_nonsense(place: Place) -> None:
    """A process that connects and says nothing holds the others up for a moment only."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as idle:
        idle.connect(f"\0{place.name}")
        assert in_a_child(lambda: [ask(place.name, message(LOG) + record(os.getpid()))]) == [Told(0)]


def test_names_are_not_to_be_guessed() -> None:
    first, second = listen(), listen()
    assert first is not None
    assert second is not None
    assert first[0] != second[0]
    assert not os.get_inheritable(first[1].fileno())
    for _, listener in (first, second):
        listener.close()
