"""No disk can hold a recorded program up, or kill it: what it stores is in memory that the recording command holds."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

BUSY = """
import os, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        [bytes(5000) for _ in range(50)]
work(0.3)
(folder / "pid").write_text(str(os.getpid()))
while not (folder / "stop").exists():
    work(0.02)
    time.sleep(0.002)
    (folder / "beat.new").write_text(str(time.process_time_ns()))
    (folder / "beat.new").rename(folder / "beat")
print("the end")
"""


@contextmanager
def running(folder: Path, recording: str = "run.tacho") -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """The recording command and the program's process id, once that is busy; it is told to end in the end."""
    program = folder / "busy.py"
    program.write_text(BUSY, encoding="utf-8")
    with support.start([program, folder], folder, "--interval", "5", output=recording) as command:
        support.wait_for((folder / "beat").exists, "the program")
        try:
            yield command, int((folder / "pid").read_text(encoding="utf-8"))
        finally:
            (folder / "stop").touch()


def wait_for_work(folder: Path, seconds: float) -> None:
    """Return when the program has spent so much more CPU time."""
    beat = folder / "beat"
    enough = int(beat.read_text(encoding="utf-8")) + seconds * 1e9
    support.wait_for(lambda: int(beat.read_text(encoding="utf-8")) > enough, "the program's work", timeout=120)


def lost(recording: Path) -> dict[str, int]:
    quality: list[dict[str, Any]] = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["quality"]
    return {entry["loss"]: entry["count"] for entry in quality}


def mapped_files(pid: int, folder: Path) -> list[str]:
    """What a process has mapped of the files of a folder, to write into it."""
    lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if str(folder) in line and line.split()[1].endswith("s")]


def test_nothing_of_the_recording_is_mapped(tmp_path: Path) -> None:
    """Also in a fork, in a child, and after an exec; what they wrote is all there."""
    code = (
        "import os, subprocess, sys, time\n"
        "def maps(): print([l for l in open('/proc/self/maps') if 'run.tacho' in l], flush=True)\n"
        "def burn():\n"
        "    end = time.process_time() + 0.2\n"
        "    while time.process_time() < end: pass\n"
        "if sys.argv[1] == 'first':\n"
        "    burn(); maps()\n"
        "    pid = os.fork()\n"
        "    if pid == 0: burn(); maps(); os.kill(os.getpid(), 9)\n"
        "    os.waitpid(pid, 0)\n"
        "    subprocess.run([sys.executable, __file__, 'child'])\n"
        "    os.execv(sys.executable, [sys.executable, __file__, 'after'])\n"
        "burn(); maps()\n"
    )
    (tmp_path / "tree.py").write_text(code, encoding="utf-8")
    done = support.record([tmp_path / "tree.py", "first"], tmp_path)
    assert (done.status, done.stdout, done.stderr) == (0, "[]\n" * 4, "")
    recording = tmp_path / "run.tacho"
    assert not {"segments_missing", "ends_uncopied", "records_dropped"} & lost(recording).keys()
    spent: dict[int, int] = {}
    process_of = {row["thread"]: row["process"] for row in support.rows(recording, "threads")}
    for row in support.rows(recording, "cpu"):
        process = process_of[row["thread"]]
        spent[process] = spent.get(process, 0) + row["cpu_ns"]
    assert len(spent) == 4
    assert min(spent.values()) > 0.15e9


def test_files_that_shrink(tmp_path: Path) -> None:
    """As a disk with errors: a store into a page that cannot be had is the program's death, where it stores there."""
    with running(tmp_path) as (command, program):
        spool = tmp_path / "run.tacho" / "spool"
        support.wait_for(lambda: any(spool.glob(f"{program}-*.seg")), "the first copies")
        assert mapped_files(program, tmp_path) == []
        for path in spool.glob(f"{program}-*"):
            os.truncate(path, 0)
        before = (tmp_path / "beat").read_text(encoding="utf-8")
        support.wait_for(lambda: (tmp_path / "beat").read_text(encoding="utf-8") != before, "the program's next round")
        (tmp_path / "stop").touch()
        stdout, _ = command.communicate(timeout=60)
    assert (command.returncode, stdout) == (0, "the end\n")


def test_recording_command_killed(tmp_path: Path) -> None:
    """The program makes the copies itself then, and its recording is whole."""
    with running(tmp_path) as (command, program):
        os.kill(command.pid, signal.SIGKILL)
        command.wait(timeout=10)
        wait_for_work(tmp_path, 2)
        (tmp_path / "stop").touch()
        support.wait_for(lambda: not support.is_running(program), "the program's own end")
    spent_ns = int((tmp_path / "beat").read_text(encoding="utf-8"))
    done = support.tachograph("recover", tmp_path / "run.tacho", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    recording = tmp_path / "run.tacho"
    assert not {"segments_missing", "ends_uncopied"} & lost(recording).keys()
    (process,) = support.rows(recording, "processes")
    assert process["exit_status"] == 0
    assert sum(row["cpu_ns"] for row in support.rows(recording, "cpu")) == pytest.approx(spent_ns, rel=0.1)


@pytest.mark.slow
def test_both_killed(tmp_path: Path) -> None:
    """What is missing is about the last second, and the ledger says that something may be."""
    with running(tmp_path) as (command, program):
        wait_for_work(tmp_path, 2)
        for pid in (command.pid, program):
            os.kill(pid, signal.SIGKILL)
        command.wait(timeout=10)
        support.wait_for(lambda: not support.is_running(program), "the program's death")
    spent_ns = int((tmp_path / "beat").read_text(encoding="utf-8"))
    done = support.tachograph("recover", tmp_path / "run.tacho", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    recording = tmp_path / "run.tacho"
    assert lost(recording)["ends_uncopied"] == 1
    found_ns = sum(row["cpu_ns"] for row in support.rows(recording, "cpu"))
    assert spent_ns - 1.1e9 < found_ns < spent_ns + 0.2e9


def test_out_of_reach(tmp_path: Path) -> None:
    """Where a program cannot reach the recording command, it uses files as they are, and the notes say so."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-rn", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no network namespace can be made here")
    code = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    done = support.record(["-c", code], tmp_path)
    assert done.status == 0
    assert not json.loads((tmp_path / "run.tacho" / "manifest.json").read_bytes())["notes"]
    done = support.record([unshare, "-rn", sys.executable, "-c", code], tmp_path, "--force")
    assert done.status == 0, done.stderr
    assert support.rows(tmp_path / "run.tacho", "cpu")
    notes = json.loads((tmp_path / "run.tacho" / "manifest.json").read_bytes())["notes"]
    assert any("files of the disk" in note for note in notes), notes


MEMFD_CREATE = "319"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the system call has another number")
def test_memory_files_are_forbidden(tmp_path: Path) -> None:
    """A sandbox without them: the files of the disk do as well, and a note says so."""
    code = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\nprint('ran')"
    forbid = [sys.executable, str(support.PROGRAMS / "forbid.py"), MEMFD_CREATE]
    done = support.run([*forbid, *support.COMMAND, "record", "-qo", "run.tacho", "-c", code], tmp_path, timeout=60)
    assert done == support.Outcome(0, "ran\n", "")
    assert sum(row["cpu_ns"] for row in support.rows(tmp_path / "run.tacho", "cpu")) > 0.2e9
    notes = json.loads((tmp_path / "run.tacho" / "manifest.json").read_bytes())["notes"]
    assert any(note.startswith("1 of 1 processes stored their records in files of the disk") for note in notes), notes


def test_another_process_namespace(tmp_path: Path) -> None:
    """A process has another id there than here, where another process has that id, or none: it is not over for that."""
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-pf", "true"], check=False, capture_output=True).returncode:
        pytest.skip("no process namespace can be made here")
    # So long that processes that are over have been looked for several times, and with CPU time enough to compare.
    code = (
        "import time\nend = time.monotonic() + 4\n"
        "while time.monotonic() < end or time.process_time() < 2: sum(range(5000))\nprint(time.process_time())"
    )
    done = support.record([unshare, "-pf", sys.executable, "-c", code], tmp_path)
    assert done.status == 0, done.stderr
    recording = tmp_path / "run.tacho"
    spent = sum(row["cpu_ns"] for row in support.rows(recording, "cpu")) / 1e9
    assert spent == pytest.approx(float(done.stdout), rel=0.1)
    assert not {"segments_missing", "ends_uncopied", "records_dropped"} & lost(recording).keys()


@contextmanager
def a_disk(folder: Path) -> Iterator[Path]:
    """A file system of its own, which can be stopped."""
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    steps = [["mkfs.ext4", "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)]]
    for step in steps:
        if shutil.which(step[0]) is None or subprocess.run(step, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["fsfreeze", "-u", str(place)], capture_output=True, check=False)
        # A process that is about to end may still have a file of it open.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("fsfreeze") is None, reason="only root can stop a file system")
def test_disk_that_stands_still(tmp_path: Path) -> None:
    """Every write to it waits, for seconds; the program does not notice, and nothing is lost."""
    with a_disk(tmp_path) as disk, running(tmp_path, "disk/run.tacho") as (command, program):
        wait_for_work(tmp_path, 0.5)
        subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
        # A store into a mapped file of that disk would not come back before the end of this.
        wait_for_work(tmp_path, 1)
        subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
        (tmp_path / "stop").touch()
        stdout, stderr = command.communicate(timeout=60)
        assert (command.returncode, stdout) == (0, "the end\n"), stderr
        assert not {"segments_missing", "ends_uncopied", "records_dropped"} & lost(disk / "run.tacho").keys()
        spent_ns = int((tmp_path / "beat").read_text(encoding="utf-8"))
        assert sum(row["cpu_ns"] for row in support.rows(disk / "run.tacho", "cpu")) == pytest.approx(spent_ns, rel=0.1)
        assert not support.is_running(program)


STARTER = """
import os, subprocess, sys
from pathlib import Path
folder = Path(sys.argv[1])
rounds = 0
while not (folder / "stop").exists():
    subprocess.run(["true"], check=True)
    if (pid := os.fork()) == 0:
        sum(range(200_000))
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    rounds += 1
    (folder / "rounds.new").write_text(str(rounds))
    (folder / "rounds.new").rename(folder / "rounds")
os.execv(sys.executable, [sys.executable, "-c", "print('the end')"])
"""


WITH_RIGHTS = {
    "all rights": [],
    "fewer capabilities": ["setpriv", "--bounding-set", "-sys_ptrace"],
    "a user namespace": ["unshare", "--user", "--map-root-user"],
}


@pytest.mark.parametrize("rights", WITH_RIGHTS)
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("fsfreeze") is None, reason="only root can stop a file system")
def test_processes_begin_and_end_while_the_disk_stands_still(tmp_path: Path, rights: str) -> None:
    """Neither a fork, nor a program that is started, nor its end waits for the disk; each of them is in the log.

    Also where they may not look into the recording command.
    """
    limit = WITH_RIGHTS[rights]
    if limit and (
        shutil.which(limit[0]) is None or subprocess.run([*limit, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip(f"{limit[0]} cannot do that here")
    rounds = tmp_path / "rounds"
    (tmp_path / "starter.py").write_text(STARTER, encoding="utf-8")

    def wait_for_rounds(more: int) -> None:
        enough = int(rounds.read_text(encoding="utf-8")) + more
        support.wait_for(lambda: int(rounds.read_text(encoding="utf-8")) >= enough, "more processes", timeout=120)

    with (
        a_disk(tmp_path) as disk,
        support.start(
            [*limit, sys.executable, tmp_path / "starter.py", tmp_path], tmp_path, output="disk/run.tacho"
        ) as command,
    ):
        support.wait_for(rounds.exists, "the first processes")
        wait_for_rounds(3)
        subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
        wait_for_rounds(10)
        subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
        (tmp_path / "stop").touch()
        stdout, stderr = command.communicate(timeout=120)
        assert (command.returncode, stdout) == (0, "the end\n"), stderr
        recording = disk / "run.tacho"
        assert not {"segments_missing", "ends_uncopied", "records_dropped"} & lost(recording).keys()
        processes = support.rows(recording, "processes")
    count = int(rounds.read_text(encoding="utf-8"))
    assert sum(row["origin"] == "fork" and row["exit_status"] == 3 for row in processes) == count
    assert sum(row["executable"].endswith("/true") and row["exit_status"] == 0 for row in processes) == count
    assert [row["origin"] for row in processes].count("first") == 1
    assert len(processes) == 2 * count + 2 + bool(limit)


GIVES_UP = """
import ctypes, os, sys, threading, time
from pathlib import Path
folder = Path(sys.argv[1])
def ours():
    return [task for task in Path("/proc/self/task").iterdir() if (task / "comm").read_text() == "tachograph\\n"]
def work(): [bytes(5000) for _ in range(200)]
def until(happened):
    while not happened(): work()
until(ours)
(helper,) = ours()
(folder / "pid").write_text(str(os.getpid()))
until((folder / "frozen").exists)
until(lambda: (helper / "stat").read_text().rpartition(")")[2].split()[0] == "D")
begin = time.monotonic()
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # no_new_privs
(folder / "seconds").write_text(str(time.monotonic() - begin))
until((folder / "thawed").exists)
end = time.monotonic() + 60
until(lambda: not helper.exists() or time.monotonic() > end)
print(len(ours()), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("fsfreeze") is None, reason="only root can stop a file system")
def test_rights_are_given_up_while_the_disk_holds_the_recorder_up(tmp_path: Path) -> None:
    """The recorder's thread, which has them still, ends as soon as the disk lets it, and the program does not wait."""
    (tmp_path / "gives_up.py").write_text(GIVES_UP, encoding="utf-8")
    with a_disk(tmp_path) as disk, open(tmp_path / "out", "w", encoding="utf-8") as out:
        line = [*support.COMMAND, "record", "-qo", "disk/run.tacho", "gives_up.py", str(tmp_path)]
        with subprocess.Popen(line, cwd=tmp_path, env=support.environment(), stdout=out) as command:
            support.wait_for(
                lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "", "the program"
            )
            program = int((tmp_path / "pid").read_text(encoding="utf-8"))
            # Only where it is alone does the thread write to the disk.
            command.kill()
        subprocess.run(["fsfreeze", "-f", str(disk)], check=True)
        (tmp_path / "frozen").touch()
        support.wait_for((tmp_path / "seconds").exists, "the program to go on", timeout=120)
        subprocess.run(["fsfreeze", "-u", str(disk)], check=True)
        (tmp_path / "thawed").touch()
        support.wait_for(lambda: not support.is_running(program), "the program's end", timeout=120)
    assert (tmp_path / "out").read_text(encoding="utf-8") == "0\n"
