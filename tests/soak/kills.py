"""SIGKILL at random moments: every recording opens, and what was committed is in it."""

import os
import random
import signal
import time
from pathlib import Path

from integration import support

TICKER = support.PROGRAMS / "ticker.py"
LATE_S = 0.15
"""CPU time that a kill may take along: the last interval, what the tick delayed, and what ran since the last file."""

UNCOPIED_S = 1.0
"""CPU time that a kill of both, program and recording command, may take along beside that: it was in memory alone."""


def kill_once(folder: Path, chance: random.Random) -> str:
    """One run that is killed; in a word what was found. Raises AssertionError where something is missing."""
    recording = folder / "run.tacho"
    whom = chance.choice(("program", "program", "both", "recorder"))
    with support.start([TICKER, folder, "30"], folder, "--interval", "5") as command:
        support.wait_for((recording / "spool").exists, "the spool")
        time.sleep(chance.uniform(0, 2.5 if whom == "both" else 0.8) * chance.random())
        pid = program(folder)
        if whom == "program" and pid:
            support.kill_quietly(pid)
        else:
            if whom == "recorder":
                os.kill(command.pid, signal.SIGKILL)
                time.sleep(chance.uniform(0, 0.2))
                (folder / "stop").touch()
                await_end(folder)
            support.kill_quietly(command.pid, group=True)
        command.wait(timeout=60)
    if not (recording / "manifest.json").exists():
        assert not (folder / "pid").exists(), "the program ran before there was a recording"
        return "before the start"
    return check(folder, recording, LATE_S + (UNCOPIED_S if whom == "both" else 0))


def program(folder: Path) -> int:
    """The process of the program; 0 before it has said so."""
    pid = folder / "pid"
    return int(pid.read_text(encoding="utf-8") or "0") if pid.exists() else 0


def await_end(folder: Path) -> None:
    """Wait for a program whose recorder is gone: it copies its last records while it ends, after all that it says."""
    if pid := program(folder):
        support.wait_for(lambda: not support.is_running(pid), "the end of a program whose recorder is gone")


def check(folder: Path, recording: Path, late_s: float) -> str:
    """Open what was left, compare it with what the program measured, recover it, and open it again."""
    spent = folder / "spent"
    spent_s = int(spent.read_text(encoding="utf-8") or "0") / 1e9 if spent.exists() else 0.0
    state = "finished" if (recording / "cpu.parquet").exists() else "left"
    for again in (False, True):
        report = support.analyze(recording, cwd=folder)
        found = sum(row["cpu_s"] for row in report["lines"] if row["function"] == "work")
        assert found >= spent_s * 0.97 - late_s, f"{found:.3f} s of {spent_s:.3f} s ({state}, {again})"
        if again or state == "finished":
            return state
        done = support.tachograph("recover", recording, cwd=folder)
        assert done.returncode == 0, done.stderr
    return state
