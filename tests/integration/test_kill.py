"""Whatever dies, and whenever: what was committed is read back, and the program survives the recorder."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration import support

pytestmark = pytest.mark.native

TICKER = support.PROGRAMS / "ticker.py"


@dataclass(frozen=True)
class Recorded:
    """A recording in progress."""

    command: "subprocess.Popen[str]"
    program: int
    folder: Path

    @property
    def recording(self) -> Path:
        return self.folder / "run.tacho"

    def finalised(self) -> bool:
        return (self.recording / "cpu.parquet").exists()

    def spent_s(self) -> float:
        """CPU time that the program has measured in its `work` so far."""
        return int((self.folder / "spent").read_text(encoding="utf-8")) / 1e9


@contextmanager
def running(folder: Path, seconds: float, *options: str) -> Iterator[Recorded]:
    with support.start([TICKER, folder, str(seconds)], folder, "--interval", "5", *options) as command:
        support.wait_for((folder / "spent").exists, "the program's first round")
        yield Recorded(command, int((folder / "pid").read_text(encoding="utf-8")), folder)


def check_profile(run: Recorded, lost_s: float = 0.0) -> None:
    """The analysis has the CPU time that the program measured, but for what it did after its last file or sample.

    ``lost_s`` is how much may be missing beside that.
    """
    report = support.analyze(run.recording, cwd=run.folder)
    rows = [row for row in report["lines"] if row["function"] == "work"]
    weights = [row["cpu_ns"] for row in support.rows(run.recording, "cpu")] if run.finalised() else []
    slack = max(weights, default=0.1e9) / 1e9 + 0.1
    found, spent = sum(row["cpu_s"] for row in rows), run.spent_s()
    assert spent * 0.97 - slack - lost_s <= found <= spent * 1.03 + slack


def test_program_killed(tmp_path: Path) -> None:
    with running(tmp_path, 30) as run:
        time.sleep(1.0)
        os.kill(run.program, signal.SIGKILL)
        run.command.communicate(timeout=30)
    assert support.shell_status(run.command.returncode) == 128 + signal.SIGKILL
    assert not (run.recording / "spool").exists()
    check_profile(run)


def test_recorder_killed_and_recovered(tmp_path: Path) -> None:
    """The program goes on recording; `analyze` reads what is there and touches nothing; `recover` finishes it."""
    with running(tmp_path, 30) as run:
        os.kill(run.command.pid, signal.SIGKILL)
        run.command.wait(timeout=10)
        before = run.spent_s()
        time.sleep(1.0)
        assert support.is_running(run.program)
        (tmp_path / "stop").touch()
        support.wait_for((tmp_path / "done").exists, "the program's own end")
        assert run.spent_s() > before
        support.wait_for(lambda: not support.is_running(run.program), "its exit")
    untouched = support.digests(run.recording)
    check_profile(run)
    assert support.digests(run.recording) == untouched
    read = support.analyze(run.recording, cwd=tmp_path)

    done = support.tachograph("recover", run.recording, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (run.recording / "spool").exists()
    recovered = support.analyze(run.recording, cwd=tmp_path)
    # recover, on the recording machine, adds symbols and source texts, which analyze may not look for
    kept = ("file", "line", "function", "samples", "cpu_s", "wait_s")
    lines = [[{name: row[name] for name in kept} for row in report["lines"]] for report in (read, recovered)]
    assert lines[0] == lines[1]
    assert read["totals"]["cpu_s"] == recovered["totals"]["cpu_s"]
    again = support.tachograph("recover", run.recording, cwd=tmp_path)
    assert "Traceback" not in again.stderr


HOLDER = """
import os, time
def late():
    return [bytes(2000) for _ in range(100_000)]
kept = late()
os.kill(os.getpid(), 9)
"""


def test_blocks_of_the_last_moment(tmp_path: Path) -> None:
    """Blocks younger than what is written once a second are there with their line."""
    outcome = support.record(["-c", HOLDER], tmp_path)
    assert outcome.status == 128 + signal.SIGKILL
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    (line,) = (row for row in report["lines"] if row["line"] == 4)
    # Some 400 samples: the standard error is 5 %.
    assert line["live_at_end_bytes"] == pytest.approx(100_000 * 2048, rel=0.25)


def test_both_killed(tmp_path: Path) -> None:
    """What was in memory alone is lost: at most the last second, and the ledger says so."""
    with running(tmp_path, 30) as run:
        support.wait_for(lambda: run.spent_s() > 2, "two seconds of work", timeout=120)
        os.killpg(run.command.pid, signal.SIGKILL)
        run.command.wait(timeout=10)
        support.wait_for(lambda: not support.is_running(run.program), "the program's death")
    check_profile(run, 1.0)
    assert support.tachograph("recover", run.recording, cwd=tmp_path).returncode == 0
    check_profile(run, 1.0)
    assert support.losses(support.analyze(run.recording, cwd=tmp_path))["ends_uncopied"] == 1


def test_recover_names_are_those_of_a_whole_recording(tmp_path: Path) -> None:
    """A recovered recording has the same tables as one that ended well, readable by plain pyarrow."""
    with running(tmp_path, 30) as run:
        support.wait_for(lambda: run.spent_s() > 1, "a second of work", timeout=120)
        os.killpg(run.command.pid, signal.SIGKILL)
        run.command.wait(timeout=10)
    assert support.tachograph("recover", run.recording, cwd=tmp_path).returncode == 0
    whole = tmp_path / "whole"
    whole.mkdir()
    assert support.record([TICKER, whole, "0.2"], whole).status == 4
    # Tables without rows are left out, and so short a program may have copied nothing yet. The parts of its memory are
    # looked at where that costs little.
    maybe = {"allocations.parquet", "copies.parquet", "memory_parts.parquet"}
    names = {path.name for path in (whole / "run.tacho").iterdir()}
    assert {path.name for path in run.recording.iterdir()} - maybe == names - maybe
    assert support.rows(run.recording, "cpu")


@pytest.mark.parametrize("rounds", [4, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_at_random_moments(tmp_path: Path, rounds: int) -> None:
    """From the first instruction of the interpreter on: each recording opens, or there is none and one line says so."""
    chance = random.Random(rounds)
    for number in range(rounds):
        folder = tmp_path / str(number)
        folder.mkdir()
        with support.start([TICKER, folder, "30"], folder, "--interval", "5") as command:
            support.wait_for((folder / "run.tacho" / "spool").exists, "the spool")
            time.sleep(chance.uniform(0, 0.5))
            os.killpg(command.pid, signal.SIGKILL)
            command.wait(timeout=10)
        done = support.tachograph("analyze", folder / "run.tacho", "--json", "-", cwd=folder)
        if not (folder / "run.tacho" / "manifest.json").exists():
            assert not (folder / "pid").exists(), "the program ran before there was a recording"
            support.one_line(support.Outcome(done.returncode, done.stdout, done.stderr), "run.tacho")
            continue
        assert done.returncode == 0, f"round {number}: {done.stderr}"
        assert support.tachograph("recover", folder / "run.tacho", cwd=folder).returncode == 0, number


AFTER_A_CHILD = """
import os, subprocess, sys, time
subprocess.run([sys.executable, "-c", "print(1)"])
def churn():
    text = [str(number) for number in range(1000)]
begin = time.monotonic()
while time.monotonic() - begin < 3:
    churn()
open("churned", "w").close()
while True:
    churn()
"""


def test_a_recording_goes_on_after_its_last_recorded_child(tmp_path: Path) -> None:
    """Killed with its recorder: it ends with the program, and what was allocated and freed again is in its rows."""
    with support.start(["-c", AFTER_A_CHILD], tmp_path) as command:
        support.wait_for((tmp_path / "churned").exists, "three seconds of work", timeout=120)
        os.killpg(command.pid, signal.SIGKILL)
        command.wait(timeout=10)
    reports = [support.analyze(tmp_path / "run.tacho", cwd=tmp_path)]
    assert support.tachograph("recover", tmp_path / "run.tacho", cwd=tmp_path).returncode == 0
    reports.append(support.analyze(tmp_path / "run.tacho", cwd=tmp_path))
    processes = support.rows(tmp_path / "run.tacho", "processes")
    memory = [row for row in support.rows(tmp_path / "run.tacho", "memory") if row["process"] == 0]
    assert memory[-1]["time_ns"] >= processes[0]["start_ns"] + 1e9
    flows = [sum(row[f"{name}_allocated_bytes"] for name in ("obj", "mem", "raw", "native")) for row in memory]
    assert sum(flows[1:]) > 50e6
    for report in reports:
        assert report["totals"]["wall_s"] > 2
        assert sum(row["allocated_bytes"] for row in report["lines"] if row["line"] == 5) > 50e6


def test_the_kernel_takes_the_program_before_the_recording_command(tmp_path: Path) -> None:
    """Where memory runs out; the program has what its caller has."""
    lowers = subprocess.run(["sh", "-c", "echo -1 > /proc/self/oom_score_adj"], stderr=subprocess.DEVNULL, check=False)
    if lowers.returncode != 0:
        pytest.skip("this user may not lower it")
    with running(tmp_path, 2) as run:
        adjusted = {
            pid: int(Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii"))
            for pid in (os.getpid(), run.command.pid, run.program)
        }
    assert adjusted[run.program] == adjusted[os.getpid()]
    assert adjusted[run.command.pid] < adjusted[run.program]


CHURN = """
import os, signal
for _ in range({rounds}):
    block = bytearray(1_000_000)
    del block
{end}
"""

POOL = """
import multiprocessing

def work(number):
    for _ in range({rounds}):
        block = bytearray(1_000_000)
        del block

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(4), chunksize=1)
        {end}
"""


def allocated_bytes(folder: Path, program: str, rounds: int, end: str) -> float:
    """What a report says a program allocated, its start-up and imports included."""
    folder.mkdir()
    (folder / "program.py").write_text(program.format(rounds=rounds, end=end), encoding="utf-8")
    with support.start([folder / "program.py"], folder) as command:
        command.communicate(timeout=60)
    return float(support.analyze(folder / "run.tacho", cwd=folder)["totals"]["allocated_bytes"])


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV"])
def test_allocated_bytes_survive_a_kill(tmp_path: Path, name: str) -> None:
    """What comes and goes within a second is in no row: the control file has it, to within 64 KiB for each thread."""
    killed = allocated_bytes(tmp_path / "killed", CHURN, 200, f"os.kill(os.getpid(), signal.{name})")
    # Start-up and imports allocate 1 to 3 MB, by how the recorder is installed: a run that ends by itself has them too.
    assert killed - allocated_bytes(tmp_path / "idle", CHURN, 0, "") == pytest.approx(200e6, rel=0.01)
    assert killed == pytest.approx(allocated_bytes(tmp_path / "ended", CHURN, 200, ""), rel=0.01)


def test_allocated_bytes_of_terminated_workers_are_counted(tmp_path: Path) -> None:
    """A pool ends its workers by SIGTERM, unless it is closed and waited for: then they end by themselves."""
    terminated = allocated_bytes(tmp_path / "terminated", POOL, 100, "")
    by_themselves = "pool.close(); pool.join()"
    assert terminated - allocated_bytes(tmp_path / "idle", POOL, 0, by_themselves) == pytest.approx(400e6, rel=0.01)
    assert terminated == pytest.approx(allocated_bytes(tmp_path / "ended", POOL, 100, by_themselves), rel=0.01)
