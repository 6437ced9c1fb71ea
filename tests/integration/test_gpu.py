"""GPUs, read through the real nvidia-ml-py from a stand-in for the driver's library; and a real one where it is."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from integration import stand_in_gpu
from integration.stand_in_gpu import GIB, StandIn
from integration.support import (
    COMMAND,
    PROGRAMS,
    analyze,
    environment,
    kill_quietly,
    record,
    rows,
    tachograph,
    wait_for,
)

pytest.importorskip("pynvml")

PROGRAM = PROGRAMS / "gpu_phases.py"
Machine = Callable[..., StandIn]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = stand_in_gpu.build(tmp_path_factory.mktemp("nvml"))
    if found is None:
        pytest.skip("no C compiler")
    return found


@pytest.fixture
def machine(library: Path, tmp_path: Path) -> Machine:
    def made(kind: int = stand_in_gpu.SOUND, devices: int = 1) -> StandIn:
        return StandIn(library, tmp_path / "gpu-state", kind, devices)

    return made


def manifest(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "run.tacho" / "manifest.json").read_text())
    return found


def lost(folder: Path) -> dict[str, int]:
    quality = manifest(folder)["quality"]
    return {entry["loss"]: entry["count"] for entry in quality if entry["loss"].startswith("gpu")}


def whole(folder: Path) -> list[dict[str, Any]]:
    return [row for row in rows(folder / "run.tacho", "gpu") if row["process"] is None]


def go(folder: Path, stand_in: StandIn, *arguments: str, seconds: float = 0.6, options: tuple[str, ...] = ()) -> None:
    done = record(
        [PROGRAM, str(seconds), "--started", str(folder / "run.tacho" / "spool"), *arguments],
        folder,
        "--cpu-only",
        *options,
        env=stand_in.environment,
    )
    assert done.status == 0, done.stderr


def test_readings_and_devices(machine: Machine, tmp_path: Path) -> None:
    go(tmp_path, machine(devices=2))
    devices = rows(tmp_path / "run.tacho", "gpu_devices")
    assert [(row["device"], row["index"], row["name"], row["memory_bytes"]) for row in devices] == [
        (0, 0, "Stand-in 0", 80 * GIB),
        (1, 1, "Stand-in 1", 80 * GIB),
    ]
    assert devices[0]["uuid"] == "GPU-00000000-0000-4000-8000-000000000000"
    assert {row["driver"] for row in devices} == {"580.0.stand-in"}
    found = rows(tmp_path / "run.tacho", "gpu")
    assert [row["time_ns"] for row in found] == sorted(row["time_ns"] for row in found)
    read = [row for row in whole(tmp_path) if row["memory_bytes"] is not None]
    first = [row for row in read if row["device"] == 0]
    assert max(row["memory_bytes"] for row in first) == 3 * GIB
    assert {row["memory_bytes"] for row in read if row["device"] == 1} == {0}
    assert {(row["device"], row["power_mw"], row["temperature_c"]) for row in read} == {(0, 70000, 41), (1, 71000, 41)}
    assert {row["users"] for row in first} == {0, 1}
    assert max(row["busy_percent"] for row in first) == 100
    # The driver's own samples follow one another without a gap, and none is later than it was read.
    samples = [row for row in whole(tmp_path) if row["since_ns"] is not None and row["device"] == 0]
    assert len(samples) > 5
    assert all(two["since_ns"] == one["time_ns"] for one, two in pairwise(samples))
    assert manifest(tmp_path)["parameters"]["gpu"] is True
    assert lost(tmp_path) == {}
    (process,) = rows(tmp_path / "run.tacho", "processes")
    mine = [row for row in found if row["process"] == process["process"]]
    assert max(row["memory_bytes"] or 0 for row in mine) == 3 * GIB
    assert {row["device"] for row in mine} == {0}


def test_other_processes_are_counted_and_not_listed(machine: Machine, tmp_path: Path) -> None:
    go(tmp_path, machine(), "--shared", seconds=0.4)
    found = [row for row in whole(tmp_path) if row["users"] is not None]
    assert max(row["users"] for row in found) == 2
    assert max(row["memory_bytes"] for row in found) == 11 * GIB
    mine = [row for row in rows(tmp_path / "run.tacho", "gpu") if row["process"] is not None]
    assert max(row["memory_bytes"] or 0 for row in mine) == 3 * GIB
    busy = [row["busy_percent"] for row in mine if row["busy_percent"] is not None]
    assert 90 <= max(busy) <= 100


@pytest.mark.parametrize(
    ("kind", "losses"),
    [
        pytest.param(stand_in_gpu.NO_SAMPLES, {}, marks=pytest.mark.slow),
        pytest.param(stand_in_gpu.OLD, {}, marks=pytest.mark.slow),
        pytest.param(stand_in_gpu.JUNK, {}, marks=pytest.mark.slow),
        pytest.param(stand_in_gpu.NO_PROCESSES, {}, marks=pytest.mark.slow),
        (stand_in_gpu.NO_BUSY, {"gpu_busy_unseen": 1}),
    ],
)
def test_drivers_that_tell_less(kind: int, losses: dict[str, int], machine: Machine, tmp_path: Path) -> None:
    go(tmp_path, machine(kind), seconds=0.3)
    found = rows(tmp_path / "run.tacho", "gpu")
    assert lost(tmp_path) == losses
    percents = [row["busy_percent"] for row in found if row["busy_percent"] is not None]
    assert all(0 <= percent <= 100 for percent in percents)
    assert (max(percents, default=None) == 100) == (kind != stand_in_gpu.NO_BUSY)
    kept = 500 << 20 if kind == stand_in_gpu.OLD else 0
    assert max(row["memory_bytes"] or 0 for row in found) == 3 * GIB + kept
    ended = manifest(tmp_path)["ended_ns"]
    assert all(row["time_ns"] <= ended + 10**9 for row in found)
    mine = any(row["process"] is not None for row in found)
    assert mine == (kind != stand_in_gpu.NO_PROCESSES)


def test_a_gpu_that_is_lost(machine: Machine, tmp_path: Path) -> None:
    go(tmp_path, machine(stand_in_gpu.LOSES_GPU, devices=2), seconds=0.7)
    assert lost(tmp_path)["gpu_readings_failed"] > 1
    known = {row["device"] for row in whole(tmp_path) if row["memory_bytes"] is not None}
    assert known == {0, 1}
    last = [row for row in whole(tmp_path) if row["device"] == 0][-1]
    assert last["memory_bytes"] is None


def test_a_driver_that_stops_to_answer(machine: Machine, tmp_path: Path) -> None:
    begun = time.monotonic()
    go(tmp_path, machine(stand_in_gpu.HANGS), "--unsteady", seconds=1.0)
    assert time.monotonic() - begun < 60
    assert lost(tmp_path) == {"gpu_readings_failed": 1}
    assert len(whole(tmp_path)) >= 1
    assert "the GPU driver had not answered when the program ended" in manifest(tmp_path)["notes"]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (stand_in_gpu.NO_DRIVER, "the GPUs could not be read: RM has detected an NVML/RM version mismatch."),
        pytest.param(
            stand_in_gpu.HANGS_AT_START,
            "the GPU driver had not answered when the program ended",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_driver_that_cannot_be_asked(kind: int, why: str, machine: Machine, tmp_path: Path) -> None:
    done = record(["-c", "import time; time.sleep(1.5)"], tmp_path, env=machine(kind).environment)
    assert done.status == 0
    assert lost(tmp_path) == {"gpu_unread": 1}
    assert manifest(tmp_path)["parameters"]["gpu"] is False
    assert why in manifest(tmp_path)["notes"]
    assert not (tmp_path / "run.tacho" / "gpu.parquet").exists()


def test_gpus_can_be_left_alone(machine: Machine, tmp_path: Path) -> None:
    done = record(["-c", "import time; time.sleep(0.5)"], tmp_path, "--no-gpu", env=machine().environment)
    assert done.status == 0
    assert manifest(tmp_path)["parameters"]["gpu"] is False
    assert not (tmp_path / "run.tacho" / "gpu.parquet").exists()


def test_the_program_has_nothing_of_it(machine: Machine, tmp_path: Path) -> None:
    code = "import glob, os, sys, time\nend = time.monotonic() + 60\n"
    code += "while not sum(map(os.path.getsize, glob.glob('run.tacho/spool/gpu.*.seg'))) > 500: "
    code += "assert time.monotonic() < end; time.sleep(0.01)\n"
    code += "maps = open('/proc/self/maps').read()\n"
    code += "print('nvidia' in maps, 'pynvml' in sys.modules, 'ctypes' in sys.modules)"
    done = record(["-c", code], tmp_path, env=machine().environment)
    assert done.stdout.split() == ["False", "False", "False"]
    assert rows(tmp_path / "run.tacho", "gpu")


def test_what_was_read_outlives_the_recording_command(machine: Machine, tmp_path: Path) -> None:
    command = [*COMMAND, "record", "-q", "-o", "run.tacho", str(PROGRAM), "0", "--forever"]
    spool = tmp_path / "run.tacho" / "spool"
    process = subprocess.Popen(
        command, cwd=tmp_path, env=machine().environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        wait_for(lambda: sum(path.stat().st_size for path in spool.glob("gpu.*.seg")) > 2000, "readings of the GPU")
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=30)
    finally:
        kill_quietly(process.pid, group=True)
    assert tachograph("recover", "run.tacho", cwd=tmp_path).returncode == 0
    assert manifest(tmp_path)["parameters"]["gpu"] is True
    assert max(row["busy_percent"] or 0 for row in whole(tmp_path)) == 70
    assert any(row["process"] == 0 and row["memory_bytes"] == 2 * GIB for row in rows(tmp_path / "run.tacho", "gpu"))
    assert not spool.exists()


def has_gpu() -> bool:
    """Whether NVIDIA's own library is here, and finds a GPU."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return False
    import pynvml

    try:
        pynvml.nvmlInit()
        return bool(pynvml.nvmlDeviceGetCount())
    except pynvml.NVMLError:
        return False


@pytest.mark.skipif(not has_gpu(), reason="needs an NVIDIA GPU")
def test_a_real_gpu(tmp_path: Path) -> None:
    done = record(["-c", "import time; time.sleep(2)"], tmp_path, env=environment())
    assert done.status == 0
    devices = rows(tmp_path / "run.tacho", "gpu_devices")
    read = [row for row in whole(tmp_path) if row["memory_bytes"] is not None]
    assert {row["device"] for row in read} == {row["device"] for row in devices}
    # Nothing is in use of a GPU that no process has: drivers of today leave out what they keep for themselves.
    assert all(0 <= row["memory_bytes"] <= devices[row["device"]]["memory_bytes"] for row in read)
    assert lost(tmp_path) == {} or lost(tmp_path) == {"gpu_busy_unseen": len(devices)}


@pytest.mark.skipif(not has_gpu(), reason="needs an NVIDIA GPU")
def test_shares_of_a_real_gpu(tmp_path: Path) -> None:
    """Against the GPU's own events, in a program whose phases last 0.6 s, three of the driver's periods."""
    pytest.importorskip("torch")
    done = record([PROGRAMS / "real_gpu_phases.py", "truth.json"], tmp_path, env=environment())
    assert done.status == 0, done.stderr
    truth = json.loads((tmp_path / "truth.json").read_text())
    functions = {row["function"]: row for row in analyze(tmp_path / "run.tacho", cwd=tmp_path)["functions"]}
    told = {name: functions[name]["total_gpu_share"] for name in truth["shares"]}
    assert told == pytest.approx(truth["shares"], abs=0.12)
    assert functions["train"]["total_gpu_share"] > 0.9
    mine = [row for row in rows(tmp_path / "run.tacho", "gpu") if row["process"] is not None]
    held = [row["memory_bytes"] for row in mine if row["memory_bytes"] is not None]
    # The driver counts the process's context as well.
    assert truth["reserved_bytes"] <= max(held) < truth["reserved_bytes"] + 2 * GIB


def test_gpu_shares_by_line(machine: Machine, tmp_path: Path) -> None:
    """The program says what its GPU does; the lines that wait and compute meanwhile are told so."""
    go(tmp_path, machine(), seconds=1.0)
    source = PROGRAM.read_text(encoding="utf-8").splitlines()
    marked = {line.partition("# LINE: ")[2]: number for number, line in enumerate(source, 1) if "# LINE: " in line}
    report = analyze(tmp_path / "run.tacho", cwd=tmp_path)
    share = {row["line"]: row["total_gpu_share"] for row in report["lines"]}
    # The driver's samples are 0.1 s long or, where the machine is busy, longer: phases meet in one.
    assert share[marked["train"]] > 0.75
    assert 0.3 < share[marked["infer"]] < 0.65
    assert share[marked["prepare"]] < 0.25
    (device,) = report["gpu"]["devices"]
    assert device["used"]
    assert report["totals"]["gpu_peak_bytes"] == pytest.approx(3 * GIB, rel=1e-8)  # JSON has nine digits
    assert report["gpu"]["shared"] is False


WAITER = """
import os, select, sys, threading, time
path = sys.argv[1]
os.mkfifo(path)
try:
    device = os.open(path, os.O_RDWR)
    other, _ = os.pipe()
    def wait_for_it():
        poll = select.poll()
        poll.register(other, select.POLLIN)
        poll.register(device, select.POLLIN)
        poll.poll(800)
    def wait_for_pipe():
        poll = select.poll()
        poll.register(other, select.POLLIN)
        poll.poll(800)
    wait_for_it()
    wait_for_pipe()
finally:
    os.unlink(path)
"""


@pytest.mark.native
def test_waiting_for_a_gpu_is_told_as_such(tmp_path: Path) -> None:
    """A driver that blocks polls its device; here that is a pipe with a device's name."""
    device = Path(f"/dev/nvidia-stand-in-{os.getpid()}")
    if not os.access("/dev", os.W_OK):
        pytest.skip("needs to make a file in /dev")
    (tmp_path / "wait.py").write_text(WAITER)
    done = record(["wait.py", device], tmp_path, "--cpu-only")
    assert done.status == 0, done.stderr
    functions = {row["function"]: row for row in analyze(tmp_path / "run.tacho", cwd=tmp_path)["functions"]}
    assert functions["wait_for_it"]["gpu_wait_s"] > 0.5
    assert functions["wait_for_pipe"]["wait_s"] > 0.5
    assert functions["wait_for_pipe"]["gpu_wait_s"] == 0
    targets = {row["target"] for row in rows(tmp_path / "run.tacho", "waits") if row["off_cpu_ns"] > 3 * 10**8}
    assert targets == {3, 5}  # pipe and gpu
