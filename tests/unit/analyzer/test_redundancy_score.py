"""The witnesses of a line that may repeat work: what each weighs, and what their sum decides."""

from __future__ import annotations

import pytest

from tachograph.analyzer.conclusions.redundancy.candidates import Kind
from tachograph.analyzer.conclusions.redundancy.score import MOST_WEIGHT, Witness, counted, of_time, said, together


@pytest.mark.parametrize(
    ("kind", "met", "count", "least", "most"),
    [
        ("load", 0, 0, 0.0, 0.0),  # nothing was asked
        ("load", 1, 1, 0.1, 0.3),  # a load of ordinary code most often repeats
        ("load", 60, 60, 4.0, 5.0),
        ("load", 9, 10, -0.5, 0.5),
        ("load", 80, 100, -3.0, -1.0),  # as ordinary code does
        ("load", 0, 4, -4.0, -2.0),
        ("store", 9, 9, 2.0, 3.0),
        ("store", 36, 100, -3.0, 0.0),
        ("result", 2, 2, 3.0, 4.0),  # a kilobyte is hardly the same by chance
        ("result", 20, 40, 2.0, 3.0),  # another result beside it differs
        ("result", 1, 20, -3.0, -1.0),
        ("result", 0, 10_000, -MOST_WEIGHT, -4.0),
    ],
)
def test_a_counted_witness(kind: Kind, met: int, count: int, least: float, most: float) -> None:
    witness = counted(kind, met, count)
    assert least <= witness.weight <= most
    assert (witness.met, witness.count) == (met, count)


def test_few_pairs_weigh_little_and_add_up() -> None:
    weights = [counted("load", count, count).weight for count in (1, 3, 10, 30, 80)]
    assert weights == sorted(weights)
    assert weights[0] < weights[-1] / 10
    assert counted("load", 8000, 8000).weight == pytest.approx(weights[-1])  # of one line, they are not independent


def test_a_library_that_repeats_more_needs_more() -> None:
    assert counted("load", 60, 60, 0.95).weight < 1 < counted("load", 60, 60, 0.8).weight
    assert counted("load", 60, 60, 0.5).weight == counted("load", 60, 60).weight  # ordinary code is the least
    assert counted("result", 5, 5, 0.99).weight == counted("result", 5, 5).weight


@pytest.mark.parametrize(
    ("what", "part", "counts", "is_enough"),
    [
        ("no reason", 0.6, {"load": (60, 60)}, True),
        ("no reason", 0.6, {"load": (20, 20)}, False),
        ("no reason", 0.6, {"load": (60, 60), "result": (0, 20)}, False),  # what it computes is ever another
        ("no reason", 0.6, {"result": (57, 83)}, True),
        ("no reason", 0.06, {"result": (2, 2)}, False),
        ("reason", 0.6, {"load": (3, 3)}, True),
        ("reason", 0.6, {"load": (2, 3)}, False),
        ("reason", 0.2, {"load": (3, 3)}, False),
        ("reason", 0.2, {"load": (3, 3), "result": (4, 8)}, True),
        ("elements", 0.3, {"load": (1, 1)}, True),
        ("dispatch", 0.6, {"load": (15, 15)}, True),
        ("some dispatch", 0.6, {"load": (60, 60)}, False),
        ("sizes", 0.3, {}, True),
        ("time", 0.06, {}, True),
        ("time", 0.6, {"load": (0, 4)}, False),
    ],
)
def test_the_sum_decides(what: str, part: float, counts: dict[Kind, tuple[int, int]], *, is_enough: bool) -> None:
    score = together([of_time(part), said(what, what), *(counted(kind, *each) for kind, each in counts.items())])
    assert score.is_enough == is_enough, score


def test_the_parts_are_shown_the_heaviest_first() -> None:
    score = together([Witness("loads", 0.46, 3, 3), Witness("nothing", 0.0), Witness("results", -2.5, 0, 3)])
    assert str(score) == "Evidence -2.0 of 4.5 needed: results 0 of 3 -2.5, loads 3 of 3 +0.5."
