"""Functions of the file that a loop calls with the same arguments in each round."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import MS, START, Builder
from unit.report.suggested import Answer, found, hot, rules

PRICES = """import math
RATE = 0.9
def work(catalogue, rate):
    table = {}
    for item in catalogue:
        table[item["code"]] = round(item["price"] * RATE, 2)
    return table
def total(orders, catalogue):
    amount = 0.0
    for order in orders:
        table = work(catalogue, 2)
        amount += table[order["code"]] * order["count"]
    return amount
"""


def test_the_same_result_in_each_round_is_made_once(builder: Builder, answer: Answer) -> None:
    hot(builder, PRICES, 6)
    (one,) = found(answer)
    assert (one.rule, one.line, one.function) == ("same-each-round", 11, "total")
    assert "work(catalogue, 2) gives the same" in one.text


def test_without_another_name_between(builder: Builder, answer: Answer) -> None:
    hot(
        builder,
        PRICES.replace("        table = work(catalogue, 2)\n", "").replace("table[order", "work(catalogue, 2)[order"),
        6,
    )
    assert rules(answer) == [("same-each-round", 11)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("work(catalogue, 2)", "work(catalogue, order)"),  # another one each time
        ("work(catalogue, 2)", "work(find(), 2)"),
        ("work(catalogue, 2)", "work(catalogue, 2).copy"),
        ("        amount +=", "        order['count'] = 3\n        amount +="),  # may be an item of the catalogue
        ("        amount +=", "        catalogue.append(order)\n        amount +="),
        ("        amount +=", "        other(order)\n        amount +="),
        ("        amount +=", "        table[7] = 1\n        amount +="),  # the loop changes the result
        ("        amount +=", "        orders = table\n        amount +="),
        ("    for order in orders:\n        table =", "    while orders:\n        table ="),
        ("    for order in orders:\n        table = work(catalogue, 2)\n    ", "    table = work(catalogue, 2)\n"),
        ("RATE = 0.9", "RATE = 0.9\ndef change():\n    global RATE\n    RATE = 1"),
        ("RATE = 0.9", "RATE = [0.9]"),
        ("    table = {}", "    table = {}\n    print(input())"),
        ("    table = {}", "    table = catalogue"),
        ("    return table", "        if len(table) > 9:\n            break\n    return table"),  # goes on next time
        ('item["price"] * RATE', "item.get('price') * RATE"),  # of a client, for all that is known
        ("    table = {}", "    table = {}\n    catalogue[0]['code'] += 1"),
        ("    table = {}", "    import time\n    table = {}"),
        ("def total", "work([], 1)\ndef total"),  # which call has the time?
        ("def total", "later = work\ndef total"),
        ("def work", "@cached\ndef work"),
    ],
)
def test_what_may_be_another_result(builder: Builder, answer: Answer, old: str, new: str) -> None:
    source = PRICES.replace(old, new, 1)
    assert source != PRICES
    hot(builder, source, 6)
    assert "same-each-round" not in [rule for rule, _ in rules(answer)]


def test_calls_with_little_of_the_time_are_silence(builder: Builder, answer: Answer) -> None:
    hot(builder, PRICES, 6, samples=18)
    at = builder.stack((builder.code(builder.file("/srv/b.py", "x = 1\n"), "main"), 0))
    for number in range(282):
        builder.cpu(at, time_ns=START + (18 + number) * MS)
    assert rules(answer) == []
