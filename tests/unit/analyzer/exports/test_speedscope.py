"""Speedscope's files, by its own schema and by playing the events back."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tachograph.analyzer.exports import speedscope
from unit.analyzer.exports import program
from unit.analyzer.exports.conftest import Export

SCHEMA = json.loads((Path(__file__).parent / "fixtures" / "speedscope.schema.json").read_text("utf-8"))


def read(data: bytes) -> dict[str, Any]:
    """The document, which has to be as speedscope's schema says."""
    document: dict[str, Any] = json.loads(data)
    jsonschema.validate(document, SCHEMA)
    return document


def played(document: dict[str, Any]) -> tuple[Counter[str], Counter[str]]:
    """Self and total weights by function, of all profiles; events must be in order and frames must close in turn."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    names = [frame["name"] for frame in document["shared"]["frames"]]
    for profile in document["profiles"]:
        open_frames: list[int] = []
        at = profile["startValue"]
        for event in profile["events"]:
            passed = event["at"] - at
            assert passed >= 0
            if passed:
                own[names[open_frames[-1]]] += passed
                for name in {names[frame] for frame in open_frames}:
                    total[name] += passed
            at = event["at"]
            if event["type"] == "O":
                open_frames.append(event["frame"])
            else:
                assert open_frames.pop() == event["frame"]
        assert open_frames == []
        assert at == profile["endValue"]
    return own, total


@pytest.mark.parametrize(("metric", "truth"), program.EVERY)
def test_plays_back_as_recorded(export: Export, metric: str, truth: program.Truth) -> None:
    document = read(export("speedscope", metric))
    assert played(document) == (truth.own, truth.total)
    unit = "nanoseconds" if metric in ("cpu", "wait") else "bytes"
    assert {profile["unit"] for profile in document["profiles"]} == {unit}


def test_threads_are_profiles_in_the_order_of_their_weight(export: Export) -> None:
    names = [profile["name"] for profile in read(export("speedscope"))["profiles"]]
    assert names == ["MainThread (program.py, pid 100, tid 100)", "pool-1 (program.py, pid 100, tid 101)"]


def test_lines_are_told_apart_on_request(export: Export) -> None:
    def lines(**options: bool) -> set[int]:
        return {
            frame["line"]
            for frame in read(export("speedscope", **options))["shared"]["frames"]
            if frame["name"] == "work"
        }

    assert lines() == {10}
    assert lines(lines=True) == {11, 12}


def test_too_much_for_the_order_of_time_is_added_up(export: Export, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speedscope, "LIMIT", 2)
    document = read(export("speedscope"))
    assert played(document) == (program.CPU.own, program.CPU.total)
    opened = Counter(event["frame"] for event in document["profiles"][0]["events"] if event["type"] == "O")
    names = [frame["name"] for frame in document["shared"]["frames"]]
    # <module> once, though it is on three of the stacks; fib calls itself.
    assert {names[frame]: count for frame, count in opened.items()} == {
        "<module>": 1,
        "work": 1,
        "fib": 3,
        "<torn stack>": 1,
    }


def test_an_empty_extract_is_a_valid_file(export: Export) -> None:
    document = read(export("speedscope", thread="idle"))
    assert [profile["endValue"] for profile in document["profiles"]] == [0]
