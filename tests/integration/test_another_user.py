"""A program that begins as root and becomes another user, as servers do: it is recorded to its end, and the recording
stays root's alone."""

import json
import os
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]

PROGRAM = support.PROGRAMS / "another_user.py"
NOBODY = 65534
ROOM = 750
"""How many of the programs' spans have room in what was prepared for them at any moment: three segments at most."""

MANY = 2500
REQUEST = struct.Struct("<8sIIqQQ")
SEGMENT, PROCESS = 1, 2
MEBIBYTE = 1 << 20


def manifest(recording: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    return found


def lost(recording: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in manifest(recording)["quality"]:
        found[entry["loss"]] = found.get(entry["loss"], 0) + entry["count"]
    return found


def spans(recording: Path, letter: str) -> int:
    return sum(row["name"].startswith(letter) for row in support.rows(recording, "spans"))


@pytest.mark.parametrize(
    "how", ["setuid", *(pytest.param(how, marks=pytest.mark.slow) for how in ("setresuid", "back_and_forth"))]
)
def test_recorded_to_its_end(open_folder: Path, how: str) -> None:
    """All that it wrote is there, or was counted. No thread keeps root's rights, and nothing of ours is open."""
    arguments: list[str | Path] = [PROGRAM, how, str(MANY), open_folder]
    recorded = support.record(arguments, open_folder)
    assert (recorded.status, recorded.stderr) == (0, "")
    assert recorded.stdout.startswith(f"['{NOBODY} {NOBODY} {NOBODY} {NOBODY}'] []")
    recording = open_folder / "run.tacho"
    losses = lost(recording)
    assert "recording_stopped" not in losses
    assert spans(recording, "s") >= MANY - losses.get("records_dropped", 0)
    assert spans(recording, "s") > 3 * ROOM
    assert not (recording / "spool").exists()

    told = json.loads((open_folder / "told.json").read_text(encoding="utf-8"))
    samples = [row for row in support.rows(recording, "cpu") if told["begin_ns"] < row["time_ns"] <= told["end_ns"]]
    weights = [row["cpu_ns"] for row in samples]
    if not losses.get("records_dropped"):
        assert sum(weights) == pytest.approx(told["cpu_ns"], rel=0.03, abs=2 * max(weights))
    (process,) = (row for row in support.rows(recording, "processes") if row["pid"] == told["pid"])
    assert (process["exit_status"], process["recorded"]) == (0, "python")
    assert process["user_ns"] > told["cpu_ns"] / 2  # from the row that it wrote as another user


@pytest.mark.slow
def test_in_windows(open_folder: Path) -> None:
    """The recording command also takes the segments away while it makes new ones."""
    done = support.record(
        [PROGRAM, "setuid", str(2 * MANY), open_folder], open_folder, "--rotate", "1s", "--keep", "99"
    )
    assert (done.status, done.stderr) == (0, "")
    recordings = [*open_folder.glob("run.[0-9]*.tacho"), open_folder / "run.tacho"]
    assert len(recordings) > 1
    losses = [lost(recording) for recording in recordings]
    assert not any("recording_stopped" in each for each in losses)
    dropped = sum(each.get("records_dropped", 0) for each in losses)
    assert sum(spans(recording, "s") for recording in recordings) >= 2 * MANY - dropped


@pytest.mark.parametrize("how", [pytest.param("plain", marks=pytest.mark.slow), "chroot"])
def test_children_of_another_user(open_folder: Path, how: str) -> None:
    """Forked after the program has become another user, also in another root: each with files of its own."""
    arguments: list[str | Path] = [support.PROGRAMS / "users_children.py", how]
    assert support.record(arguments, open_folder) == support.Outcome(0, "done\n", "")
    recording = open_folder / "run.tacho"
    losses = lost(recording)
    assert not {"recording_stopped", "forks_unrecorded"} & losses.keys()
    processes = [row for row in support.rows(recording, "processes") if row["recorded"] == "python"]
    assert len(processes) == 5
    for letter in "adbc":
        assert spans(recording, letter) >= 1000 - losses.get("records_dropped", 0)
        assert spans(recording, letter) > ROOM


def withheld(recording: Path) -> int:
    """Files that no process was known to be allowed to read."""
    return support.losses(support.analyze(recording, cwd=recording.parent)).get("sources_withheld", 0)


NAMES_FILES = """
import os, sys, time
text = sys.argv.pop(1)
def busy(name):
    names = {"time": time}
    exec(compile(text, name, "exec"), names)
    names["f"]()
busy(sys.argv[1])
time.sleep(2)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
time.sleep(2)
for name in sys.argv[2:]:
    busy(name)
"""


NAMED = "def f():\n    end = time.thread_time() + 0.3\n    while time.thread_time() < end: pass"


def test_names_files_that_it_may_not_read(open_folder: Path) -> None:
    """What root alone may read is in the recording only if the program was root when it named it.

    The text is that of the code: any other one is left out where the clock on the wall says that it was changed.
    """
    names = ["before", "after", "everybody", "link"]
    for name in names[:3]:
        (open_folder / name).write_text(NAMED)
        (open_folder / name).chmod(0o644 if name == "everybody" else 0o600)
    (open_folder / "link").symlink_to("after")
    program = open_folder / "program.py"
    program.write_text(NAMES_FILES)
    arguments: list[str | Path] = [program, NAMED, *(open_folder / name for name in names)]
    done = support.record(arguments, open_folder, "--rotate", "1h")  # so it looks twice a second
    assert (done.status, done.stderr) == (0, "")
    sources = {row["path"]: row["source"] for row in support.rows(open_folder / "run.tacho", "files")}
    kept = {name: sources[str(open_folder / name)] for name in names}
    losses = support.losses(support.analyze(open_folder / "run.tacho", cwd=open_folder))
    assert kept == {"before": NAMED, "after": None, "everybody": NAMED, "link": None}, losses
    assert losses["sources_withheld"] == 2


DIES_AT_ONCE = """
import os, sys, time
def busy(name):
    text = "def f():\\n    end = time.thread_time() + 0.1\\n    while time.thread_time() < end: pass"
    names = {"time": time}
    exec(compile(text, name, "exec"), names)
    names["f"]()
if (child := os.fork()) == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    busy(sys.argv[1])
    os._exit(0)
os.waitpid(child, 0)
busy(sys.argv[2])
"""


def test_a_child_that_names_a_file_and_dies(open_folder: Path) -> None:
    """It is gone before anything can look at whose it was; the program itself was root to its end."""
    (open_folder / "closed").mkdir(mode=0o700)
    program, secret, own = (open_folder / "closed" / name for name in ("program.py", "secret", "own"))
    program.write_text(DIES_AT_ONCE, encoding="utf-8")
    secret.write_text("of root alone", encoding="utf-8")
    own.write_text("of the program", encoding="utf-8")
    done = support.record([program, secret, own], open_folder)
    assert (done.status, done.stderr) == (0, "")
    sources = {row["path"]: row["source"] for row in support.rows(open_folder / "run.tacho", "files")}
    assert sources[str(secret)] is None
    assert sources[str(own)] == "of the program"
    assert sources[str(program)] == DIES_AT_ONCE
    assert withheld(open_folder / "run.tacho") == 1


APP = """
import os
from tachograph.recorder import span

MUCH = {f"field_{number}": "x" * 190 for number in range(19)}
with span("start", **MUCH):
    pass

def app(environ, start_response):
    for _ in range(20):
        with span("request", **MUCH):
            sum(range(1000))
    body = " ".join(map(str, os.getresuid() + os.getresgid())).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


def test_gunicorn(open_folder: Path) -> None:
    """Its workers become another user each for itself, after the fork; the application is there before."""
    pytest.importorskip("gunicorn")
    (open_folder / "app.py").write_text(APP, encoding="utf-8")
    address, requests = open_folder / "address", 100
    server = ["-m", "gunicorn", "--user", str(NOBODY), "--group", str(NOBODY), "--workers", "2", "--preload"]
    server += ["--bind", f"unix:{address}", "--log-level", "warning", "--worker-tmp-dir", "/dev/shm", "app:app"]
    with support.start(server, open_folder) as command:
        support.wait_for(address.exists, "the server")
        answers = [get(address) for _ in range(requests)]
        command.send_signal(signal.SIGTERM)
        _, complaints = command.communicate(timeout=60)
    assert set(answers) == {" ".join([str(NOBODY)] * 6)}
    assert command.returncode == 0, complaints
    recording = open_folder / "run.tacho"
    losses = lost(recording)
    assert not {"recording_stopped", "forks_unrecorded"} & losses.keys()
    assert spans(recording, "request") >= requests * 20 - losses.get("records_dropped", 0)
    workers = [row for row in support.rows(recording, "processes") if row["parent"] is not None]
    assert [(row["recorded"], row["exit_status"]) for row in workers] == [("python", 0)] * 2


def get(address: Path) -> str:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(30)
        line.connect(str(address))
        line.sendall(b"GET / HTTP/1.0\r\n\r\n")
        text = b""
        while more := line.recv(4096):
            text += more
    return text.partition(b"\r\n\r\n")[2].decode()


def wait_until_ready(open_folder: Path) -> int:
    """The process id of the program, once it is there."""
    ready = open_folder / "ready"
    support.wait_for(lambda: ready.exists() and ready.read_text(encoding="utf-8") != "", "the program")
    return int(ready.read_text(encoding="utf-8"))


@pytest.mark.parametrize("moment", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_recording_command_killed(open_folder: Path, moment: str) -> None:
    """Then nothing copies its memory: its end is missing, which is said, and all that was written before is there."""
    arguments: list[str | Path] = [PROGRAM, "setuid", str(MANY), open_folder, "wait" if moment == "before" else "pause"]
    recording = open_folder / "run.tacho"
    with support.start(arguments, open_folder) as command:
        program = wait_until_ready(open_folder)
        prefix = f"{program}-"
        support.wait_for(lambda: any((recording / "spool").glob(f"{prefix}*.ctl")), "the first copies")
        if moment == "after":
            support.wait_for(
                lambda: any(
                    path.name.startswith(prefix) and path.name.endswith(".000007.seg")
                    for path in (recording / "spool").iterdir()
                ),
                "a segment of the other user",
            )
        os.kill(command.pid, signal.SIGKILL)
        command.wait(timeout=10)
        (open_folder / ("go" if moment == "before" else "on")).touch()
        support.wait_for(lambda: not support.is_running(program), "the program's own end", timeout=60)
    assert (open_folder / "told.json").stat().st_size > 0
    done = support.tachograph("recover", recording, cwd=open_folder)
    assert done.returncode == 0, done.stderr
    assert lost(recording)["ends_uncopied"] == 1
    found = spans(recording, "s") if (recording / "spans.parquet").exists() else 0
    assert found < MANY
    assert (found > ROOM) == (moment == "after")


def test_recording_command_that_stands_still(open_folder: Path) -> None:
    """What finds no room meanwhile is counted, and the recording goes on when it does."""
    many = 4 * MANY  # more than what the memory files of a process may hold
    arguments: list[str | Path] = [PROGRAM, "setuid", str(many), open_folder, "wait", "pause", "hurry"]
    recording, told = open_folder / "run.tacho", open_folder / "told.json"
    with support.start(arguments, open_folder) as command:
        wait_until_ready(open_folder)
        os.kill(command.pid, signal.SIGSTOP)
        (open_folder / "go").touch()
        support.wait_for(lambda: told.stat().st_size > 0, "the middle of the program", timeout=120)
        before = len(list((recording / "spool").glob("*.seg")))
        os.kill(command.pid, signal.SIGCONT)
        support.wait_for(lambda: len(list((recording / "spool").glob("*.seg"))) > before, "a copy of a segment")
        (open_folder / "on").touch()
        command.communicate(timeout=60)
    assert command.returncode == 0
    losses = lost(recording)
    assert not {"recording_stopped", "segments_missing", "ends_uncopied"} & losses.keys()
    assert losses["records_dropped"] > 0
    assert spans(recording, "s") >= many - losses["records_dropped"]
    assert spans(recording, "s") > many // 4


def name_of_broker(command: int) -> str:
    """The name at which a recording command answers, by its process id."""
    sockets = set()
    for path in Path(f"/proc/{command}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            sockets.add(os.readlink(path))
    rows = [line.split() for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines()]
    # those of the lines that it has accepted are of the same name
    listening = [row for row in rows if row[3] == "00010000" and f"socket:[{row[6]}]" in sockets]
    (name,) = (row[-1] for row in listening if row[-1].startswith("@tachograph-"))
    return name[1:]


def answer_to(name: str, request: bytes) -> tuple[bytes, int]:
    """What a process is told, and how many descriptors it is given."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.settimeout(60)
        line.connect(f"\0{name}")
        with suppress(BrokenPipeError, ConnectionResetError):
            line.send(request)
        try:
            data, given, _, _ = socket.recv_fds(line, 64, 4)
        except ConnectionResetError:
            return b"", 0
        return data, len(given)


def request(what: int, sequence: int, start_ns: int) -> bytes:
    return REQUEST.pack(b"TACHASK1", what, sequence, start_ns, 4096 + (128 << 10), MEBIBYTE)


@pytest.mark.parametrize("user", [0, NOBODY])
def test_a_process_outside_the_recording_is_refused(open_folder: Path, user: int) -> None:
    """It gets no files, whether it requests those of another process or its own."""
    recording = open_folder / "run.tacho"
    with support.start([PROGRAM, "setuid", "4", open_folder, "pause"], open_folder) as command:
        program = wait_until_ready(open_folder)
        name = name_of_broker(command.pid)
        spool = recording / "spool"
        support.wait_for(lambda: any(spool.glob(f"{program}-*.ctl")), "the first copies")
        (control,) = (path for path in spool.iterdir() if path.name.startswith(f"{program}-") and path.suffix == ".ctl")
        before = {path.name for path in spool.iterdir()}
        start_ns = int(control.stem.partition("-")[2])
        requests = [
            (name, request(SEGMENT, 3, start_ns)),
            (name, request(PROCESS, 0, time.monotonic_ns())),
            (name, b""),
            (name, b"TACHASK1"),
        ]
        refused = [(b"", 0)] * len(requests)
        assert support.as_user(user, lambda: [answer_to(*each) for each in requests]) == repr(refused)
        own = {f"{control.stem}.00000{number}.seg" for number in (1, 2)}  # which it made ahead of need
        assert {path.name for path in spool.iterdir()} - before - own <= {"processes.log", "recorder.json"}
        (open_folder / "on").touch()
        command.communicate(timeout=60)
    assert command.returncode == 0
    assert lost(recording).keys().isdisjoint({"recording_stopped", "records_dropped"})


@contextmanager
def impostor(name: str) -> Iterator[tuple[int, int]]:
    """Another user's process that listens at this name, and says what the first who comes tells it."""

    def listen(writer: int) -> None:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(f"\0{name}")
        listener.listen()
        listener.settimeout(60)
        os.write(writer, b"ready")
        victim, _ = listener.accept()
        victim.settimeout(60)
        os.write(writer, f"told {victim.recv(1024)!r}".encode())

    pid, reader = support.fork_as(NOBODY, listen)
    try:
        yield reader, pid
    finally:
        os.close(reader)
        support.kill_quietly(pid)


def test_an_impostor_is_told_nothing(open_folder: Path) -> None:
    """Once the recording command is dead, any process may take the name; a process believes only root."""
    with support.start([PROGRAM, "setuid", str(MANY), open_folder, "wait"], open_folder) as command:
        program = wait_until_ready(open_folder)
        name = name_of_broker(command.pid)
        spool = open_folder / "run.tacho" / "spool"
        support.wait_for(lambda: any(spool.glob(f"{program}-*.ctl")), "the first copies")
        os.kill(command.pid, signal.SIGKILL)
        command.wait(timeout=10)
        support.wait_for(
            lambda: f" @{name}\n" not in Path("/proc/net/unix").read_text(encoding="utf-8"), "the end of its socket"
        )
        with impostor(name) as (reader, pid):
            assert os.read(reader, 64) == b"ready"
            (open_folder / "go").touch()
            support.wait_for(lambda: not support.is_running(program), "the program's own end", timeout=60)
            assert os.read(reader, 64) == b"told b''"
            assert os.waitpid(pid, 0)[1] == 0
    assert support.tachograph("recover", open_folder / "run.tacho", cwd=open_folder).returncode == 0
    assert lost(open_folder / "run.tacho")["ends_uncopied"] == 1


FORKS = f"""
import os, sys, time
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
print(os.getppid(), flush=True)
sys.stdin.readline()
begun = time.monotonic()
for _ in range(5):
    if os.fork() == 0: os._exit(0)
    os.wait()
print(time.monotonic() - begun, flush=True)
"""


def test_forks_beside_a_stopped_recording_command(open_folder: Path) -> None:
    """The first waits for it, the others do not; the children that it knows nothing of are counted when it goes on."""
    command = [*support.COMMAND, "record", "-q", "-o", "run.tacho", "-c", FORKS]
    process = subprocess.Popen(
        command, cwd=open_folder, env=support.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    recorder = int(process.stdout.readline())
    os.kill(recorder, signal.SIGSTOP)
    try:
        process.stdin.write("go\n")
        process.stdin.flush()
        took = float(process.stdout.readline())
    finally:
        os.kill(recorder, signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert took < 6
    recording = open_folder / "run.tacho"
    listed = len(support.rows(recording, "processes"))
    shown = support.tachograph("analyze", recording, "--notes", cwd=open_folder).stdout
    assert listed == 6 or "its memory could not be shared" in " ".join(shown.split()), shown
