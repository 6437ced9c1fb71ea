"""Memory of libraries that bring an allocator of their own: what they hold, by line, and what they release."""

import importlib.util
from pathlib import Path

import pytest

from oracle import support
from oracle.conftest import Recorder
from oracle.memory import BLOCK_MEAN, check_lines, line_bytes, rows, window_bytes
from tachograph.format.enumerations import DOMAINS

pytestmark = [pytest.mark.native, pytest.mark.quiet]
"""Which line has touched pages is looked at beside the program: where a processor is long in coming, the next line gets
what the last one touched.
"""

CASES = [
    ("pyarrow", "mimalloc"),
    pytest.param(("pyarrow", "jemalloc"), marks=pytest.mark.slow),
    pytest.param(("pyarrow", "system"), marks=pytest.mark.slow),
    ("polars",),
    ("duckdb", "1"),
    pytest.param(("duckdb", "2"), marks=pytest.mark.slow),
    ("numpy",),
]


def pool_there(library: str, name: str) -> bool:
    if library != "pyarrow":
        return True
    import pyarrow as pa

    return name in pa.supported_memory_backends()


@pytest.fixture(params=CASES, ids="-".join)
def run(request: pytest.FixtureRequest, recorded: Recorder) -> support.Run:
    library, *rest = request.param
    if importlib.util.find_spec(library) is None or not all(pool_there(library, name) for name in rest):
        pytest.skip(f"no {' '.join(request.param)}")
    return recorded("own_allocators.py", library, *rest)


def test_what_is_held_is_in_the_footprint(run: support.Run) -> None:
    allocated, freed = window_bytes(run, "held", *DOMAINS)
    assert allocated - freed == pytest.approx(run.truth["facts"]["whole"], rel=0.02)


def test_what_is_released_leaves_the_footprint(run: support.Run) -> None:
    allocated, freed = window_bytes(run, "freed", *DOMAINS)
    released = run.truth["facts"].get("freed", run.truth["sizes"]["dropped"])
    assert freed - allocated == pytest.approx(released, rel=0.02)


def test_ledger_says_that_an_allocator_is_seen_from_outside(run: support.Run) -> None:
    assert run.loss("allocator_pages") == int(run.truth["facts"]["own_allocator"])


def of_other_threads(run: support.Run, key: str) -> float:
    """What threads of the library allocated through malloc: they have no line."""
    return float(sum(row[key] for row in run.report["lines"] if row["line"] is None and ".so" in row["function"]))


@pytest.fixture
def lines_known(request: pytest.FixtureRequest) -> None:
    """A known fault: duckdb allocates and releases much while a line runs, and what stays of it is sampled.

    Of 28 of its lines in 14 recordings beside other work, three were more than 2 % off, at most 3 %.
    """
    if "duckdb" in request.node.name:
        request.applymarker(pytest.mark.xfail(reason="duckdb's lines may be off by more than 2 %", strict=False))


def test_intervals_of_lines_hold_it(run: support.Run) -> None:
    others = of_other_threads(run, "live_at_peak_bytes") + 4 * 4096  # large blocks are exact, in whole pages
    for name, true in run.truth["sizes"].items():
        low, high = (line_bytes(run, f"live_at_peak_bytes_{end}", name) for end in ("low", "high"))
        assert low - others <= true <= high + others, name


@pytest.mark.usefixtures("lines_known")
def test_lines_have_what_they_hold(run: support.Run) -> None:
    others = of_other_threads(run, "live_at_peak_bytes")
    assert others < 0.05 * run.truth["facts"]["whole"]
    check_lines(run, "live_at_peak_bytes", list(run.truth["sizes"]), rel=0.02, extra=others)


@pytest.mark.usefixtures("lines_known")
def test_lines_release_it(run: support.Run) -> None:
    kept = [name for name in run.truth["sizes"] if name != "dropped"]
    check_lines(run, "live_at_end_bytes", kept, rel=0.02, extra=of_other_threads(run, "live_at_peak_bytes"))
    assert line_bytes(run, "live_at_end_bytes", "dropped") <= 0.02 * run.truth["sizes"]["dropped"]


def test_what_is_mapped_and_never_touched_is_not_held(recorded: Recorder) -> None:
    """OpenBLAS maps 32 MiB for each of its threads when numpy is imported, and needs none of it here."""
    run = recorded("own_allocators.py", "numpy")
    memory = run.report["memory"]
    held = memory["peak_bytes"] - run.truth["facts"]["whole"] - run.truth["fence"]
    assert held < 24 << 20
    assert memory["resident_peak_bytes"] > memory["peak_bytes"] - run.truth["fence"]  # libraries' files as well


def test_each_line_has_the_pages_that_it_touched(recorded: Recorder, allocations: Path) -> None:
    """Also where native code calls malloc all the time, and where a thread of the library touches them.

    Each line touches them in four runs of pages. A run is off by a stretch of the sampling at each of its ends.
    """
    run = recorded("reserved_lines.py", str(allocations))
    check_lines(run, "live_at_end_bytes", list(run.truth["sizes"]), rel=0, extra=4 * 2 * BLOCK_MEAN)


def test_what_grows_for_long_is_charged_to_the_line_that_touches_it(recorded: Recorder, allocations: Path) -> None:
    run = recorded("reserved_growth.py", str(allocations))
    mapped = [row for row in rows(run.recording, "allocations") if row["domain"] == DOMAINS.index("mapped")]
    assert not [row for row in mapped if row["stack"] is None]
    check_lines(run, "live_at_end_bytes", ["growth"], rel=0, extra=2 * BLOCK_MEAN)
