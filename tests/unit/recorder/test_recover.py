import json
import os
import shutil
import signal
import struct
import subprocess
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.written_spools import write_spool
from tachograph.recorder.collect.output import claim
from tachograph.recorder.collect.running import (
    living_processes,
    note_recorder,
    start_time,
    was_made_here,
    was_made_here_by_us,
    working_directory,
)
from tachograph.recorder.command.manifests import new_manifest
from tachograph.recorder.command.recover import recover_recording
from tachograph.recorder.inprocess.spool_layout import CODE, CPU, NONE, STACK
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body
from tachograph.recorder.problems import Refused
from unit.recorder.conftest import Run

LONG = """
import os, time
print(os.getpid(), flush=True)
end = time.process_time() + 20
while time.process_time() < end: pass
"""


def test_a_recording_without_a_manifest(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    claim(path, new_manifest({}), force=False).close()
    write_spool(path / "spool", 50, close=False)
    (path / "manifest.json").unlink()
    line = recover_recording(path)
    assert line.startswith(f"recovered {path}: 50 CPU samples")
    assert json.loads((path / "manifest.json").read_text())["state"] == "recovered"
    assert not (path / "spool").exists()
    assert "is finished already (recovered)" in recover_recording(path)


def test_a_spool_that_was_left_over_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    claim(path, new_manifest({}), force=False).close()
    spool = path / "spool"
    write_spool(spool, 50)
    recover_recording(path)
    spool.mkdir()
    write_spool(spool, 10)
    recover_recording(path)
    assert not spool.exists()
    assert pq.read_table(path / "cpu.parquet").num_rows == 50


def test_a_folder_in_the_place_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    claim(path, new_manifest({}), force=False).close()
    write_spool(path / "spool", 50, close=False)
    (path / "threads.parquet").mkdir()
    with pytest.raises(Refused, match="is a directory; nothing was changed"):
        recover_recording(path)
    assert [each.name for each in path.glob("*.parquet")] == ["threads.parquet"]


def test_what_is_being_recorded_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.tacho"
    claim(path, new_manifest({}), force=False).close()
    spool = path / "spool"
    write_spool(spool, 50)
    note_recorder(spool, os.getpid())
    assert set(living_processes(spool)) == {os.getpid()}
    with pytest.raises(Refused, match="still being recorded"):
        recover_recording(path)


def test_a_reused_process_id_is_not_the_process(tmp_path: Path) -> None:
    note_recorder(tmp_path, os.getpid())
    note = json.loads((tmp_path / "recorder.json").read_text())
    note["processes"][0][1] -= 1
    note["processes"][1][1] = None
    (tmp_path / "recorder.json").write_text(json.dumps(note))
    assert living_processes(tmp_path) == []


@pytest.mark.parametrize("text", ["", "[]", '{"boot": 1}', '{"boot": "x", "processes": [[1]]}'])
def test_a_damaged_note_is_no_note(tmp_path: Path, text: str) -> None:
    (tmp_path / "recorder.json").write_text(text)
    assert living_processes(tmp_path) == []


def test_a_note_without_end_is_no_note(tmp_path: Path) -> None:
    with (tmp_path / "recorder.json").open("wb") as file:
        file.truncate(1 << 40)
    assert living_processes(tmp_path) == []
    assert working_directory(tmp_path) == Path()
    assert not was_made_here(tmp_path)
    assert not was_made_here_by_us(tmp_path)
    (tmp_path / "recorder.json").write_text("[" * 60_000)
    assert living_processes(tmp_path) == []


def unfinished(path: Path, source: Path) -> Path:
    """A recording of a killed run of ``source``, made here, with the note of its recording command."""
    claim(path, new_manifest({}), force=False).close()
    spool = path / "spool"
    note_recorder(spool, 1 << 22)
    note = json.loads((spool / "recorder.json").read_text())
    (spool / "recorder.json").write_text(json.dumps({**note, "processes": []}))
    writer = SpoolWriter(str(spool), 4096)
    writer.append(CODE, code_body(0, compile("pass", str(source), "exec")))
    writer.append(STACK, struct.pack("<IIIi", 0, NONE, 0, 0))
    writer.append(CPU, struct.pack("<qqqQIIIBBBB", 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0))
    return spool


def sources_after_recovery(path: Path) -> list[str | None]:
    recover_recording(path)
    found: list[str | None] = pq.read_table(path / "files.parquet").column("source").to_pylist()
    return found


def forged(spool: Path, **changes: object) -> None:
    note = json.loads((spool / "recorder.json").read_text())
    (spool / "recorder.json").write_text(json.dumps({**note, **changes}))


def test_a_process_of_a_newer_version(open_folder: Path) -> None:
    """Or one whose control file is damaged: its processes are asked to stop before anything else is read."""
    spool = unfinished(open_folder / "a.tacho", open_folder / "a.py")
    (control,) = spool.glob("*.ctl")
    data = bytearray(control.read_bytes())
    data[8:10] = b"\x09\x00"
    control.write_bytes(data)
    with pytest.raises(Refused, match="use a newer tachograph; nothing is lost"):
        recover_recording(open_folder / "a.tacho")


def test_sources_of_a_recording_that_was_made_here(open_folder: Path) -> None:
    (open_folder / "a.py").write_text("text")
    unfinished(open_folder / "a.tacho", open_folder / "a.py")
    assert sources_after_recovery(open_folder / "a.tacho") == ["text"]


@pytest.mark.parametrize(
    "foreign", ["no note", "another machine", "copied", "another time", "another inode", "another user", "open"]
)
def test_no_file_is_read_for_a_foreign_recording(open_folder: Path, foreign: str) -> None:
    """It names any file, and would be given on with that file in it."""
    (open_folder / "a.py").write_text("text")
    path = open_folder / "a.tacho"
    spool = unfinished(path, open_folder / "a.py")
    match foreign:
        case "no note":
            (spool / "recorder.json").unlink()
        case "another machine":
            forged(spool, boot="x", machine="y")
        case "copied":
            path = open_folder / "b.tacho"
            shutil.copytree(open_folder / "a.tacho", path)
        case "another time":
            forged(spool, time_ns=time.time_ns() - 60_000_000_000)
        case "another inode":
            forged(spool, inode=spool.stat().st_ino + 1)
        case "another user":
            if os.geteuid() != 0:
                pytest.skip("only root can make files of another user")
            os.chown(next(spool.glob("*.seg")), 65534, 65534)
        case "open":
            spool.chmod(0o777)
    assert sources_after_recovery(path) == [None]
    assert "only the user who made a recording" in json.loads((path / "manifest.json").read_text())["notes"][-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="others read what they may anyway")
def test_root_recovers_what_every_user_may_read(open_folder: Path) -> None:
    (open_folder / "a.py").write_text("text")
    (open_folder / "a.py").chmod(0o600)
    unfinished(open_folder / "a.tacho", open_folder / "a.py")
    assert sources_after_recovery(open_folder / "a.tacho") == [None]


def test_start_times() -> None:
    assert start_time(os.getpid()) == start_time(os.getpid())
    assert start_time(2**22 + 1) is None


def test_a_newer_major_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format_version": "2.0", "uuid": "x", "state": "recording"}')
    with pytest.raises(Refused, match="newer tachograph"):
        recover_recording(tmp_path)


def test_a_directory_with_another_kind_of_spool_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spool" / "mail").mkdir(parents=True)
    with pytest.raises(Refused, match="is not a recording"):
        recover_recording(tmp_path)


def test_after_a_kill(run: Run, tachograph_command: list[str], environment: dict[str, str], open_folder: Path) -> None:
    path = open_folder / "run.tacho"  # root reads again only what every user may
    (open_folder / "long.py").write_text(LONG)
    command = [*tachograph_command, "record", "--sampler", "signal", "-o", "run.tacho", "long.py"]
    with subprocess.Popen(command, env=environment, cwd=open_folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        time.sleep(1.5)
        refused = run("recover", str(path))
        process.kill()
        time.sleep(0.2)
        still_refused = run("recover", str(path))
        os.kill(pid, signal.SIGKILL)
    for done in (refused, still_refused):
        assert (done.returncode, "still being recorded" in done.stderr) == (2, True)
    while start_time(pid) is not None:
        time.sleep(0.01)
    done = run("recover", str(path))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(f"tachograph: recovered {path}: ")
    assert pq.read_table(path / "cpu.parquet").num_rows > 10
    (process_row,) = pq.read_table(path / "processes.parquet").to_pylist()
    assert process_row["end_ns"] is None
    assert pq.read_table(path / "files.parquet").column("source").to_pylist() == [LONG]
    manifest = json.loads((path / "manifest.json").read_text())
    assert (manifest["state"], manifest["argv"]) == ("recovered", ["long.py"])


@pytest.mark.parametrize("what", ["spool", "spool/parts"])
def test_links_in_a_recording_are_refused(tmp_path: Path, what: str) -> None:
    """What they lead to may be another recording's: it would be taken over, and deleted there."""
    victim = tmp_path / "victim.tacho"
    claim(victim, new_manifest({}), force=False).close()
    write_spool(victim / "spool", 50, close=False)
    part = victim / "spool" / "parts" / "1-2.000000-000001"
    part.mkdir(parents=True)
    (part / "cpu.parquet").touch()
    evil = tmp_path / "evil.tacho"
    claim(evil, new_manifest({}), force=False).close()
    if what == "spool":
        (evil / "spool").rmdir()
    else:
        write_spool(evil / "spool", 50, close=False)
    (evil / what).symlink_to(victim / what)
    before = {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()}
    with pytest.raises(Refused, match=f"{what} is a symbolic link"):
        recover_recording(evil)
    assert {path: path.read_bytes() for path in victim.rglob("*") if path.is_file()} == before
    assert (evil / what).is_symlink()
    assert not (evil / "cpu.parquet").exists()


def test_a_link_to_a_recording_is_recovered(tmp_path: Path) -> None:
    """One that the user has typed."""
    path = tmp_path / "run.tacho"
    claim(path, new_manifest({}), force=False).close()
    write_spool(path / "spool", 50, close=False)
    (tmp_path / "latest").symlink_to(path)
    assert "recovered" in recover_recording(tmp_path / "latest")
    assert (path / "cpu.parquet").exists()
    assert not (path / "spool").exists()


def test_a_finished_recording_whose_spool_is_a_link(tmp_path: Path) -> None:
    """The rest of its own finish is removed, but nothing that a link leads to."""
    path, victim = tmp_path / "run.tacho", tmp_path / "victim.tacho"
    for each in (path, victim):
        claim(each, new_manifest({}), force=False).close()
        write_spool(each / "spool", 50, close=False)
    recover_recording(path)
    (path / "spool").symlink_to(victim / "spool")
    with pytest.raises(Refused, match="spool is a symbolic link"):
        recover_recording(path)
    assert list((victim / "spool").glob("*.seg"))
