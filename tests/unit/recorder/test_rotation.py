"""Windows of a recording whose program is this very process: closed, kept, deleted, and finished after a failure."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.spool_builder import control as control_file
from support.spool_builder import log_record
from support.written_spools import add_samples, write_spool
from tachograph.format import Manifest, SpoolDirectory, assemble, load_specification
from tachograph.format.atomic import unfinished
from tachograph.format.spool.directory import ControlFile, SpoolProcess, decode_control
from tachograph.format.spool.process_log import decode_log
from tachograph.recorder import clock
from tachograph.recorder.collect.collector import Collector
from tachograph.recorder.collect.output import claim
from tachograph.recorder.collect.source_texts import SourceScout, SourceStore
from tachograph.recorder.command.manifests import new_manifest
from tachograph.recorder.command.recover import recover_recording
from tachograph.recorder.rotation import rotate
from tachograph.recorder.rotation.journal import (
    JOURNAL,
    Journal,
    discard_hidden,
    first_number,
    go_on,
    present_window,
    window_name,
)
from tachograph.recorder.rotation.rotate import Rotation, how_far, still_the_same
from tachograph.recorder.rotation.rotation_settings import parse_rotate

pytestmark = pytest.mark.broad

END = 5_000


class Recorded:
    """A recording into which this process writes."""

    def __init__(self, folder: Path, keep: int = 10) -> None:
        self.path = folder / "run.tacho"
        self.manifest = new_manifest({"rotate": "1h"})
        self.folder = claim(self.path, self.manifest, force=False)
        self.spool = self.path / "spool"
        self.writer = write_spool(self.spool, 10, close=False)
        self.rotation = Rotation(self.folder, self.manifest, parse_rotate("1h"), keep, lambda: (0, False))
        self.written = 10

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Samples go on: a process leaves its segment with the next record that it writes."""
        done = clock.Flag()

        def write() -> None:
            while not done.wait(0.01):
                add_samples(self.writer, 1)
                self.written += 1

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def rotate(self) -> set[str] | None:
        with self.busy():
            return self.rotation.rotate(SourceStore(self.path.parent), clock.Flag())

    def samples(self) -> int:
        """In the closed windows and in the spool together."""
        closed: int = sum(pq.read_table(each / "cpu.parquet").num_rows for each in windows(self.path.parent))
        present: int = assemble(SpoolDirectory(self.spool), load_specification()).table("cpu").num_rows
        return closed + present


def windows(folder: Path) -> list[Path]:
    return sorted(folder.glob("run.[0-9]*.tacho"))


def window(recording: Path) -> dict[str, object]:
    return Manifest.read(recording / "manifest.json").window or {}


def test_every_sample_is_in_one_window(tmp_path: Path) -> None:
    run = Recorded(tmp_path)
    assert run.rotate() == run.rotate() == set()
    first, second = windows(tmp_path)
    assert window(first)["end_ns"] == window(second)["start_ns"]
    assert window(second)["end_ns"] == window(run.path)["start_ns"]
    assert [window(each)["number"] for each in (first, second, run.path)] == [1, 2, 3]
    assert not (run.spool / JOURNAL).exists()
    assert run.samples() == run.written


def test_a_step_that_fails_behind_the_name_is_made_later(tmp_path: Path) -> None:
    """The window has its name, and what it holds cannot be taken out of the spool."""
    run = Recorded(tmp_path)
    in_the_way = run.spool / "parts"
    in_the_way.write_bytes(b"")
    assert run.rotate() is None
    assert run.rotation.unsettled
    assert run.rotate() is None
    assert len(windows(tmp_path)) == 1, "no window is closed before the last one is put away"
    assert run.rotation.end() is not None
    in_the_way.unlink()
    assert run.rotation.end() is None
    assert (run.rotation.closed, run.rotation.unsettled) == (1, False)
    (note,) = run.manifest.notes
    assert note.startswith("window 2 could not be closed")
    assert run.samples() == run.written


def test_a_command_that_dies_there_has_lost_nothing(tmp_path: Path) -> None:
    run = Recorded(tmp_path)
    (run.spool / "parts").write_bytes(b"")
    (tmp_path / unfinished("run.0009.tacho")).mkdir()
    assert run.rotate() is None
    assert Journal.read(SpoolDirectory(run.spool)) is not None
    assert window(run.path)["number"] == 1
    (run.spool / "parts").unlink()
    run.writer.close()
    assert recover_recording(run.path).startswith("recovered")
    assert (window(run.path)["number"], window(run.path)["start_ns"]) == (2, window(windows(tmp_path)[0])["end_ns"])
    both = [*windows(tmp_path), run.path]
    assert sum(pq.read_table(each / "cpu.parquet").num_rows for each in both) == run.written
    assert not list(tmp_path.glob(".tmp-*"))


def test_a_window_that_never_took_its_name_goes_on(tmp_path: Path) -> None:
    run = Recorded(tmp_path)
    (run.spool / "parts").write_bytes(b"")
    assert run.rotate() is None
    (closed,) = windows(tmp_path)
    closed.rename(tmp_path / unfinished(closed.name))  # as it was just before
    (run.spool / "parts").unlink()
    go_on(run.folder)
    assert not list(tmp_path.glob(".tmp-*"))
    assert not (run.spool / JOURNAL).exists()
    assert run.samples() == run.written
    assert present_window(SpoolDirectory(run.spool), {"number": 1}) == {"number": 1}


def test_the_oldest_are_deleted_and_only_what_is_ours(tmp_path: Path) -> None:
    run = Recorded(tmp_path, keep=1)
    for _ in range(2):
        run.rotate()
    assert [each.name for each in windows(tmp_path)] == ["run.0002.tacho"]
    (tmp_path / "run.0002.tacho" / "mine.txt").write_text("mine")
    run.rotate()
    assert [each.name for each in windows(tmp_path)] == ["run.0002.tacho", "run.0003.tacho"]
    assert (tmp_path / "run.0002.tacho" / "cpu.parquet").exists()
    assert not list(tmp_path.glob(".tmp-*"))


def test_snapshots_keep_only_so_many_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotate, "MOST_SAVED", 2)
    run = Recorded(tmp_path)
    for _ in range(2):
        run.rotation.ask_for_snapshot()
        assert run.rotation.due(0)
        run.rotate()
    assert run.rotation.saved == 2
    for _ in range(3):
        run.rotation.ask_for_snapshot()
        assert not run.rotation.due(0)
    (note,) = run.manifest.notes
    assert note == "window 3 was asked for a snapshot in vain: those before keep 2 windows already"


@pytest.mark.slow
def test_a_snapshot_is_never_deleted(tmp_path: Path) -> None:
    run = Recorded(tmp_path, keep=1)
    run.rotate()
    assert not run.rotation.due(0)
    run.rotation.ask_for_snapshot()
    assert run.rotation.due(0)
    run.rotate()
    assert not run.rotation.due(0)
    for _ in range(2):
        run.rotate()
    assert [each.name for each in windows(tmp_path)] == ["run.0001.tacho", "run.0002.tacho", "run.0004.tacho"]
    assert [window(each).get("snapshot") for each in windows(tmp_path)] == [None, True, None]
    assert (run.rotation.saved, [each.path.name for each in run.rotation.kept]) == (2, ["run.0004.tacho"])


@pytest.mark.parametrize("by_program", [True, False])
def test_a_snapshot_is_asked_for(tmp_path: Path, *, by_program: bool) -> None:
    """By the program in its control file, or by a signal to the recording command."""
    run = Recorded(tmp_path)
    scout = SourceScout(SourceStore(tmp_path))
    collector = Collector(run.spool, lambda: scout, lambda: None, lambda: run.rotation)
    with run.busy():
        collector.start()
        if by_program:
            run.writer.ask_for_snapshot()
        else:
            collector.ask_for_snapshot()
        deadline = time.monotonic() + 60
        while run.rotation.closed == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        collector.stop()
    (closed,) = windows(tmp_path)
    assert window(closed)["snapshot"] is True
    assert run.samples() == run.written


def test_a_name_that_is_taken_is_passed_over(tmp_path: Path) -> None:
    run = Recorded(tmp_path)
    (tmp_path / "run.0001.tacho").symlink_to("nowhere")
    assert run.rotate() == set()
    assert (tmp_path / "run.0001.tacho").is_symlink()
    assert window(tmp_path / "run.0002.tacho")["number"] == 2


def test_when_it_is_due(tmp_path: Path) -> None:
    manifest = new_manifest({})
    folder = claim(tmp_path / "a.tacho", manifest, force=False)
    by_size = Rotation(folder, manifest, parse_rotate("1MB"), 1, lambda: (0, False))
    assert by_size.wait_s() is None
    assert (by_size.due(999_999), by_size.due(1_000_000)) == (False, True)
    by_size.put_off()
    assert not by_size.due(1 << 40)
    by_time = Rotation(folder, manifest, parse_rotate("1h"), 1, lambda: (0, False))
    assert 3500 < (by_time.wait_s() or 0) <= 3600
    assert not by_time.due(1 << 40)


def test_the_names_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "a.b.tacho"
    assert (window_name(path, 7), window_name(tmp_path / "plain", 12345)) == ("a.b.0007.tacho", "plain.12345")
    assert first_number(path) == 1
    for name in ("a.b.0011.tacho", "a.b.12.tacho", "a.b.0099.zip", "b.0100.tacho"):
        (tmp_path / name).mkdir()
    assert first_number(path) == 12
    foreign = tmp_path / unfinished("a.b.0005.tacho")
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    (tmp_path / unfinished("a.b.0006.tacho")).mkdir()
    discard_hidden(path)
    assert [each.name for each in tmp_path.glob(".tmp-*")] == [foreign.name]
    assert (foreign / "mine.txt").exists()


def test_a_process_that_has_become_another_program_is_over(tmp_path: Path) -> None:
    """It lives on under its number, and will never leave its segment."""
    begun = log_record(1, 7, 900)
    processes = [SpoolProcess(f"{pid}-{start_ns}", tmp_path) for pid, start_ns in ((7, 1_000), (8, 1_000), (8, 2_000))]

    def same(*records: bytes) -> set[str]:
        return still_the_same(processes, decode_log(b"".join((begun, *records))))

    assert same() == {"7-1000", "8-2000"}
    assert same(log_record(3, 7, 1_500)) == {"7-1000", "8-2000"}, "it only tried to"
    assert same(log_record(3, 7, 1_500), log_record(1, 7, 1_501)) == {"8-2000"}
    assert same(log_record(3, 7, 950), log_record(1, 7, 960)) == {"7-1000", "8-2000"}, "it has become this one"


def control(current: int) -> ControlFile:
    data = control_file(
        pid=7, start_ns=1_000, seq=current, state=1, pending_unkept=9, losses=dict.fromkeys(range(64), 5)
    )
    return decode_control(data)


@pytest.mark.parametrize(
    ("current", "asked", "ended_ns", "last", "over"),
    [
        (4, 4, None, 3, False),  # it has left its segment
        (6, 4, None, 3, False),
        (3, 4, None, -1, False),  # it stands still
        (4, 4, END + 1, 3, False),  # it has ended since
        (4, None, END + 1, 4, False),  # it had ended when it was to be asked, but behind the end
        (4, 4, END, 4, True),
        (4, None, None, 4, True),  # killed
    ],
)
def test_how_far_a_process_belongs_to_a_window(
    tmp_path: Path, current: int, asked: int | None, ended_ns: int | None, last: int, *, over: bool
) -> None:
    process = SpoolProcess("7-1000", tmp_path)
    found = how_far(process, control(current), asked, ended_ns, END)
    assert (found.last, found.over) == (last, over)
    assert found.control is not None
    # Blocks that have found no place are told of only where nothing comes after.
    assert found.control.pending_unkept == (9 if over else 0)
    assert found.control.losses == ((0,) * 64 if last < 0 else (5,) * 64)


def test_a_control_file_that_cannot_be_read_takes_nothing_away(tmp_path: Path) -> None:
    process = replace(SpoolProcess("7-1000", tmp_path), segments=[0, 1])
    assert how_far(process, None, 2, None, END).last == -1
    assert how_far(process, None, None, None, END).last == 1


@pytest.mark.parametrize(
    "change",
    [
        {"processes": {"../../home": {"last": 0, "over": True, "counters": None}}},
        {"processes": {"7-1000": {"last": "0", "over": True, "counters": None}}},
        {"name": "../other.tacho"},
        {"window": 1.5},
        {"processes": []},
    ],
)
def test_a_journal_that_is_none(tmp_path: Path, change: dict[str, object]) -> None:
    spool = SpoolDirectory(tmp_path)
    about = {"name": "run.0001.tacho", "uuid": "u", "window": 1, "end_ns": 1, "gpu_before": 0, "processes": {}}
    (tmp_path / JOURNAL).write_text(json.dumps(about), encoding="utf-8")
    assert Journal.read(spool) is not None
    (tmp_path / JOURNAL).write_text(json.dumps({**about, **change}), encoding="utf-8")
    assert Journal.read(spool) is None


def test_nothing_is_closed_once_the_program_has_ended(tmp_path: Path) -> None:
    run = Recorded(tmp_path)
    done = clock.Flag()
    done.set()
    begin = time.monotonic()
    assert run.rotation.rotate(SourceStore(tmp_path), done) is None
    assert time.monotonic() - begin < 1
    assert not windows(tmp_path)
    assert run.samples() == run.written
