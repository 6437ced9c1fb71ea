"""What profilers said, compared with the truth, from answers made by hand."""

from pathlib import Path
from typing import Any

import cpu_accuracy
import memory_accuracy
from harness.answers import Answers


def test_answers_are_kept_by_key(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "new" / "answers.jsonl")
    assert answers.known() == {}
    answers.append("a", {"said": 1})
    answers.append("b", {"said": None})
    assert {key: answer["said"] for key, answer in Answers(tmp_path / "new" / "answers.jsonl").known().items()} == {
        "a": 1,
        "b": None,
    }
    answers.clear()
    assert answers.known() == {}


def test_what_is_called_counts_for_its_caller_and_nothing_else_does() -> None:
    assert cpu_accuracy.reported({"calling": 10.0, "step": 20.0, "inlined": 10.0}) == 75.0
    assert cpu_accuracy.reported({"calling": 0.0, "step": 0.0, "inlined": 0.0}) is None
    assert cpu_accuracy.measured({"calling": 1.0, "inlined": 3.0}) == 25.0


def test_the_table_of_bias_shows_errors_and_failures() -> None:
    half = {"calling": 1.0, "inlined": 1.0}
    known: dict[str, dict[str, Any]] = {
        "50 bare": {"report": half},
        "50 a": {"report": {"calling": 3.0, "inlined": 1.0}, "said": {"calling": 40.0, "step": 20.0, "inlined": 40.0}},
        "50 b": {"report": None, "said": None, "outcome": "never ended"},
    }
    text = cpu_accuracy.table(known, ["bare", "a", "b"])
    assert "+10.0 (+25.0)" in text
    assert "never ended" in text


def test_the_size_of_an_array_is_what_the_peak_is_above_that_without_it() -> None:
    size = memory_accuracy.SIZE
    assert memory_accuracy.error_percent(size + 5000, 5000) == 0.0
    assert memory_accuracy.error_percent(size // 2, 0) == -50.0
    known: dict[str, dict[str, Any]] = {
        "empty a": {"said": 1000},
        "0 a": {"said": 1000 + size * 3 // 4},
        "25 a": {"said": None, "outcome": "status 1: no"},
    }
    text = memory_accuracy.table(known, ["a", "b"])
    assert "-25.000 %" in text
    assert "status 1" in text
