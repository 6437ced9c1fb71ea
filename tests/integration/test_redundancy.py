"""Redundant loads and stores: shares that are known are found again, and the program is as it was."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from integration import restrictions, support

pytestmark = [pytest.mark.native, pytest.mark.quiet]
"""On a busy machine timers are late, and the recording has to be many times as long."""

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


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with LEAST pairs of each function: on a busy machine timers are late, and it takes longer."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    folder = tmp_path_factory.mktemp("redundancy")
    library = support.compile_library(SOURCE, folder)
    if library is None:
        pytest.skip("there is no C compiler")
    found = folder / "run.tacho"
    for seconds in ("0.8", "2", "4", "8"):
        shutil.rmtree(found, ignore_errors=True)
        command = [PROGRAM, library, seconds]
        done = support.record(command, folder, "--redundancy", "--interval", "4", timeout=600)
        assert (done.status, done.stdout) == (0, "done\n"), done.stderr
        if refused(found):
            pytest.skip("this machine gives no watchpoints")
        counts = [len(pairs(found, access, function).get(name, ())) for access, function, name, _ in DIALLED]
        if min(counts) >= LEAST:
            return found
    pytest.fail(f"too few pairs: {counts}")


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


@pytest.mark.parametrize(("access", "function", "name", "percent"), DIALLED)
def test_shares_that_are_known(recording: Path, access: int, function: str, name: str, percent: float) -> None:
    rows = pairs(recording, access, function)[name]
    share = sum(row["equal"] for row in rows) / len(rows)
    truth = percent / 100
    # Five standard deviations of so many pairs; where nothing is left to chance, the first and last call alone differ.
    reach = 5 * math.sqrt(truth * (1 - truth) / len(rows)) or 0.05
    assert abs(share - truth) <= reach, (share, len(rows))


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


def test_the_lines_that_repeat_themselves_are_found(recording: Path) -> None:
    found = report(recording)["redundancies"]
    kinds = {(row["function"], row["kind"]) for row in found}
    assert ("stores", "store") in kinds
    for row in found:
        assert row["quantity_s_low"] <= row["quantity_s"] <= row["quantity_s_high"]
        assert row["redundant_share"] > row["base_rate"]
        assert row["native_path"]
    assert [row["quantity_s"] for row in found] == sorted((row["quantity_s"] for row in found), reverse=True)


def test_without_the_option_nothing_is_known(tmp_path: Path) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    assert support.record(["-c", "sum(range(10**6))"], tmp_path).status == 0
    assert report(tmp_path / "run.tacho")["redundancies"] is None


@pytest.mark.parametrize("what", ["handle", "block", "fork", "trace", "die"])
def test_the_program_is_as_it_was(tmp_path: Path, what: str) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    bare = support.bare([TRAPPING, what], tmp_path)
    done = support.record([TRAPPING, what], tmp_path, "--redundancy", "--interval", "2", timeout=300)
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
