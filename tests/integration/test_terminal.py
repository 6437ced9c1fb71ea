"""What a terminal does to a program and its recorder: Ctrl-C, twice; hanging up; and stops that come from elsewhere."""

import json
import os
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native


@dataclass
class Terminal:
    """A command in a session of its own, with a terminal that we hold the other end of."""

    process: "subprocess.Popen[bytes]"
    master: int

    def line(self) -> str:
        """The next line that appears on it; empty when the terminal is gone."""
        text = b""
        while not text.endswith(b"\n"):
            try:
                byte = os.read(self.master, 1)
            except OSError:
                break
            text += byte
        return text.decode().strip()


@contextmanager
def on_terminal(target: Sequence[str | Path], cwd: Path) -> Iterator[Terminal]:
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = subprocess.Popen(
        [*support.COMMAND, "record", "-q", "-o", "run.tacho", *map(str, target)],
        cwd=cwd,
        env=support.environment(),
        preexec_fn=lambda: os.login_tty(slave),
    )
    os.close(slave)
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        support.kill_quietly(process.pid)
        process.wait(timeout=10)
        if terminal.master >= 0:
            os.close(terminal.master)


def manifest(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    return found


CLEANS_UP = """
import os, time
def work():
    end = time.process_time() + 0.1
    while time.process_time() < end: pass
work()
try:
    print("ready", os.getpid(), flush=True)
    while True: time.sleep(0.01)
except KeyboardInterrupt:
    print("cleaning up", flush=True)
    while True: time.sleep(0.01)
"""


def test_ctrl_c_twice(tmp_path: Path) -> None:
    """The first is taken, the second ends the clean-up; a third comes while the recording is finished."""
    with on_terminal(["-c", CLEANS_UP], tmp_path) as terminal:
        pid = int(terminal.line().split()[1])
        os.write(terminal.master, b"\x03")
        assert terminal.line() == "cleaning up"
        os.write(terminal.master, b"\x03")
        support.wait_for(lambda: not support.is_running(pid), "the program's end")
        os.write(terminal.master, b"\x03")
        while terminal.line():
            continue
        assert terminal.process.wait(timeout=60) == -signal.SIGINT
    assert manifest(tmp_path)["state"] == "complete"
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 0


@pytest.mark.parametrize("survives", [False, True], ids=["dies", "survives"])
def test_a_terminal_that_closes(tmp_path: Path, survives: bool) -> None:
    """SIGHUP to the whole group, and no terminal left to write to: the program ends as it will, and is recorded."""
    code = (
        "import os, signal, sys, time\n"
        f"if {survives}: signal.signal(signal.SIGHUP, lambda *_: os.close(os.open('hung-up', os.O_CREAT)))\n"
        "burnt = time.process_time() + 0.1\n"
        "while time.process_time() < burnt: sum(range(1000))\n"
        "print('ready', os.getpid(), flush=True)\n"
        "end = time.monotonic() + 30\n"
        "while time.monotonic() < end and not os.path.exists('stop'): sum(range(1000))\n"
        "open('done', 'w').close()\n"
        "os._exit(9)\n"
    )
    with on_terminal(["-c", code], tmp_path) as terminal:
        pid = int(terminal.line().split()[1])
        os.close(terminal.master)
        terminal.master = -1
        if survives:
            support.wait_for((tmp_path / "hung-up").exists, "the program to hear of it")
            assert support.is_running(pid)
            (tmp_path / "stop").touch()
        assert terminal.process.wait(timeout=60) == (9 if survives else -signal.SIGHUP)
    assert (tmp_path / "done").exists() == survives
    assert manifest(tmp_path)["state"] == "complete"
    assert support.analyze(tmp_path / "run.tacho", cwd=tmp_path)["totals"]["samples"] > 0


def test_stopped_and_continued(tmp_path: Path) -> None:
    """SIGSTOP and SIGCONT to the program, then to the command: neither hangs, and no CPU time is made up for it."""
    with support.start([support.PROGRAMS / "ticker.py", tmp_path, "60"], tmp_path, "--interval", "5") as command:
        support.wait_for((tmp_path / "spent").exists, "the program's first round")
        pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
        for target in (pid, command.pid):
            os.kill(target, signal.SIGSTOP)
            time.sleep(0.6)
            assert support.is_running(pid)
            os.kill(target, signal.SIGCONT)
        spent = (tmp_path / "spent").read_text(encoding="utf-8")
        support.wait_for(lambda: (tmp_path / "spent").read_text(encoding="utf-8") != spent, "the program to go on")
        (tmp_path / "stop").touch()
        command.communicate(timeout=60)
    assert command.returncode == 4
    cpu = sum(row["cpu_ns"] for row in support.rows(tmp_path / "run.tacho", "cpu"))
    threads = support.rows(tmp_path / "run.tacho", "threads")
    assert cpu <= sum(row["cpu_ns"] for row in threads if row["main"]) * 1.001


def test_the_out_of_memory_killer(tmp_path: Path) -> None:
    """In a memory group of its own where one can be made: what was recorded until then is there."""
    group = Path("/sys/fs/cgroup/memory") / f"tachograph-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        pytest.skip("no memory group can be made here")
    try:
        (group / "memory.limit_in_bytes").write_text(str(120 << 20), encoding="ascii")
        code = (
            "import os, sys, time\n"
            "end = time.process_time() + 0.2\n"
            "while time.process_time() < end: pass\n"
            "open(sys.argv[1] + '/tasks', 'w').write(str(os.getpid()))\n"
            "kept = []\n"
            "while True: kept.append(bytearray(b'x') * (1 << 20))\n"
        )
        recorded = support.record(["-c", code, group], tmp_path)
    finally:
        support.wait_for(lambda: not (group / "tasks").read_text(encoding="ascii"), "the group to be empty")
        group.rmdir()
    assert recorded.status == 128 + signal.SIGKILL
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    assert report["totals"]["samples"] > 0
    assert max(row["footprint_bytes"] for row in support.rows(tmp_path / "run.tacho", "memory")) > 50 << 20
