"""What one sensor measured at most at each station: with a list of the groups, and by asking for the column only.

Scalene (OSDI 2023), section 7, "Pandas - concat and groupby queries".
"""

import sys

import numpy as np
import pandas as pd

STATIONS = 50
SENSORS = 16


def measurements(rows: int) -> pd.DataFrame:
    """A row per measurement, of the stations in no order; the columns 0 to 15 are the sensors."""
    random = np.random.default_rng(1)
    table = pd.DataFrame(random.normal(size=(SENSORS, rows)).T)
    table["station"] = random.integers(STATIONS, size=rows)
    return table


def highest(table: pd.DataFrame) -> pd.Series:
    """The slow way: the groups are a copy of the whole table, of which one column is used."""
    groups = list(table.groupby("station"))
    return pd.Series({station: group[3].max() for station, group in groups})


def highest_of_column(table: pd.DataFrame) -> pd.Series:
    """The same; pandas goes through the one column, where it is."""
    return table.groupby("station")[3].max()


def main(rows: int, *, column: bool) -> None:
    """Print the highest of ``rows`` measurements."""
    table = measurements(rows)
    found = highest_of_column(table) if column else highest(table)
    print(f"{found.max():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), column="--column" in sys.argv)
