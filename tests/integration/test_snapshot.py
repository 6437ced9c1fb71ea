"""What the flight recorder has is kept when the program or a signal asks for it."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from integration import support

BUSY = """
import os, signal, time
got = []
for number in (signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, lambda number, frame: got.append(signal.Signals(number).name))
open("ready", "w").close()
while not os.path.exists("stop") and "SIGUSR2" not in got:
    end = time.process_time() + 0.01
    while time.process_time() < end: pass
    time.sleep(0.03)  # leaves a processor to what makes the windows
print(*got)
"""
NATIVE, SIGNAL = pytest.param("native", marks=pytest.mark.native), pytest.param("signal", marks=pytest.mark.slow)
"""Windows are made by the recording command, which one sampler is enough to see."""
ASKING = "from tachograph.recorder import snapshot\nprint(snapshot(), flush=True)\n"


def window(recording: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))["window"]
    return found


def wait_for_window(folder: Path, number: int) -> dict[str, Any]:
    path = folder / f"run.{number:04}.tacho"
    support.wait_for(path.exists, path.name, 60)
    return window(path)


def stop(folder: Path, command: "subprocess.Popen[str]") -> str:
    (folder / "stop").touch()
    output, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (0, "")
    return output


@pytest.mark.parametrize("sampler", [NATIVE, SIGNAL])
def test_the_program_asks(tmp_path: Path, sampler: str) -> None:
    options = ("--rotate", "1h", "--keep", "1", "--sampler", sampler)
    with support.start(["-c", ASKING + BUSY], tmp_path, *options) as command:
        about = wait_for_window(tmp_path, 1)
        assert stop(tmp_path, command) == "True\n\n"
    last = window(tmp_path / "run.tacho")
    assert (about["number"], about["snapshot"], last["number"], "snapshot" in last) == (1, True, 2, False)
    assert about["end_ns"] == last["start_ns"]
    assert support.rows(tmp_path / "run.tacho", "cpu")


@pytest.mark.parametrize("sampler", [NATIVE, SIGNAL])
def test_a_signal_asks_and_the_program_never_gets_it(tmp_path: Path, sampler: str) -> None:
    options = ("--rotate", "1h", "--keep", "1", "--snapshot-signal", "USR1", "--sampler", sampler)
    with support.start(["-c", BUSY], tmp_path, *options) as command:
        support.wait_for((tmp_path / "ready").exists, "the program")
        for number in (1, 2):
            command.send_signal(signal.SIGUSR1)
            assert wait_for_window(tmp_path, number)["snapshot"] is True
        command.send_signal(signal.SIGUSR2)
        output, errors = command.communicate(timeout=60)
        assert (output, errors) == ("SIGUSR2\n", ""), "other signals are passed on"
    assert (tmp_path / "run.0001.tacho").is_dir(), "a snapshot is not deleted, whatever --keep says"


@pytest.mark.native
def test_a_child_asks(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, os, time\n"
        f"subprocess.run([sys.executable, '-c', {ASKING!r}], check=True)\n"
        "while not os.path.exists('stop'): time.sleep(0.01)\n"
    )
    with support.start(["-c", code], tmp_path, "--rotate", "1h") as command:
        assert wait_for_window(tmp_path, 1)["snapshot"] is True
        assert stop(tmp_path, command) == "True\n"
    assert len(support.rows(tmp_path / "run.0001.tacho", "processes")) == 2


def test_a_program_that_does_not_rotate_takes_no_snapshot(tmp_path: Path, sampler: str) -> None:
    assert support.bare(["-c", ASKING], tmp_path).stdout == "False\n"
    assert support.record(["-c", ASKING], tmp_path, "--sampler", sampler) == support.Outcome(0, "False\n", "")
