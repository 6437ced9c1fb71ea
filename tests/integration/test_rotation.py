"""The flight recorder: windows of a program that runs on, each readable by itself, together all that happened."""

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from integration import support
from tachograph.format import load_specification

pytestmark = pytest.mark.native

PROGRAM = support.PROGRAMS / "rotated.py"


def windows(folder: Path) -> list[Path]:
    """The closed windows, oldest first."""
    return sorted(folder.glob("run.[0-9]*.tacho"))


def manifest(recording: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((recording / "manifest.json").read_text(encoding="utf-8"))
    return found


@contextmanager
def running(folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    with support.start([PROGRAM, folder], folder, *options) as command:
        support.wait_for((folder / "truth.json").exists, "the program's first round")
        yield command


def wait_for_window(folder: Path, number: int) -> None:
    support.wait_for((folder / f"run.{number:04}.tacho").exists, f"window {number}", 60)


def ask(folder: Path, name: str) -> None:
    (folder / f"{name}.do").touch()
    support.wait_for((folder / f"{name}.done").exists, name)


def stop(folder: Path, command: Any) -> None:
    (folder / "stop.do").touch()
    _, errors = command.communicate(timeout=60)
    assert command.returncode == 0, errors


def cpu_ns(recording: Path) -> int:
    return sum(pq.read_table(recording / "cpu.parquet").column("cpu_ns").to_pylist())


def check_sum(every: list[Path], folder: Path) -> int:
    """The windows have the program's CPU time together; the heaviest of their samples."""
    begin_ns, end_ns = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    heaviest: int = max(row["cpu_ns"] for each in every for row in support.rows(each, "cpu"))
    # What came after the last sample is in none, and what the recorder's handlers took is not charged to the program;
    # what came before the program's first line is there as well.
    ours = sum(manifest(each)["sampler_cost"]["handler_cpu_ns"] for each in every)
    assert end_ns - begin_ns - heaviest - ours - 20_000_000 <= sum(map(cpu_ns, every)) <= end_ns + 100_000_000
    return heaviest


def check_window(recording: Path, folder: Path) -> dict[str, Any]:
    """A window is a whole recording, from which nothing is missing and which nothing in it contradicts."""
    about = manifest(recording)
    assert about["state"] == "complete"
    lost = {loss.name for loss in load_specification().losses if loss.severity == "loss"}
    assert not [entry for entry in about["quality"] if entry["loss"] in lost]
    report = support.analyze(recording, cwd=folder)
    start_ns, end_ns = about["window"]["start_ns"], about["window"].get("end_ns") or about["ended_ns"]
    for table, column in (("cpu", "time_ns"), ("waits", "start_ns"), ("memory", "time_ns")):
        if not (recording / f"{table}.parquet").exists():
            continue  # the signal sampler records no memory
        times = [row[column] for row in support.rows(recording, table)]
        # The process leaves its segment some time after the end; what was being written then is in the next one.
        assert all(start_ns - 1_000_000_000 <= moment <= end_ns + 3_000_000_000 for moment in times), (table, start_ns)
    return report


@pytest.mark.slow
def test_the_windows_together_are_the_whole_run(tmp_path: Path) -> None:
    with running(tmp_path, "--rotate", "1s", "--keep", "100", "--interval", "5") as command:
        wait_for_window(tmp_path, 2)
        stop(tmp_path, command)
    every = [*windows(tmp_path), tmp_path / "run.tacho"]
    assert [manifest(each)["window"]["number"] for each in every] == list(range(1, len(every) + 1))
    assert len({manifest(each)["uuid"] for each in every}) == len(every)
    for before, after in itertools.pairwise(every):
        assert manifest(before)["window"]["end_ns"] == manifest(after)["window"]["start_ns"]
    for each in every:
        check_window(each, tmp_path)
    heaviest = check_sum(every, tmp_path)
    # The thread's own clock was read at its end: of the last window only what is in no other counts.
    (main,) = (row for row in support.rows(every[-1], "threads") if row["main"])
    assert main["cpu_ns"] == pytest.approx(cpu_ns(every[-1]), abs=2 * heaviest + 50_000_000)
    assert support.rows(every[-1], "processes")[0]["user_ns"] is None
    for each in every:
        window = manifest(each)["window"]
        length = (window.get("end_ns") or manifest(each)["ended_ns"]) - window["start_ns"]
        # The program has one thread, and its window may go on for a moment after the end.
        assert sum(row["off_cpu_ns"] for row in support.rows(each, "waits")) <= length + 3_000_000_000


def tables_of(command: "subprocess.Popen[str]") -> list[int]:
    """The process in which tables are made just now: the program is a child of the first thread, this one is not."""
    return support.children(command.pid)[1]


@pytest.mark.slow
def test_a_killed_process_of_tables_makes_a_window_longer_and_no_more(tmp_path: Path) -> None:
    with running(tmp_path, "--rotate", "1s", "--keep", "100", "--interval", "5") as command:
        wait_for_window(tmp_path, 1)
        support.wait_for(lambda: bool(tables_of(command)), "the next tables", 20)
        os.kill(tables_of(command)[0], signal.SIGKILL)
        wait_for_window(tmp_path, len(windows(tmp_path)) + 2)
        stop(tmp_path, command)
    every = [*windows(tmp_path), tmp_path / "run.tacho"]
    (note,) = (note for each in every for note in manifest(each)["notes"] if "could not be closed" in note)
    assert "(the process that makes the tables ended with status -9)" in note
    check_sum(every, tmp_path)


@pytest.mark.slow
def test_memory_is_right_in_a_late_window(tmp_path: Path) -> None:
    with running(tmp_path, "--rotate", "1s", "--keep", "100") as command:
        wait_for_window(tmp_path, 1)
        ask(tmp_path, "release")
        ask(tmp_path, "late")
        number = len(windows(tmp_path)) + 2  # the next one may be closed already, but for its tables
        wait_for_window(tmp_path, number)
        stop(tmp_path, command)
    for window, held in ((1, {"early": 24, "released": 16}), (number, {"early": 24, "late": 8})):
        report = check_window(tmp_path / f"run.{window:04}.tacho", tmp_path)
        lines = {row["function"]: row for row in report["lines"]}
        for name in ("early", "released", "late"):
            live = lines[name]["live_at_end_bytes"] if name in lines else 0
            assert live == pytest.approx(held.get(name, 0) << 20, rel=0.001), (window, name)
        if window > 1:
            assert lines["early"]["allocated_bytes"] == 0
        counters = support.rows(tmp_path / f"run.{window:04}.tacho", "memory")
        assert counters[0]["event"] == 0
        sums = 0
        for row in counters:
            sums += sum(
                value if "allocated" in name else -value
                for name, value in row.items()
                if name[-6:] == "_bytes" and ("_allocated_" in name or "_freed_" in name)
            )
            assert sums == row["footprint_bytes"]


@pytest.mark.slow
def test_only_so_many_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    (tmp_path / "run.0007.tacho").mkdir()
    (tmp_path / "run.0007.tacho" / "mine").write_text("mine", encoding="utf-8")
    with running(
        tmp_path, "--rotate", "100KB", "--keep", "1", "--interval", "1", "--memory-threshold", "64K"
    ) as command:
        wait_for_window(tmp_path, 9)
        live = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
        assert live["recording"]["rotated"].endswith("not closed yet")
        stop(tmp_path, command)
    kept = windows(tmp_path)
    assert kept[0].name == "run.0007.tacho"
    assert len(kept) == 2
    assert (tmp_path / "run.0007.tacho" / "mine").read_text(encoding="utf-8") == "mine"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".tmp-")]
    for each in [*kept[1:], tmp_path / "run.tacho"]:
        check_window(each, tmp_path)


@pytest.mark.slow
def test_children_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "boss.py").write_text(
        "import itertools, subprocess, sys\nfrom pathlib import Path\n"
        "for number in itertools.count():\n"
        "    if Path('stop.do').exists():\n        break\n"
        "    subprocess.run([sys.executable, '-c', 'sum(range(300000))'], check=True)\n"
        "    subprocess.run(['true'], check=True)\n"
        "    Path(f'round.{number}').touch()\n",
        encoding="utf-8",
    )
    with support.start(["boss.py"], tmp_path, "--rotate", "1s", "--keep", "100") as command:
        support.wait_for((tmp_path / "round.4").exists, "five rounds", 60)
        wait_for_window(tmp_path, len(windows(tmp_path)) + 2)
        spool = tmp_path / "run.tacho" / "spool"
        left = len(list(spool.glob("*.ctl")))
        stop(tmp_path, command)
    every = [*windows(tmp_path), tmp_path / "run.tacho"]
    numbers = [len(support.rows(each, "processes")) for each in every]
    assert sum(numbers) >= len(every) + 10, "two children a round"
    assert left <= 2 * max(numbers), "those of the windows that are closed are gone"
    for each in every:
        start_ns = manifest(each)["window"]["start_ns"]
        first, *children = support.rows(each, "processes")
        assert first["origin"] == "first"
        for row in children:
            assert row["parent"] == 0, row
            if row["end_ns"] is not None:
                assert row["end_ns"] >= start_ns, row
                # One that began and ended here has its whole CPU time; of one that had begun before it is not known.
                assert (row["user_ns"] is None) == (row["start_ns"] == start_ns), (row, start_ns)
    pids = [row["pid"] for each in every for row in support.rows(each, "processes")[1:] if row["end_ns"] is not None]
    assert len(pids) == len(set(pids)), "a child ends in one window only"


@pytest.mark.slow
def test_the_signal_sampler_rotates_as_well(tmp_path: Path) -> None:
    with running(tmp_path, "--rotate", "1s", "--sampler", "signal", "--interval", "5") as command:
        wait_for_window(tmp_path, 2)
        stop(tmp_path, command)
    every = [*windows(tmp_path), tmp_path / "run.tacho"]
    begin_ns, end_ns = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    for each in every:
        check_window(each, tmp_path)
    assert sum(map(cpu_ns, every)) == pytest.approx(end_ns - begin_ns, rel=0.05, abs=100_000_000)


SLOW = [pytest.param(after_s, marks=pytest.mark.slow) for after_s in (0.2, 0.4, 0.8, 1.1, 1.3, 1.5, 1.7, 1.9)]


@pytest.mark.parametrize("after_s", [0.0, *SLOW])
def test_the_command_is_killed_while_it_rotates(tmp_path: Path, after_s: float) -> None:
    """What was closed is whole, and recover makes one more window of the rest: nothing is lost or there twice."""
    with running(tmp_path, "--rotate", "1s", "--keep", "100") as command:
        wait_for_window(tmp_path, 1)
        time.sleep(after_s)
        os.kill(command.pid, signal.SIGKILL)
        command.wait()
        closed = windows(tmp_path)
        for each in closed:
            check_window(each, tmp_path)
        ask_program_to_stop(tmp_path)
    done = support.tachograph("recover", "run.tacho", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert windows(tmp_path) == closed
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".tmp-")]
    assert not (tmp_path / "run.tacho" / "spool").exists()
    begin_ns, end_ns = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    every = [*closed, tmp_path / "run.tacho"]
    heaviest = max(row["cpu_ns"] for each in every for row in support.rows(each, "cpu"))
    total = sum(map(cpu_ns, every))
    assert end_ns - begin_ns - heaviest - 20_000_000 <= total <= end_ns + 100_000_000
    report = support.analyze(tmp_path / "run.tacho", cwd=tmp_path)
    held = {row["function"]: row["live_at_peak_bytes"] for row in report["lines"]}  # at its end it has let go of all
    assert held["early"] == pytest.approx(24 << 20, rel=0.001)


def ask_program_to_stop(folder: Path) -> None:
    """The program has lost its recording command, and ends all the same."""
    pid = int((folder / "pid").read_text(encoding="utf-8"))
    (folder / "stop.do").touch()
    support.wait_for(lambda: not support.is_running(pid), "the program's end")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--rotate", "10M"], "10m"),
        (["--rotate", "0s"], "1s"),
        (["--rotate", "1KB"], "100KB"),
        (["--keep", "3"], "--rotate"),
        (["--snapshot-signal", "USR1"], "--rotate"),
        (["--rotate", "1h", "--snapshot-signal", "TERM"], "USR1"),
        (["--rotate", "1h", "--keep", "0"], "1"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, options: list[str], word: str) -> None:
    done = support.record(["-c", "print('ran')"], tmp_path, *options)
    assert done.stdout == ""
    support.one_line(done, word)


@pytest.mark.slow
def test_a_full_disk_only_makes_windows_longer(tmp_path: Path) -> None:
    from integration.test_disk_full import in_small_disk

    code = (
        "import os, time\n"
        "def burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
        "def until(n):\n    while not os.path.exists(f'disk/run.{n:04}.tacho'): burn(0.02)\n"
        "until(1)\n"
        "with open('disk/fill', 'wb', 0) as file:\n"
        "    try:\n        while file.write(bytes(4096)): pass\n    except OSError: pass\n"
        "burn(3.0)\n"
        "os.unlink('disk/fill')\n"
        "until(2)\n"
    )
    (tmp_path / "fills.py").write_text(code, encoding="utf-8")
    script = "$RECORD --rotate 1s -o disk/run.tacho fills.py; code=$?; cp -r disk/run*.tacho . ; exit $code"
    done = in_small_disk(tmp_path, "24m", script)
    assert done.returncode == 0, done.stderr
    every = [*windows(tmp_path), tmp_path / "run.tacho"]
    notes = [[note for note in manifest(each)["notes"] if "could not be closed" in note] for each in every]
    assert [bool(each) for each in notes].count(True) == 1, "it is told of the window that it happened in"
    assert sum(map(cpu_ns, every)) > 3.0e9
