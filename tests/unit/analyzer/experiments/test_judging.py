"""Verdicts on pairs of runs whose true change is known, and how often they are wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from tachograph.analyzer.diff.experiments.judging import ALLOCATED, CPU, Judge, Measured
from tachograph.analyzer.diff.links import SourceFile
from tachograph.analyzer.report_data.difference import WALL
from tachograph.analyzer.report_data.experiment import Answer

TEXT = "def parse():\n    pass\n\n\ndef price():\n    pass\n"
PARSE, PRICE = ("/app/orders.py", "parse", 1), ("/app/orders.py", "price", 5)
SECONDS = {PARSE: 1.0, PRICE: 0.5}
NOISE = 0.02
"""Standard deviation of the times of a run; a function has that of its samples, too."""


class Runs:
    """Makes runs: times with noise, bytes without."""

    def __init__(self, seed: int, noise: float = NOISE) -> None:
        self._chance, self._noise = np.random.default_rng(seed), noise
        self._texts = pa.chunked_array([[TEXT]])

    def run(
        self, factors: Mapping[tuple[str, str, int], float], wait_s: float = 0.0, allocated: float = 1e6
    ) -> Measured:
        """One run, with each function's time multiplied."""
        speed = np.exp(self._chance.normal(0.0, self._noise))
        own = {
            place: seconds * factors.get(place, 1.0) * speed * np.exp(self._chance.normal(0.0, 2 * self._noise))
            for place, seconds in SECONDS.items()
        }
        cpu_s = sum(own.values())
        amounts = {CPU: cpu_s, WALL: cpu_s + wait_s, ALLOCATED: allocated}
        return Measured([SourceFile("/app/orders.py", "0" * 64, self._texts)], amounts, 0.0, cpu_s, own)


def judged(runs: Runs, pairs: int, new: Mapping[tuple[str, str, int], float], **changed: float) -> Answer:
    """The answer after some pairs, or as soon as it is settled."""
    judge = Judge(effect=0.03)
    for _ in range(pairs):
        judge.add(runs.run({}), runs.run(new, **changed))
        if judge.settled(judge.answer()):
            break
    return judge.answer()


def test_a_slower_function_is_found_and_named() -> None:
    answer = judged(Runs(1), 60, {PRICE: 1.2})
    assert answer.verdict == "slower"
    assert answer.place is not None
    assert (answer.place.function, answer.place.certain) == ("price", True)
    assert answer.place.change == pytest.approx(0.2, abs=0.06)
    assert answer.place.low < 0.2 < answer.place.high
    assert answer.pairs < 30
    assert "because of price (orders.py:5)" in answer.sentence


def test_a_faster_function_is_no_failure() -> None:
    answer = judged(Runs(2), 60, {PARSE: 0.7})
    assert answer.verdict == "faster"
    assert answer.place is not None
    assert answer.place.function == "parse"


@pytest.mark.parametrize("seed", range(1, 5))
def test_equal_programs_are_the_same(seed: int) -> None:
    answer = judged(Runs(seed), 150, {})
    assert answer.verdict == "same"
    assert answer.place is None
    assert answer.effect is not None
    assert -0.03 <= answer.effect.low <= answer.effect.high <= 0.03


def test_wrong_verdicts_are_no_more_than_one_in_twenty() -> None:
    """Identical programs, each experiment looked at after every pair, until the end."""
    wrong = 0
    experiments = 150
    for seed in range(experiments):
        runs, judge = Runs(1000 + seed, noise=0.1), Judge(effect=0.001)
        for _ in range(25):
            judge.add(runs.run({}), runs.run({}))
            if judge.answer().verdict not in ("same", "not_judged"):
                wrong += 1
                break
    assert wrong <= 0.05 * experiments


def test_bytes_decide_after_three_pairs() -> None:
    answer = judged(Runs(3, noise=0.3), 3, {}, allocated=1.014e6)
    assert answer.verdict == "more"
    assert answer.effect is not None
    assert answer.effect.metric is ALLOCATED
    assert answer.effect.change == pytest.approx(0.014)


def test_a_change_of_bytes_that_does_not_matter_is_none() -> None:
    answer = judged(Runs(3, noise=0.3), 3, {}, allocated=1.001e6)
    assert answer.verdict == "not_judged"


def test_waiting_that_replaces_computing_is_not_simply_faster() -> None:
    answer = judged(Runs(4), 60, {PARSE: 0.7}, wait_s=0.8)
    assert answer.verdict == "mixed"
    assert "CPU -" in answer.sentence
    assert "wall time +" in answer.sentence


def test_nothing_is_said_of_too_few_pairs() -> None:
    answer = judged(Runs(5), 2, {PRICE: 3.0})
    assert answer.verdict == "not_judged"
    assert answer.effect is not None
    assert answer.effect.visible is None
    assert Judge(0.03).answer().verdict == "not_judged"


def test_an_amount_that_a_run_does_not_know_is_not_judged() -> None:
    runs, judge = Runs(6), Judge(0.03)
    for _ in range(4):
        base, new = runs.run({}), runs.run({}, allocated=2e6)
        judge.add(base, Measured(new.files, {**new.amounts, ALLOCATED: None}, 0.0, 1.0, new.functions))
    assert [effect.metric for effect in judge.answer().effects] == [CPU, WALL]
