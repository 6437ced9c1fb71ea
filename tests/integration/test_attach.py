"""tachograph standby and attach: what a program notices, what is recorded, who may ask, and what is refused."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from integration import support
from tachograph import __version__
from tachograph.cli import main
from tachograph.recorder.attached import injection
from tachograph.recorder.attached.connection import connect, standing_by

pytestmark = [pytest.mark.native, pytest.mark.recording]

STANDBY = {"TACHOGRAPH_STANDBY": "1"}

SERVICE = """
import sys, threading, time
asked = threading.Event()
def burn():
    end = time.thread_time() + 0.3
    while time.thread_time() < end: sum(range(5000))
def when_asked():
    while True:
        asked.wait()
        asked.clear()
        burn()
        print("burnt", flush=True)
threading.Thread(target=when_asked, name="burner", daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    asked.set()
print("done", *sys.argv[1:])
sys.exit(7)
"""
"""Burns CPU time in a thread for each line that it reads, and ends with its input."""


@contextmanager
def running(
    command: list[str], cwd: Path, env: dict[str, str] | None = None, **options: Any
) -> Iterator["subprocess.Popen[str]"]:
    """A program that has said that it is ready; it ends when its standard input does."""
    process = subprocess.Popen(
        command, cwd=cwd, env={**support.environment(), **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate(timeout=30)
        yield process
    finally:
        support.kill_quietly(process.pid)
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """A program that stands by: one thread burns CPU time, the main thread waits for ever."""
    folder = tmp_path_factory.mktemp("service")
    (folder / "service.py").write_text(SERVICE, encoding="utf-8")
    with running([*support.COMMAND, "standby", "service.py"], folder) as process:
        yield process


def command(*arguments: object, cwd: Path) -> support.Outcome:
    """The command in this process: starting it takes longer than what it does."""
    with chdir(cwd):
        done = CliRunner().invoke(main, [*map(str, arguments)])
    return support.Outcome(done.exit_code, done.stdout, done.stderr)


def attach(*arguments: object, cwd: Path) -> support.Outcome:
    return command("attach", *arguments, cwd=cwd)


def starts_attach(*arguments: object, cwd: Path) -> "subprocess.Popen[str]":
    command = [*support.COMMAND, "attach", *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, env=support.environment(), stderr=subprocess.PIPE, text=True)


def wait_until_it_says_so(command: "subprocess.Popen[str]") -> None:
    """Until the command waits for the end of a recording without a duration."""
    assert command.stderr is not None
    assert command.stderr.readline() == "tachograph: recording service.py; Ctrl-C ends the recording\n"


def is_recorded(pid: int) -> bool:
    return "/memfd:tachograph" in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")


def is_complete(recording: Path) -> bool:
    """It may not have begun yet."""
    try:
        return bool(json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["state"] == "complete")
    except FileNotFoundError:
        return False


def functions(recording: Path) -> set[str]:
    """The functions that had CPU time, or called one that had."""
    stacks, codes = support.rows(recording, "stacks"), support.rows(recording, "codes")
    found = set()
    for row in support.rows(recording, "cpu"):
        stack = row["stack"]
        while stack is not None:
            found.add(codes[stacks[stack]["code"]]["qualname"])
            stack = stacks[stack]["parent"]
    return found


def things(pid: int) -> tuple[int, list[str], int]:
    """What a process has: threads, descriptors, and mappings of records."""
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    return (
        len(os.listdir(f"/proc/{pid}/task")),
        sorted(os.listdir(f"/proc/{pid}/fd")),
        maps.count("/memfd:tachograph"),
    )


def test_a_program_on_standby_is_the_program_itself(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE, encoding="utf-8")
    with running([*support.COMMAND, "standby", "service.py", "--its", "-o"], tmp_path) as process:
        assert process.pid in standing_by()
        # The interpreter's thread, the program's, and one that sleeps.
        assert len(os.listdir(f"/proc/{process.pid}/task")) == 3
        said = process.communicate("", timeout=60)
    assert (process.returncode, *said) == (7, "done --its -o\n", "")
    assert process.pid not in standing_by()


def test_nothing_of_python_runs_in_a_program_on_standby(tmp_path: Path) -> None:
    program = """
import sys, threading
print(threading.active_count(), len(sys._current_frames()), sorted(
    name for name in sys.modules if name.startswith("tachograph.")))
"""
    done = support.bare(["-c", program], tmp_path, env={**support.environment(), **STANDBY})
    assert (done.status, done.stderr) == (0, "")
    count, frames, *_ = done.stdout.split()
    assert (count, frames) == ("1", "1")
    assert "tachograph.recorder.attached.recording" not in done.stdout


def test_what_runs_is_recorded_while_attached_and_nothing_is_left(
    service: "subprocess.Popen[str]", tmp_path: Path
) -> None:
    assert service.stdin is not None
    assert service.stdout is not None
    before = things(service.pid)
    command = starts_attach(service.pid, "--cpu-only", "--interval", "5", "-o", "one.tacho", cwd=tmp_path)
    wait_until_it_says_so(command)
    service.stdin.write("burn\n")
    service.stdin.flush()
    assert service.stdout.readline() == "burnt\n"
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=60)
    assert (command.returncode, said.count("\n")) == (0, 1)
    assert said.startswith("tachograph: recorded ")
    assert f"service.py (process {service.pid})" in said
    # The program closes the connection after it has answered.
    support.wait_for(lambda: things(service.pid) == before, "the end of the connection", timeout=60)
    again = attach(service.pid, "--duration", "100ms", "--label", "version=2", "-q", cwd=tmp_path)
    assert (again.status, again.stdout, again.stderr) == (0, "", "")
    # The program closes the connection after it has answered.
    support.wait_for(lambda: things(service.pid) == before, "the end of the connection", timeout=60)
    assert "burn" in functions(tmp_path / "one.tacho")
    manifests = []
    for name in ("one.tacho", "service-001.tacho"):
        assert is_complete(tmp_path / name)
        # The main thread waits all the time, and the standby's own thread is none of the program's.
        assert [row["name"] for row in support.rows(tmp_path / name, "threads")] == ["MainThread", "burner"]
        assert [row["pid"] for row in support.rows(tmp_path / name, "processes")] == [service.pid]
        manifests.append(json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8")))
    assert [each["parameters"]["interval_ns"] for each in manifests] == [5_000_000, 10_000_000]
    assert [each["parameters"]["memory"] for each in manifests] == [False, True]
    assert manifests[1]["labels"]["version"] == "2"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_attach_ends_the_recording_and_not_the_program(
    service: "subprocess.Popen[str]", tmp_path: Path, number: signal.Signals
) -> None:
    before = things(service.pid)
    command = starts_attach(service.pid, "-o", "run.tacho", cwd=tmp_path)
    # Before that a signal ends the command as it ends others.
    wait_until_it_says_so(command)
    assert is_recorded(service.pid)
    command.send_signal(number)
    _, said = command.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert command.returncode == -9
        support.wait_for(lambda: is_complete(tmp_path / "run.tacho"), "the end of the recording", timeout=60)
    else:
        assert command.returncode == 0
        assert "recorded" in said
    assert is_complete(tmp_path / "run.tacho")
    support.wait_for(lambda: things(service.pid) == before, "the end of the recorder's threads", timeout=60)
    assert service.poll() is None


def test_a_program_that_ends_while_attached_is_recorded_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE, encoding="utf-8")
    with running([sys.executable, "service.py"], tmp_path, STANDBY) as process:
        command = starts_attach(process.pid, "--cpu-only", cwd=tmp_path)
        wait_until_it_says_so(command)
        assert process.communicate("", timeout=60) == ("done\n", "")
        assert process.returncode == 7
        _, said = command.communicate(timeout=90)
    assert command.returncode == 0
    assert "; it has ended; " in said
    assert is_complete(tmp_path / "service-001.tacho")


def test_forked_processes_stand_by_without_a_warning(tmp_path: Path) -> None:
    program = """
import os, sys, time
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        sys.stdin.read()
        os._exit(0)
    children.append(child)
print("ready", flush=True)
print(*children, flush=True)
sys.stdin.read()
"""
    # CPython warns of a fork of several threads since 3.12.
    with running([sys.executable, "-W", "error", "-c", program], tmp_path, STANDBY) as process:
        assert process.stdout is not None
        children = list(map(int, process.stdout.readline().split()))
        for pid in (*children, process.pid):
            support.wait_for(lambda pid=pid: pid in standing_by(), f"process {pid} to stand by", timeout=60)  # type: ignore[misc]
            connection = connect(pid)
            assert connection is not None
            connection.__exit__()
        done = attach(children[1], "--duration", "100ms", "-o", "child.tacho", cwd=tmp_path)
        assert done.status == 0, done.stderr
        assert [row["pid"] for row in support.rows(tmp_path / "child.tacho", "processes")] == [children[1]]
        for child in children:
            support.kill_quietly(child)


def raw(pid: int, request: bytes) -> bytes:
    """What a process that stands by answers to these bytes."""
    connection = connect(pid)
    assert connection is not None
    with connection, socket.socket(fileno=os.dup(connection.fileno())) as client:
        client.settimeout(60)
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        return client.recv(1 << 16)


def test_requests_that_make_no_sense_are_answered_and_forgotten(service: "subprocess.Popen[str]") -> None:
    said = [
        raw(service.pid, request)
        for request in (
            b"\n", b"{}\n", b"[]\n", b'{"tachograph": "0.0.1", "do": "start"}\n', b"\xff\xfe\n", b"no line", b"",
            json.dumps({"tachograph": __version__, "do": "dance"}).encode() + b"\n",
            json.dumps({"tachograph": __version__, "do": "stop"}).encode() + b"\n",
            json.dumps({"tachograph": __version__, "do": "start"}).encode() + b"\n",
        )
    ]  # fmt: skip
    assert [bool(each) for each in said] == [True] * 5 + [False] * 2 + [True] * 3
    for each in filter(None, said):
        assert each.endswith(b"\n")
        assert "\n" not in json.loads(each)["problem"]
    assert f"it has tachograph {__version__}, and this is 0.0.1" in json.loads(said[3])["problem"]
    assert not is_recorded(service.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_not_answered(service: "subprocess.Popen[str]", tmp_path: Path) -> None:
    (name,) = standing_by()[service.pid]

    def ask() -> bytes:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(f"\0{name}")
            try:
                client.sendall(b"{}\n")
                return client.recv(100)
            except OSError:
                return b""

    assert support.as_user(65534, ask) == "b''"
    assert json.loads(raw(service.pid, b"{}\n"))["problem"]


def test_what_cannot_be_attached_to_is_said_in_one_line(service: "subprocess.Popen[str]", tmp_path: Path) -> None:
    def refused(*arguments: object, words: str) -> None:
        support.one_line(attach(*arguments, "-o", "none.tacho", cwd=tmp_path), words)
        assert not (tmp_path / "none.tacho").exists()

    gone = subprocess.Popen(["true"])
    os.waitid(os.P_PID, gone.pid, os.WEXITED | os.WNOWAIT)
    refused(gone.pid, words=f"process {gone.pid} has ended")
    gone.wait()
    refused(gone.pid, words=f"there is no process {gone.pid}")
    refused("four", words="four")
    threads = sorted(map(int, os.listdir(f"/proc/{service.pid}/task")))
    refused(threads[-1], words=f"{threads[-1]} is a thread of process {service.pid}")
    refused(service.pid, "--duration", "soon", words="'soon' is no duration")
    refused(service.pid, "--rotate", "10m", words="--rotate")
    refused(service.pid, "--interval", "often", words="interval")
    (tmp_path / "there").mkdir()
    support.one_line(attach(service.pid, "-o", "there", cwd=tmp_path), "exists; use --force")
    support.one_line(attach(service.pid, "-o", "s3://bucket/x", cwd=tmp_path), "tachograph upload")
    support.one_line(attach(service.pid, "-o", "no/such/folder/x.tacho", cwd=tmp_path), "cannot write the recording")
    with subprocess.Popen(["sleep", "600"]) as sleeping:
        refused(sleeping.pid, words=f"process {sleeping.pid} (sleep) is not Python")
        sleeping.kill()
    assert not is_recorded(service.pid)


def program_of_32_bits(path: Path) -> Path:
    """An executable that does nothing but pause()."""
    code = b"\xb8\x1d\0\0\0\xcd\x80\xeb\xf7"
    base, size = 0x08048000, 52 + 32 + len(code)
    identity = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
    path.write_bytes(identity + header + segment + code)
    path.chmod(0o700)
    return path


def test_a_program_of_32_bits_is_told(tmp_path: Path) -> None:
    try:
        process = subprocess.Popen([program_of_32_bits(tmp_path / "python3.11")])
    except OSError:
        pytest.skip("this kernel runs no programs of 32 bits")
    with process:
        support.one_line(attach(process.pid, cwd=tmp_path), f"process {process.pid} is a program of 32 bits")
        process.kill()


def test_a_program_that_does_not_stand_by_is_entered(tmp_path: Path) -> None:
    """It stands by for the one time, and nothing is left afterwards."""
    program = """
import time
print("ready", flush=True)
def work():
    while True:
        sum(range(5000))
work()
"""
    with running([sys.executable, "-c", program], tmp_path) as process:
        before = things(process.pid)
        shown = command("dump", process.pid, cwd=tmp_path)
        assert (shown.status, shown.stderr) == (0, "")
        assert re.search(r"^    work  <string>:[56]$", shown.stdout, re.MULTILINE)
        support.wait_for(lambda: things(process.pid) == before, "the end of the standby", timeout=60)
        for name in ("one.tacho", "two.tacho"):
            done = attach(process.pid, "--duration", "100ms", "-o", name, cwd=tmp_path)
            assert done.status == 0, done.stderr
            assert is_complete(tmp_path / name)
            support.wait_for(lambda: things(process.pid) == before, "the end of the standby", timeout=60)
        assert process.pid not in standing_by()
        process.kill()
        assert process.communicate(timeout=60) == ("", "")


def test_a_main_thread_that_waits_is_told_and_nothing_runs_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys, threading; print('ready', flush=True); print(input(), sorted(sys.modules)); sys.exit(7)"
    monkeypatch.setattr(injection, "PATIENCE_S", 0.5)
    with running([sys.executable, "-c", program], tmp_path) as process:
        for what in ("attach", "dump"):
            line = support.one_line(command(what, process.pid, cwd=tmp_path), "has not run Python in its main thread")
            assert "start it with 'tachograph standby'" in line
        said, wrong = process.communicate("goes on\n", timeout=60)
    assert (process.returncode, wrong) == (7, "")
    assert said.startswith("goes on ")
    assert "tachograph.recorder" not in said


def test_a_program_that_is_stopped_is_told(tmp_path: Path) -> None:
    with running([sys.executable, "-c", "print('ready', flush=True); input()"], tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{process.pid}/status")
        support.wait_for(lambda: "State:\tT" in state.read_text(encoding="utf-8"), "the stop")
        support.one_line(attach(process.pid, cwd=tmp_path), f"process {process.pid} is stopped")


COUNTS_SIGNALS = """
import os, signal, sys
ours, theirs = os.pipe()
for each in ours, theirs: os.set_blocking(each, False)
signal.signal(signal.SIGRTMIN, lambda *_: None)
signal.set_wakeup_fd(theirs)
os.set_blocking(0, False)
print("ready", flush=True)
count, ends = 0, False
while not ends:
    try:
        count += len(os.read(ours, 65536))
    except BlockingIOError:
        pass
    try:
        ends = os.read(0, 100) == b"end\\n"
    except BlockingIOError:
        pass
while True:
    try:
        count += len(os.read(ours, 65536))
    except BlockingIOError:
        break
print(count)
"""


def test_no_signal_is_lost_while_a_program_is_entered(tmp_path: Path) -> None:
    """Real-time signals queue: each is counted by the interpreter's own handler."""
    sent, over = 0, threading.Event()

    def send() -> None:
        nonlocal sent
        while not over.is_set():
            os.kill(process.pid, signal.SIGRTMIN)
            sent += 1
            time.sleep(0.0002)

    with running([sys.executable, "-c", COUNTS_SIGNALS], tmp_path) as process:
        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(3):
            shown = command("dump", process.pid, cwd=tmp_path)
            assert shown.status == 0, shown.stderr
            support.wait_for(lambda: process.pid not in standing_by(), "the end of the standby", timeout=60)
        over.set()
        sender.join()
        said = process.communicate("end\n", timeout=60)
    assert said == (f"{sent}\n", "")
    assert sent > 100


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start another user's processes")
def test_another_users_process_and_another_container_are_told(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"], user=65534) as foreign:
        support.one_line(attach(foreign.pid, cwd=tmp_path), "'s: run this command as that user")
        foreign.kill()
    with running(["unshare", "--net", sys.executable, "-c", SERVICE], tmp_path, STANDBY) as inside:
        support.one_line(attach(inside.pid, cwd=tmp_path), "in another container")


def test_a_process_that_is_recorded_already_is_told(service: "subprocess.Popen[str]", tmp_path: Path) -> None:
    first = starts_attach(service.pid, cwd=tmp_path)
    wait_until_it_says_so(first)
    line = support.one_line(attach(service.pid, "-o", "second.tacho", cwd=tmp_path), "is being recorded already")
    assert str(tmp_path / "service-001.tacho") in line
    assert not (tmp_path / "second.tacho").exists()
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    assert is_complete(tmp_path / "service-001.tacho")


def test_a_program_under_record_is_told(tmp_path: Path) -> None:
    script = "import sys; print('ready', flush=True); sys.stdin.read()"
    command = [*support.COMMAND, "record", "-q", "-o", "run.tacho", "-c", script]
    with running(command, tmp_path, STANDBY) as recording:
        (program,), _ = support.children(recording.pid)
        support.one_line(attach(program, cwd=tmp_path), f"process {program} is being recorded already")
        recording.communicate("", timeout=60)


GREEN = """
import {module}
{patch}
import sys, time
def busy():
    end = time.monotonic() + 60
    while time.monotonic() < end: sum(range(5000))
green = {module}.spawn(busy)
print("ready", flush=True)
{wait}
"""
PATCHED = {
    "gevent": GREEN.format(
        module="gevent", patch="import gevent.monkey; gevent.monkey.patch_all()", wait="green.join()"
    ),
    "eventlet": GREEN.format(module="eventlet", patch="eventlet.monkey_patch()", wait="green.wait()"),
}


@pytest.mark.parametrize("what", ["dump", "attach"])
@pytest.mark.parametrize("module", PATCHED)
def test_a_program_whose_threads_are_greenlets(tmp_path: Path, module: str, what: str) -> None:
    """Functions of ``_thread`` are not the interpreter's there; none of its greenlets gives way."""
    pytest.importorskip(module)
    with running([sys.executable, "-W", "ignore", "-c", PATCHED[module]], tmp_path) as process:
        if what == "dump":
            shown = command("dump", process.pid, "--json", cwd=tmp_path)
            assert (shown.status, shown.stderr) == (0, "")
            (thread,) = json.loads(shown.stdout)["threads"]
            assert (thread["tid"], thread["name"], thread["python"]) == (process.pid, "MainThread", True)
            assert "busy" in [frame["function"] for frame in thread["stack"]]
        else:
            done = attach(process.pid, "--duration", "300ms", "-o", "run.tacho", cwd=tmp_path)
            assert done.status == 0, done.stderr
            names = {row["tid"]: row["name"] for row in support.rows(tmp_path / "run.tacho", "threads")}
            assert names[process.pid] == "MainThread"
            numbers = {row["thread"]: row["tid"] for row in support.rows(tmp_path / "run.tacho", "threads")}
            assert process.pid in {numbers[row["thread"]] for row in support.rows(tmp_path / "run.tacho", "cpu")}


def test_ps_says_how_each_can_be_attached_to(service: "subprocess.Popen[str]", tmp_path: Path) -> None:
    with running([sys.executable, "-c", "print('ready', flush=True); input()"], tmp_path) as other:
        other.send_signal(signal.SIGSTOP)
        state = Path(f"/proc/{other.pid}/status")
        support.wait_for(lambda: "State:\tT" in state.read_text(encoding="utf-8"), "the stop")
        stopped = command("ps", "--json", cwd=tmp_path)
        other.send_signal(signal.SIGCONT)
        support.wait_for(lambda: "State:\tS" in state.read_text(encoding="utf-8"), "its going on")
        done = command("ps", cwd=tmp_path)
        as_json = command("ps", "--json", cwd=tmp_path)
    assert (done.status, done.stderr, as_json.status, as_json.stderr) == (0, "", 0, "")
    lines = {int(line.split()[0]): line for line in done.stdout.splitlines()[1:]}
    objects = {each["pid"]: each for each in json.loads(as_json.stdout)}
    version = "{}.{}".format(*sys.version_info)
    door = "remote_exec" if sys.version_info >= (3, 14) else "pending_call"
    assert lines[service.pid].split()[2:4] == [version, "standby"]
    assert lines[service.pid].endswith("service.py")
    assert lines[other.pid].split()[2:4] == [version, door]
    user = lines[other.pid].split()[1]
    assert objects[service.pid] == {
        "pid": service.pid, "user": user, "program": "service.py", "command": [sys.executable, "service.py"],
        "python_version": version, "door": "standby", "why_not": None,
    }  # fmt: skip
    assert (objects[other.pid]["program"], objects[other.pid]["door"]) == ("python-c", door)
    (before,) = [each for each in json.loads(stopped.stdout) if each["pid"] == other.pid]
    assert (before["door"], before["why_not"].split(":")[0]) == (None, f"process {other.pid} is stopped")
    assert os.getpid() not in lines
    support.one_line(command("dump", other.pid, cwd=tmp_path), "there is no process")
