"""The division of resident memory, from readings and counters that are known exactly; judgements and words about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from tachograph.analyzer import Profile
from tachograph.analyzer.conclusions.memory.fork_copies import LargeBlocks, Touched, before_the_change, copied_pages
from tachograph.analyzer.conclusions.memory.where import Division, Where
from tachograph.analyzer.render.html.payload import table_row
from tachograph.analyzer.render.json_document import document, pieces
from tachograph.analyzer.render.markdown.profile_parts import summary
from tachograph.analyzer.render.terminal.where_lines import show
from tachograph.analyzer.report_data.sections import SECTIONS
from tachograph.analyzer.report_data.where_memory import judgement_rows, referrer_rows, where_rows, where_sentence
from tachograph.format.enumerations import ReferrerRole
from unit.analyzer.recordings import MS, START, Builder

MB = 1_000_000
PARTS = ("live_bytes", "kept_bytes", "file_bytes", "shared_bytes", "other_bytes")
Answer = Callable[..., Profile]


def where(answer: Profile) -> Where:
    assert answer.memory is not None
    assert answer.memory.where is not None
    return answer.memory.where


def parts(division: Division) -> list[float | None]:
    return [getattr(division, name) for name in PARTS]


def reading(builder: Builder, ms: float, process: int = 0) -> None:
    """173 MB: of heaps 20 of 80 are live, of pools 10 of 30; 20 of large blocks, 18 of files, 20 shared, 5 others."""
    builder.memory_part("heap", ms, 60 * MB, process=process)
    builder.memory_part("arenas", ms, 20 * MB, process=process)
    builder.memory_part("anonymous", ms, 50 * MB, live_bytes=20 * MB, process=process)
    builder.memory_part(
        "pools", ms, 30 * MB, live_bytes=10 * MB, sparse_bytes=24 * MB, sparse_live_bytes=2 * MB, process=process
    )
    builder.memory_part(
        "files",
        ms,
        20 * MB,
        anonymous_bytes=2 * MB,
        private_bytes=3 * MB,
        private_anonymous_bytes=2 * MB,
        process=process,
    )
    builder.memory_part(
        "shared", ms, 20 * MB, anonymous_bytes=0, private_anonymous_bytes=0, proportional_bytes=10 * MB, process=process
    )
    builder.memory_part("stacks", ms, MB, process=process)
    builder.memory_part("recorder", ms, 2 * MB, process=process)
    flows = {"obj_allocated_bytes": 10 * MB, "native_allocated_bytes": 40 * MB}
    builder.memory("tick", ms, 50 * MB, resident_bytes=173 * MB, process=process, **flows)


def test_every_resident_byte_is_in_one_part(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    reading(builder, 500)
    builder.memory("end", 1000, 50 * MB)
    whole = where(profile()).whole
    assert parts(whole) == [50 * MB, 80 * MB, 18 * MB, 20 * MB, 5 * MB]
    assert whole.resident_bytes == 173 * MB
    assert {each.allocator: each.bytes for each in whole.kept_by} == {"malloc": 60 * MB, "pymalloc": 20 * MB}
    assert (whole.stacks_bytes, whole.library_data_bytes, whole.recorder_bytes) == (MB, 2 * MB, 2 * MB)
    assert (whole.unexplained_bytes, whole.proportional_bytes) == (0, 163 * MB)


def test_pages_of_malloc_that_few_blocks_pin(builder: Builder, profile: Answer) -> None:
    """A reading that did not look at malloc's blocks has what the one before found."""
    builder.memory("start", 0, 0)
    for ms, known in ((400, True), (800, False)):
        sparse = {"sparse_bytes": 50 * MB, "sparse_live_bytes": 2 * MB} if known else {}
        builder.memory_part("heap", ms, 60 * MB, **sparse)
        builder.memory_part("arenas", ms, 10 * MB, **({"sparse_bytes": MB, "sparse_live_bytes": 0} if known else {}))
        builder.memory("tick", ms, 10 * MB, native_allocated_bytes=10 * MB if known else 0)
    answer = profile()
    assert where(answer).whole.malloc_sparse_bytes == 51 * MB
    judged = {each.verdict: each for each in where(answer).verdicts}
    assert (judged["fragmented"].allocator, judged["fragmented"].bytes) == ("malloc", 49 * MB)
    assert judged["fragmented"].pinned_by_bytes == 2 * MB


def test_what_allocators_do_not_explain_is_other(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    builder.memory_part("anonymous", 500, 30 * MB, live_bytes=20 * MB)
    builder.memory("tick", 500, 24 * MB, native_allocated_bytes=20 * MB, mapped_allocated_bytes=4 * MB)
    whole = where(profile()).whole
    assert parts(whole) == [24 * MB, 0, 0, 0, 6 * MB]
    assert whole.unexplained_bytes == 6 * MB


def test_without_a_footprint_live_and_kept_are_unknown(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, None)
    builder.memory_part("heap", 500, 30 * MB)
    builder.memory_part("files", 500, 8 * MB, anonymous_bytes=0)
    builder.memory("tick", 500, None)
    answer = profile()
    assert parts(where(answer).whole) == [None, None, 8 * MB, 0, 0]
    assert "not known" in str(where_sentence(answer))


def test_an_allocator_that_says_nothing_is_unknown(builder: Builder, profile: Answer) -> None:
    arrow = builder.native_frame(builder.module("/lib/libarrow.so.17"), "mmap_it")
    other = builder.native_frame(builder.module("/lib/libother.so"), "mmap_it")
    builder.memory("start", 0, 0)
    builder.memory_part("reserved", 500, 70 * MB, native_frame=arrow)
    builder.memory_part("reserved", 500, 10 * MB, native_frame=other)
    builder.memory("tick", 500, 80 * MB, mapped_allocated_bytes=80 * MB)
    whole = where(profile()).whole
    assert whole.live_bytes == 80 * MB
    (of_arrow,) = (each for each in whole.kept_by if "pyarrow" in each.allocator)
    assert (of_arrow.bytes, of_arrow.resident_bytes) == (None, 70 * MB)


@pytest.mark.parametrize(
    ("path", "name", "pages", "kept"),
    [
        ("/lib/polars.abi3.so", "jemalloc of polars", 66, 36),
        ("/lib/libplain.so.2", "jemalloc of libplain", 66, 36),
        ("/lib/polars.abi3.so", "jemalloc of polars", 90, 40),  # some of its pages were never touched
        ("/lib/libarrow.so.17", "mimalloc or jemalloc of pyarrow", 32, None),  # another allocator has the rest
    ],
)
def test_what_jemalloc_says_it_keeps(
    builder: Builder, profile: Answer, path: str, name: str, pages: int, kept: int | None
) -> None:
    library = builder.module(path)
    mapping, asked = builder.native_frame(library, "pages"), builder.native_frame(library, "je_mallctl")
    builder.memory("start", 0, 0)
    builder.memory_part("reserved", 500, 70 * MB, native_frame=mapping)
    builder.memory_part("allocators", 500, pages * MB, native_frame=asked, live_bytes=30 * MB)
    builder.memory("tick", 500, 70 * MB, mapped_allocated_bytes=70 * MB)
    whole = where(profile()).whole
    assert whole.resident_bytes == 70 * MB
    by = {each.allocator: each.bytes for each in whole.kept_by}
    assert by == {"malloc": 0, name: None if kept is None else kept * MB}
    assert parts(whole)[:2] == [(70 - (kept or 0)) * MB, (kept or 0) * MB]


def test_pages_that_were_given_up_are_kept(builder: Builder, profile: Answer) -> None:
    polars = builder.native_frame(builder.module("/lib/polars.abi3.so"), "pages")
    builder.memory("start", 0, 0)
    builder.memory_part("reserved", 500, 70 * MB, native_frame=polars, lazily_free_bytes=40 * MB)
    builder.memory("tick", 500, 70 * MB, mapped_allocated_bytes=70 * MB)
    whole = where(profile()).whole
    assert parts(whole)[:2] == [30 * MB, 40 * MB]


def test_a_forked_process_has_what_it_copied(builder: Builder, profile: Answer) -> None:
    """100 MB at first; then 130 MB, 50 of them its own: 30 came in addition, so 20 were copied."""
    child, thread = builder.process(101, 100, 900)
    code = builder.code(builder.file("/srv/a.py"))
    one, two = builder.stack((code, 0)), builder.stack((code, 1))
    builder.memory("start", 0, 0)
    builder.memory("start", 100, 100 * MB, process=child, obj_allocated_bytes=100 * MB, resident_bytes=100 * MB)
    builder.memory_part("heap", 800, 130 * MB, private_bytes=50 * MB, private_anonymous_bytes=50 * MB, process=child)
    builder.memory("tick", 800, 130 * MB, process=child, obj_allocated_bytes=30 * MB)
    builder.page_faults(one, 300, 3000, thread)
    builder.page_faults(two, 500, 1000, thread)
    answer = profile()
    assert where(answer).whole.copied_after_fork_bytes == 20 * MB
    assert [each.verdict for each in where(answer).verdicts] == ["copied-after-fork"]
    copied = dict(zip(answer.lines["line"], answer.lines["copied_after_fork_bytes"], strict=True))
    assert (copied[1], copied[2]) == (15 * MB, 5 * MB)


def test_pages_touched_between_two_samples_are_of_both_lines(builder: Builder, profile: Answer) -> None:
    """A line that touches 100 pages a millisecond ends 4 ms after its last sample, and what comes then touches none."""
    child, thread = builder.process(101, 100, 900)
    code = builder.code(builder.file("/srv/a.py"))
    one, two = builder.stack((code, 0)), builder.stack((code, 1))
    builder.memory("start", 0, 0)
    builder.memory("start", 100, 100 * MB, process=child, obj_allocated_bytes=100 * MB, resident_bytes=100 * MB)
    builder.memory_part("heap", 800, 130 * MB, private_bytes=50 * MB, private_anonymous_bytes=50 * MB, process=child)
    builder.memory("tick", 800, 130 * MB, process=child, obj_allocated_bytes=30 * MB)
    for ms, stack, faults in ((200, two, 0), (205, one, 200), (210, one, 500), (215, two, 400), (220, two, 0)):
        builder.cpu(stack, 5, time_ns=START + ms * MS, thread=thread)
        if faults:
            builder.page_faults(stack, ms, faults, thread)
    answer = profile()
    copied = dict(zip(answer.lines["line"], answer.lines["copied_after_fork_bytes"], strict=True))
    assert (copied[1], copied[2]) == (20 * MB, 0)


def bursts(seed: int, burst_ms: float, around: tuple[float, float]) -> tuple[float, float]:
    """How far off the pages of a burst are without and with division, in the mean square of many tries.

    The burst touches 600 pages a millisecond, and what comes before and after it as many as ``around`` says. Samples
    are 5 to 6 ms of CPU time apart, one in ten twice as much.
    """
    chance = np.random.default_rng(seed)
    edges = np.cumsum([0, 40, burst_ms, 40])
    touched = np.concatenate(([0], np.cumsum(np.diff(edges) * (around[0], 600, around[1]))))
    errors = []
    for _ in range(500):
        gaps = 5 * (1 + 0.2 * chance.random(100)) * (1 + (chance.random(100) < 0.1))
        times = np.cumsum(gaps) - 5 * chance.random()
        times = times[times < edges[-1]]
        faults = np.diff(np.interp(times, edges, touched), prepend=0)
        site = np.searchsorted(edges, times)
        before = before_the_change(faults, np.diff(times, prepend=0), site)
        moved = before[site == 2].sum() - before[1:][site[:-1] == 2].sum()
        plain = faults[site == 2].sum()
        errors.append((plain, plain - moved))
    off = np.array(errors) / (600 * burst_ms) - 1
    plain_off, divided_off = np.sqrt(np.mean(off**2, axis=0))
    return float(plain_off), float(divided_off)


@pytest.mark.parametrize("around", [(0, 0), (0, 1500), (1500, 1500), (100, 1500)])
def test_division_of_pages_by_their_rates_is_ten_times_as_near(around: tuple[float, float]) -> None:
    for burst_ms in (50, 200):
        plain, divided = bursts(1, burst_ms, around)
        assert divided < plain / 10
        assert divided < 0.005


def test_division_of_pages_at_one_rate_is_no_worse() -> None:
    plain, divided = bursts(2, 100, (600, 600))
    assert divided < plain


def touching(*rows: tuple[int, float, float]) -> Touched:
    """Rows of so many ms, one behind the other: bytes before the change and after it."""
    ms, before, here = (np.array(column) for column in zip(*rows, strict=True))
    ends = np.cumsum(ms)
    return Touched(ends - ms, ends, before.astype(np.float64), here.astype(np.float64), np.zeros(len(rows), np.int64))


def large(*blocks: tuple[int, int, float]) -> LargeBlocks:
    births, deaths, sizes = zip(*blocks, strict=True)
    return LargeBlocks(np.array(births), np.array(deaths), np.array(sizes, np.float64))


@pytest.mark.parametrize(
    ("rows", "blocks", "copied", "left"),
    [
        # Touched by the line behind the one that allocated it.
        (((10, 0, 50), (10, 0, 0), (10, 0, 30)), ((15, 99, 30),), 50, ([0, 0, 0], [50, 0, 0])),
        # What was touched before its birth is none of it.
        (((10, 0, 50), (10, 20, 30)), ((15, 99, 30),), 70, ([0, 20], [50, 0])),
        # But for pages that are found nowhere else.
        (((10, 0, 50), (10, 20, 30)), ((15, 99, 45),), 55, ([0, 5], [50, 0])),
        # A block that is never touched, beside copies: the process has touched no more than it copied.
        (((10, 0, 50), (10, 0, 50)), ((5, 99, 80),), 100, ([0, 0], [50, 50])),
        # One that has gone.
        (((10, 0, 50), (10, 0, 0), (10, 0, 50)), ((12, 15, 20), (25, 99, 30)), 50, ([0, 0, 0], [50, 0, 20])),
    ],
)
def test_fresh_pages_are_those_behind_the_birth_of_a_large_block(
    rows: tuple[tuple[int, float, float], ...],
    blocks: tuple[tuple[int, int, float], ...],
    copied: float,
    left: tuple[list[float], list[float]],
) -> None:
    before, here = copied_pages(touching(*rows), large(*blocks), copied)
    assert (before.tolist(), here.tolist()) == left


def test_lines_of_a_program_that_does_not_fork_copied_nothing_that_is_known(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    reading(builder, 500)
    assert profile().lines["copied_after_fork_bytes"].isna().all()


def test_the_moment_of_several_processes_is_that_of_most_together(builder: Builder, profile: Answer) -> None:
    child, _ = builder.process(101, 100, 900)
    builder.memory("start", 0, 0)
    builder.memory("start", 100, 0, process=child)
    reading(builder, 500)
    reading(builder, 600, child)
    builder.memory_part("heap", 950, 10 * MB)
    builder.memory("tick", 950, 10 * MB)
    found = where(profile())
    assert (found.time_s, found.whole.resident_bytes) == (0.5, 2 * 173 * MB)
    assert [(process, division.resident_bytes) for process, _, division in found.processes] == [
        (0, 10 * MB),
        (child, 173 * MB),
    ]
    assert found.timeline["resident_bytes"].tolist() == [173 * MB, 173 * MB, 10 * MB]


def test_verdicts_have_their_numbers_and_what_helps(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    reading(builder, 500)
    answer = profile()
    found = {(each.verdict, each.allocator): each for each in where(answer).verdicts}
    assert set(found) == {("kept", "malloc"), ("kept", "pymalloc"), ("fragmented", "pymalloc")}
    assert found["kept", "malloc"].bytes == 60 * MB
    assert found["fragmented", "pymalloc"].bytes == 22 * MB
    assert found["fragmented", "pymalloc"].pinned_by_bytes == 2 * MB
    told = judgement_rows(answer)
    assert told[0][0] == "kept: 60 MB free, and not given back by malloc"
    assert "malloc_trim" in told[0][1]


def test_fragmented_pools_have_the_line_of_most_small_objects(builder: Builder, profile: Answer) -> None:
    file = builder.file("/srv/a.py", "")
    many, few, large, gone, dense = (builder.stack((builder.code(file, "f", line), 0)) for line in (3, 5, 7, 9, 11))
    builder.memory("start", 0, 0)
    for at in range(100, 200, 10):
        builder.block(many, 64, at)
        builder.block(gone, 64, at, 300)
        builder.block(gone, 64, at, 300)
    builder.block(few, 64, 100)
    for at in range(30):
        builder.block(dense, 64, 20 + at)  # most live, and all of their neighbours with them
    builder.block(large, 4 * MB, 100)
    reading(builder, 500)
    answer = profile()
    (found,) = (each for each in where(answer).verdicts if each.verdict == "fragmented")
    assert (found.file, found.line) == ("/srv/a.py", 3)
    assert any(text.endswith("live objects in pymalloc, most of them of a.py:3") for text, _ in judgement_rows(answer))


def test_memory_of_a_cached_function_is_a_cache(builder: Builder, profile: Answer) -> None:
    source = "import functools\n\n@functools.lru_cache(maxsize=None)\ndef load(n):\n    return bytearray(n)\n"
    code = builder.code(builder.file("/srv/a.py", source), "load", 5)
    builder.memory("start", 0, 0)
    builder.block(builder.stack((code, 0)), 40 * MB, 100)
    builder.memory_part("anonymous", 500, 40 * MB, live_bytes=40 * MB)
    builder.memory("tick", 500, 40 * MB, obj_allocated_bytes=40 * MB)
    (verdict,) = where(profile()).verdicts
    assert (verdict.verdict, verdict.bytes, verdict.line) == ("cache", 40 * MB, 5)


def test_the_words_name_every_part(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    reading(builder, 500)
    answer = profile()
    assert where_sentence(answer) == (
        "173 MB resident at 0.50 s: 50 MB in live blocks, 60 MB free but kept by malloc, 20 MB free but kept by"
        " pymalloc, 18 MB pages of files, 20 MB shared memory, 5 MB other"
    )
    rows = where_rows(answer)
    assert rows is not None
    assert sum(row["bytes"] for row in rows) == 173 * MB
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_view_page_markdown_and_json_have_the_same_parts(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    reading(builder, 500)
    answer = profile()
    text = StringIO()
    show(answer, Console(file=text, width=120))
    view = text.getvalue()
    section = SECTIONS["where"]
    assert section.rows is not None
    page = [table_row(row, {}) for row in section.rows(answer) or ()]
    assert {row["part"]: row["bytes"] for row in page} == {
        "live blocks and mappings": 50 * MB,
        "free, kept by malloc": 60 * MB,
        "free, kept by pymalloc": 20 * MB,
        "pages of files": 18 * MB,
        "shared memory": 20 * MB,
        "other": 5 * MB,
    }
    assert all(row["part"] in view for row in page)
    assert "! kept: 60 MB free, and not given back by malloc" in view
    markdown = summary(answer)
    assert f"where the memory is: {where_sentence(answer)}" in markdown
    assert "memory, kept: 60 MB free, and not given back by malloc | helps: " in markdown
    told = json.loads("".join(pieces(document(answer))))["memory"]["where"]
    assert [told[part] for part in PARTS] == parts(where(answer).whole)
    assert [(each["allocator"], each["bytes"]) for each in told["kept_by"]] == [
        ("malloc", 60 * MB),
        ("pymalloc", 20 * MB),
    ]


def test_recordings_without_readings_say_nothing(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    answer = profile()
    assert answer.memory is not None
    assert (answer.memory.where, where_sentence(answer), where_rows(answer)) == (None, None, None)


def test_a_document_has_names_for_all(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    reading(builder, 500)
    found = where(profile())
    told = found.document()
    assert {name: told[name] for name in asdict(found.whole)} == asdict(found.whole)
    assert told["processes"][0]["process"] == 0
    assert told["timeline"][0]["kept_bytes"] == 80 * MB
    assert told["verdicts"][0]["verdict"] == "kept"


def test_of_many_readings_some_are_taken_and_the_last(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    for number in range(1, 1001):
        builder.memory_part("heap", number, number * MB)
        builder.memory("tick", number, number * MB, obj_allocated_bytes=MB)
    found = where(profile())
    assert len(found.timeline) == 100
    assert found.timeline["resident_bytes"][-1] == found.whole.resident_bytes == 1000 * MB
    assert (found.timeline["live_bytes"] == found.timeline["resident_bytes"]).all()


@pytest.mark.parametrize("first_ms", [400, 900])
def test_what_is_read_while_the_interpreter_ends_counts_where_nothing_else_was(
    builder: Builder, profile: Answer, first_ms: int
) -> None:
    builder.rows["processes"][0]["exiting_ns"] = START + 800 * MS
    builder.memory("start", 0, 0)
    for ms, held in ((first_ms, 200 * MB), (950, 20 * MB)):
        builder.memory_part("heap", ms, held)
        builder.memory("tick", ms, held, obj_allocated_bytes=held if ms == first_ms else 0)
    builder.memory("end", 1000, 20 * MB)
    found = where(profile())
    assert found.whole.resident_bytes == (200 if first_ms < 800 else 20) * MB
    assert len(found.timeline) == (1 if first_ms < 800 else 2)


def test_neighbours_without_a_known_caller_are_added_up(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    for _ in range(2):
        builder.memory_part("reserved", 500, 20 * MB)
    builder.memory("tick", 500, 40 * MB, mapped_allocated_bytes=40 * MB)
    assert parts(where(profile()).whole) == [40 * MB, 0, 0, 0, 0]


def chain(builder: Builder, number: int, stack: int, *links: tuple[int, ReferrerRole, str | None, str | None]) -> None:
    builder.parameters["referrers"] = True
    for link, role, type_, name in links:
        builder.rows["referrers"].append(
            {
                "time_ns": START + 900 * MS,
                "process": 0,
                "chain": number,
                "link": link,
                "role": role,
                "type": type_,
                "name": name,
                "size_bytes": MB,
                "stack": stack,
            }
        )


def test_chains_of_a_line_that_differ_in_indices_are_one(builder: Builder, profile: Answer) -> None:
    code = builder.code(builder.file("/srv/a.py"))
    kept, lost = (builder.stack((code, line)) for line in range(2))
    builder.memory("start", 0, 0)
    builder.block(kept, 3 * MB, 100)
    builder.memory("end", 1000, 3 * MB, obj_allocated_bytes=3 * MB)
    module, frame, thing = ReferrerRole.MODULE, ReferrerRole.FRAME, ReferrerRole.OBJECT
    for number in range(3):
        chain(
            builder,
            number,
            kept,
            (0, module, "module", "app"),
            (2, thing, "Cache", ".cache"),
            (3, thing, "collections.deque", None),
            (4, thing, "bytes", f"['it's {number}]']"),
        )
    chain(builder, 3, kept, (0, frame, "serve", "rows"), (1, thing, "list", None), (2, thing, "bytes", "[7]"))
    chain(builder, 4, lost, (0, ReferrerRole.UNREACHED, None, None))
    answer = profile()
    assert answer.memory is not None
    assert answer.memory.referrers is not None
    found = {(row["line"], row["blocks"], row["bytes"], row["holder"]) for row in answer.memory.referrers.rows()}
    assert found == {
        (1, 3, 3 * MB, "app.cache > collections.deque[...]"),
        (1, 1, MB, "rows in serve()[...]"),
        (2, 1, MB, None),
    }
    shown = referrer_rows(answer)
    assert shown is not None
    assert [row["place"] for row in shown] == ["a.py:1", "a.py:1", "a.py:2"]
    assert shown[0]["held"] == 3 * MB
    assert "native code" in shown[-1]["kept_by"]


def test_nothing_is_told_of_referrers_that_were_not_searched(builder: Builder, profile: Answer) -> None:
    builder.memory("start", 0, 0)
    answer = profile()
    assert answer.memory is not None
    assert (answer.memory.referrers, referrer_rows(answer)) == (None, None)


@pytest.mark.parametrize(("status", "later"), [(-9, 27 * MB), (0, None)])
def test_what_came_between_the_last_reading_and_a_kill(
    builder: Builder, profile: Answer, status: int, later: int | None
) -> None:
    """No more than the kernel's own mark of the largest resident set allows."""
    builder.memory("start", 0, 0)
    reading(builder, 500)
    builder.rows["processes"][0] |= {"exit_status": status, "max_resident_bytes": 200 * MB}
    answer = profile()
    assert where(answer).whole.later_at_most_bytes == later
    assert ("at most 27 MB more" in (where_sentence(answer) or "")) == (later is not None)
