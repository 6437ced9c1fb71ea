"""The soak's own judgement: what it calls the same, different, lost and grown."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from soak import endurance, outcomes
from soak.__main__ import PARTS, verdict
from soak.loads import LOADS

EVERY_PART = {
    "interpreter", "packages", "kills", "attaches", "hostile", "containers", "foreign", "restricted",
    "recording", "rotation", "recursion", "codes", "threads", "forks", "disk", "memory", "pressure",
}  # fmt: skip


def test_every_part_can_be_run_alone() -> None:
    assert PARTS.keys() == EVERY_PART
    assert set(LOADS) < EVERY_PART


def test_a_part_that_fails_is_told_and_does_not_end_the_others() -> None:
    def fails(folder: Path, options: argparse.Namespace) -> str:
        raise AssertionError(f"two\nlines of {folder.is_dir()}")

    passed, _, words = verdict("fails", fails, argparse.Namespace())
    assert (passed, words) == (False, "two lines of True")
    assert verdict("passes", lambda folder, options: "all well", argparse.Namespace())[::2] == (True, "all well")


def test_only_what_never_agrees_differs() -> None:
    runs = iter([
        {"a.one": "passed", "a.two": "passed", "b.flaky": "passed", "b.gone": "passed"},
        {"a.one": "passed", "a.two": "failed", "b.flaky": "failed"},
        *[{"a.two": "passed"}, {"a.two": "failed"}] * 2,
        *[{"b.flaky": "failed", "b.gone": "passed"}, {"b.flaky": "passed"}] * 2,
    ])  # fmt: skip
    asked: list[tuple[str, Sequence[str]]] = []

    def run(arm: str, suites: Sequence[str]) -> outcomes.Results:
        asked.append((arm, suites))
        return next(runs)

    count, differences = outcomes.compare(run, ["a", "b"], lambda test: test.partition(".")[0], again=2)
    assert count == 4
    assert [str(each) for each in differences] == [
        "a.two: passed bare, failed recorded",
        "b.gone: passed bare, absent recorded",
    ]
    assert asked[:2] == [("bare", ["a", "b"]), ("recorded", ["a", "b"])]
    assert asked[2:4] == [("bare", ["a"]), ("recorded", ["a"])]


def test_growth_after_the_first_quarter() -> None:
    steady = [(float(at), 100 << 20) for at in range(1, 100)]
    assert endurance.grown("program", steady, 100).bytes == 0
    with pytest.raises(AssertionError, match="the program grew by 20480 KB"):
        endurance.grown("program", [*steady, (99.5, 120 << 20)], 100)
    with pytest.raises(AssertionError, match="not seen late"):
        endurance.grown("program", steady[:20], 100)


@pytest.mark.parametrize(("looks", "grown"), [(2, 0), (3, 20 << 20)])
def test_what_is_held_for_a_moment_is_no_growth(looks: int, grown: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endurance, "MOST_GROWTH", 64 << 20)
    sizes = [(float(at), (120 if 50 <= at < 50 + looks else 100) << 20) for at in range(1, 100)]
    assert endurance.grown("program", sizes, 100).bytes == grown


def sawtooth(teeth: int, *, tooth: int = 30, leak: int = 0) -> list[tuple[float, int]]:
    """Sizes, each second, of a process of 14 MB whose tables take ``tooth`` MB in 60 s and are emptied then.

    It loses ``leak`` KB of each of the teeth.
    """
    return [(float(at), (14 << 20) + (tooth * (at % 60) << 20) // 60 + (at * leak << 10) // 60)
            for at in range(60 * teeth)]  # fmt: skip


@pytest.mark.parametrize("teeth", [1, 2, 50])
def test_tables_that_fill_up_and_are_emptied_are_no_growth(teeth: int) -> None:
    """Whether the first quarter has seen them full or not."""
    assert endurance.grown_in_teeth("program", sawtooth(teeth), 30 << 20).bytes == 0
    assert endurance.grown_in_teeth("program", sawtooth(teeth)[:-20], 30 << 20).bytes <= 0


def test_growth_from_one_peak_to_the_next_and_of_the_peaks() -> None:
    leaks = sawtooth(50, leak=500)
    with pytest.raises(AssertionError, match="the program grew by"):
        endurance.grown_in_teeth("program", leaks, 60 << 20)
    with pytest.raises(AssertionError, match="more than full tables take"):
        endurance.grown_in_teeth("program", sawtooth(50, tooth=62), 30 << 20)
    never_emptied = [(float(at), (14 << 20) + at * (1 << 20)) for at in range(100)]
    with pytest.raises(AssertionError, match="more than full tables take"):
        endurance.grown_in_teeth("program", never_emptied, 30 << 20)


def test_growth_from_one_process_of_tables_to_the_next() -> None:
    """Each counts at its end, when it is largest; where the first takes longer than a quarter, it is the measure."""
    equal = [(at, 137 << 20) for at in (11.0, 14.0, 17.0)]
    assert endurance.grown_tables(equal, 30).bytes == 0
    with pytest.raises(AssertionError, match="the process of tables grew by 20480 KB"):
        endurance.grown_tables([*equal, (20.0, 157 << 20)], 30)
    with pytest.raises(AssertionError, match="the process of tables grew by 30720 KB"):
        endurance.grown_tables([(5.0, 100 << 20), (7.0, 107 << 20), *equal], 30)
    with pytest.raises(AssertionError, match="the process of tables was not seen late"):
        endurance.grown_tables(equal[:1], 30)


def test_what_the_tables_take_of_memory(tmp_path: Path) -> None:
    """What is made in memory is measured by its rows; samples are written a piece at a time."""
    tables = {"threads": {"rows": 1_000_000, "bytes": 1}, "cpu": {"rows": 10**9, "bytes": 1}}
    (tmp_path / "manifest.json").write_text(json.dumps({"tables": tables}))
    assert endurance.judge_end(tmp_path, 700 << 20) == "at its end 700 of 828 MB"
    with pytest.raises(AssertionError, match="had 6144 MB, and 1000000 rows allow it 828 MB"):
        endurance.judge_end(tmp_path, 6 << 30)


STARTS_ONE = """
import subprocess, sys, threading
code = "import sys; kept = b'x' * (50 << 20); print('made', flush=True); sys.stdin.read()"
threading.Thread(target=subprocess.run, args=([sys.executable, "-c", code],)).start()
"""


def test_the_largest_size_of_a_process_of_tables() -> None:
    """It is a child of another thread than the first, and may have had next to nothing when it was met first."""
    peaks: dict[int, tuple[float, int]] = {}
    with subprocess.Popen([sys.executable, "-c", STARTS_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"made\n"
        (only,) = endurance.watch_tables(process.pid, 0, peaks)[1]
        size = peaks[only][1]
        assert size > 50 << 20
        process.stdin.close()
        process.wait(timeout=60)
    assert endurance.watch_tables(process.pid, 0, peaks) == ([], [])
    assert peaks[only][1] == size


def recording(folder: Path, *, state: str = "complete", **losses: int) -> Path:
    quality = [{"loss": name, "count": count} for name, count in losses.items()]
    manifest = {"state": state, "notes": ["no room"], "tables": {"cpu": {"rows": 1000}}, "quality": quality}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


def test_losses_that_are_none_and_those_that_are(tmp_path: Path) -> None:
    load = LOADS["recording"]
    words = endurance.judge(recording(tmp_path, sampler_late=900, stacks_torn=5), load)
    assert words == "1000 samples, 5 stacks torn, nothing lost"
    with pytest.raises(AssertionError, match="12 of 1000 stacks are torn"):
        endurance.judge(recording(tmp_path, stacks_torn=12), load)
    with pytest.raises(AssertionError, match="codes_lost"):
        endurance.judge(recording(tmp_path, codes_lost=1), load)
    assert "3 records_dropped" in endurance.judge(recording(tmp_path, records_dropped=3), LOADS["disk"])
    with pytest.raises(AssertionError, match=r"unfinished: \['no room'\]"):
        endurance.judge(recording(tmp_path, state="recording"), LOADS["disk"])
