"""What is reported as a leak, and what is not: shapes of growth whose answer is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tachograph.analyzer import Profile, Question, Recording, build_profile
from tachograph.analyzer.conclusions.leaks import Growth, Histories, PaperScore, Verdicts
from tachograph.analyzer.conclusions.leaks.leak_definitions import likelihood
from tachograph.format import FormatError
from unit.analyzer.recordings import MS, Builder, table

KB, MB = 1000, 1_000_000
SECONDS = 10

Block = tuple[float, float | None]
"""Birth and death in ms; None: kept."""


def leak() -> Iterator[Block]:
    """Something is kept every 50 ms, for ever."""
    for at in range(0, 10_000, 50):
        yield at, None


def late_leak() -> Iterator[Block]:
    """The leak begins when half of the run is over."""
    for at in range(5000, 10_000, 50):
        yield at, None


def leak_among_temporaries() -> Iterator[Block]:
    """Most of what the line makes is given back at once."""
    for at in range(0, 10_000, 50):
        yield at, None
        for more in range(1, 8):
            yield at + more, at + more + 20


def cache_that_fills_up() -> Iterator[Block]:
    """It grows for half of the run, and then it is full."""
    for at in range(0, 5000, 25):
        yield at, None


def cache_that_replaces() -> Iterator[Block]:
    """A cache of 60 entries; the oldest makes room."""
    for at in range(0, 10_000, 50):
        yield at, at + 3000 if at + 3000 < 10_000 else None


def random_replacement() -> Iterator[Block]:
    """Entries are thrown out by chance, after 2 s on average."""
    random = np.random.default_rng(3)
    for at in range(0, 10_000, 20):
        death = at + random.exponential(2000)
        yield at, death if death < 10_000 else None


def sawtooth() -> Iterator[Block]:
    """A buffer that is emptied every 3 s."""
    for at in range(0, 10_000, 30):
        death = (at // 3000 + 1) * 3000
        yield at, death if death < 10_000 else None


def startup() -> Iterator[Block]:
    """What is built in the first tenth is there to stay."""
    for at in range(0, 1000, 5):
        yield at, None


def temporaries() -> Iterator[Block]:
    for at in range(0, 10_000, 20):
        yield at, at + 15 if at + 15 < 10_000 else None


def growing_in_the_tail() -> Iterator[Block]:
    """The young ones at the end would be given back, if the run went on."""
    for at in range(9000, 10_000, 5):
        yield at, None


def lru() -> Iterator[Block]:
    """What is used again stays, the rest makes room: half of it after 1.5 s, and half after 4 s."""
    for number, at in enumerate(range(0, 10_000, 25)):
        death = at + (1500 if number % 2 else 4000)
        yield at, death if death < 10_000 else None


def two_levels() -> Iterator[Block]:
    """Every third entry is promoted from the young ones to the old ones."""
    for number, at in enumerate(range(0, 10_000, 20)):
        death = at + (3500 if number % 3 == 0 else 1200)
        yield at, death if death < 10_000 else None


def batches() -> Iterator[Block]:
    """Forty blocks at once, each batch in place of the last one."""
    for at in range(0, 10_000, 1600):
        for number in range(40):
            yield at + number, at + 1600 + number if at + 1600 < 10_000 else None


def emptied_by_half() -> Iterator[Block]:
    """When 80 entries are there, the older half of them goes."""
    held: list[float] = []
    for at in range(0, 10_000, 30):
        held.append(at)
        if len(held) == 80:
            yield from ((born, at + 1.0) for born in held[:40])
            held = held[40:]
    yield from ((born, None) for born in held)


def growing_limit() -> Iterator[Block]:
    """A cache that may hold more and more: its oldest entry makes room for all but one in three."""
    held: list[float] = []
    for number, at in enumerate(range(0, 10_000, 10)):
        held.append(at)
        if number > 150 and number % 3:
            yield held.pop(0), at + 1.0
    yield from ((born, None) for born in held)


def one_drop() -> Iterator[Block]:
    """Half of what has been gathered goes, once."""
    for at in range(0, 10_000, 25):
        yield at, 6000 if at < 3000 else None


def slow_leak() -> Iterator[Block]:
    """Two in a second."""
    for at in range(0, 10_000, 450):
        yield at, None


def leak_beside_a_cache() -> Iterator[Block]:
    """A cache of 40 entries, one in five of which is never removed."""
    for number, at in enumerate(range(0, 10_000, 25)):
        yield at, at + 1000 if number % 5 and at + 1000 < 10_000 else None


CACHES = (cache_that_replaces, random_replacement, lru, two_levels, emptied_by_half)
UNBOUNDED = (growing_limit, one_drop)
LEAKS = (leak, late_leak, leak_among_temporaries)
SLOW = (slow_leak,)
INNOCENT = (
    cache_that_fills_up,
    cache_that_replaces,
    random_replacement,
    sawtooth,
    startup,
    temporaries,
    growing_in_the_tail,
    lru,
    two_levels,
    batches,
    leak_beside_a_cache,
    emptied_by_half,
    *UNBOUNDED,
)


def record(builder: Builder, shapes: dict[int, list[Block]], size: int = 500 * KB) -> None:
    """Each shape on a line of its own, with a row of the counters every 100 ms."""
    events = []
    for stack, blocks in shapes.items():
        for birth, death in blocks:
            builder.block(stack, size, birth, death)
            events.append((birth, size))
            if death is not None:
                events.append((death, -size))
    builder.memory("start", 0, 0)
    times = np.array([time for time, _ in events])
    sizes = np.array([change for _, change in events])
    for at in range(100, 10_001, 100):
        now = (times > at - 100) & (times <= at) | ((times == 0) & (at == 100))
        flows = {
            "obj_allocated_bytes": int(sizes[now & (sizes > 0)].sum()),
            "obj_freed_bytes": -int(sizes[now & (sizes < 0)].sum()),
        }
        builder.memory("tick" if at < 10_000 else "end", at, int(sizes[times <= at].sum()), **flows)


def stacks(builder: Builder, count: int) -> list[int]:
    code = builder.code(builder.file("/srv/a.py", "\n".join(f"line {number}" for number in range(1, 101))))
    return [builder.stack((code, line)) for line in range(count)]


@pytest.mark.parametrize("shape", LEAKS)
def test_leaks_are_found_with_their_rate(
    builder: Builder, profile: Callable[..., Profile], shape: Callable[[], Iterator[Block]]
) -> None:
    (here,) = stacks(builder, 1)
    record(builder, {here: list(shape())})
    answer = profile()
    assert answer.leaks is not None
    assert table(answer.leaks, "file", "line", "function", "source") == [("/srv/a.py", 1, "f", "line 1")]
    found = answer.leaks.iloc[0]
    # 500 KB every 50 ms, wherever it begins.
    assert found["rate_bytes_per_s"] == pytest.approx(10 * MB, rel=1e-6)
    assert found["rate_low"] <= found["rate_bytes_per_s"] <= found["rate_high"]
    assert found["likelihood"] >= 0.95
    assert found["path"] == ["f (/srv/a.py:1)"]
    assert found["path_share"] == 1.0
    lines = answer.lines[answer.lines["line"] == 1]
    assert lines["leak_rate_bytes_per_s"].iloc[0] == found["rate_bytes_per_s"]
    assert answer.functions["leak_rate_bytes_per_s"].sum() == found["rate_bytes_per_s"]
    assert answer.files["leak_likelihood"].max() == found["likelihood"]


@pytest.mark.parametrize("shape", INNOCENT)
def test_innocent_shapes_are_not_reported(
    builder: Builder, profile: Callable[..., Profile], shape: Callable[[], Iterator[Block]]
) -> None:
    (here,) = stacks(builder, 1)
    record(builder, {here: list(shape())})
    answer = profile()
    assert answer.leaks is not None
    assert answer.leaks.empty
    assert (answer.lines["leak_rate_bytes_per_s"] == 0).all()


@pytest.mark.parametrize(
    ("waits", "leaks"),
    [
        ([{"target": 7}], False),  # for a processor
        ([{"stack": None, "stack_state": 5}], False),  # the process was stopped: nothing was seen
        ([{"target": 2}], True),  # for a socket, as servers do
        ([{"target": 7, "thread": 1}], True),  # another thread
        ([{"target": 7, "off_cpu_ns": 5_000 * MS}], True),  # half of the time it ran
    ],
)
def test_time_in_which_others_ran_is_no_evidence(
    builder: Builder, profile: Callable[..., Profile], waits: list[dict[str, int]], leaks: bool
) -> None:
    """What is kept every 50 ms, by a program that had less than a second in ten for itself."""
    (here,) = stacks(builder, 1)
    builder.thread("another")
    record(builder, {here: list(leak())})
    for values in waits:
        builder.wait(**{"stack": here, "start_ms": 300, "end_ms": 9_900, **values})
    answer = profile()
    assert answer.leaks is not None
    assert answer.leaks.empty != leaks


def verdicts_of(answer: Profile) -> list[tuple[str, int | None]]:
    memory = answer.memory
    assert memory is not None
    assert memory.where is not None
    return [(each.verdict, each.line) for each in memory.where.verdicts if each.allocator is None]


@pytest.mark.parametrize("shape", [*CACHES, *UNBOUNDED, cache_that_fills_up, sawtooth, batches, startup, *LEAKS, *SLOW])
def test_what_is_replaced_and_stays_level_is_a_cache(
    builder: Builder, profile: Callable[..., Profile], shape: Callable[[], Iterator[Block]]
) -> None:
    (here,) = stacks(builder, 1)
    record(builder, {here: list(shape())})
    name = "cache" if shape in CACHES else "leak" if shape in (*LEAKS, *SLOW) else None
    builder.memory_part("heap", 9900, 100 * MB)
    assert verdicts_of(profile()) == ([] if name is None else [(name, 1)])


def reallocated(sizes: list[tuple[float, float]]) -> list[tuple[float, float, float | None]]:
    """Blocks, each of which goes on as the next one: birth, size, death; the last one lives."""
    times = [at for at, _ in sizes] + [None]
    return [(at, size, times[number + 1]) for number, (at, size) in enumerate(sizes)]


def appended(until: float = 10_000) -> list[tuple[float, float]]:
    """A list that grows at 8 MB/s, an eighth of itself at a time."""
    sizes, size = [], 1.0 * MB
    while size / 8 / 1000 < until:
        sizes.append((size / 8 / 1000, size))
        size *= 1.125
    return sizes


def extended() -> list[tuple[float, float]]:
    """A log in memory that grows by 1 MB every 0.2 s."""
    return [(200.0 * number, number * MB) for number in range(1, 50)]


def shrunk() -> list[tuple[float, float]]:
    """A buffer that is filled and cut by turns."""
    return [(100.0 * number, MB * (1 + number % 20)) for number in range(1, 99)]


@pytest.mark.parametrize(
    ("sizes", "leaks"),
    [(appended(), True), (extended(), True), (appended(5000), False), (shrunk(), False), (appended()[-9:], False)],
    ids=["appended", "extended", "full", "cut", "few steps"],
)
def test_one_block_that_only_grows_is_a_leak(
    builder: Builder, profile: Callable[..., Profile], sizes: list[tuple[float, float]], leaks: bool
) -> None:
    (here,) = stacks(builder, 1)
    builder.memory("start", 0, 0)
    held = 0
    for birth, size, death in reallocated(sizes):
        builder.block(here, round(size), birth, death)
        flows = {"obj_allocated_bytes": round(size), "obj_freed_bytes": held}
        held = round(size)
        builder.memory("tick", birth, held, **flows)
    builder.memory("end", 10_000, held)
    builder.memory_part("heap", 9900, 100 * MB)
    answer = profile()
    found = answer.leaks
    assert found is not None
    assert found["line"].tolist() == ([1] if leaks else [])
    if leaks:
        assert found["leaked_bytes"].iloc[0] == held
        assert found["rate_bytes_per_s"].iloc[0] == pytest.approx(held / 10, rel=0.05)
        assert verdicts_of(answer) == [("leak", 1)]


def test_a_leak_beside_innocents(builder: Builder, profile: Callable[..., Profile]) -> None:
    shapes = (leak, *INNOCENT)
    places = stacks(builder, len(shapes))
    record(builder, {place: list(shape()) for place, shape in zip(places, shapes, strict=True)})
    leaks = profile().leaks
    assert leaks is not None
    assert leaks["line"].tolist() == [1]


def test_a_helper_that_only_one_caller_leaks(builder: Builder, profile: Callable[..., Profile]) -> None:
    file = builder.file("/srv/a.py")
    main, helper = builder.code(file, "main", 1), builder.code(file, "helper", 50)
    guilty, innocent = (builder.stack((main, line), (helper, 0)) for line in (3, 7))
    record(builder, {guilty: list(leak()), innocent: list(cache_that_replaces()) * 3})
    leaks = profile().leaks
    assert leaks is not None
    assert table(leaks, "line", "path_share") == [(50, 1.0)]
    assert leaks["path"].iloc[0] == ["main (/srv/a.py:4)", "helper (/srv/a.py:50)"]
    assert leaks["rate_bytes_per_s"].iloc[0] == pytest.approx(10 * MB, rel=0.05)


def test_a_container_that_moves_is_no_free(builder: Builder, profile: Callable[..., Profile]) -> None:
    (here,) = stacks(builder, 1)
    storage: list[Block] = []
    record(builder, {here: list(leak())})
    size, at = 200.0 * KB, 0.0
    while at < 10_000:
        after = at * 1.125 + 60
        builder.block(here, round(size), at, after if after < 10_000 else None)
        storage.append((at, after))
        size, at = size * 1.125, after
    assert len(storage) > 15
    leaks = profile().leaks
    assert leaks is not None
    assert leaks["line"].tolist() == [1]
    assert leaks["frees"].tolist() == [0]


def test_a_container_is_known_by_its_size(builder: Builder, profile: Callable[..., Profile]) -> None:
    """A dict that grows: the larger table that it moved to may not be in the sample."""
    (here,) = stacks(builder, 1)
    record(builder, {here: list(leak())})
    for birth in (100, 1500, 3000, 5000):
        builder.block(here, 8 * MB, birth, birth + 2000)
    leaks = profile().leaks
    assert leaks is not None
    assert table(leaks, "line", "frees") == [(1, 0)]


def test_what_importing_leaves_behind_is_no_leak(builder: Builder, profile: Callable[..., Profile]) -> None:
    mine = builder.code(builder.file("/srv/a.py"))
    system = builder.code(builder.file("<frozen importlib._bootstrap>"), "_load")
    module = builder.code(builder.file("/srv/plugin.py"), "<module>")
    record(builder, {builder.stack((mine, 0), (system, 0), (module, 0)): list(leak())})
    leaks = profile().leaks
    assert leaks is not None
    assert leaks.empty


def test_a_native_thread_that_forgets_to_free(builder: Builder, profile: Callable[..., Profile]) -> None:
    for at, _ in leak():
        builder.block(None, 500 * KB, at, native_frame=2, thread=None, domain=0)
    builder.memory("start", 0, 0)
    for step in range(1, 101):
        builder.memory("tick", step * 100, step * MB, native_allocated_bytes=MB)
    leaks = profile().leaks
    assert leaks is not None
    assert table(leaks, "file", "function", "native") == [(None, "<deflate in libz.so>", "deflate in libz.so")]


def test_windows(builder: Builder, profile: Callable[..., Profile]) -> None:
    (here,) = stacks(builder, 1)
    record(builder, {here: list(cache_that_fills_up())})
    growing = profile(end_s=4).leaks
    assert growing is not None
    assert growing["line"].tolist() == [1]  # nothing in this window tells it from a leak
    full = profile(start_s=4).leaks
    assert full is not None
    assert full.empty


@pytest.mark.parametrize(("end_s", "lines"), [(0.9, []), (2, [1])])
def test_a_verdict_takes_time(
    builder: Builder, profile: Callable[..., Profile], end_s: float, lines: list[int]
) -> None:
    """What is built up in less than a second is no evidence of what comes later."""
    (here,) = stacks(builder, 1)
    record(builder, {here: [(at, None) for at in range(0, 10_000, 10)]})
    leaks = profile(end_s=end_s).leaks
    assert leaks is not None
    assert leaks["line"].tolist() == lines


def test_programs_that_do_not_grow_have_no_leaks(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two = stacks(builder, 2)
    shrinking: list[Block] = [(0.0, float(at)) for at in range(25, 10_000, 25)]
    record(builder, {one: list(leak()), two: shrinking})
    leaks = profile().leaks
    assert leaks is not None
    assert leaks.empty


def test_the_likelihood_of_the_paper() -> None:
    mallocs, frees = np.array([18.0, 17.0, 100.0, 100.0, 0.0, 10.0]), np.array([0.0, 0.0, 0.0, 50.0, 0.0, 10.0])
    found = likelihood(mallocs, frees)
    # 1 - (frees + 1) / (mallocs - frees + 2), clipped: eighteen are enough, one fewer is not.
    assert found[:4] == pytest.approx([0.95, 1 - 1 / 19, 1 - 1 / 102, 1 - 51 / 52])
    assert np.isnan(found[4])
    assert found[5] == 0.0


def test_the_definition_of_the_paper(builder: Builder, profile: Callable[..., Profile]) -> None:
    one, two, three = stacks(builder, 3)
    record(builder, {one: list(leak()), two: list(cache_that_fills_up()), three: list(leak_among_temporaries())})
    answer = profile(leaks="paper")
    assert answer.leaks is not None
    # It takes a cache that has filled up for a leak, and misses one among temporaries.
    assert sorted(answer.leaks["line"].tolist()) == [1, 2]
    with pytest.raises(FormatError, match="no definition of leaks named 'x': choose from default, paper"):
        profile(leaks="x")


def test_a_definition_of_ones_own(builder: Builder) -> None:
    class Everything:
        name = "everything"

        def judge(self, histories: Histories) -> Verdicts:
            verdicts = PaperScore().judge(histories)
            return Verdicts(
                **{name: getattr(verdicts, name) for name in Verdicts.__slots__ if name != "leaking"},
                leaking=verdicts.blocks > 0,
            )

    (here,) = stacks(builder, 1)
    record(builder, {here: list(startup())})
    builder.write()
    with Recording(builder.path) as recording:
        leaks = build_profile(recording, Question(), Everything()).leaks
    assert leaks is not None
    assert leaks["line"].tolist() == [1]


def test_definitions_may_be_adjusted() -> None:
    assert Growth(tail=0.2).tail == 0.2
    assert (Growth().name, PaperScore().name) == ("default", "paper")
