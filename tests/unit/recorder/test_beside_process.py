"""The process beside a program: which interpreter it is started with, and how long the program waits for it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from integration import support
from tachograph.recorder.attached import beside_process, own_interpreter
from tachograph.recorder.attached.closed_streams import ClosedStreams
from tachograph.recorder.collect.held_folder import HeldFolder
from tachograph.recorder.problems import RecordingError

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="recording needs Linux")


def test_this_interpreter_is_one() -> None:
    assert own_interpreter.own_interpreter() == sys.executable
    assert own_interpreter.is_interpreter(os.path.realpath(sys.executable))


@pytest.mark.parametrize("name", ["python", "python3", "python3.13", "python3.13t", "python3.11d", "python3.11-dbg"])
def test_names_of_interpreters(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(os.path.realpath(sys.executable))
    assert own_interpreter.is_interpreter(str(tmp_path / name))


@pytest.mark.parametrize("name", ["service", "pythonic", "python-service", "uwsgi", "python3.13-config"])
def test_names_of_programs(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(os.path.realpath(sys.executable))
    assert not own_interpreter.is_interpreter(str(tmp_path / name))


def test_a_program_behind_a_link_of_that_name(tmp_path: Path) -> None:
    program = Path(shutil.copy("/bin/true", tmp_path / "service"))
    (tmp_path / "python3").symlink_to(program)
    assert not own_interpreter.is_interpreter(str(tmp_path / "python3"))


def test_what_is_no_program(tmp_path: Path) -> None:
    script = tmp_path / "python3"
    script.write_text("#!/bin/sh\n", encoding="utf-8")
    script.chmod(0o755)
    (tmp_path / "python").mkdir()
    for path in ("", str(script), str(tmp_path / "python"), str(tmp_path / "python3.11")):
        assert not own_interpreter.is_interpreter(path)


def test_a_program_that_calls_itself_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = str(shutil.copy("/bin/true", tmp_path / "python3"))
    monkeypatch.setattr(own_interpreter, "OWN_PROGRAM", program)
    assert not own_interpreter.is_interpreter(program)


def test_a_frozen_application_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(RecordingError, match="frozen application"):
        own_interpreter.own_interpreter()


def test_no_path_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "_base_executable", "")
    monkeypatch.setattr(sys, "base_exec_prefix", str(tmp_path))
    with pytest.raises(RecordingError, match=r"sys\.executable is empty"):
        own_interpreter.own_interpreter()


class Native:
    """Any number will do here."""

    move_high = staticmethod(int)


class Ends:
    """Both ends of a stream; the other one does what it is told to, in a thread of its own."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.ours = beside_process.Stream(Native, ours)

    def does(self, act: Callable[[socket.socket], object]) -> beside_process.Stream:
        Thread(target=act, args=(self.theirs,), daemon=True).start()
        return self.ours


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Ends:
    monkeypatch.setattr(beside_process, "SILENCE_S", 0.3)
    return Ends()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    with HeldFolder.open(tmp_path) as held:
        assert held.descriptor is not None
        yield held.descriptor


def test_it_says_that_it_is_ready(ends: Ends, folder: int) -> None:
    def act(theirs: socket.socket) -> None:
        facts.append(theirs.recv(100))
        theirs.sendall(b"ready ")
        theirs.sendall(b"tachograph-1\n")

    facts: list[bytes] = []
    assert beside_process.begin(ends.does(act), {"pid": 4}, folder) == "tachograph-1"
    (line,) = facts
    assert json.loads(line) == {"pid": 4}
    assert line.count(b"\n") == 1


@pytest.mark.parametrize(
    ("said", "words"),
    [(b"no pyarrow here\n", "cannot begin: no pyarrow here"), (b"", "cannot begin: it has ended")],
)
def test_it_cannot_begin(ends: Ends, folder: int, said: bytes, words: str) -> None:
    def act(theirs: socket.socket) -> None:
        theirs.recv(100)
        theirs.sendall(said)
        theirs.close()

    with pytest.raises(RecordingError, match=words):
        beside_process.begin(ends.does(act), {}, folder)


def test_it_has_ended_before_it_was_told_anything(ends: Ends, folder: int) -> None:
    ends.theirs.sendall(b"no pyarrow here\n")
    ends.theirs.close()
    with pytest.raises(RecordingError, match="cannot begin: no pyarrow here"):
        beside_process.begin(ends.ours, {}, folder)


def test_its_silence_is_not_waited_for_for_ever(ends: Ends, folder: int) -> None:
    with pytest.raises(RecordingError, match="has not begun for"):
        beside_process.begin(ends.ours, {}, folder)
    assert "has said nothing for" in (beside_process.complete(ends.ours) or "")


def test_as_long_as_it_is_there_it_is_waited_for(ends: Ends) -> None:
    """Tables may take longer than it may be silent."""

    def act(theirs: socket.socket) -> None:
        theirs.recv(100)
        for _ in range(8):
            end.wait(0.1)
            theirs.sendall(b"\n")
        theirs.sendall(b"complete")
        theirs.close()

    end = Event()
    assert beside_process.complete(ends.does(act)) is None


def test_what_went_wrong_is_passed_on(ends: Ends) -> None:
    def act(theirs: socket.socket) -> None:
        theirs.recv(100)
        theirs.sendall(b"\n\nthe disk is full")
        theirs.close()

    assert beside_process.complete(ends.does(act)) == "the disk is full"


def test_it_is_gone(ends: Ends) -> None:
    ends.theirs.close()
    assert "is gone" in (beside_process.complete(ends.ours) or "")


def test_a_program_that_has_closed_it_and_has_a_file_of_that_number(ends: Ends) -> None:
    """As one does that closes all that it does not know: nothing is written there, and it stays open."""
    number = ends.ours.fileno()
    mine, other = socket.socketpair()
    os.dup2(mine.fileno(), number)
    assert "has closed the connection" in (beside_process.complete(ends.ours) or "")
    other.setblocking(False)  # noqa: FBT003 - by position only
    with pytest.raises(BlockingIOError):
        other.recv(100)
    assert os.path.samestat(os.fstat(number), os.fstat(mine.fileno()))
    os.close(number)


def test_it_may_have_said_why_before_it_ended(ends: Ends) -> None:
    ends.theirs.sendall(b"the disk is full")
    ends.theirs.close()
    assert beside_process.complete(ends.ours) == "the disk is full"


def test_the_folder_itself_is_handed_over(ends: Ends, folder: int, tmp_path: Path) -> None:
    """Facts that are longer than what a stream takes at once go with it."""

    def act(theirs: socket.socket) -> None:
        text = b""
        while not text.endswith(b"\n"):
            part, descriptors, _, _ = socket.recv_fds(theirs, 1 << 16, 2)
            received.extend(descriptors)
            text += part
        facts.append(json.loads(text))
        theirs.sendall(b"ready \n")

    facts: list[object] = []
    received: list[int] = []
    given = {"arguments": ["x" * (1 << 20)]}
    assert beside_process.begin(ends.does(act), given, folder) is None
    (descriptor,) = received
    assert os.path.samestat(os.fstat(descriptor), os.stat(tmp_path))
    os.close(descriptor)
    assert facts == [given]


def test_another_folder_has_taken_its_name(tmp_path: Path) -> None:
    _native = pytest.importorskip("tachograph.recorder._native")
    path = tmp_path / "run.tacho"
    path.mkdir()
    facts = {"directory": str(path), "pid": os.getpid(), "working_directory": None}
    with HeldFolder.open(path) as held:
        path.rename(tmp_path / "moved.tacho")
        path.mkdir()
        stream = beside_process.start(_native, facts)
        assert held.descriptor is not None
        with pytest.raises(RecordingError, match=r"run\.tacho is another folder here than for the program"):
            beside_process.begin(stream, facts, held.descriptor)
        stream.close()
    assert list(path.iterdir()) == []


def test_closed_streams_stay_closed_for_the_program_and_taken_for_us() -> None:
    child = os.fork()
    if child == 0:
        try:
            os.close(0)
            os.close(1)
            with ClosedStreams():
                assert os.open("/dev/null", os.O_RDWR) > 2
                for number in (0, 1):
                    with pytest.raises(OSError, match="Bad file"):
                        os.write(number, b"x")
                    with pytest.raises(OSError, match="Bad file"):
                        os.read(number, 1)
                os.dup2(2, 1)  # the program opens one of them
            with pytest.raises(OSError, match="Bad file"):
                os.fstat(0)
            os.fstat(1)
            with ClosedStreams():
                os.close(0)  # what is open is left alone, what has been closed stays so
            os.fstat(1)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def test_it_ends_with_the_attach_that_no_program_came_to(tmp_path: Path) -> None:
    """A killed command leaves nothing behind that waits."""
    code = (
        "import os, sys; from pathlib import Path; from tachograph.recorder.attached import beside_attach\n"
        "beside = beside_attach.start_beside(os.getpid(), Path(sys.argv[1]))\n"
        "print(beside._process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        beside = int(command.stdout.readline())
        assert support.is_running(beside)
        command.kill()
    support.wait_for(lambda: not support.is_running(beside), "the end of the process beside", timeout=20)
