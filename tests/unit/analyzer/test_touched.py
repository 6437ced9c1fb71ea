"""What of the memory that is held has been touched, by line and as a whole."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from tachograph.analyzer import Profile
from tachograph.analyzer.recording.question_options import Sort
from tachograph.analyzer.render.terminal.report import show
from unit.analyzer.recordings import Builder

MB = 1_000_000


@pytest.fixture
def array_and_list(builder: Builder) -> Builder:
    """Line 1 has an array of 1 GB of which a tenth is touched, and drops it; line 2 has 200 MB in small blocks."""
    code = builder.code(builder.file("/srv/a.py"))
    array, small = (builder.stack((code, line)) for line in range(2))
    builder.memory("start", 0, 0, resident_bytes=10 * MB)
    builder.block(array, 1000 * MB, 100, 700, block=7)
    builder.touched(7, 200, 0)
    builder.touched(7, 400, 100 * MB)
    builder.memory("tick", 401, 1000 * MB, obj_allocated_bytes=1000 * MB, resident_bytes=110 * MB)
    for number in range(20):
        builder.block(small, 10 * MB, 500 + number)
    builder.memory("tick", 650, 1200 * MB, obj_allocated_bytes=200 * MB, resident_bytes=310 * MB)
    builder.memory("tick", 800, 200 * MB, obj_freed_bytes=1000 * MB, resident_bytes=211 * MB)
    builder.memory("end", 1000, 200 * MB)
    return builder


def by_line(answer: Profile, name: str) -> list[float]:
    return [float(value) for value in answer.lines.sort_values("line")[name]]


def test_what_is_not_touched_is_not_in_memory(array_and_list: Builder, profile: Callable[..., Profile]) -> None:
    answer = profile()
    assert by_line(answer, "live_at_peak_bytes") == [1000 * MB, 200 * MB]
    assert by_line(answer, "touched_at_peak_bytes") == [100 * MB, 200 * MB]
    assert by_line(answer, "live_at_resident_peak_bytes") == [100 * MB, 200 * MB]
    assert by_line(answer, "total_live_at_resident_peak_bytes") == [100 * MB, 200 * MB]
    totals = answer.totals
    assert (totals.live_at_peak_bytes, totals.touched_at_peak_bytes) == (1200 * MB, 300 * MB)
    assert totals.live_at_resident_peak_bytes == 300 * MB
    assert answer.threads["live_at_resident_peak_bytes"].tolist() == [300 * MB]
    for end in ("low", "high"):
        assert by_line(answer, f"live_at_resident_peak_bytes_{end}") == [100 * MB, 200 * MB]


@pytest.mark.parametrize(
    ("until_ms", "expected"),
    [
        (150, 0),  # before the first look, which found nothing
        (399, 0),  # as it was last looked at
        (450, 100 * MB),
    ],
)
def test_a_block_is_as_it_was_last_looked_at(
    array_and_list: Builder, profile: Callable[..., Profile], until_ms: float, expected: float
) -> None:
    answer = profile(end_s=until_ms / 1000)
    assert by_line(answer, "live_at_peak_bytes")[0] == 1000 * MB
    assert by_line(answer, "touched_at_peak_bytes")[0] == expected


def test_a_block_fills_evenly_before_its_first_look(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    array = builder.stack((code, 0))
    builder.memory("start", 0, 0)
    builder.block(array, 100 * MB, 100, block=1)
    builder.memory("tick", 200, 100 * MB, obj_allocated_bytes=100 * MB, resident_bytes=50 * MB)
    builder.touched(1, 300, 60 * MB)
    builder.memory("end", 1000, 100 * MB)
    assert by_line(profile(), "live_at_resident_peak_bytes") == [pytest.approx(30 * MB)]


@pytest.mark.parametrize(
    ("footprint", "resident", "expected"),
    [
        (100, 90, 80),  # nothing has moved: the look is of the resident peak
        (100, 85, 30),  # less of it may have been in memory then
        (105, 90, 30),  # something else came, and what was resident may be its
    ],
)
def test_a_look_after_the_resident_peak_is_of_it_if_nothing_moved(
    builder: Builder, profile: Callable[..., Profile], footprint: int, resident: int, expected: int
) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    builder.memory("start", 0, 0)
    builder.block(builder.stack((code, 0)), 100 * MB, 100, block=1)
    builder.touched(1, 200, 30 * MB)
    builder.memory("tick", 201, 100 * MB, obj_allocated_bytes=100 * MB, resident_bytes=40 * MB)
    builder.memory("tick", 450, 100 * MB, resident_bytes=90 * MB)
    builder.touched(1, 900, 80 * MB)
    more = (footprint - 100) * MB
    builder.memory("tick", 901, footprint * MB, obj_allocated_bytes=more, resident_bytes=resident * MB)
    builder.memory("end", 1000, footprint * MB)
    assert by_line(profile(), "live_at_resident_peak_bytes")[0] == pytest.approx(expected * MB)


def test_blocks_of_two_processes_have_the_same_numbers(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    one, two = (builder.stack((code, line)) for line in range(2))
    child, thread = builder.process(200, 0, 900)
    for process, stack, of in ((0, one, 0), (child, two, thread)):
        builder.memory("start", 0, 0, process=process)
        builder.block(stack, 100 * MB, 100, block=1, process=process, thread=of)
        builder.touched(1, 200, (40 + 20 * process) * MB, process=process)
        more = {"obj_allocated_bytes": 100 * MB, "resident_bytes": 100 * MB, "process": process}
        builder.memory("tick", 300 + process, 100 * MB, **more)
        builder.memory("end", 900, 100 * MB, process=process)
    assert by_line(profile(), "live_at_resident_peak_bytes") == [40 * MB, (40 + 20 * child) * MB]


def test_blocks_that_were_not_looked_at_count_whole(builder: Builder, profile: Callable[..., Profile]) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    builder.memory("start", 0, 0)
    builder.parameters["touched"] = True
    builder.block(builder.stack((code, 0)), 100 * MB, 100)
    builder.memory("end", 1000, 100 * MB, obj_allocated_bytes=100 * MB, resident_bytes=120 * MB)
    answer = profile()
    assert by_line(answer, "touched_at_peak_bytes") == by_line(answer, "live_at_resident_peak_bytes") == [100 * MB]
    assert answer.totals.touched_at_peak_bytes == 100 * MB


def test_old_recordings_do_not_know_what_was_touched(array_and_list: Builder, profile: Callable[..., Profile]) -> None:
    array_and_list.rows["touched"].clear()
    del array_and_list.parameters["touched"]
    answer = profile()
    assert answer.totals.touched_at_peak_bytes is None
    assert answer.lines["touched_at_peak_bytes"].isna().all()
    assert by_line(answer, "live_at_resident_peak_bytes") == [1000 * MB, 200 * MB]


def test_the_head_says_how_much_of_the_peak_was_touched(
    array_and_list: Builder, profile: Callable[..., Profile]
) -> None:
    file = io.StringIO()
    show(profile(), Console(file=file, width=200, markup=False), Sort.CPU)
    text = " ".join(file.getvalue().split())
    assert "1.2 GB held at the peak (at 0.65 s, 300 MB of it touched)" in text
    assert "310 MB resident at most (at 0.65 s)" in text


def test_the_resident_peak_is_when_it_was_reached(builder: Builder, profile: Callable[..., Profile]) -> None:
    """What was released stays with the allocator: later readings are as large, and a page larger, with nothing held."""
    code = builder.code(builder.file("/srv/a.py"))
    builder.memory("start", 0, 0, resident_bytes=10 * MB)
    builder.block(builder.stack((code, 0)), 50 * MB, 100, 600)
    builder.memory("tick", 300, 50 * MB, obj_allocated_bytes=50 * MB, resident_bytes=60 * MB)
    builder.memory("tick", 800, 0, obj_freed_bytes=50 * MB, resident_bytes=60 * MB + 4096)
    builder.memory("end", 1000, 0, resident_bytes=60 * MB + 8192)
    answer = profile()
    assert by_line(answer, "live_at_resident_peak_bytes") == [50 * MB]
    assert answer.memory is not None
    assert (answer.memory.resident_peak_s, answer.memory.resident_peak_bytes) == (0.3, 60 * MB + 8192)
    assert answer.memory.processes["resident_peak_s"].tolist() == [0.3]
