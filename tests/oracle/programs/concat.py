"""pandas.concat copies all its data (2023 §7): two frames of known size, put together again and again."""

import sys

import numpy as np
import pandas as pd
from books import Books

ROWS = 2_000_000
FIRST = pd.DataFrame({name: np.arange(ROWS, dtype=np.float64) for name in ("a", "b")})
SECOND = FIRST * 2


def main() -> None:
    books = Books()
    for _ in range(int(sys.argv[2])):
        whole = pd.concat([FIRST, SECOND], ignore_index=True)  # @concat
        books.add("concat", whole["a"].nbytes + whole["b"].nbytes)
    books.write()


if __name__ == "__main__":
    main()
