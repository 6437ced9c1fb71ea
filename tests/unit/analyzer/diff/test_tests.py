"""The gate of ``pytest --tachograph-compare``: tests of a run against those of several runs of the base."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tachograph.analyzer.diff.changed_tests import Comparison, compare_tests
from tachograph.format import FormatError

from ..recordings import MS, Builder

pytestmark = pytest.mark.broad  # each test draws, or compares, many

CPU_MS = (100.0, 101.0, 99.0, 100.5, 99.5)
"""Of a test in the runs of the base."""


def write(path: Path, cpu_ms: dict[str, float], held: int = 0, **parameters: object) -> Path:
    """A run of tests, one after the other; the first of them holds a block of so many bytes."""
    builder = Builder(path)
    stack = builder.stack((builder.code(builder.file("/w/test_a.py", "pass\n" * 9)), 0))
    for number, (test, cpu) in enumerate(cpu_ms.items()):
        fields = json.dumps({"test": test, "cpu_ns": round(cpu * MS)})
        builder.span("call", 1000 * number, 1000 * number + 900, fields)
    builder.cpu(stack)
    if held:
        builder.block(stack, held, 10, freed_ms=500)
    builder.parameters.update(parameters)
    builder.argv = ("pytest", f"--tachograph={path}")
    return builder.write()


def compared(
    folder: Path, new: dict[str, float], *, held: int = 0, runs: Sequence[float] = CPU_MS, anyway: bool = False
) -> Comparison:
    """``new`` compared with a base whose tests a, b, c took ``runs``, in turns."""
    base = [
        write(folder / f"base{run}.tacho", {test: runs[(run + place) % len(runs)] for place, test in enumerate("abc")},
              8_000_000)
        for run in range(len(runs))
    ]  # fmt: skip
    return compare_tests(base, write(folder / "new.tacho", new, held or 8_000_000), anyway=anyway)


def verdicts(found: Comparison) -> dict[tuple[str, str], str]:
    return {(each.test, each.metric.name): each.verdict for each in found.changes}


def test_nothing_has_changed(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": 100.2, "b": 99.1, "c": 101.5})
    assert set(verdicts(found).values()) == {"no evidence"}
    assert next(iter(found.lines())) == "3 tests compared with 5 recordings: 0 need more, for certain"
    assert not any("program" in line for line in found.lines())


def test_a_slower_test_is_found_and_a_faster_one_is_not_worse(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": 150.0, "b": 50.0, "c": 100.0})
    assert verdicts(found) | {("a", "memory"): "no evidence"} == {
        ("a", "CPU"): "slower",
        ("b", "CPU"): "faster",
        ("c", "CPU"): "no evidence",
        ("a", "memory"): "no evidence",
    }
    assert [(each.test, each.metric.name) for each in found.changes if each.worse] == [("a", "CPU")]
    (change,) = [each for each in found.changes if each.worse]
    assert 0 < change.low < 0.05 < change.high
    said = list(found.lines())
    assert said[0] == "3 tests compared with 5 recordings: 1 need more, for certain"
    assert any(line.startswith("slower: a: 0.15 s of CPU, was 0.10 s (+50.0 %, ") for line in said), said


def test_a_test_that_holds_more_memory(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": 100.0, "b": 100.0, "c": 100.0}, held=12_000_000)
    assert [(each.test, each.verdict) for each in found.changes if each.worse] == [("a", "more")]


def test_a_small_difference_gets_no_verdict_however_sure_it_is(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": 104.0, "b": 100.0, "c": 100.0}, runs=(100.0, 100.001, 99.999, 100.0, 100.0))
    assert not any(each.worse for each in found.changes)


def test_a_small_base_gives_no_verdicts(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": 900.0, "b": 100.0, "c": 100.0}, runs=(100.0, 101.0))
    assert set(verdicts(found).values()) == {"unknown"}
    assert "no verdicts: fewer than 3 recordings of the base hardly tell how much runs differ" in found.lines()


def test_new_and_gone_tests_are_counted(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a": 100.0, "d": 5000.0})
    assert (found.compared, found.added, found.gone) == (1, 1, 2)
    assert next(iter(found.lines())).startswith("1 test compared with 5 recordings, 1 new, 2 gone: ")


def test_another_environment_is_refused(tmp_path: Path) -> None:
    base = [write(tmp_path / f"base{run}.tacho", {"a": run}) for run in CPU_MS]
    other = write(tmp_path / "new.tacho", {"a": 100.0}, interval_ns=1_000_000)
    with pytest.raises(FormatError, match=r"cannot be compared with those of the base: interval"):
        compare_tests(base, other)
    found = compare_tests(base, other, anyway=True)
    assert found.notes[0].startswith("not comparable: interval")


def test_a_recording_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="has no tests"):
        compare_tests([write(tmp_path / "base.tacho", {})], write(tmp_path / "new.tacho", {"a": 1.0}))
