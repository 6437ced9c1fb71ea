"""``tachograph record COMMAND``: shell scripts, console scripts, what is between us and Python, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

WORK = """
import sys, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        for _ in range(200_000): pass  # reading such a clock may cost the processor
work(float(sys.argv[1]))
print("worked", sys.argv[1:])
"""


INTERRUPTED_EARLY = """
import signal, sys
from tachograph.start import run
class Interrupts:
    def find_spec(self, name, *_):
        if name == MODULE: signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupts())
run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With ``work.py``, and ``run.sh`` that runs it twice."""
    (tmp_path / "work.py").write_text(WORK, encoding="utf-8")
    script = tmp_path / "run.sh"
    script.write_text(
        f"#!/bin/sh\n{sys.executable} work.py 0.2 a\n{sys.executable} work.py 0.1 b\necho to stderr >&2\nexit 7\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return tmp_path


def run(command: Sequence[str], cwd: Path) -> support.Outcome:
    done = subprocess.run(
        command, cwd=cwd, env=support.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    return support.Outcome(support.shell_status(done.returncode), done.stdout, done.stderr)


def processes(folder: Path) -> list[dict[str, object]]:
    return support.rows(folder / "run.tacho", "processes")


def test_a_shell_script(folder: Path) -> None:
    recorded = support.record(["./run.sh"], folder, "--interval", "5")
    assert recorded == run(["./run.sh"], folder)
    assert recorded.status == 7
    first, *others = processes(folder)
    assert (first["origin"], first["recorded"], first["exit_status"]) == ("first", "listed", 7)
    assert first["command"] in ("./run.sh", "/bin/sh ./run.sh")
    python = [row for row in others if row["recorded"] == "python"]
    assert len(python) == 2
    assert {row["parent"] for row in python} == {0}
    report = support.analyze(folder / "run.tacho", cwd=folder)
    (work,) = [row for row in report["functions"] if row["function"] == "work"]
    # Both processes ran the same code, and it is one function.
    assert work["cpu_s"] == pytest.approx(0.3, rel=0.15)
    manifest = json.loads((folder / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["argv"] == ["./run.sh"]


def test_a_command_on_the_path(folder: Path) -> None:
    tool = folder / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text(f"#!{sys.executable}\n{WORK}", encoding="utf-8")
    tool.chmod(0o755)
    env = support.environment()
    env["PATH"] = f"{tool.parent}{os.pathsep}{env['PATH']}"
    done = subprocess.run(
        [*support.COMMAND, "record", "tool", "0.2", "-q"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "worked ['0.2', '-q']\n")
    assert ", 2 Python" not in done.stderr
    assert done.stderr.startswith("tachograph: recorded ")
    (row,) = support.rows(folder / "tool-001.tacho", "processes")
    assert (row["recorded"], row["exit_status"]) == ("python", 0)
    samples = support.rows(folder / "tool-001.tacho", "cpu")
    assert 0.15e9 < sum(int(str(sample["cpu_ns"])) for sample in samples) < 0.5e9


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", "exit 200"], 200),
        (["sh", "-c", "kill -TERM $$"], 128 + signal.SIGTERM),
        (["false"], 1),
        (["env", "-i", "/bin/sh", "-c", "exit 4"], 4),
    ],
)
def test_the_exit_status_of_what_is_no_python(folder: Path, command: list[str], status: int) -> None:
    done = support.tachograph("record", "-o", "run.tacho", *command, cwd=folder)
    assert support.shell_status(done.returncode) == status
    assert done.stdout == ""
    assert done.stderr.startswith(
        f"tachograph: {command[0]} was not recorded: it started no Python that can be recorded"
    )
    assert done.stderr.count("\n") == 1
    first = processes(folder)[0]
    last = [row for row in processes(folder) if row["pid"] == first["pid"]][-1]  # env becomes another program
    assert (first["origin"], support.shell_status(int(str(last["exit_status"])))) == ("first", status)


@pytest.mark.parametrize("arguments", [["no-such-command"], ["./none.sh"], ["--include", "", "sh"], ["-h5", "sh"]])
def test_bad_input_is_one_line(folder: Path, arguments: list[str]) -> None:
    done = support.tachograph("record", *arguments, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("tachograph: ")
    assert done.stderr.count("\n") == 1
    assert not list(folder.glob("*.tacho"))


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("tachograph.cli", ["ps"]), ("tachograph.recorder.command.record", ["record", "work.py"])],
)
def test_ctrl_c_while_the_command_is_imported(folder: Path, module: str, arguments: list[str]) -> None:
    program = INTERRUPTED_EARLY.replace("MODULE", repr(module))
    assert run([sys.executable, "-c", program, *arguments], folder) == support.Outcome(130, "", "")


@contextmanager
def on_a_terminal(command: Sequence[str], cwd: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command with a terminal of its own, in the foreground; the terminal's other end."""
    master, slave = os.openpty()
    attributes = termios.tcgetattr(slave)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    process = subprocess.Popen(command, cwd=cwd, env=support.environment(), preexec_fn=lambda: os.login_tty(slave))
    os.close(slave)
    try:
        yield process, master
    finally:
        support.kill_quietly(process.pid)
        process.wait(timeout=10)
        os.close(master)


INTERRUPTED = """
import time
try:
    print("ready", flush=True)
    while True: time.sleep(0.01)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(5)
"""


def interrupt(command: Sequence[str], cwd: Path) -> tuple[int, bytes]:
    """The exit status and what came after Ctrl-C was typed."""
    with on_a_terminal(command, cwd) as (process, master), open(master, "rb", buffering=0, closefd=False) as terminal:
        assert terminal.readline() == b"ready\r\n"
        os.write(master, b"\x03")
        said = b""
        try:
            while line := terminal.readline():
                said += line
        except OSError:  # EIO: every process has closed it
            pass
        return process.wait(timeout=30), said


@pytest.mark.parametrize(
    "script", ["{python} sleeper.py\necho after $?\n", "{python} sleeper.py", "exec {python} sleeper.py"]
)
def test_ctrl_c_with_a_shell_in_between(folder: Path, script: str) -> None:
    """The terminal sends SIGINT to all of them; what the shell makes of it is its own business, as without us."""
    (folder / "sleeper.py").write_text(INTERRUPTED, encoding="utf-8")
    (folder / "wait.sh").write_text(script.format(python=sys.executable), encoding="utf-8")
    # A shell that dies first takes the terminal with it, and its child may not get to say that it was interrupted.
    tries = (interrupt(["sh", "wait.sh"], folder) for _ in range(20))
    plain = next(each for each in tries if b"interrupted" in each[1])
    recorded = interrupt([*support.COMMAND, "record", "-q", "-o", "run.tacho", "sh", "wait.sh"], folder)
    assert recorded == plain
    assert b"interrupted\r\n" in recorded[1]
    assert (folder / "run.tacho" / "cpu.parquet").exists()
    assert "python" in {row["recorded"] for row in processes(folder)}


OUTLIVES = """
import os, sys, time
open("pid", "w").write(str(os.getpid()))
end = time.monotonic() + 60
while not os.path.exists("over") and time.monotonic() < end: sum(range(10000))
open("done", "w").write("whole")
"""


def test_a_descendant_that_outlives_the_program(folder: Path) -> None:
    """What it did until then is recorded, and it goes on untouched."""
    (folder / "outlives.py").write_text(OUTLIVES, encoding="utf-8")
    quietly = ">/dev/null 2>&1 </dev/null &"
    started = f"{sys.executable} outlives.py {quietly} while [ ! -s pid ]; do sleep 0.05; done; sleep 0.5; exit 6"
    begin = time.monotonic()
    try:
        command = support.tachograph("record", "-o", "run.tacho", "sh", "-c", started, cwd=folder)
        assert time.monotonic() - begin < 50  # it was not waited for
        pid = int((folder / "pid").read_text())
        assert command.returncode == 6
        assert support.is_running(pid)
        assert not (folder / "run.tacho" / "spool").exists()
        (row,) = [row for row in processes(folder) if row["pid"] == pid]
        assert (row["end_ns"], row["exit_status"], row["recorded"]) == (None, None, "python")
        manifest = json.loads((folder / "run.tacho" / "manifest.json").read_text(encoding="utf-8"))
        assert {"process": row["process"], "loss": "processes_outlived", "count": 1} in manifest["quality"]
        assert support.analyze(folder / "run.tacho", cwd=folder)["totals"]["cpu_s"] > 0.1
    finally:
        (folder / "over").touch()
    done = folder / "done"
    support.wait_for(lambda: done.exists() and done.read_text() == "whole", "the end of the descendant")


AFTER_THE_KILL = """
import os, runpy, time
while not os.path.exists("killed"):
    time.sleep(0.02)
runpy.run_path(os.path.abspath("work.py"))
"""


@pytest.mark.quiet
def test_recover_after_the_recording_command_was_killed(folder: Path) -> None:
    """With several processes: those of a script that goes on by itself."""
    (folder / "later.py").write_text(AFTER_THE_KILL)
    python = sys.executable
    (folder / "more.sh").write_text(f"{python} work.py 0.6 a\n{python} later.py 1.5 b\ntouch over\n")
    with support.start(["sh", "more.sh"], folder) as command:
        support.wait_for(lambda: len(list(folder.glob("run.tacho/spool/*.ctl"))) == 2, "the second process")
        time.sleep(1.0)  # what a process wrote that has ended is copied within 0.8 s; until then a kill loses it
        os.kill(command.pid, signal.SIGKILL)
        (folder / "killed").touch()
        support.wait_for((folder / "over").exists, "the program's own end")
        recorder = folder / "run.tacho" / "spool" / "recorder.json"
        program = json.loads(recorder.read_text(encoding="utf-8"))["processes"][1][0]
        support.wait_for(lambda: not support.is_running(program), "the end of the shell")
    done = support.tachograph("recover", "run.tacho", cwd=folder)
    assert done.returncode == 0
    assert "recovered run.tacho, 2 Python processes and " in done.stderr
    recorded = [row for row in processes(folder) if row["recorded"] == "python"]
    assert [row["end_ns"] is not None for row in recorded] == [True, True]
    report = support.analyze(folder / "run.tacho", cwd=folder)
    (work,) = [row for row in report["functions"] if row["function"] == "work"]
    assert work["cpu_s"] == pytest.approx(2.1, rel=0.15)
