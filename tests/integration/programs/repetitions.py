"""Programs of PieProf's table 2 as small functions, each as it was and as it was mended: NAME SECONDS of CPU time.

They are written after the patterns that the paper and the projects' histories show; arrays are NumPy's throughout.
"""

import sys
import time
from collections.abc import Callable
from math import modf

import numpy as np

rng = np.random.default_rng(7)


# IrisData, nn_backprop.py(222 to 278): slice underutilization. Paper: 2.02 times faster, with a slice for each row.
hidden_weights, gradients, learn_rate = np.ones((40, 30)), rng.random((40, 30)), 1e-6


def iris() -> None:
    for i in range(40):
        for j in range(30):
            delta = -1.0 * learn_rate * gradients[i, j]
            hidden_weights[i, j] += delta


def iris_mended() -> None:
    hidden_weights[:] += -1.0 * learn_rate * gradients


# Metaheuristics, FunctionUtil.py(270): slice underutilization. Paper: 27.3 times faster.
solution = rng.random(300)


def cec_4() -> float:
    res = 0.0
    for i in range(len(solution) - 1):
        res += 100 * np.square(solution[i] ** 2 - solution[i + 1]) + np.square(solution[i] - 1)
    return res


def cec_4_mended() -> float:
    x = solution
    return float(np.sum(100 * np.square(x[:-1] ** 2 - x[1:]) + np.square(x[:-1] - 1)))


# Metaheuristics, FunctionUtil.py(374): misuse of an API. Paper: 1.9 times faster.
def cec_9() -> float:
    result = 1.0
    for i in range(5):
        temp = 1.0
        for j in range(32):
            temp += i * np.abs(np.power(2.0, j + 1) * 0.3 - np.round(np.power(2.0, j + 1) * 0.3)) / 2.0**j
        result *= temp
    return result


def cec_9_mended() -> float:
    result = 1.0
    for i in range(5):
        temp = 1.0
        for j in range(32):
            temp += i * abs(modf(2.0 ** (j + 1) * 0.3 + 0.5)[0] - 0.5) / 2.0**j
        result *= temp
    return result


# Metaheuristics, FunctionUtil.py(309, 375): loop-invariant computation. Paper: 1.4 times faster.
DIMENSIONS = 30.0


def cec_power() -> float:
    result = 1.0
    for number in range(1, 60):
        result += number / np.power(DIMENSIONS, 1.2)
    return result


def cec_power_mended() -> float:
    result = 1.0
    power = np.power(DIMENSIONS, 1.2)
    for number in range(1, 60):
        result += number / power
    return result


# Matplotlib, transforms.py(1973), and Metaheuristics, FunctionUtil.py(437): the same arguments again. Paper: 2.8 times.
class Transform:
    def __init__(self) -> None:
        self.matrix = np.identity(3)

    def rotate(self, theta: float) -> None:
        a = np.cos(theta)
        b = np.sin(theta)
        turn = np.array([[a, -b, 0.0], [b, a, 0.0], [0.0, 0.0, 1.0]], float)
        self.matrix = np.dot(turn, np.identity(3))


class Remembered(Transform):
    theta: float | None = None

    def rotate(self, theta: float) -> None:
        if theta != self.theta:
            self.theta = theta
            super().rotate(theta)


transform, remembered = Transform(), Remembered()


def rotate() -> None:
    for _ in range(100):
        transform.rotate(0.5)


def rotate_mended() -> None:
    for _ in range(100):
        remembered.rotate(0.5)


# CNN-from-Scratch, conv.py(62): slice underutilization. Paper: 3.9 times faster, with a slice for all filters in the
# loops over the image, which repeat themselves still.
filters, out_gradients, region = np.zeros((8, 3, 3)), rng.random((26, 26, 8)), rng.random((3, 3))


def conv() -> None:
    for i in range(6):
        for j in range(26):
            for f in range(8):
                filters[f] += out_gradients[i, j, f] * region


def conv_mended() -> None:
    filters[:] += out_gradients[:6].sum(axis=(0, 1))[:, None, None] * region


# Scikit-learn, least_angle.py(456, 458): an inefficient algorithm. Paper: 6.1 times faster.
columns, places = rng.random((60, 40)), np.arange(60)


def lars_path() -> None:
    for i in range(59):
        columns[[i, i + 1]] = columns[[i + 1, i]]


def lars_path_mended() -> None:
    first = columns[0].copy()
    columns[:-1] = columns[1:]
    columns[-1] = first


# LinearRegression.py(49, 50): the same call twice. Paper: 1.5 times faster.
samples, wanted = rng.random((40, 8)), rng.random(40)


def regression() -> None:
    theta = np.zeros(8)
    for _ in range(30):
        step = np.sum(samples.dot(theta) - wanted)
        cost = np.sum(np.square(samples.dot(theta) - wanted))
        theta = theta - 1e-4 * step - 1e-9 * cost


def regression_mended() -> None:
    theta = np.zeros(8)
    for _ in range(30):
        error = samples.dot(theta) - wanted
        theta = theta - 1e-4 * np.sum(error) - 1e-9 * np.sum(np.square(error))


# Ta, trend.py(536 to 579): slice underutilization. Paper: 16.6 times faster.
index_values, directional = np.zeros(2000), rng.random(2000)


def adx() -> None:
    for i in range(15, len(index_values)):
        index_values[i] = directional[i - 1] / 14.0 + directional[i] * 13.0


def adx_mended() -> None:
    index_values[15:] = directional[14:-1] / 14.0 + directional[15:] * 13.0


# Cholesky, cholesky.py(76): slice underutilization. Paper: 3.9 times faster.
positive = np.eye(24) * 30 + rng.random((24, 24))


def cholesky() -> None:
    lower = np.zeros((24, 24))
    for i in range(24):
        for j in range(i + 1):
            total = 0.0
            for k in range(j):
                total += lower[i, k] * lower[j, k]
            lower[i, j] = positive[i, j] - total


def cholesky_mended() -> None:
    lower = np.zeros((24, 24))
    for j in range(24):
        lower[j:, j] = positive[j:, j] - lower[j:, :j] @ lower[j, :j]


# Deep Dictionary Learning (section 3.1): a product that does not change in the loop. Paper: 3 times faster.
dictionary, signals = rng.random((48, 48)) / 48, rng.random((48, 48))


def product() -> None:
    codes = np.zeros((48, 48))
    for _ in range(20):
        codes = dictionary @ signals - (dictionary @ dictionary) @ codes


def product_mended() -> None:
    codes = np.zeros((48, 48))
    first, second = dictionary @ signals, dictionary @ dictionary
    for _ in range(20):
        codes = first - second @ codes


# PyTorch's optimizer in Pytorch-examples, adam.py:loop(66): loop-invariant computation. Paper: 1.07 times faster. The
# correction for the number of steps is computed for each of the network's parameters anew.
SHAPES = ((16, 8), (8,), (8, 8), (8,), (8, 4), (4,), (4, 4), (4,), (4, 2), (2,))
parameters = [rng.random(shape) for shape in SHAPES]
slopes = [rng.random(shape) for shape in SHAPES]
first_moments = [np.zeros(shape) for shape in SHAPES]
second_moments = [np.zeros(shape) for shape in SHAPES]
steps_taken = [0]


def adam() -> None:
    steps_taken[0] += 1
    step = steps_taken[0]
    for weights, slope, mean, square in zip(parameters, slopes, first_moments, second_moments, strict=True):
        mean += 0.1 * (slope - mean)
        square += 0.001 * (slope * slope - square)
        rate = 1e-3 * np.sqrt(1 - np.power(0.999, step)) / (1 - np.power(0.9, step))
        weights -= rate * mean / (np.sqrt(square) + 1e-8)


def adam_mended() -> None:
    steps_taken[0] += 1
    step = steps_taken[0]
    rate = 1e-3 * np.sqrt(1 - np.power(0.999, step)) / (1 - np.power(0.9, step))
    for weights, slope, mean, square in zip(parameters, slopes, first_moments, second_moments, strict=True):
        mean += 0.1 * (slope - mean)
        square += 0.001 * (slope * slope - square)
        weights -= rate * mean / (np.sqrt(square) + 1e-8)


# GGNN.pytorch, model.py(122, 125): loop-invariant computation, of stores. Paper: 1.07 times faster. Each step lays out
# the two halves of the graph's edges anew.
edges, inward, outward = rng.random((24, 48)) / 24, np.zeros((24, 24)), np.zeros((24, 24))
first_state = rng.random((24, 8))


def ggnn() -> None:
    state = first_state
    for _ in range(10):
        inward[:] = edges[:, :24].T
        outward[:] = edges[:, 24:].T
        state = np.tanh(inward @ state + outward @ (1 - state))


def ggnn_mended() -> None:
    inward[:] = edges[:, :24].T
    outward[:] = edges[:, 24:].T
    state = first_state
    for _ in range(10):
        state = np.tanh(inward @ state + outward @ (1 - state))


# Torchvision in Network-slimming, functional.py(164): slice underutilization. Paper: 1.7 times faster. (Pictures are
# smaller than there, as a call of NumPy is cheaper than one of PyTorch.)
picture, usual, spread = rng.random((3, 8, 8)), np.array([0.49, 0.48, 0.45]), np.array([0.25, 0.24, 0.26])


def normalize() -> None:
    tensor = picture.copy()
    for channel, mean, deviation in zip(tensor, usual, spread, strict=True):
        channel -= mean
        channel /= deviation


def normalize_mended() -> None:
    tensor = picture.copy()
    tensor -= usual[:, None, None]
    tensor /= spread[:, None, None]


# Deep Dictionary Learning in TensorFlow, listing 7: two products that do not change in the loop, once it is multiplied
# out. Paper: 3 times faster.
transposed = dictionary.T.copy()


def learning() -> None:
    codes = np.zeros((48, 48))
    for _ in range(20):
        codes = dictionary @ (signals - transposed @ codes)


def learning_mended() -> None:
    codes = np.zeros((48, 48))
    first, second = dictionary @ signals, dictionary @ transposed
    for _ in range(20):
        codes = first - second @ codes


def main(name: str, seconds: float) -> None:
    run: Callable[[], object] = globals()[name]
    end = time.process_time() + seconds
    rounds = 0
    while time.process_time() < end:
        for _ in range(10):
            run()
        rounds += 10
    print(rounds)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
