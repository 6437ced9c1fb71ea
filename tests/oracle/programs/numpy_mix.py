"""Native work of numpy: matrix product and sum by operator, a function by call, and a little Python."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # the truth below is one thread's

import numpy as np
from truth import Clocks, seconds

SIDE = 160
A = np.arange(SIDE * SIDE, dtype=np.float64).reshape(SIDE, SIDE) / SIDE
B = A.T.copy()
WIDE = np.arange(1280 * 1280, dtype=np.float64).reshape(1280, 1280)
ACROSS = WIDE.astype(np.int32).T  # of another type and order, which makes sums slow


def product(rounds: int) -> None:
    for index in range(rounds):
        c = A @ B  # @product
        index += c.ndim  # @after-product


def addition(rounds: int) -> None:
    for index in range(rounds):
        c = WIDE + ACROSS  # @addition
        index += c.ndim  # @after-addition


def call(rounds: int) -> None:
    for index in range(rounds):
        c = np.sort(B, axis=0)  # @call
        index += c.ndim  # @after-call


def python(rounds: int) -> int:
    total = 0
    for index in range(rounds):  # @python
        total += index & 3  # @python
    return total


def main() -> None:
    clocks = Clocks()
    clocks.cycle(
        seconds(4.0),
        [("product", product, 40), ("addition", addition, 5), ("call", call, 40), ("python", python, 50_000)],
    )
    clocks.write()


if __name__ == "__main__":
    main()
