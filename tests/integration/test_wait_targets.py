"""Threads that wait for the GIL are told from those that wait for a lock."""

from pathlib import Path

import pytest

from integration import support
from tachograph.format.enumerations import Target

PROGRAM = support.PROGRAMS / "gil.py"
FUTEX = 202


def test_waiting_for_the_gil_is_told_from_waiting_for_a_lock(tmp_path: Path) -> None:
    if not support.native_recorder():
        pytest.skip("built without the native recorder")
    done = support.record([PROGRAM], tmp_path, "--cpu-only", "--interval", "1")
    assert (done.status, done.stderr) == (0, "")
    names = {row["thread"]: row["name"] for row in support.rows(tmp_path / "run.tacho", "threads")}
    stacks, codes = (support.rows(tmp_path / "run.tacho", table) for table in ("stacks", "codes"))
    waited: dict[tuple[str, str], int] = {}
    for row in support.rows(tmp_path / "run.tacho", "waits"):
        if row["syscall"] != FUTEX or row["stack"] is None:
            continue
        function = codes[stacks[row["stack"]]["code"]]["qualname"]
        assert row["target"] in (Target.GIL, Target.LOCK)
        place = ("rival" if names[row["thread"]].startswith("rival") else function, Target(row["target"]).name)
        waited[place] = waited.get(place, 0) + row["off_cpu_ns"]
    # At most the start and the end of the threads is something else.
    assert waited["rival", "GIL"] > 3 * waited.get(("rival", "LOCK"), 0)
    assert waited["wait", "LOCK"] > 3 * waited.get(("wait", "GIL"), 0)
