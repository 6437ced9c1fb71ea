"""Programs whose native calls repeat nothing that they need not: NAME SECONDS of CPU time."""

import io
import json
import math
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

rng = np.random.default_rng(11)
state: dict[str, Any] = {
    "array": rng.random(20_000),
    "matrix": rng.random((120, 120)) / 60,
    "vector": rng.random(120),
    "number": 1,
}


def vectorised() -> None:
    state["array"] = np.sqrt(state["array"] * 1.0001 + 0.25)


def scaled() -> None:
    values = state["array"]
    values *= 0.999
    values += 0.001


def matrices() -> None:
    state["matrix"] = state["matrix"] @ state["matrix"] + np.eye(120) * 0.1
    state["matrix"] /= np.abs(state["matrix"]).max()


def iteration() -> None:
    vector = state["vector"]
    for _ in range(20):
        vector = state["matrix"] @ vector
        vector = vector / np.abs(vector).max() + 0.01
    state["vector"] = vector


def python() -> None:
    total = 0
    for number in range(2000):
        total += number * number % 7
    state["number"] = total


def sorting() -> None:
    rng.random(20_000).sort()


def text() -> None:
    state["number"] += 1
    json.loads(json.dumps({str(key): key * state["number"] for key in range(300)}))


def compressing() -> None:
    zlib.compress(rng.bytes(20_000), 6)


def files() -> None:
    with io.BytesIO() as file:
        for _ in range(20):
            file.write(rng.bytes(2000))
        file.getvalue()


def spinning() -> None:
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end:
        sum(range(500))


class Transform:
    """Turned as in repetitions.py, but by another angle each time."""

    def __init__(self) -> None:
        self.matrix = np.identity(3)

    def rotate(self, theta: float) -> None:
        a = math.cos(theta)
        b = math.sin(theta)
        turn = np.array([[a, -b, 0.0], [b, a, 0.0], [0.0, 0.0, 1.0]], float)
        self.matrix = np.dot(turn, self.matrix)


transform, angles = Transform(), rng.random(100).tolist()


def turning() -> None:
    for angle in angles:
        transform.rotate(angle)


columns = rng.random((60, 4000))


def rolling() -> None:
    order = rng.permutation(60)
    columns[:] = columns[order]


def steps() -> None:
    x = rng.random(40)
    for _ in range(50):
        x = x * 0.9 + rng.random(40)
        x -= x.mean()


def main(name: str, seconds: float) -> None:
    run: Callable[[], None] = globals()[name]
    end = time.process_time() + seconds
    rounds = 0
    while time.process_time() < end:
        for _ in range(10):
            run()
        rounds += 10
    print(rounds)


main(sys.argv[1], float(sys.argv[2]))
