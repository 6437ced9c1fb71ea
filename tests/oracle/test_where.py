"""Where the memory is, against programs that know what lives, what allocators keep, and what is of files or shared."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from oracle import support
from oracle.memory import line_bytes, rows
from oracle.support import marked
from oracle.test_native import needs_numpy

pytestmark = pytest.mark.native

MB = 1 << 20
PARTS = ("live_bytes", "kept_bytes", "file_bytes", "shared_bytes", "other_bytes")
KINDS = (
    "malloc_keeps",
    "heaps_of_threads_keep",
    "pools_keep",
    "blocks_live",
    "large_blocks_live",
    "anonymous_mapping",
    "shared",
    "mapped_file",
)
WITH_LIBRARIES = ("arrays_live", "arrow_table")
SLOW_KINDS = (
    "shared_anonymous",
    "frames_live",
    "malloc_pinned",
    "vectors_of_cpp",
    "arrow_system",
    "arrow_jemalloc",
    "polars_frame",
    "polars_keeps",
    "duckdb_table",
    "duckdb_keeps",
)
NEEDED = {
    "frames_live": "pandas",
    "arrow_system": "pyarrow",
    "arrow_jemalloc": "pyarrow",
    "polars_frame": "polars",
    "polars_keeps": "polars",
    "duckdb_table": "duckdb",
    "duckdb_keeps": "duckdb",
}
COPIES = ("0", "60")
TOGETHER = 4
"""Programs that are recorded beside each other: they mostly wait for the recorder to look at them."""

Find = Callable[[str], support.Run]
every_kind = pytest.mark.parametrize(
    "kind",
    [
        *KINDS,
        *(pytest.param(kind, marks=needs_numpy) for kind in WITH_LIBRARIES),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in SLOW_KINDS),
    ],
)


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Find]:
    """``found(name)``: the recorded run of a kind, or of as many copied megabytes. All that tests need run at once."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    needed = list(dict.fromkeys(name for item in request.session.items for name in names_of(item)))
    folders = {name: tmp_path_factory.mktemp(name) for name in needed}

    def run(name: str) -> support.Run:
        program = "forked_copies.py" if name in COPIES else "where_held.py"
        more = [vectors(folders[name])] if name == "vectors_of_cpp" else []
        return support.record(folders[name], program, name, *more)

    with ThreadPoolExecutor(TOGETHER) as executor:
        runs = {name: executor.submit(run, name) for name in needed if there(name)}
        yield lambda name: runs[name].result() if there(name) else pytest.skip(f"no {NEEDED[name]}")


def there(kind: str) -> bool:
    if importlib.util.find_spec(NEEDED.get(kind, "sys")) is None:
        return False
    if kind != "arrow_jemalloc":
        return True
    import pyarrow as pa

    return "jemalloc" in pa.supported_memory_backends()


def vectors(folder: Path) -> str:
    built = support.compile_library(support.NATIVE / "vectors.cpp", folder, "-Wl,--no-as-needed", "-lstdc++")
    return "" if built is None else str(built)


def names_of(item: pytest.Item) -> list[str]:
    """The programs that a test asks for, which are its parameters."""
    if item.path.name != "test_where.py" or any(mark.args[0] for mark in item.iter_markers("skipif")):
        return []
    parameters = getattr(item, "callspec", None)
    values = [] if parameters is None else [parameters.params.get(name) for name in ("kind", "megabytes")]
    return [str(value) for value in values if value is not None]


def where_of(run: support.Run) -> dict[str, Any]:
    where = run.report["memory"]["where"]
    assert where is not None
    return dict(where)


def of_program(run: support.Run) -> dict[str, Any]:
    """The division of the first process: Python starts another one for shared memory."""
    (division,) = (row for row in where_of(run)["processes"] if row["process"] == 0)
    return dict(division)


def grown(run: support.Run, column: str) -> float:
    """By how much a part has grown since the program began its work: the last reading less the last one before."""
    start_ns = min(row["start_ns"] for row in rows(run.recording, "processes"))
    ready_s, begun_s = ((run.truth["facts"][name] - start_ns) / 1e9 for name in ("ready_ns", "before_ns"))
    timeline = [row for row in where_of(run)["timeline"] if row["process"] == 0]
    before = [row for row in timeline if row["time_s"] <= begun_s]
    if before[-1]["time_s"] < ready_s:
        pytest.skip("the machine is so busy that nothing was read in time")
    return float(timeline[-1][column] - before[-1][column])


@every_kind
def test_parts_add_up_to_what_the_kernel_says(found: Find, kind: str) -> None:
    run = found(kind)
    where = of_program(run)
    assert sum(where[part] for part in PARTS) == pytest.approx(run.truth["facts"]["resident"], rel=0.02)
    assert sum(where[part] for part in PARTS) == pytest.approx(where["resident_bytes"], rel=1e-6)
    assert where["unexplained_bytes"] <= 0.05 * where["resident_bytes"]


@every_kind
def test_each_part_is_what_the_program_says(found: Find, kind: str) -> None:
    """Within 5 % of what the program made of memory in all, as one part is often next to nothing."""
    run = found(kind)
    sizes = run.truth["sizes"]
    error = 0.05 * sum(sizes.values())
    assert grown(run, "live_bytes") == pytest.approx(sizes.get("live", 0), abs=error)
    kept = sum(size for name, size in sizes.items() if name in ("kept_malloc", "kept_pymalloc", "kept_jemalloc"))
    assert grown(run, "kept_bytes") == pytest.approx(kept, abs=error)
    assert grown(run, "file_bytes") == pytest.approx(sizes.get("files", 0), abs=error)
    assert grown(run, "shared_bytes") == pytest.approx(sizes.get("shared", 0), abs=error)
    assert grown(run, "other_bytes") == pytest.approx(0, abs=error)


@pytest.mark.parametrize(
    ("kind", "allocator"),
    [("malloc_keeps", "malloc"), ("heaps_of_threads_keep", "malloc"), ("pools_keep", "pymalloc")],
)
def test_the_allocator_that_keeps_it_is_named(found: Find, kind: str, allocator: str) -> None:
    run = found(kind)
    where = where_of(run)
    kept = {each["allocator"]: each["bytes"] for each in where["kept_by"]}
    assert kept[allocator] == pytest.approx(run.truth["sizes"][f"kept_{allocator}"], rel=0.05)
    judged = [(each["verdict"], each["allocator"]) for each in where_of(run)["verdicts"]]
    assert ("kept", allocator) in judged
    assert (("fragmented", "pymalloc") in judged) == (kind == "pools_keep")
    assert "leak" not in dict(judged)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["malloc_pinned"])
def test_pages_of_malloc_that_few_blocks_pin(found: Find, kind: str) -> None:
    """As much as the program has released, by the blocks that it has left, on their line."""
    run = found(kind)
    (fragmented,) = (each for each in where_of(run)["verdicts"] if each["verdict"] == "fragmented")
    assert fragmented["allocator"] == "malloc"
    assert fragmented["bytes"] == pytest.approx(run.truth["sizes"]["kept_malloc"], rel=0.05)
    assert fragmented["pinned_by_bytes"] == pytest.approx(run.truth["facts"]["pinning"], rel=0.05)
    assert {fragmented["line"]} == marked(run.program, "pinning")


@needs_numpy
@pytest.mark.parametrize("kind", ["arrow_keeps"])
def test_what_the_allocator_of_pyarrow_keeps(found: Find, kind: str) -> None:
    """By pyarrow's own statistics."""
    run = found(kind)
    where = of_program(run)
    (kept,) = (each for each in where["kept_by"] if "pyarrow" in each["allocator"])
    live = run.truth["sizes"]["live"]
    if kept["resident_bytes"] < 100 * MB:
        pytest.skip("this pyarrow has given the pages back")
    assert kept["bytes"] == pytest.approx(kept["resident_bytes"] - live, abs=2 * MB)
    assert ("kept", kept["allocator"]) in [(each["verdict"], each["allocator"]) for each in where_of(run)["verdicts"]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["polars_keeps", "duckdb_keeps"])
def test_what_the_jemalloc_of_a_library_keeps(found: Find, kind: str) -> None:
    """By its own statistics, where the library does not export the function that has them as well."""
    run = found(kind)
    name = f"jemalloc of {kind.partition('_')[0]}"
    kept = {each["allocator"]: each["bytes"] for each in of_program(run)["kept_by"]}
    sizes = run.truth["sizes"]
    assert kept[name] == pytest.approx(sizes["kept_jemalloc"], abs=0.05 * sum(sizes.values()))
    assert ("kept", name) in [(each["verdict"], each["allocator"]) for each in where_of(run)["verdicts"]]


@pytest.mark.parametrize("kind", ["blocks_live", "large_blocks_live", "mapped_file", "shared"])
def test_there_is_no_verdict_where_allocators_keep_little(found: Find, kind: str) -> None:
    assert where_of(found(kind))["verdicts"] == []


@pytest.mark.parametrize("megabytes", [int(each) for each in COPIES])
def test_pages_copied_after_a_fork(found: Find, megabytes: int) -> None:
    run = found(str(megabytes))
    pids = {row["process"]: row["pid"] for row in run.report["processes"]}
    (child,) = (row for row in where_of(run)["processes"] if pids[row["process"]] == run.truth["facts"]["child"])
    assert child["copied_after_fork_bytes"] == pytest.approx(megabytes * MB, rel=0.05, abs=2 * MB)
    for part in ("proportional", "private"):
        assert child[f"{part}_bytes"] == pytest.approx(run.truth["facts"][part], rel=0.05)
    judged = [each["verdict"] for each in where_of(run)["verdicts"]]
    assert ("copied-after-fork" in judged) == (megabytes > 0)


@pytest.mark.parametrize("megabytes", [60])
def test_lines_have_the_pages_that_they_copied(found: Find, megabytes: int) -> None:
    """What is copied for a quarter of a second is in fifty samples. In a burst of two or three nothing is certain."""
    copied = line_bytes(found(str(megabytes)), "copied_after_fork_bytes", "copied")
    assert copied == pytest.approx(megabytes * MB, rel=0.05)
