import json
import os
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.written_spools import write_spool
from tachograph.format import Manifest, SpoolDirectory
from tachograph.recorder.collect.collector import Collector
from tachograph.recorder.collect.descendants import PATIENCE_S, stop_recording
from tachograph.recorder.collect.finish import Finished
from tachograph.recorder.collect.output import claim
from tachograph.recorder.collect.running import was_running_at
from tachograph.recorder.command.launch import Program
from tachograph.recorder.command.manifests import new_manifest
from tachograph.recorder.command.messages import bytes_text, summary
from tachograph.recorder.command.session import Outcome, RecordingPlan, Session
from tachograph.recorder.inprocess.arm import leave_reason
from tachograph.recorder.labels.labels import Labels

NO_PROCESS = 2**22 + 1


def session(path: Path, sampler: str = "signal", *, script: bool = True, **parameters: object) -> tuple[Session, Path]:
    manifest = new_manifest({"sampler": sampler, "sources": True, **parameters})
    folder = claim(path, manifest, force=False)
    spool = path / "spool"
    program = Program(
        NO_PROCESS, time.monotonic_ns(), sys.executable if script else "/bin/sh", ["a.py", "--token", "x"]
    )
    labels = Labels({"version": "1.4", "db.password": "x"})
    return Session(RecordingPlan(folder, manifest, program, ["a.py", "--token", "x"], labels=labels)), spool


def test_a_session(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    recording, spool = session(path)
    write_spool(spool, 10)
    recording.begin()
    outcome = recording.end(0)
    assert outcome.finished is not None
    assert (outcome.finished.rows["cpu"], outcome.not_recorded, outcome.stopped_early) == (10, None, None)
    manifest = Manifest.read(path / "manifest.json")
    assert manifest.argv == ["a.py", "--token", "***"]
    assert manifest.labels == {"version": "1.4", "db.password": "***"}


def test_the_manifest_is_left_alone_while_the_collector_may_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine a short program ends before the collector has written what is being recorded."""
    recording, spool = session(tmp_path / "a.tacho")
    write_spool(spool, 10)
    stop = Collector.stop
    known: list[set[str]] = []

    def look_and_stop(collector: Collector) -> None:
        known.append(set(recording._manifest.parameters))
        stop(collector)

    monkeypatch.setattr(Collector, "stop", look_and_stop)
    recording.begin()
    assert recording.end(0).finished is not None
    assert "gpu" not in known[0]
    assert "gpu" in Manifest.read(tmp_path / "a.tacho" / "manifest.json").parameters


@pytest.mark.parametrize(
    ("sampler", "error", "reason"),
    [
        ("signal", None, "it ended before Python had started, or its Python does not have tachograph installed"),
        ("signal", "no room", "no room"),
        ("native", "no room", "no room; --sampler signal may do"),
    ],
)
def test_a_program_that_never_armed(tmp_path: Path, sampler: str, error: str | None, reason: str) -> None:
    path = tmp_path / "a.tacho"
    recording, spool = session(path, sampler)
    if error is not None:
        leave_reason(str(spool), RuntimeError(error))
    recording.begin()
    outcome = recording.end(1)
    assert outcome.not_recorded == reason
    assert outcome.finished is not None
    assert json.loads((path / "manifest.json").read_text())["notes"] == [reason]
    assert summary("a.py", path, outcome, 0) == f"a.py was not recorded: {reason}; {path} holds no samples"


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"children": True}, "it started no Python that can be recorded"),
        ({"include": ["x"]}, "it started no Python that --include and --exclude let through that can be recorded"),
        ({"children": False}, "its first process is no Python, and with --no-children no other is recorded"),
    ],
)
def test_a_command_without_a_python(tmp_path: Path, parameters: dict[str, Any], reason: str) -> None:
    recording, _ = session(tmp_path / "a.tacho", script=False, **parameters)
    recording.begin()
    outcome = recording.end(3)
    assert str(outcome.not_recorded).startswith(reason)
    # The recording command knows the program's beginning, its end and its command line even so.
    (row,) = pq.read_table(tmp_path / "a.tacho" / "processes.parquet").to_pylist()
    assert (row["origin"], row["recorded"], row["exit_status"]) == ("first", "listed", 3)
    assert row["command"] == "a.py --token '***'"
    assert row["start_ns"] <= row["end_ns"]


def test_a_descendant_that_lives_on_is_asked_to_stop(tmp_path: Path) -> None:
    """It is this process: its control file says that it records, and it does not answer."""
    recording, spool = session(tmp_path / "a.tacho")
    writer = write_spool(spool, 10, close=False)
    recording.begin()
    begin = time.monotonic()
    outcome = recording.end(0)
    assert time.monotonic() - begin >= PATIENCE_S
    assert outcome.finished is not None
    assert outcome.finished.rows["cpu"] == 10
    manifest = json.loads((tmp_path / "a.tacho" / "manifest.json").read_text())
    assert {"process": 1, "loss": "processes_outlived", "count": 1} in manifest["quality"]
    first, row = pq.read_table(tmp_path / "a.tacho" / "processes.parquet").to_pylist()
    assert (first["pid"], first["recorded"]) == (NO_PROCESS, "listed")
    assert (row["pid"], row["end_ns"], row["recorded"]) == (writer.pid, None, "python")
    assert summary("a.py", tmp_path, outcome, 0).count(", 1 Python process and 1 other:") == 1


def test_who_has_ended_is_not_asked_nor_waited_for(tmp_path: Path) -> None:
    spool = tmp_path
    write_spool(spool, 10)  # it has said that it has ended
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    (control,) = spool.glob("*.ctl")
    data = bytearray(control.read_bytes())
    struct.pack_into("<i", data, 16, child.pid)
    struct.pack_into("<I", data, 52, 1)
    (spool / f"{child.pid}-{time.monotonic_ns()}.ctl").write_bytes(data)  # it was killed
    before = {path: path.read_bytes() for path in spool.iterdir()}
    assert stop_recording(SpoolDirectory(spool)) == 0
    assert {path: path.read_bytes() for path in spool.iterdir()} == before


def test_a_process_id_that_was_given_anew(tmp_path: Path) -> None:
    """The control file tells of a time at which this process did not exist yet."""
    assert was_running_at(os.getpid(), time.monotonic_ns())
    assert not was_running_at(os.getpid(), 1)
    assert not was_running_at(NO_PROCESS, time.monotonic_ns())


def test_a_recording_that_stopped_early(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    recording, spool = session(path)
    write_spool(spool, 10)
    (control,) = spool.glob("*.ctl")
    data = bytearray(control.read_bytes())
    struct.pack_into("<II", data, 52, 3, 28)
    struct.pack_into("<q", data, 64, struct.unpack_from("<q", data, 24)[0] + 1_520_000_000)
    control.write_bytes(data)
    recording.begin()
    outcome = recording.end(0)
    assert outcome.stopped_early == "recording stopped after 1.5 s, before the program ended: no space left on device"
    assert "; recording stopped" in summary("a.py", path, outcome, 0)


@pytest.mark.parametrize(
    ("processes", "text"),
    [
        ({}, ", 0 Python processes"),
        ({"python": 1}, ""),
        ({"python": 4}, ", 4 Python processes"),
        ({"python": 1, "listed": 1}, ", 1 Python process and 1 other"),
        ({"python": 1200, "native": 2, "listed": 5}, ", 1,202 Python processes (2 without Python stacks) and 5 others"),
    ],
)
def test_how_many_processes(processes: dict[str, int], text: str) -> None:
    done = Finished(rows={"cpu": 5}, size=1000, lost={}, processes=processes)
    line = summary("run.sh", Path("a.tacho"), Outcome(done, None, None, None, 1.0), 0)
    assert line.startswith(f"recorded 1.0 s of run.sh{text}: 5 CPU samples, 1 KB in a.tacho;")


def test_the_line_at_the_end() -> None:
    done = Finished(rows={"cpu": 1012, "waits": 3, "threads": 1}, size=31_400, lost={}, processes={"python": 1})
    outcome = Outcome(done, None, None, None, 10.24)
    assert summary("fib.py", Path("my run.tacho"), outcome, 0) == (
        "recorded 10.2 s of fib.py: 1,012 CPU samples, 3 waits, 31 KB in 'my run.tacho'; nothing lost; "
        "next: tachograph analyze 'my run.tacho'"
    )
    for status, ended in ((1, "exit status 1"), (-9, "ended by SIGKILL"), (-250, "ended by signal 250")):
        assert f" s of fib.py ({ended}): 1,012 CPU" in summary("fib.py", Path("a.tacho"), outcome, status)
    nothing = summary("fib.py", Path("a.tacho"), replace(outcome, finished=replace(done, rows={"cpu": 0})), 0)
    assert "0 CPU samples, 31 KB in a.tacho; no CPU time was sampled; next" in nothing
    windows = (Path("/x/my run.0008.tacho"), Path("/x/my run.0009.tacho"))
    for kept, saved, told in (
        (windows, 0, "kept: 'my run.0008.tacho' to 'my run.0009.tacho'"),
        (windows[:1], 3, "kept: 3 in snapshots and 'my run.0008.tacho'"),
        ((), 0, "none of them kept"),
    ):
        line = summary("fib.py", Path("my run.tacho"), replace(outcome, windows=9, kept=kept, saved=saved), 0)
        assert f"(the last window; 9 before it, {told}); nothing lost" in line
    outcome = Outcome(None, "no space left on device", None, None, 1.0)
    assert summary("fib.py", Path("a.tacho"), outcome, 0) == (
        "fib.py has run, but its recording could not be finished (no space left on device); "
        "all that was recorded is in a.tacho; when that is fixed: tachograph recover a.tacho"
    )


@pytest.mark.parametrize(("size", "text"), [(0, "0 KB"), (999, "1 KB"), (48_000, "48 KB"), (1_200_000, "1.2 MB")])
def test_sizes(size: int, text: str) -> None:
    assert bytes_text(size) == text
