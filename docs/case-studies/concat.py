"""The mean of a year's measurements that come month by month: joined by ``concat`` first, and without.

Scalene (OSDI 2023), section 7, "Pandas - concat and groupby queries".
"""

import sys

import numpy as np
import pandas as pd

MONTHS = 12
COLUMNS = 8


def read_month(month: int, rows: int) -> pd.DataFrame:
    """One month's measurements, as if read from a file."""
    values = np.random.default_rng(month).normal(size=(COLUMNS, rows))
    return pd.DataFrame(values.T)


def mean_of_year(rows: int) -> float:
    """The slow way: all months are held, and then once more, as the year."""
    months = [read_month(month, rows) for month in range(MONTHS)]
    year = pd.concat(months, ignore_index=True)
    return float(year.to_numpy().mean())


def mean_by_month(rows: int) -> float:
    """The same of sums by month: no more than one month is held."""
    total = 0.0
    for month in range(MONTHS):
        total += float(read_month(month, rows).to_numpy().sum())
    return total / (MONTHS * rows * COLUMNS)


def main(rows: int, *, by_month: bool) -> None:
    """Print the mean of ``rows`` rows per month."""
    mean = mean_by_month if by_month else mean_of_year
    print(f"{mean(rows):.6f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), by_month="--by-month" in sys.argv)
