"""Passes over a whole collection, or over the characters of a text, that a loop makes again and again."""

from __future__ import annotations

import pytest

from unit.analyzer.recordings import Builder
from unit.report.suggested import Answer, found, hot, rules

RARITY = """class Notes:
    def __init__(self):
        self.notes = []
    def add(self, note):
        self.notes.append(note)
    def rarity(self, term):
        return sum(1 for note in self.notes if term in note.counts)
    def weigh(self, terms):
        return {term: self.rarity(term) for term in terms}
"""
ORDERS = """def totals(customers, orders):
    result = {}
    for customer in customers:
        result[customer] = [order for order in orders if order.customer == customer]
    return result
"""
JOIN = """def join(left, right, found):
    for one in left:
        for other in right:
            if other["key"] == one["key"]:
                found.append((one, other))
"""


def test_a_pass_for_each_call_names_the_loop_and_what_to_make_once(builder: Builder, answer: Answer) -> None:
    hot(builder, RARITY, 7)
    (one,) = found(answer)
    assert (one.rule, one.line) == ("scan-again", 7)
    assert "each call of “rarity”, in the loop of line 9" in one.text
    assert "term is in note.counts" in one.text
    assert "Counter" in one.instead


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.rarity(term) for", "self.add(self.rarity(term)) for"),  # the collection grows meanwhile
        ("in terms}", "in terms if self.notes.pop()}"),
        ("{term: self.rarity(term) for term in terms}", "self.rarity(terms)"),  # once, for all that is known
        ("term in note.counts", "term in self.counts"),
        ("term in note.counts", "7 in note.counts"),  # no value of the round
        ("term in note.counts", "note.counts"),
        ("term in note.counts", "found(note, term)"),
        (" if term in note.counts", " if term in note.counts if note"),
    ],
)
def test_what_is_no_pass_for_each_value(builder: Builder, answer: Answer, old: str, new: str) -> None:
    assert old in RARITY
    hot(builder, RARITY.replace(old, new), 7)
    assert rules(answer) == []


def test_a_method_of_another_name_space_is_not_followed(builder: Builder, answer: Answer) -> None:
    hot(builder, RARITY.replace("rarity", "get"), 7)  # may be a dict's
    assert rules(answer) == []


@pytest.mark.parametrize(("source", "line"), [(ORDERS, 4), (JOIN, 3), (JOIN, 4)])
def test_items_of_one_key_in_a_loop(builder: Builder, answer: Answer, source: str, line: int) -> None:
    hot(builder, source, line)
    (one,) = found(answer)
    assert one.rule == "scan-again"
    assert "a dict from order" in one.instead.replace("other", "order")


@pytest.mark.parametrize(
    ("source", "line", "old", "new"),
    [
        (ORDERS, 4, "orders if", "customer.orders if"),  # each has its own
        (ORDERS, 4, "result = {}", "result = {}\n    del result\n    result = {}\n    while customers:"),
        (JOIN, 4, "in right", "in one.parts"),
        (JOIN, 4, "found.append((one, other))", "right.remove(other)"),
        (JOIN, 4, "found.append((one, other))", "break"),
        (JOIN, 4, "==", "<"),
    ],
)
def test_items_that_are_others_each_time(
    builder: Builder, answer: Answer, source: str, line: int, old: str, new: str
) -> None:
    assert old in source
    hot(builder, source.replace(old, new), line)
    assert "scan-again" not in [rule for rule, _ in rules(answer)]


def test_a_pass_with_little_of_the_time_is_silence(builder: Builder, answer: Answer) -> None:
    hot(builder, RARITY, 7, samples=18)
    hot(builder, RARITY, 3, samples=282)
    assert rules(answer) == []


SCORE = """from pathlib import Path
def score(word):
    total = 0
    for letter in reversed(word):
        total = (total * 31 + ord(letter)) % 65521
    return total
def count(path):
    text = Path(path).read_text()
    return words(text), [score(word) for word in text.split()]
def words(text):
    found = 0
    for letter in text:
        found += letter.isalpha()
    return found
"""


@pytest.mark.parametrize(("line", "kept"), [(5, True), (13, False)])
def test_a_text_by_its_characters(builder: Builder, answer: Answer, line: int, kept: bool) -> None:
    hot(builder, SCORE, line)
    (one,) = found(answer)
    assert (one.rule, one.line) == ("by-characters", line)
    assert ("functools.cache on “score”" in one.instead) is kept


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (5, "ord(letter)", "len(letter)"),  # words, for all that is known
        (13, ".read_text()", ".read_bytes()"),
        (13, "words(text),", "words(text), words(path),"),
        (1, "", ""),
    ],
)
def test_what_is_not_certainly_a_text(builder: Builder, answer: Answer, line: int, old: str, new: str) -> None:
    hot(builder, SCORE.replace(old, new) if old else SCORE, line)
    assert rules(answer) == []


def test_native_code_for_each_character_is_not_the_interpreter(builder: Builder, answer: Answer) -> None:
    native = builder.native_frame(builder.module("/usr/lib/_hash.so"), "hash_one")
    hot(builder, SCORE, 5, native_frame=native)
    assert rules(answer) == []
