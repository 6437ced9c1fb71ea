"""The recording command as process 1 of a container: it takes the statuses of orphans and passes signals on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from integration import support

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(
        subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode != 0,
        reason="no namespace of process ids can be made here",
    ),
]

ORPHANS = """
import os, time
assert os.getppid() == 1
for _ in range(50):
    if os.fork() == 0:  # its child is left to process 1, and ends later
        if os.fork() == 0:
            time.sleep(0.1)
        os._exit(0)
    os.wait()
zombies = 1
end = time.monotonic() + 60
while zombies and time.monotonic() < end:
    time.sleep(0.2)
    stats = [open(f"/proc/{pid}/stat").read() for pid in os.listdir("/proc") if pid.isdigit()]
    zombies = sum(") Z " in stat for stat in stats)
print(len(stats), zombies)
"""

WAITS = """
import os, signal, sys, time
def note(number, frame):
    print(int(number), flush=True)
    os._exit(7)
signal.signal(signal.SIGTERM, note)
print("ready", flush=True)
time.sleep(60)
"""


def as_init(folder: Path, code: str, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tachograph", "record", *options, "-q", "-o", "run.tacho", "-c", code]
    return subprocess.Popen(
        [*NAMESPACE, *command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.mark.parametrize("options", [(), ("--rotate", "1s")], ids=["plain", "in windows"])
def test_no_zombies_are_left(tmp_path: Path, options: tuple[str, ...]) -> None:
    with as_init(tmp_path, ORPHANS, *options) as command:
        out, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (0, "")
    processes, zombies = map(int, out.split())
    assert zombies == 0
    assert processes <= 3  # the command, the program, and what makes the tables of a window
    assert support.rows(tmp_path / "run.tacho", "processes")


def test_signals_are_passed_on(tmp_path: Path) -> None:
    with as_init(tmp_path, WAITS) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == "ready\n"
        os.kill(child_of(command.pid), signal.SIGTERM)
        out, errors = command.communicate(timeout=60)
    assert (command.returncode, out, errors) == (7, "15\n", "")


def test_what_a_child_sends_to_process_1_is_for_the_program(tmp_path: Path) -> None:
    """A worker asks the container to stop: without us that is the program."""
    code = WAITS.replace("time.sleep(60)", "if os.fork() == 0: os.kill(1, signal.SIGTERM)\ntime.sleep(60)")
    with as_init(tmp_path, code) as command:
        out, errors = command.communicate(timeout=60)
    assert (command.returncode, out, errors) == (7, "ready\n15\n", "")


def test_the_end_by_a_signal_is_a_status(tmp_path: Path) -> None:
    """The kernel ends process 1 by no signal of its own: its status says which it was, as a shell's does."""
    with as_init(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGTERM)") as command:
        command.communicate(timeout=60)
    assert command.returncode == 128 + signal.SIGTERM
