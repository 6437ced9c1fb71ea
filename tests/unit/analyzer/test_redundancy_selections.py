"""The smallest or largest of what is left, for which a loop goes through all of it."""

from __future__ import annotations

import pytest

from unit.analyzer.judged_line import judged

CHOICE = ["dict_get", "min_max", "builtin_min"]
SORT = ["unsafe_long_compare", "binarysort", "list_sort_impl"]
ALGORITHM = "inefficient-algorithm"


def loop(first: str, second: str) -> str:
    return f"def f(waiting, distance):\n while waiting:\n  {first}\n  {second}"


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("u = min(waiting, key=distance.get)  #", "waiting.remove(u)", ALGORITHM),
        ("u = max(waiting, key=lambda x: distance[x])  #", "waiting.discard(u)", ALGORITHM),
        ("cost, u = min(waiting)  #", "waiting.remove((cost, u))", ALGORITHM),
        ("u = min(waiting, key=waiting.get)  #", "del waiting[u]", ALGORITHM),
        ("u, cost = min(waiting.items(), key=f)  #", "waiting.pop(u)", ALGORITHM),
        ("u = min(waiting)  #", "distance.remove(u)", None),  # of what is left nothing is taken off
        ("u = min(waiting)  #", "waiting.remove(distance)", None),
        ("u = min(3, distance)  #", "waiting.remove(u)", None),
    ],
)
def test_the_least_of_what_is_left(first: str, second: str, expected: str | None) -> None:
    verdict = judged(loop(first, second), CHOICE)
    assert (verdict.category == ALGORITHM) == (expected == ALGORITHM), verdict
    if expected is not None:
        assert verdict.spends is not None
        assert verdict.spends(CHOICE)
        assert not verdict.spends(SORT)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("waiting.sort(key=f)  #", "u = waiting.pop(0)", ALGORITHM),
        ("waiting.sort()  #", "u = waiting.pop()", ALGORITHM),
        ("waiting.sort()  #", "u = distance.pop()", None),
        ("waiting.sort()  #", "u = waiting.pop(distance)", None),
    ],
)
def test_what_is_sorted_to_take_one_off(first: str, second: str, expected: str | None) -> None:
    assert judged(loop(first, second), SORT).category == expected


def test_the_least_once_is_no_repetition() -> None:
    assert judged("def f(waiting):\n u = min(waiting)  #\n waiting.remove(u)", CHOICE).category != ALGORITHM
