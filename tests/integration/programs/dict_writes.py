"""Writes to dictionaries, so often that nothing else counts, in functions that are called."""

import json

ROUNDS, KEYS = 20_000, 50


def fill(table: dict[int, int], value: int) -> None:
    for key in range(KEYS):
        table[key] = value + key


table: dict[int, int] = {}
for number in range(ROUNDS):
    fill(table, 1000 * number)
print(json.dumps({"writes": ROUNDS * KEYS}))
