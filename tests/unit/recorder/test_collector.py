import os
from pathlib import Path

import pytest

from tachograph.format import SpoolDirectory, assemble, load_specification
from tachograph.recorder.collector import SEGMENTS_PER_PART, SETTLING_S, Collector
from tachograph.recorder.sources import SourceScout, SourceStore
from unit.recorder.spools import SEGMENT, add_samples, write_spool


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


def test_segments_that_may_still_change_are_left_alone(spool: Path) -> None:
    write_spool(spool, 2000, close=False)
    steps(spool, 0.0, SETTLING_S / 2)
    assert not list((spool / "parts").glob("*"))


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
