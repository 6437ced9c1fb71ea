"""One station's temperatures, hour by hour, out of a table of all sensors: by chained indexing, and without.

Scalene (OSDI 2023), section 7, "Pandas - Chained Indexing".
"""

import sys

import numpy as np
import pandas as pd

HOURS = 8760
STATIONS = 20
QUANTITIES = ["temperature", "pressure", "humidity", "wind"]


def measurements() -> pd.DataFrame:
    """One column per sensor, in the order in which the sensors were installed."""
    random = np.random.default_rng(1)
    sensors = [(f"station {number}", quantity) for number in range(STATIONS) for quantity in QUANTITIES]
    order = random.permutation(len(sensors))
    return pd.DataFrame({sensors[place]: random.normal(size=HOURS) for place in order}).copy()


def temperatures(table: pd.DataFrame, station: str, hours: range) -> list[float]:
    """The slow way: ``table[station]`` is looked up for every hour, and copies the columns of the station."""
    return [table[station]["temperature"][hour] for hour in hours]


def temperatures_hoisted(table: pd.DataFrame, station: str, hours: range) -> list[float]:
    """The same; what does not change is looked up once."""
    temperature = table[station]["temperature"]
    return [temperature[hour] for hour in hours]


def main(hours: int, *, hoisted: bool) -> None:
    """Print the highest temperature of the first ``hours`` hours."""
    table = measurements()
    look_up = temperatures_hoisted if hoisted else temperatures
    print(f"{max(look_up(table, 'station 7', range(hours))):.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]), hoisted="--hoisted" in sys.argv)
