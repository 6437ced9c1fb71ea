"""Redundant loads and stores: shares that are known are found again, and the program is as it was."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration import restrictions, support

pytestmark = pytest.mark.native
quiet = pytest.mark.quiet
"""Of tests that need many pairs: on a busy machine timers are late, and the recording has to be many times as long."""

PROGRAM = support.PROGRAMS / "dialled.py"
TRAPPING = support.PROGRAMS / "trapping.py"
SOURCE = Path(__file__).parent / "native" / "dialled.c"
PAIR, RELEASED = 0, 2
LOAD, STORE = 0, 1
LEAST = 40  # pairs of a function
APART_PERCENT = 100 * 0.8165**2
"""Of accesses that are met again after others: 12 to 10^7 of them."""
DIALLED = [
    (STORE, "store_all", "stores_40", 40),
    (STORE, "store_all", "stores_100", 100),
    (LOAD, "load_all", "loads_60", 60),
    (LOAD, "load_all", "loads_100", 100),
    *((STORE, "renew", f"stored_{apart}", APART_PERCENT) for apart in (12, 10_000, 10_000_000)),
    *((LOAD, "load_again", f"loaded_{apart}", APART_PERCENT) for apart in (12, 10_000, 1_000_000)),
]


def report(recording: Path) -> dict[str, Any]:
    """What ``analyze --json`` says."""
    return support.analyze(recording, cwd=recording.parent)


def refused(recording: Path) -> bool:
    """Whether the kernel gave no watchpoints."""
    return "watchpoints_refused" in support.losses(report(recording))


@dataclass(frozen=True)
class Recorded:
    """A recording of all functions, and the pairs of each, of this and of later ones."""

    recording: Path
    pairs: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """LEAST pairs of each function: on a busy machine timers are late, and those that have fewer run once more."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    folder = tmp_path_factory.mktemp("redundancy")
    library = support.compile_library(SOURCE, folder)
    if library is None:
        pytest.skip("there is no C compiler")
    found: dict[str, list[dict[str, Any]]] = {name: [] for _, _, name, _ in DIALLED}
    recordings: list[Path] = []
    lacking: list[str] = []
    for seconds in ("0.7", "1", "2", "4", "8"):
        recordings.append(folder / f"run-{seconds}.tacho")
        options = ("--redundancy", "--interval", "2")
        done = support.record(
            [PROGRAM, library, seconds, *lacking], folder, *options, timeout=600, output=recordings[-1].name
        )
        assert (done.status, done.stdout) == (0, "done\n"), done.stderr
        if refused(recordings[-1]):
            pytest.skip("this machine gives no watchpoints")
        for access, function, name, _ in DIALLED:
            found[name] += pairs(recordings[-1], access, function).get(name, ())
        lacking = [name for name, rows in found.items() if len(rows) < LEAST]
        if not lacking:
            return Recorded(recordings[0], found)
    pytest.fail(f"too few pairs of {', '.join(lacking)}")


@pytest.fixture(scope="module")
def recording(recorded: Recorded) -> Path:
    """The one of all functions."""
    return recorded.recording


def pairs(recording: Path, access: int, function: str) -> dict[str, list[dict[str, Any]]]:
    """The pairs of a native function, by the function of the program that was running."""
    stacks, codes = support.rows(recording, "stacks"), support.rows(recording, "codes")
    frames = support.rows(recording, "native_frames")
    caller: dict[int, str] = {}
    for stack in stacks:
        name = codes[stack["code"]]["qualname"]
        caller[stack["stack"]] = name if "_" in name else caller.get(stack["parent"], "")
    found: dict[str, list[dict[str, Any]]] = {}
    for row in support.rows(recording, "redundancies"):
        if row["outcome"] != PAIR or row["access"] != access or row["native_frame"] is None:
            continue
        if frames[row["native_frame"]]["symbol"] == function and row["width"] == 8:
            found.setdefault(caller[row["stack"]], []).append(row)
    return found


@quiet
@pytest.mark.parametrize(("name", "percent"), [each[2:] for each in DIALLED])
def test_shares_that_are_known(recorded: Recorded, name: str, percent: float) -> None:
    rows = recorded.pairs[name]
    share = sum(row["equal"] for row in rows) / len(rows)
    truth = percent / 100
    # Five standard deviations of so many pairs; where nothing is left to chance, the first and last call alone differ.
    reach = 5 * math.sqrt(truth * (1 - truth) / len(rows)) or 0.05
    assert abs(share - truth) <= reach, (share, len(rows))


@quiet
def test_both_call_paths_of_a_pair_are_known(recording: Path) -> None:
    frames = support.rows(recording, "native_frames")
    for access, function in ((STORE, "store_all"), (LOAD, "load_all")):
        for rows in pairs(recording, access, function).values():
            partners = [frames[row["partner_native_frame"]]["symbol"] for row in rows]
            assert partners.count(function) >= 0.9 * len(rows)
            assert sum(row["partner_stack"] == row["stack"] for row in rows) >= 0.8 * len(rows)
            # Each cell is accessed once in a call.
            assert sum(row["crossed"] is True for row in rows) >= 0.9 * len(rows)
            assert all(row["partner_time_ns"] > row["time_ns"] for row in rows)


@quiet
def test_some_loads_that_their_own_call_repeats_wait_for_a_later_call(recorded: Recorded) -> None:
    """Each call loads its twelve cells thousands of times: of one in thousands the next load is in another call."""
    rows = recorded.pairs["loaded_12"]
    rested = [row for row in rows if row["rested"]]
    assert all(row["crossed"] for row in rested)
    assert 0.2 * len(rows) <= len(rested) <= 0.8 * len(rows), (len(rested), len(rows))
    assert sum(row["crossed"] is not True for row in rows if not row["rested"]) >= 0.9 * (len(rows) - len(rested))


@quiet
@pytest.mark.parametrize("function", ["use_and_free", "load_slowly"])
def test_memory_that_was_given_back_has_no_partner(recording: Path, function: str) -> None:
    """Each call is of a new block, most often at the address of the last one, with the same values: of malloc's, or of
    Python's own allocator.
    """
    frames = support.rows(recording, "native_frames")
    mine = [
        row
        for row in support.rows(recording, "redundancies")
        if row["native_frame"] is not None and frames[row["native_frame"]]["symbol"] == function
    ]
    watched = [row for row in mine if row["outcome"] in (PAIR, RELEASED)]
    assert any(row["outcome"] == RELEASED for row in watched)
    assert not any(row["crossed"] for row in watched)


@quiet
@pytest.mark.usefixtures("recorded")
def test_the_line_that_repeats_itself_is_found(tmp_path: Path) -> None:
    """All its stores store what is there. Of a line that changes much of it nothing is told."""
    library = support.compile_library(SOURCE, tmp_path)
    assert library is not None
    support.record([PROGRAM, library, "0.7", "stores_40", "stores_100"], tmp_path, "--redundancy", "--interval", "2")
    (found,) = report(tmp_path / "run.tacho")["redundancies"]
    assert (found["function"], found["kind"], found["category"]) == ("stores_100", "store", None)
    assert found["quantity_s_low"] <= found["quantity_s"] <= found["quantity_s_high"]
    assert found["redundant_share"] > found["base_rate"]
    assert found["native_path"]


def test_without_the_option_nothing_is_known(tmp_path: Path) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    assert support.record(["-c", "sum(range(10**6))"], tmp_path).status == 0
    assert report(tmp_path / "run.tacho")["redundancies"] is None


@pytest.mark.parametrize("what", ["handle", "block", "fork", "trace", "die"])
def test_the_program_is_as_it_was(tmp_path: Path, what: str) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    bare = support.bare([TRAPPING, what, "1"], tmp_path)  # only a watchpoint's signal may come in a later round
    done = support.record([TRAPPING, what, "150"], tmp_path, "--redundancy", "--interval", "2", timeout=300)
    assert (done.status, done.stdout) == (bare.status, bare.stdout)
    stops = what == "handle" or (what == "trace" and "b'y'" in done.stdout)
    assert ("watching_stopped" in support.losses(report(tmp_path / "run.tacho"))) == (
        stops and not refused(tmp_path / "run.tacho")
    )


def test_where_the_kernel_gives_no_watchpoints_recording_goes_on(tmp_path: Path) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    record = [*support.COMMAND, "record", "-o", "run.tacho", "--redundancy", "-c", "print(sum(range(10**7)))"]
    done = support.run([sys.executable, str(restrictions.RESTRICTED), "docker", *record], tmp_path, timeout=120)
    if done.status == restrictions.IMPOSSIBLE:
        pytest.skip(done.stderr.strip())
    assert (done.status, done.stdout) == (0, f"{sum(range(10**7))}\n")
    assert support.losses(report(tmp_path / "run.tacho"))["watchpoints_refused"] == 1
    assert "watchpoints" in done.stderr
    document = report(tmp_path / "run.tacho")
    assert document["redundancies"] is None
    assert "no watchpoints" in json.dumps(document["quality"])
