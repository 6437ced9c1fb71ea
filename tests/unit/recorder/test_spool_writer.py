import resource
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from support.spools import contents
from tachograph.format import SpoolDirectory
from tachograph.format.spool.layout import Code, Meta, State
from tachograph.recorder.inprocess.spool_layout import CODE, LOSS_RECORDING_STOPPED, LOSS_RECORDS_DROPPED, META, STATE
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body, meta_body, text_bytes


def read(spool: Path) -> list[object]:
    (process,) = SpoolDirectory(spool).processes()
    return [record for sequence in process.segments for record in contents(process.segment(sequence))]


def test_the_control_file(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    writer.count_loss(3, 5)
    writer.count_sample(70)
    writer.set_paused(True)
    writer.ask_for_snapshot()
    writer.ask_for_snapshot()
    (process,) = SpoolDirectory(tmp_path).processes()
    control = process.control
    assert control is not None
    assert (control.pid, control.start_ns, control.segment_size) == (process.pid, process.start_ns, 4096)
    assert (control.state, control.paused, control.samples, control.handler_cpu_ns) == (1, True, 1, 70)
    assert control.snapshots_requested == 2
    assert control.losses[3] == 5
    writer.close()
    control = SpoolDirectory(tmp_path).processes()[0].control
    assert control is not None
    assert (control.state, control.end_ns > control.start_ns) == (2, True)


def test_files_are_private(tmp_path: Path) -> None:
    SpoolWriter(str(tmp_path), 4096)
    assert {oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()} == {"0o600"}


def test_records_are_read_back(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    assert writer.append(META, meta_body("key", "wért"))
    assert writer.append(STATE, struct.pack("<qII", 5, 1, 0))
    assert read(tmp_path) == [Meta("key", "wért"), State(5, 1, 0)]


@pytest.mark.parametrize("name", ["plain", "schön", "Ω", "🐍", "\ud800", ""])
def test_names_of_every_width(tmp_path: Path, name: str) -> None:
    writer = SpoolWriter(str(tmp_path), 8192)
    code = compile("def f(): pass", name or "x", "exec").replace(co_qualname=name)
    assert writer.append(CODE, code_body(7, code))
    (record,) = read(tmp_path)
    assert isinstance(record, Code)
    assert (record.code, record.filename, record.qualname) == (7, name or "x", name)
    assert record.line_table == code.co_linetable


@pytest.mark.parametrize(("text", "width"), [("a", 1), ("é", 1), ("Ω", 2), ("\udc80", 2), ("🐍", 4), ("", 1)])
def test_width_of_characters(text: str, width: int) -> None:
    assert text_bytes(text)[0] == width
    assert len(text_bytes(text)[1]) == width * len(text)


def test_segments_follow_each_other(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    for number in range(500):
        assert writer.append(STATE, struct.pack("<qII", number, 1, 0))
    (process,) = SpoolDirectory(tmp_path).processes()
    assert process.control is not None
    assert process.segments == list(range(process.control.current_segment + 1))
    assert [record.time_ns for record in read(tmp_path) if isinstance(record, State)] == list(range(500))


def test_a_record_larger_than_a_segment_is_counted(tmp_path: Path) -> None:
    writer = SpoolWriter(str(tmp_path), 4096)
    assert not writer.append(META, bytes(4096))
    control = SpoolDirectory(tmp_path).processes()[0].control
    assert control is not None
    assert control.losses[LOSS_RECORDS_DROPPED] == 1
    assert writer.append(META, meta_body("k", "v"))


FILL = """
import resource, struct, sys
from tachograph.recorder.inprocess.spool_layout import STATE
from tachograph.recorder.inprocess.spool_writer import SpoolWriter, code_body, meta_body
writer = SpoolWriter(sys.argv[1], 4096)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
print(sum(writer.append(STATE, struct.pack("<qII", n, 1, 0)) for n in range(500)), writer.open)
"""


def test_a_full_disk_stops_the_recording_only(tmp_path: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", FILL, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    kept, still_open = done.stdout.split()
    assert still_open == "False"
    assert int(kept) == len(read(tmp_path)) == (4096 - 64) // 24
    control = SpoolDirectory(tmp_path).processes()[0].control
    assert control is not None
    assert (control.state, control.stop_errno) == (3, 27)  # EFBIG
    assert control.losses[LOSS_RECORDING_STOPPED] == 1
    assert control.losses[LOSS_RECORDS_DROPPED] == 500 - int(kept)


def test_no_room_at_the_start_is_an_error(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            SpoolWriter(str(tmp_path), 4096)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())
