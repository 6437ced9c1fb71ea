"""Verdicts on pairs of runs whose true change is known, and how often they are wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tachograph.analyzer.diff.experiments.judging import Judge
from tachograph.analyzer.diff.experiments.measuring import ALLOCATED, CPU, Measured, Place
from tachograph.analyzer.diff.links import SourceFile
from tachograph.analyzer.report_data.difference import WALL
from tachograph.analyzer.report_data.experiment import Answer

TEXT = "\n\n\n".join(f"def {name}():\n    pass\n    pass" for name in ("parse", "price", "show", "collect")) + "\n"
PARSE, PRICE, SHOW, COLLECT = (
    ("/app/orders.py", name, line) for name, line in (("parse", 1), ("price", 6), ("show", 11), ("collect", 16))
)
SECONDS = {PARSE: 0.6, PRICE: 0.5, SHOW: 0.4, COLLECT: 0.4}
NOISE = 0.02
"""Standard deviation of the times of a run; a function has that of its samples, too."""


class Runs:
    """Makes runs: times with noise, bytes without. ``machine`` is that of whole runs, ``noise`` that of functions."""

    def __init__(
        self,
        seed: int,
        noise: float = NOISE,
        machine: float = NOISE,
        seconds: Mapping[Place, float] = SECONDS,
    ) -> None:
        self._chance, self._noise, self._machine = np.random.default_rng(seed), noise, machine
        self._seconds = seconds
        self._texts = pa.chunked_array([[TEXT]])

    def run(
        self, factors: Mapping[Place, float], wait_s: float = 0.0, allocated: float = 1e6, of: Place = PARSE
    ) -> Measured:
        """One run, with each function's time multiplied; what is allocated beyond 1 MB is allocated in ``of``."""
        speed = np.exp(self._chance.normal(0.0, self._machine))
        own = {
            place: seconds * factors.get(place, 1.0) * speed * np.exp(self._chance.normal(0.0, 2 * self._noise))
            for place, seconds in self._seconds.items()
        }
        kept = {place: 1e6 / len(own) + (allocated - 1e6) * (place == of) for place in own}
        # The bytes of functions are sampled.
        kept = {place: amount * np.exp(self._chance.normal(0.0, self._noise)) for place, amount in kept.items()}
        cpu_s = sum(own.values())
        amounts = {CPU: cpu_s, WALL: cpu_s + wait_s, ALLOCATED: allocated}
        used = {CPU: own, ALLOCATED: kept}
        # All is in the second line of a function but a tenth, which never changes.
        lines = {
            metric: {
                (path, name, first + step): amount * part
                for (path, name, first), amount in of_metric.items()
                for step, part in ((1, 0.1 / factors.get((path, name, first), 1.0)), (2, 0.9))
            }
            for metric, of_metric in used.items()
        }
        return Measured([SourceFile("/app/orders.py", "0" * 64, self._texts)], amounts, 0.0, cpu_s, used, lines)


def judged(runs: Runs, pairs: int, new: Mapping[Place, float], **changed: Any) -> Answer:
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
    assert "because of price (orders.py:6)" in answer.sentence


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


@pytest.mark.parametrize("experiments", [40, pytest.param(160, marks=pytest.mark.slow)])
def test_wrong_verdicts_are_no_more_than_one_in_twenty(experiments: int) -> None:
    """Identical programs, each experiment looked at after every pair, until the end."""
    wrong = 0
    for seed in range(experiments):
        runs, judge = Runs(1000 + seed, noise=0.1, machine=0.1), Judge(effect=0.001)
        for _ in range(20):
            judge.add(runs.run({}), runs.run({}))
            if judge.answer().verdict not in ("same", "not_judged"):
                wrong += 1
                break
    assert wrong <= 0.05 * experiments


def test_bytes_decide_after_three_pairs() -> None:
    answer = judged(Runs(3, noise=0.01, machine=0.3), 3, {}, allocated=1.014e6)
    assert answer.verdict == "more"
    assert answer.effect is not None
    assert answer.effect.metric is ALLOCATED
    assert answer.effect.change == pytest.approx(0.014)


def test_a_change_of_bytes_that_does_not_matter_is_none() -> None:
    answer = judged(Runs(3, noise=0.01, machine=0.3), 3, {}, allocated=1.001e6)
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
        judge.add(base, Measured(new.files, {**new.amounts, ALLOCATED: None}, 0.0, 1.0, new.own))
    assert [effect.metric for effect in judge.answer().effects] == [CPU, WALL]


def test_a_function_is_judged_against_the_rest_where_the_machine_is_restless() -> None:
    """The whole varies by 12 % from run to run, and the function changed by 10 %: by itself it is in the noise."""
    answer = judged(Runs(7, noise=0.01, machine=0.12), 40, {PRICE: 1.1})
    assert answer.verdict == "slower"
    assert answer.effect is not None
    assert answer.effect.verdict == "not_judged"
    place = answer.place
    assert place is not None
    assert (place.function, place.certain, place.by_rest) == ("price", True, True)
    assert place.against_rest is not None
    assert 0 < place.against_rest.low < 0.1 < place.against_rest.high
    assert place.low < 0 < place.high
    assert "not certain by itself" in answer.sentence
    assert "against the rest of the program" in answer.sentence


def test_the_line_that_changed_is_named() -> None:
    place = judged(Runs(7, noise=0.01, machine=0.12), 40, {PRICE: 1.2}).place
    assert place is not None
    assert place.changed_line is not None
    assert (place.changed_line.line, place.changed_line.certain) == (8, True)


def test_a_large_function_that_changed_does_not_make_others_look_changed() -> None:
    seconds = {PARSE: 1.0, PRICE: 0.3, SHOW: 0.3, COLLECT: 0.3}
    for seed in range(30):
        runs, judge = Runs(2000 + seed, noise=0.02, machine=0.1, seconds=seconds), Judge(effect=0.001)
        for _ in range(25):
            judge.add(runs.run({}), runs.run({PARSE: 1.3}))
        certain = [each.function for each in judge.answer().functions if each.certain]
        assert set(certain) <= {"parse"}


def test_a_function_that_is_as_it_was_is_not_slower_because_others_are_faster() -> None:
    wrong = 0
    for seed in range(30):
        runs, judge = Runs(3000 + seed, noise=0.02, machine=0.08), Judge(effect=0.001)
        for _ in range(20):
            judge.add(runs.run({}), runs.run(dict.fromkeys((PARSE, PRICE, SHOW), 0.85)))
        (kept,) = [each for each in judge.answer().functions if each.function == "collect"]
        wrong += kept.certain
    assert wrong <= 2


def test_without_a_rest_a_function_is_judged_by_itself() -> None:
    """Of two functions it cannot be known which one changed, if the machine may have changed both."""
    runs, judge = Runs(8, noise=0.01, machine=0.12, seconds={PARSE: 1.0, PRICE: 1.0}), Judge(effect=0.03)
    for _ in range(25):
        judge.add(runs.run({}), runs.run({PRICE: 1.1}))
    assert not any(each.certain for each in judge.answer().functions)


def test_functions_do_not_decide_where_the_rest_changed_as_well() -> None:
    """All else is twice as fast: beside it this function is slower, but the program is not."""
    rest = dict.fromkeys((PARSE, SHOW, COLLECT), 0.5)
    answer = judged(Runs(9), 40, rest)
    assert answer.verdict == "faster"


def test_the_function_that_allocates_more_is_named() -> None:
    answer = judged(Runs(10, machine=0.3), 12, {}, allocated=1.05e6, of=SHOW)
    assert answer.verdict == "more"
    place = answer.place
    assert place is not None
    assert (place.function, place.metric, place.certain) == ("show", "memory.allocated", True)
    assert place.base_bytes is not None
    assert place.new_bytes is not None
    assert place.new_bytes - place.base_bytes == pytest.approx(5e4, rel=0.5)
    assert place.changed_line is not None
    assert place.changed_line.line == 13
    assert "because of show (orders.py:11)" in answer.sentence
    assert "could have been seen" in answer.sentence


def test_a_sample_that_is_in_all_runs_of_one_side_by_chance_is_no_certain_change() -> None:
    """Equal in all runs, as counts of one are: their spread is nothing, but that of sampling is not."""
    runs, judge = Runs(11), Judge(0.03)
    for _ in range(4):
        base, new = runs.run({}), runs.run({})
        rare = ("/app/orders.py", "at_exit", 21)
        own = {**new.own, CPU: {**new.own[CPU], rare: 0.03 * (new.amounts[CPU] or 0.0)}}
        judge.add(replace(base, units={CPU: 0.02}), replace(new, own=own, units={CPU: 0.02}))
    (found,) = [each for each in judge.answer().functions if each.function == "at_exit"]
    assert not found.certain
