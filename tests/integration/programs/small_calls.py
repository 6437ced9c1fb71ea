"""Calls that take less than watching them does: for a second of CPU time, which is what all their own times are.

Says how long that was, and how often ``calling`` was called; ``leaf`` was four times as often.
"""

import json
from time import process_time


def leaf(number: int) -> int:
    return number + 1


def calling(number: int) -> int:
    return leaf(number) + leaf(number) + leaf(number) + leaf(number)


begun, calls = process_time(), 0
while process_time() - begun < 1:
    for each in range(2000):
        calling(each)
    calls += 2000
print(json.dumps({"cpu_s": process_time() - begun, "calls": calls}))
