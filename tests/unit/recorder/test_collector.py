import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.spool_builder import NONE, SegmentBuilder, control
from support.spool_builder import write_spool as build_spool
from support.traced_memory import traced
from support.written_spools import SEGMENT, add_samples, write_spool
from tachograph.format import SpoolDirectory, assemble, load_specification
from tachograph.recorder.collect import collector as collector_module
from tachograph.recorder.collect.collector import ROOM_OF_PART, SEGMENTS_PER_PART, SETTLING_S, Collector
from tachograph.recorder.collect.source_texts import SourceScout, SourceStore
from tachograph.recorder.command.session import import_for_the_end
from tachograph.recorder.inprocess.spool_writer import SpoolWriter


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    path = tmp_path / "spool"
    path.mkdir()
    return path


def steps(spool: Path, *times: float) -> Collector:
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    for now in times:
        collector.step(SpoolDirectory(spool), scout, now)
    return collector


def test_settled_segments_become_parts_and_nothing_is_lost(spool: Path) -> None:
    write_spool(spool, 2000, close=False)
    before = assemble(SpoolDirectory(spool), load_specification()).table("cpu")
    segments = len(list(spool.glob("*.seg")))
    assert segments > 2 * SEGMENTS_PER_PART
    steps(spool, 0.0, SETTLING_S)
    (process,) = SpoolDirectory(spool).processes()
    assert len(process.parts) == (segments - 1) // SEGMENTS_PER_PART
    assert process.segments[0] == SEGMENTS_PER_PART * len(process.parts)
    assert len(list(spool.glob("*.seg"))) == segments - SEGMENTS_PER_PART * len(process.parts)
    after = assemble(SpoolDirectory(spool), load_specification())
    assert after.table("cpu") == before
    assert not after.quality


def test_a_process_that_never_rests_is_collected_as_well(spool: Path) -> None:
    writer = write_spool(spool, 0, close=False)
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    for now in range(12):
        add_samples(writer, 300)  # two segments between any two looks
        collector.step(SpoolDirectory(spool), scout, float(now))
    (process,) = SpoolDirectory(spool).processes()
    assert len(process.parts) >= 4
    assert len(process.segments) <= 2 * SEGMENTS_PER_PART
    assert assemble(SpoolDirectory(spool), load_specification()).table("cpu").num_rows == 3600


def test_the_end_is_rehearsed_more_and_more_rarely(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_spool(spool, 10, close=False)
    for name in ("FIRST_POLL_S", "LONGEST_POLL_S", "QUIET_START_S"):
        monkeypatch.setattr(collector_module, name, 0.001)
    monkeypatch.setattr(collector_module, "MOST_OF_A_PROCESSOR", 1)
    looks = 0
    at: list[int] = []
    enough = threading.Event()

    def rehearse(_: SpoolDirectory, __: Callable[[], bool]) -> None:
        at.append(looks)
        if len(at) == 4:
            enough.set()

    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None, rehearse=rehearse)
    step = collector.step

    def counted(*about: Any) -> None:
        nonlocal looks
        looks += 1
        step(*about)

    monkeypatch.setattr(collector, "step", counted)
    collector.start()
    assert enough.wait(60)
    collector.stop()
    assert at[:4] == [1, 2, 4, 8]


def test_rehearsals_keep_to_their_part_of_a_processor(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each took as long as the end itself: three seconds beside a program of seven that used torch."""
    for name in ("FIRST_POLL_S", "LONGEST_POLL_S", "QUIET_START_S"):
        monkeypatch.setattr(collector_module, name, 0.001)
    monkeypatch.setattr(collector_module, "MOST_OF_A_PROCESSOR", 0.25)
    at: list[tuple[float, float]] = []
    enough = threading.Event()

    def rehearse(_: SpoolDirectory, __: Callable[[], bool]) -> None:
        at.append((time.monotonic(), time.thread_time()))
        while time.thread_time() - at[-1][1] < 0.05:
            pass
        if len(at) == 3:
            enough.set()

    begun = time.monotonic()
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None, rehearse=rehearse)
    collector.start()
    assert enough.wait(60)
    collector.stop()
    # The first waits for nothing. Those before the others had taken 0.05 and 0.1 s, a quarter of the time.
    assert [at[1][0] - begun >= 0.2, at[2][0] - begun >= 0.4] == [True, True]


def test_where_the_program_runs_already_nothing_is_put_off(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_module, "QUIET_START_S", 60)
    monkeypatch.setattr(collector_module, "FIRST_POLL_S", 60)
    done: list[object] = []
    asked = threading.Event()

    def rehearse(_: SpoolDirectory, given_up: Callable[[], bool]) -> None:
        done.append(given_up())
        asked.set()

    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: done.append("warm"), rehearse=rehearse, at_once=True)
    collector.start()
    assert asked.wait(30)
    collector.stop()
    assert done == ["warm", False]


@pytest.mark.broad
def test_a_part_is_made_of_one_segment_after_the_other(spool: Path) -> None:
    """Decoded, a segment takes several times its size: four at once made the recording command grow by 20 MB."""
    size, pid, start_ns = 1 << 18, os.getpid(), time.monotonic_ns()
    builders = [SegmentBuilder(seq, pid, start_ns, size) for seq in range(SEGMENTS_PER_PART + 1)]
    for builder in builders:
        while len(builder) < size - 100:
            builder.stack(builder.seq * size + len(builder), NONE, 0, 0)
    control_file = control(pid=pid, start_ns=start_ns, seq=SEGMENTS_PER_PART)
    build_spool(spool, [builder.to_bytes() for builder in builders], control_file, f"{pid}-{start_ns}")
    del builders
    import_for_the_end()
    _, _, peak = traced(lambda: steps(spool, 0.0, SETTLING_S))
    (process,) = SpoolDirectory(spool).processes()
    assert len(process.parts) == 1
    assert peak < 16 * size


REHEARSES = """
import sys
from pathlib import Path
from tachograph.format import SpoolDirectory
from tachograph.recorder.collect.collector import Collector
from tachograph.recorder.collect.finish import rehearse
from tachograph.recorder.collect.native_places import NativePlaces
from tachograph.recorder.command.session import import_for_the_end, leave_unneeded_out

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

leave_unneeded_out()
import_for_the_end()
places, sizes = NativePlaces(lines=False), []
for folder in sys.argv[1:]:
    spool = SpoolDirectory(Path(folder))
    end = Collector(spool.path, None, None, rehearse=lambda spool, done: sizes.append(rehearse(spool, places, done)))
    end._rehearse_end(spool)
    sizes.append(resident())
print(sizes[-1] - sizes[-3])
"""


@pytest.mark.recording
def test_what_a_rehearsal_took_is_given_back(tmp_path: Path) -> None:
    """What allocators kept of it made the recording command of a long run grow by 14 MB each time."""
    for name, samples in (("small", 100), ("large", 90_000)):
        (tmp_path / name).mkdir()
        write_spool(tmp_path / name, samples, segment_size=1 << 20)
    command = [sys.executable, "-c", REHEARSES, *(str(tmp_path / name) for name in ("small", "large"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert int(done.stdout) < 8 << 20


def used_bytes(spool: Path) -> int:
    return sum(512 * path.stat().st_blocks for path in spool.glob("*.seg"))


def of_ended_processes(spool: Path, count: int) -> list[int]:
    """Processes that wrote some samples, prepared another segment and ended; their process ids."""
    size = 1 << 20
    for _ in range(count):
        child = os.fork()
        if not child:
            writer = SpoolWriter(str(spool), size)
            add_samples(writer, 20)
            Path(f"{spool}/{writer.pid}-{writer.start_ns}.000001.seg").write_bytes(bytes(size))
            os._exit(0)
        os.waitpid(child, 0)
    return [process.pid for process in SpoolDirectory(spool).processes()]


def test_processes_that_are_over_leave_little(spool: Path) -> None:
    """And all that they recorded; they are not looked at again."""
    pids = of_ended_processes(spool, 4)
    writer = write_spool(spool, 20, close=False)  # this process lives
    before = assemble(SpoolDirectory(spool), load_specification())
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    assert len(list(spool.glob("*.seg"))) == 2 * len(pids) + 1
    collector.step(SpoolDirectory(spool), scout, 0.0)
    assert len(list(spool.glob("*.seg"))) == len(pids) + 1
    assert used_bytes(spool) <= len(pids) * 16384 + SEGMENT
    after = assemble(SpoolDirectory(spool), load_specification())
    assert after.table("cpu") == before.table("cpu")
    assert after.table("cpu").num_rows == 20 * (len(pids) + 1)
    assert after.quality == before.quality
    for path in spool.glob(f"{pids[0]}-*"):
        path.unlink()  # it is not asked for
    add_samples(writer, 20)
    collector.step(SpoolDirectory(spool), scout, 2.0)
    assert assemble(SpoolDirectory(spool), load_specification()).table("cpu").num_rows == 20 * (len(pids) + 1)


def test_it_looks_again_soon_where_processes_come_and_go(spool: Path) -> None:
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    writer = write_spool(spool, 20, close=False)  # this process lives
    assert collector.step(SpoolDirectory(spool), scout, 0.0)
    add_samples(writer, 20)
    assert not collector.step(SpoolDirectory(spool), scout, 1.0)
    of_ended_processes(spool, 1)
    assert collector.step(SpoolDirectory(spool), scout, 2.0)
    assert not collector.step(SpoolDirectory(spool), scout, 3.0)


def test_a_look_at_many_processes_costs_only_those_that_live(spool: Path) -> None:
    """The second look at thousands of ended processes opens none of their files."""
    template = of_ended_processes(spool, 1)
    control, segment = next(spool.glob("*.ctl")), next(spool.glob("*.000000.seg"))
    for number in range(300):
        (spool / f"{template[0]}-{number + 1}.ctl").write_bytes(control.read_bytes())
        (spool / f"{template[0]}-{number + 1}.000000.seg").write_bytes(segment.read_bytes()[:65536])
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    collector.step(SpoolDirectory(spool), scout, 0.0)

    def opened(*_: object, **__: object) -> int:
        raise AssertionError("nothing is to be opened")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opened)
        collector.step(SpoolDirectory(spool), scout, 3.0)


def test_segments_that_may_still_change_are_left_alone(spool: Path) -> None:
    write_spool(spool, 2000, close=False)
    steps(spool, 0.0, SETTLING_S / 2)
    assert not list((spool / "parts").glob("*"))


def test_parts_are_made_again_when_there_is_room_again(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that was full for a moment; else the segments would take ten times as much to the end."""
    write_spool(spool, 2000, close=False)
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    collector.step(SpoolDirectory(spool), scout, 0.0)
    attempts = 0

    def full(*_: object) -> None:
        nonlocal attempts
        attempts += 1
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr("tachograph.format.write_part", full)
        for now in range(1, 600):
            collector.step(SpoolDirectory(spool), scout, float(now))
    assert 10 < attempts < 50  # less and less often
    with monkeypatch.context() as patch:
        patch.setattr(collector_module, "free_bytes", lambda path: ROOM_OF_PART - 1)
        patch.setattr(collector_module, "ROOM_WAIT_S", 0.01)
        collector.step(SpoolDirectory(spool), scout, 700.0)
    assert not list((spool / "parts").glob("*"))
    free = iter([ROOM_OF_PART - 1] * 3 + [ROOM_OF_PART] + [ROOM_OF_PART - 1] * 3)
    monkeypatch.setattr(collector_module, "free_bytes", lambda path: next(free, ROOM_OF_PART))
    collector.step(SpoolDirectory(spool), scout, 800.0)
    (process,) = SpoolDirectory(spool).processes()
    assert len(process.segments) <= SEGMENTS_PER_PART
    assert not assemble(SpoolDirectory(spool), load_specification()).quality


def test_at_the_end_all_segments_become_parts_where_there_is_no_room_otherwise(spool: Path) -> None:
    """Those in a row together; the one that is missing is still missing."""
    write_spool(spool, 2000)
    sorted(spool.glob("*.seg"))[5].unlink()
    before = assemble(SpoolDirectory(spool), load_specification())
    (process,) = SpoolDirectory(spool).processes()
    collector = steps(spool)
    assert not collector.compress(["another"])
    assert collector.compress([process.prefix])
    assert not list(spool.glob("*.seg"))
    assert not collector.compress([process.prefix])
    after = assemble(SpoolDirectory(spool), load_specification())
    assert after.table("cpu") == before.table("cpu")
    assert after.quality == before.quality


def test_parts_are_private(spool: Path) -> None:
    before = os.umask(0)
    try:
        write_spool(spool, 2000)
        steps(spool, 0.0, SETTLING_S)
    finally:
        os.umask(before)
    entries = list((spool / "parts").rglob("*"))
    assert {oct(entry.stat().st_mode & 0o777) for entry in entries if entry.is_file()} == {"0o600"}
    assert {oct(entry.stat().st_mode & 0o777) for entry in entries if entry.is_dir()} == {"0o700"}


def test_a_missing_segment_does_not_stop_the_others(spool: Path) -> None:
    write_spool(spool, 2000)
    sorted(spool.glob("*.seg"))[1].unlink()
    steps(spool, 0.0, SETTLING_S, 10.0)
    quality = assemble(SpoolDirectory(spool), load_specification()).quality
    assert {"process": 0, "loss": "segments_missing", "count": 1} in quality


def test_a_spool_that_vanishes_is_survived(tmp_path: Path) -> None:
    steps(tmp_path / "missing", 0.0, 1.0)


def test_the_thread_ends_when_it_is_told(spool: Path) -> None:
    write_spool(spool, 10)
    scout = SourceScout(SourceStore(spool))
    collector = Collector(spool, lambda: scout, lambda: None)
    collector.start()
    collector.stop()
    assert (spool / os.listdir(spool)[0]).exists()
    assert SpoolDirectory(spool).processes()[0].control.segment_size == SEGMENT  # type: ignore[union-attr]
