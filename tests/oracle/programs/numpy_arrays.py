"""numpy arithmetic by operators, which no CALL announces: every result is an array of a known size."""

import numpy as np
from memory_truth import MemoryTruth

ROUNDS = 150
A = np.arange(150_000, dtype=np.float64)
B = A + 1


def work(truth: MemoryTruth) -> None:
    for index in range(ROUNDS):
        c = A * B  # @product
        index += c.ndim  # @after
        truth.add("product", c.nbytes)
        d = A + B  # @sum
        index += d.ndim  # @after
        truth.add("sum", d.nbytes)
        e = -c  # @negative
        index += e.ndim  # @after
        truth.add("negative", e.nbytes)
        f = A < B  # @compare
        index += f.ndim  # @after
        truth.add("compare", f.nbytes)


def main() -> None:
    truth = MemoryTruth()
    work(truth)
    truth.write()


if __name__ == "__main__":
    main()
