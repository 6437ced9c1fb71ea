"""Lines whose only expression gives the same each time."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import Builder
from unit.report.suggested import Answer, found, hot, rules

ROUTER = """import json
class Router:
    def __init__(self, text):
        self.text = text
    def queue(self, event):
        table = json.loads(self.text)
        return table[event]
    def push(self, event):
        return self.queue(event)
def main(router, events):
    for event in events:
        router.push(event)
"""
FIT = """import numpy as np
def fit(matrix, right, rho):
    eye = np.eye(3)
    for step in range(100):
        system = matrix.T @ matrix + rho * eye
        right = np.linalg.solve(system, right)
    return right
"""


def test_an_attribute_that_only_the_beginning_binds(builder: Builder, answer: Answer) -> None:
    hot(builder, ROUTER, 6)
    (one,) = found(answer)
    assert (one.rule, one.line) == ("same-expression", 6)
    assert "json.loads(self.text) gives the same at each call: nothing in this file changes self.text" in one.text
    assert "cached_property" in one.instead


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        return self.queue(event)", "        self.text = event\n        return self.queue(event)"),
        ("        return self.queue(event)", "        later(self.text)\n        return self.queue(event)"),
        ("        return self.queue(event)", "        self.text.append(7)\n        return self.queue(event)"),
        ("    for event in events:", "    if events:"),  # once
        ("    for event in events:", "    for router in events:"),  # another object each time
        ("json.loads(self.text)", "json.loads(event)"),
        ("json.loads(self.text)", "later(self.text)"),
        ("json.loads(self.text)", "json.load(self.text)"),  # the next document of a file
        ("json.loads(self.text)", "self.text.get(1) + 1"),  # of a queue, for all that is known
        ("json.loads(self.text)", "list(self.text)"),
        ("json.loads(self.text)", "json.loads(self.other)"),
        ("return table[event]", "table[event] = 7\n        return table[event]"),
        ("return table[event]", "return table"),  # callers may change it
    ],
)
def test_what_may_be_another_value(builder: Builder, answer: Answer, old: str, new: str) -> None:
    source = ROUTER.replace(old, new, 1)
    assert source != ROUTER
    hot(builder, source, 6)
    assert rules(answer) == []


def test_names_that_a_loop_does_not_change(builder: Builder, answer: Answer) -> None:
    hot(builder, FIT, 5)
    (one,) = found(answer)
    assert (one.rule, one.instead) == ("same-expression", "do it once, before the loop")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ rho * eye", "+ rho * right"),
        ("        right =", "        matrix += 1\n        right ="),
        ("        right =", "        matrix[0] = step\n        right ="),
        ("        right =", "        change(matrix)\n        right ="),
        ("        right =", "        system += 1\n        right ="),
        ("matrix.T @ matrix", "np.random.rand(3) @ matrix"),
        ("matrix.T @ matrix", "next(matrix) @ matrix"),
    ],
)
def test_what_a_loop_may_change(builder: Builder, answer: Answer, old: str, new: str) -> None:
    source = FIT.replace(old, new, 1)
    assert source != FIT
    hot(builder, source, 5)
    assert rules(answer) == []


def test_little_time_is_silence(builder: Builder, answer: Answer) -> None:
    hot(builder, FIT, 5, samples=18)
    hot(builder, FIT, 6, samples=282)
    assert rules(answer) == []
