"""What the options of ``record`` about memory do to a recording made by the native recorder."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from integration.support import (
    COMMAND,
    analyze,
    environment,
    kill_quietly,
    record,
    rows,
    run,
    start,
    tachograph,
    wait_for,
)

pytestmark = pytest.mark.native

MEMORY_TABLES = {"memory", "allocations", "copies"}

# 40 MB in pieces of 1 MB, copied once, and let go in the program's own function for the end.
PROGRAM = """
import atexit
held = [bytearray(1 << 20) for _ in range(40)]
copies = sum(len(bytes(each)) for each in held)
atexit.register(held.clear)
"""


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "manifest.json").read_text())
    return found


def events(path: Path, event: int) -> int:
    return sum(row["event"] == event for row in rows(path, "memory"))


def test_memory_is_recorded_by_default(tmp_path: Path) -> None:
    command = [*COMMAND, "record", "-o", "run.tacho", "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    path = tmp_path / "run.tacho"
    assert manifest(path)["parameters"]["memory"] is True
    assert manifest(path)["parameters"]["memory_threshold"] == 10_485_767
    assert manifest(path)["tables"].keys() >= MEMORY_TABLES
    counts = {name: len(rows(path, name)) for name in MEMORY_TABLES}
    for word, name in (("footprint", "memory"), ("block", "allocations"), ("cop", "copies")):
        assert f"{counts[name]:,} {word}" in done.stderr
    # One row to begin with, one at the end, and one for every 10 MB on the way.
    assert (events(path, 0), events(path, 3)) == (1, 1)
    assert events(path, 1) >= 4
    copied = sum(int(row["bytes"]) for row in rows(path, "copies"))
    assert 40 << 20 <= copied < 44 << 20
    # The interpreter began to shut down after the program's own function: what it let go is not held at the end.
    (process,) = rows(path, "processes")
    assert process["start_ns"] < process["exiting_ns"] <= process["end_ns"]
    large = [row for row in rows(path, "allocations") if row["size_bytes"] >= 1 << 20 and row["freed_ns"] is not None]
    assert large
    assert all(row["freed_ns"] <= process["exiting_ns"] for row in large)


def test_cpu_only(tmp_path: Path) -> None:
    assert record(["-c", PROGRAM], tmp_path, "--cpu-only").status == 0
    path = tmp_path / "run.tacho"
    parameters = manifest(path)["parameters"]
    assert parameters["memory"] is False
    assert not {"memory_threshold", "block_mean_bytes", "copies_min_bytes", "copies_mean_bytes"} & parameters.keys()
    assert not MEMORY_TABLES & manifest(path)["tables"].keys()
    assert not MEMORY_TABLES & {file.stem for file in path.iterdir()}
    assert tachograph("analyze", "run.tacho", cwd=tmp_path).returncode == 0


def test_a_recording_with_memory_is_replaced_by_one_without(tmp_path: Path) -> None:
    assert record(["-c", PROGRAM], tmp_path).status == 0
    assert (tmp_path / "run.tacho" / "memory.parquet").exists()
    assert record(["-c", "pass"], tmp_path, "--force", "--cpu-only").status == 0
    assert not (tmp_path / "run.tacho" / "memory.parquet").exists()


def test_a_smaller_threshold_sees_more(tmp_path: Path) -> None:
    for name, threshold in (("fine.tacho", "1M"), ("coarse.tacho", "32M")):
        assert record(["-c", PROGRAM], tmp_path, "--memory-threshold", threshold, output=name).status == 0
    assert manifest(tmp_path / "fine.tacho")["parameters"]["memory_threshold"] == 1 << 20
    assert events(tmp_path / "fine.tacho", 1) >= 30
    assert 1 <= events(tmp_path / "coarse.tacho", 1) <= 4


def test_counters_balance_whatever_the_threshold(tmp_path: Path) -> None:
    for threshold in ("64K", "10485767"):
        assert record(["-c", PROGRAM], tmp_path, "--force", "--memory-threshold", threshold).status == 0
        kept = 0
        for row in rows(tmp_path / "run.tacho", "memory"):
            flows = {name: row[name] for name in row if name.endswith(("_allocated_bytes", "_freed_bytes"))}
            kept += sum(value if name.endswith("allocated_bytes") else -value for name, value in flows.items())
            assert row["footprint_bytes"] is None or row["footprint_bytes"] == kept


def test_memory_of_a_killed_recorder_is_recovered(tmp_path: Path) -> None:
    code = PROGRAM + "print(1, flush=True)\nimport time\nwhile True: time.sleep(1)\n"
    with start(["-c", code], tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(3)  # blocks are written down when they are a second old
        kill_quietly(process.pid, group=True)
    wait_for(lambda: tachograph("recover", "run.tacho", cwd=tmp_path).returncode == 0, "recovery")
    path = tmp_path / "run.tacho"
    assert manifest(path)["state"] == "recovered"
    assert events(path, 1) >= 4
    held = [row for row in rows(path, "allocations") if row["size_bytes"] >= 1 << 20 and row["freed_ns"] is None]
    assert len(held) > 20
    (process_row,) = rows(path, "processes")
    assert process_row["exiting_ns"] is None


ALLOCATES = """
import time
end = time.process_time() + 1
while time.process_time() < end:
    for number in range(20_000): x = [number] * 3; y = {}; z = bytearray(40)
"""


def test_the_hooks_part_of_the_overhead(tmp_path: Path) -> None:
    """Known by the samples in them, within an interval; not for a recording without memory."""
    record(["-c", ALLOCATES], tmp_path, "--interval", "2")
    report = analyze(tmp_path / "run.tacho", cwd=tmp_path)
    hooks, cpu_s = report["quality"]["hooks"], report["totals"]["cpu_s"]
    assert hooks["low_s"] < hooks["cpu_s"] < hooks["high_s"]
    assert 0.02 * cpu_s < hooks["cpu_s"] < 0.5 * cpu_s
    shown = tachograph("analyze", tmp_path / "run.tacho", cwd=tmp_path).stdout
    (line,) = [line for line in shown.splitlines() if "recording overhead" in line]
    percent = 100 * (report["quality"]["recorder_cpu_s"] + hooks["cpu_s"]) / cpu_s
    assert f"({percent:.1f} %;" in line
    record(["-c", ALLOCATES], tmp_path, "--cpu-only", "-f")
    assert analyze(tmp_path / "run.tacho", cwd=tmp_path)["quality"]["hooks"] is None


ALLOCATES_SO_OFTEN = """
import time
begin = time.process_time()
for _ in range(300):
    for number in range(20_000): x = [number] * 3; y = {}; z = bytearray(40)
print(time.process_time() - begin)
"""


@pytest.mark.slow
def test_the_overhead_is_what_the_same_work_takes_more(tmp_path: Path) -> None:
    """Five times in turn: what is told and what is measured have values in common, however busy the machine is."""
    measured, told = [], []
    for _ in range(5):
        bare = run([sys.executable, "-c", ALLOCATES_SO_OFTEN], tmp_path)
        recorded = record(["-c", ALLOCATES_SO_OFTEN], tmp_path, "-f")
        measured.append(float(recorded.stdout) - float(bare.stdout))
        quality = analyze(tmp_path / "run.tacho", cwd=tmp_path)["quality"]
        told.append([quality["recorder_cpu_s"] + quality["hooks"][end] for end in ("low_s", "high_s")])
    low, high = (sorted(ends)[2] for ends in zip(*told, strict=True))
    assert min(measured) < high, (measured, told)
    assert max(measured) > low, (measured, told)
