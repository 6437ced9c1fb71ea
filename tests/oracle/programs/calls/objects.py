"""Small methods, properties, closures and constructors, as object-oriented programs have them."""

import sys

from counts import CALLS


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y

    @property
    def squared(self) -> int:
        return self.x * self.x + self.y * self.y

    def moved(self, by: int) -> "Point":
        return Point(self.x + by, self.y)


def scaler(factor: int):  # type: ignore[no-untyped-def]
    def scale(value: int) -> int:
        return value * factor

    return scale


def run(turns: int) -> None:
    for turn in range(turns):
        scale = scaler(turn % 7)
        point = Point(1, 2)
        for by in range(50):
            point = point.moved(by)
            scale(point.squared)
    CALLS.update({"__init__": 51 * turns, "squared": 50 * turns, "moved": 50 * turns})
    CALLS.update(scaler=turns, scale=50 * turns)


run(int(sys.argv[1]) if len(sys.argv) > 1 else 160_000)
