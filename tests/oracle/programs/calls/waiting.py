"""As a server: waits for a request, reads it, works on it, answers. What follows a wait is always the same."""

import sys
import time

from counts import CALLS

PARTS = 60


def read_part(text: str) -> list[str]:
    return text.split(",")


def convert(word: str) -> int:
    return len(word) * 7


def check(value: int) -> bool:
    return value > 3


def answer(values: list[int]) -> str:
    return ",".join(str(value) for value in values)


def serve(requests: int) -> None:
    for number in range(requests):
        time.sleep(0.004)
        for part in range(PARTS):
            words = read_part("alpha,beta,gamma,delta,epsilon,zeta")
            values = [convert(word) for word in words]
            for value in values:
                check(value + part)
            if part % 20 == number % 20:
                answer(values)
                CALLS["answer"] += 1
        CALLS["read_part"] += PARTS
        CALLS["convert"] += 6 * PARTS
        CALLS["check"] += 6 * PARTS


serve(int(sys.argv[1]) if len(sys.argv) > 1 else 6000)
