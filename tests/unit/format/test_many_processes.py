"""Thousands of processes, such as those of a build: each leaves little, and what there is of it takes little memory."""

import gc
import weakref
from pathlib import Path

import pytest

from support.spool_builder import SegmentBuilder, control, log_record, write_spool
from support.traced_memory import traced_assembly
from tachograph.format import SpoolDirectory, assemble, load_specification, open_container
from tachograph.format.spool import final_rows, process_reader

START, END = 1, 2
"""Kinds of records of the process log."""

MODULES, FRAMES = 6, 10

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"
SPOOLS = [path.parent.stem for path in sorted(VECTORS.glob("*/manifest.json")) if '"recording"' in path.read_text()]
"""Golden recordings whose tables were not made yet."""


def many_processes(path: Path, count: int) -> None:
    """So many processes with a thread, six libraries and two samples, each with a native call path of ten frames."""
    log = []
    for number in range(count):
        pid, start_ns = 10_000 + number, 1_000_000_000 + 10_000 * number
        segment = SegmentBuilder(0, pid, start_ns, 8192)
        for key in ("sampler", "interval_ns", "python_version", "executable"):
            segment.meta(key, "1" * 20)
        segment.thread_start(0, pid, start_ns, main=True)
        for module in range(MODULES):
            at = (1 << 40) + (module << 24)
            segment.module(module, f"/usr/lib/lib{module}.so", at, at + (1 << 24), build_id=bytes([module]) * 20)
        for frame in range(1, FRAMES + 1):
            segment.native_stack(frame, frame - 1, (1 << 40) + (frame % MODULES << 24) + number % 7 + 64 * frame)
        for sample in range(2):
            segment.cpu(start_ns + sample, pc=(1 << 40) + sample, native=(FRAMES, 1))
        for block in range(4):  # the same numbers in each process, and not the same that are released or looked at
            segment.block(start_ns + 10 + block, block, thread=0, native=(FRAMES, 1))
            if block != number % 4:
                segment.freed(start_ns + 30 - block, block, 0)
                segment.touched(start_ns + 40, 3 - block, 64)
        segment.freed(start_ns + 20, 2, 0)  # twice, but for one process in four
        segment.thread_end(0, start_ns + 100, 300)
        write_spool(path, [segment.to_bytes()], control(pid=pid, start_ns=start_ns), f"{pid}-{start_ns}")
        program, words = b"/usr/bin/python3", b"python3\0-c\0pass\0"
        log += [
            log_record(START, pid, start_ns, executable=program, command=words),
            log_record(END, pid, start_ns + 100),
        ]
    (path / "processes.log").write_bytes(b"".join(log))


@pytest.mark.broad
def test_what_a_process_takes(tmp_path: Path) -> None:
    """Its libraries, addresses and ids are columns: as Python objects they took 1.4 GB after an hour of forks."""
    count = 400
    many_processes(tmp_path, count)
    result, held, peak = traced_assembly(tmp_path)
    assert result.table("processes").num_rows == count
    assert result.table("modules").num_rows == MODULES * count
    assert result.table("native_frames").num_rows == (FRAMES + 2) * count
    assert result.table("cpu").num_rows == 2 * count
    assert held / count < 9_000
    assert peak / count < 15_000


@pytest.mark.parametrize("at_once", [1 << 12, 32])
def test_few_rows_are_what_they_would_be_of_many(tmp_path: Path, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of short processes are translated together, and not one process after another."""
    many_processes(tmp_path, 40)
    names = ("cpu", "allocations")
    monkeypatch.setattr(final_rows, "FEWEST_ROWS_AT_ONCE", at_once)
    together = assemble(SpoolDirectory(tmp_path), load_specification())
    found = {name: together.table(name) for name in names}
    monkeypatch.setattr(process_reader, "FEW_ROWS", 0)
    each = assemble(SpoolDirectory(tmp_path), load_specification())
    for name in names:
        assert found[name].num_rows == {"cpu": 80, "allocations": 160}[name]
        assert found[name].equals(each.table(name)), name
    assert found["allocations"].column("freed_ns").null_count == 30  # of each four the one of its number, but number 2
    assert together.quality == each.quality


@pytest.mark.parametrize("name", SPOOLS)
def test_golden_spools_are_read_the_same_in_both_ways(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for few in (process_reader.FEW_ROWS, 0):
        monkeypatch.setattr(process_reader, "FEW_ROWS", few)
        with open_container(VECTORS / f"{name}.tacho") as container:
            spool = container.spool()
            assert spool is not None
            results.append(assemble(spool, load_specification()))
    short, long = results
    for table in load_specification().tables:
        assert short.table(table).equals(long.table(table)), table
    assert short.quality == long.quality


def test_it_is_given_back_without_the_collector(tmp_path: Path) -> None:
    """Where tables are made it is off, and no circle of references may keep what is done with."""
    many_processes(tmp_path, 3)
    result = assemble(SpoolDirectory(tmp_path), load_specification())
    assert result.table("cpu").num_rows == 6
    kept = [weakref.ref(each) for each in (result, result._rows)]
    gc.disable()
    try:
        del result
        assert [each() for each in kept if each() is not None] == []
    finally:
        gc.enable()
