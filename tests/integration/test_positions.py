"""Where Python threads are while a native thread works: what tells which line asked for that work."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from integration import support

pytestmark = pytest.mark.native

PROGRAM = support.PROGRAMS / "pool.py"
SOURCE = Path(__file__).parent / "native" / "pool.c"
WHOLE = 0


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    folder = tmp_path_factory.mktemp("positions")
    library = support.compile_library(SOURCE, folder)
    if library is None:
        pytest.skip("there is no C compiler")
    done = support.record([PROGRAM, str(library)], folder, "--interval", "1", "--cpu-only")
    assert (done.status, done.stderr) == (0, "")
    return folder / "run.tacho"


def functions(recording: Path) -> dict[int, str]:
    """By stack, the function of the program that it is in, the innermost one."""
    stacks, codes = support.rows(recording, "stacks"), support.rows(recording, "codes")
    paths = [row["path"] for row in support.rows(recording, "files")]
    found: dict[int, str] = {}
    for stack in stacks:
        code = codes[stack["code"]]
        own = Path(paths[code["file"]]).name == PROGRAM.name
        found[stack["stack"]] = code["qualname"] if own else found.get(stack["parent"], "")
    return found


def test_each_sample_of_the_pool_has_the_positions_of_all_python_threads(recording: Path) -> None:
    positions, cpu = support.rows(recording, "positions"), support.rows(recording, "cpu")
    threads = support.rows(recording, "threads")
    (main,) = [row["thread"] for row in threads if row["main"]]
    (worker,) = [row["thread"] for row in threads if row["start_frame"] is not None and not row["python_name"]]
    own = [row for row in cpu if row["thread"] == worker and row["origin"] == 0]  # not those read from outside
    sampled = {(row["time_ns"], row["thread"]) for row in own}
    assert len(sampled) > 100
    by_sample: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in positions:
        by_sample.setdefault((row["time_ns"], row["sampled"]), []).append(row)
    assert by_sample.keys() >= sampled
    for key in sampled:
        looked_at = [row["thread"] for row in by_sample[key]]
        assert main in looked_at
        assert len(looked_at) == len(set(looked_at)) == 2
    last: dict[int, int] = {}
    for row in positions:
        assert row["cpu_ns"] >= last.get(row["thread"], 0)
        last[row["thread"]] = row["cpu_ns"]


def test_they_say_who_asked(recording: Path) -> None:
    names = functions(recording)
    (main,) = [row["thread"] for row in support.rows(recording, "threads") if row["main"]]
    # Where processors are wanted samples come late, and speak for more time each.
    weights = {(row["time_ns"], row["thread"]): row["cpu_ns"] for row in support.rows(recording, "cpu")}
    spent: Counter[str] = Counter()
    places: Counter[str] = Counter()
    others: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for row in support.rows(recording, "positions"):
        name = names[row["stack"]] if row["stack_state"] == WHOLE else "?"
        (places if row["thread"] == main else others)[name] += 1
        if row["thread"] == main:
            spent[name] += weights[row["time_ns"], row["sampled"]]
        running[name] += row["running"] is True
    # Each asked for half of the work. Between two calls the worker does nothing that is worth a sample.
    assert places["asks_and_waits"] + places["asks_and_computes"] > 0.97 * places.total(), places
    assert spent["asks_and_waits"] == pytest.approx(0.5 * spent.total(), rel=0.2), spent
    assert others["sleeps"] > 0.9 * others.total(), others
    assert running["asks_and_waits"] < 0.05 * places["asks_and_waits"]
    assert running["sleeps"] < 0.05 * others["sleeps"]


def burning_for(recording: Path) -> dict[tuple[int, int], str]:
    """By time and thread of a sample of a worker: which function of theft.c is on its native call path."""
    symbols = [row["symbol"] for row in support.rows(recording, "native_frames")]
    native_stacks = support.rows(recording, "native_stacks")
    found = {}
    for row in support.rows(recording, "cpu"):
        at = row["native_stack"]
        while at is not None:
            symbol = symbols[native_stacks[at]["native_frame"]] or ""
            if symbol.startswith("burn_for_"):
                found[row["time_ns"], row["thread"]] = symbol
            at = native_stacks[at]["parent"]
    return found


def test_they_say_on_whose_stack_the_work_lies(tmp_path: Path) -> None:
    """Of a job of two threads that ask at once, and of the part of it that one worker has handed on to another."""
    library = support.compile_library(SOURCE.with_name("theft.c"), tmp_path, "-O2")
    if library is None:
        pytest.skip("there is no C compiler")
    program = support.PROGRAMS / "theft.py"
    done = support.record([program, str(library)], tmp_path, "--interval", "1", "--cpu-only")
    assert (done.status, done.stderr) == (0, "")
    recording = tmp_path / "run.tacho"
    main, second = (row["thread"] for row in support.rows(recording, "threads") if row["main"] or row["python_name"])
    holders: dict[str, Counter[int | None]] = {name: Counter() for name in ("first", "second", "none")}
    burning = burning_for(recording)
    for row in support.rows(recording, "positions"):
        name = burning.get((row["time_ns"], row["sampled"]), "").removeprefix("burn_for_")
        if name and row["holds_work"] is not False:
            holders[name][row["thread"] if row["holds_work"] else None] += 1
    assert holders["first"].keys() == {main}
    assert holders["second"].keys() == {second}
    assert holders["none"].keys() == {None}
    assert min(each.total() for each in holders.values()) > 20, holders


def test_programs_without_native_threads_have_none(tmp_path: Path) -> None:
    done = support.record([support.PROGRAMS / "native_paths.py", "0.3"], tmp_path, "--interval", "1", "--cpu-only")
    assert (done.status, done.stderr) == (0, "")
    assert not (tmp_path / "run.tacho" / "positions.parquet").exists()
