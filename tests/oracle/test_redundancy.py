"""Pairs of redundant accesses against an exhaustive tracer: what repeats what, among functions on the same cells."""

from __future__ import annotations

import shutil
from collections import Counter

import pyarrow.parquet as pq
import pytest

from oracle import support
from oracle.conftest import compiled

pytestmark = [pytest.mark.native, pytest.mark.slow]

PROGRAM = "shared_cells.py"
SECONDS = ("15", "45", "135")
"""CPU time; more where too few pairs were met by then."""
PAIR = 0
FUNCTIONS = {"fill", "number", "total", "peak", "scale", "copy"}
"""Of the library."""
KINDS = {"load": 0, "store": 1}
TOP = 0.02
"""Of all redundant pairs: so many make a pair of functions one of the top pairs."""
MOST = 0.1
"""Of the top pairs, that may be missed, and that may be spurious. (Witch: 24 % and 19 %.)"""
LEAST = {"load": 200, "store": 40}
"""Redundant pairs: the rarest of the top pairs (a ninth of the loads, half of the stores) is not missed by chance then,
although samples are of time, and meet a fast loop five times less often than its part of the accesses.
"""

Pairs = Counter[tuple[str, str]]


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The functions, and the tracer."""
    if shutil.which("objdump") is None or shutil.which("nm") is None:
        pytest.skip("there is no objdump")
    found = [compiled(support.NATIVE / f"{name}.c", tmp_path_factory) for name in ("shared_cells", "single_steps")]
    return str(found[0]), str(found[1])


@pytest.fixture(scope="module")
def truth(libraries: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pairs]:
    """Redundant pairs of accesses by the two functions of the program, all of them."""
    library, tracer = libraries
    found = support.run_bare(tmp_path_factory.mktemp("traced"), PROGRAM, library, "0", tracer)
    return {kind: Counter({(a, b): same for a, b, _, same in rows if same}) for kind, rows in found.items()}


@pytest.fixture(scope="module")
def sampled(libraries: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pairs]:
    """Those that were recorded."""
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    for seconds in SECONDS:
        folder = tmp_path_factory.mktemp("sampled")
        # On a busy machine a second of CPU time takes many.
        run = support.record(
            folder, PROGRAM, libraries[0], seconds, interval=2, options=("--redundancy",), timeout=1800
        )
        found = read(run)
        if all(found[kind].total() >= LEAST[kind] for kind in KINDS):
            return found
    pytest.fail(f"too few pairs: {found}")


def read(run: support.Run) -> dict[str, Pairs]:
    """Redundant pairs of accesses of the library's functions, by the two functions of the program."""
    if "watchpoints_refused" in str(run.report["quality"]):
        pytest.skip("this machine gives no watchpoints")
    tables = {name: pq.read_table(run.recording / f"{name}.parquet").to_pylist() for name in ("stacks", "codes")}
    names = {row["stack"]: tables["codes"][row["code"]]["qualname"] for row in tables["stacks"]}
    parents = {row["stack"]: row["parent"] for row in tables["stacks"]}

    def function(stack: int | None) -> str:
        name: str = names.get(stack, "?")
        return function(parents[stack]) if name == "directly" and stack is not None else name

    symbols = pq.read_table(run.recording / "native_frames.parquet").column("symbol").to_pylist()
    own = {number for number, symbol in enumerate(symbols) if symbol in FUNCTIONS}
    found: dict[str, Pairs] = {kind: Counter() for kind in KINDS}
    for row in pq.read_table(run.recording / "redundancies.parquet").to_pylist():
        # After a rest the partner is not the next access.
        is_next = row["outcome"] == PAIR and not row["rested"]
        if is_next and row["equal"] and {row["native_frame"], row["partner_native_frame"]} <= own:
            kind = next(name for name, number in KINDS.items() if number == row["access"])
            found[kind][function(row["stack"]), function(row["partner_stack"])] += 1
    return found


def top(pairs: Pairs) -> set[tuple[str, str]]:
    return {pair for pair, count in pairs.items() if count >= TOP * pairs.total()}


@pytest.mark.parametrize("kind", KINDS)
def test_top_pairs_are_those_of_the_exhaustive_tracer(
    truth: dict[str, Pairs], sampled: dict[str, Pairs], kind: str
) -> None:
    true, found = truth[kind], sampled[kind]
    missed = [pair for pair in top(true) if pair not in found]
    spurious = [pair for pair in top(found) if pair not in true]
    assert len(missed) <= MOST * len(top(true)), (missed, found)
    assert len(spurious) <= MOST * len(top(found)), (spurious, true)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_that_are_not_there_are_not_found(truth: dict[str, Pairs], sampled: dict[str, Pairs], kind: str) -> None:
    """However rare."""
    found = sampled[kind]
    false = {pair: count for pair, count in found.items() if pair not in truth[kind]}
    assert sum(false.values()) <= 0.02 * found.total(), false
