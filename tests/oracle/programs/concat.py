"""pandas.concat copies all its data (2023 §7): two frames of known size, put together again and again."""

import sys

import numpy as np
import pandas as pd
from memory_truth import MemoryTruth

ROWS = 2_000_000
FIRST = pd.DataFrame({name: np.arange(ROWS, dtype=np.float64) for name in ("a", "b")})
SECOND = FIRST * 2


def main() -> None:
    truth = MemoryTruth()
    for _ in range(int(sys.argv[2])):
        whole = pd.concat([FIRST, SECOND], ignore_index=True)  # @concat
        truth.add("concat", whole["a"].nbytes + whole["b"].nbytes)
    truth.write()


if __name__ == "__main__":
    main()
