"""Leaks are found within two seconds of leaking at 20 MB/s, and programs that do not leak are left in peace.

The programs are paced by the clock and mostly sleep: they are recorded beside each other.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from oracle import support
from oracle.support import marked

pytestmark = pytest.mark.native

WAYS = ("list", "cache", "library", "cycle")
INNOCENT = ("filled_cache", "sawtooth", "bounded_lru", "model", "pool", "interpreter", "slow_machine")
FURTHER_INNOCENT = ("interned", "window", "temporaries", "pipeline")
Find = Callable[[str], support.Run]


def needed(request: pytest.FixtureRequest, names: Sequence[str]) -> list[str]:
    """Those of the programs that tests of this run ask for, by their parameter."""
    calls = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    asked = {value for call in calls if call is not None for value in call.params.values()}
    return [name for name in names if name in asked]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, allocations: Path) -> Find:
    """``found(name)``: the recorded run of one of the programs."""
    folders = {name: tmp_path_factory.mktemp(name) for name in needed(request, (*WAYS, *INNOCENT, *FURTHER_INNOCENT))}

    def run(name: str) -> support.Run:
        if name in WAYS:
            return support.record(folders[name], "leaks.py", name, str(allocations))
        return support.record(folders[name], "innocents.py", name)

    with ThreadPoolExecutor(4) as executor:
        runs = {name: executor.submit(run, name) for name in folders}
    return lambda name: runs[name].result()


def leaks(run: support.Run) -> list[dict[str, Any]]:
    return list(run.report["leaks"])


@pytest.mark.parametrize("way", WAYS)
def test_leak_is_found_and_nothing_else(found: Find, way: str) -> None:
    run = found(way)
    lines = marked(run.program, way)
    reported = [(Path(leak["file"] or "").name, leak["line"]) for leak in leaks(run)]
    assert reported, "no leak was found"
    assert set(reported) <= {(run.program.name, line) for line in lines}
    assert all(leak["likelihood"] > 0.95 for leak in leaks(run))


@pytest.mark.parametrize("way", WAYS)
def test_leak_has_its_rate(found: Find, way: str) -> None:
    """Bytes per second of the time that it leaked, or of the whole run: between the two.

    Chance takes the estimate no further from that than half again its 95 % interval: three standard deviations.
    """
    run = found(way)
    begin, end = run.truth["facts"]["leaked_ns"]
    leaked = run.truth["sizes"]["leaked"]
    slow, fast = leaked / run.report["totals"]["wall_s"], leaked / ((end - begin) / 1e9)
    rate, low, high = (sum(leak[key] for leak in leaks(run)) for key in ("rate_bytes_per_s", "rate_low", "rate_high"))
    assert low <= rate <= high
    assert high - low < rate
    assert rate - 1.5 * (rate - low) <= fast
    assert rate + 1.5 * (high - rate) >= slow


@pytest.mark.parametrize("way", WAYS)
def test_line_of_the_leak_says_so(found: Find, way: str) -> None:
    run = found(way)
    likely = {
        (Path(row["file"] or "").name, row["line"])
        for row in run.report["lines"]
        if row["leak_likelihood"] is not None and row["leak_likelihood"] > 0.95
    }
    assert likely & {(run.program.name, line) for line in marked(run.program, way)}


@pytest.mark.parametrize(
    "name", [*INNOCENT, *(pytest.param(each, marks=pytest.mark.slow) for each in FURTHER_INNOCENT)]
)
def test_innocent_program_is_not_accused(found: Find, name: str) -> None:
    run = found(name)
    assert run.report["totals"]["allocated_bytes"] > 10_000_000 or name == "interpreter"
    assert leaks(run) == []


BOUNDED = (
    "dict_with_a_maximum",
    "ordered_lru",
    "ring",
    "limited_time",
    "replaced_at_random",
    "cached_function",
    "emptied_by_half",
)
SLOW = ("closures", "endless_deque", "exceptions", "log_in_memory", "numbers", "forked_worker")
RELEASED = ("collected_then_released",)


@pytest.fixture(scope="module")
def judged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Find:
    """``judged(name)``: the recorded run of one of the programs of ``bounded.py``."""
    folders = {name: tmp_path_factory.mktemp(name) for name in needed(request, (*BOUNDED, *SLOW, *RELEASED))}
    with ThreadPoolExecutor(5) as executor:
        runs = {name: executor.submit(support.record, folder, "bounded.py", name) for name, folder in folders.items()}
    return lambda name: runs[name].result()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BOUNDED, *SLOW])
def test_what_stays_level_is_a_cache_and_what_only_grows_a_leak(judged: Find, name: str) -> None:
    run = judged(name)
    lines = marked(run.program, name)
    where = run.report["memory"]["where"]
    found = {each["verdict"] for each in where["verdicts"] if each["line"] in lines}
    assert found == ({"cache"} if name in BOUNDED else {"leak"})
    assert bool(leaks(run)) == (name in SLOW)


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASED)
def test_what_grows_until_it_is_released_is_no_leak(judged: Find, name: str) -> None:
    run = judged(name)
    lines = marked(run.program, name)
    assert {each["verdict"] for each in run.report["memory"]["where"]["verdicts"] if each["line"] in lines} <= {"kept"}
    assert leaks(run) == []
