"""Programs that repeat work with NumPy and with Python itself, each with a twin that does not."""

from programs.repetitions.program import ALGORITHM, INVARIANT, MISUSE, SAME_CALL, SLICE, Pair

PAIRS = {
    "prefix": Pair(
        ALGORITHM,
        """\
import numpy as np
rng = np.random.default_rng(3)
def running(x):
    out = np.empty(len(x))
    for i in range(len(x)):
        out[i] = np.sum(x[: i + 1])  # HOT
    return out
while time.process_time() < END:
    running(rng.random(8000))
""",
        """\
import numpy as np
rng = np.random.default_rng(3)
def running(x):
    return np.cumsum(x)
while time.process_time() < END:
    running(rng.random(8000))
""",
    ),
    "rank": Pair(
        ALGORITHM,
        """\
import numpy as np
rng = np.random.default_rng(3)
def medians(stream):
    found = []
    for i in range(1, len(stream)):
        found.append(np.sort(stream[:i])[i // 2])  # HOT
    return found
while time.process_time() < END:
    medians(rng.random(2000))
""",
        """\
import numpy as np
from bisect import insort
rng = np.random.default_rng(3)
def medians(stream):
    found, seen = [], []
    for value in stream.tolist():
        insort(seen, value)
        found.append(seen[len(seen) // 2])
    return found
while time.process_time() < END:
    medians(rng.random(2000))
""",
    ),
    "zscore": Pair(
        INVARIANT,
        """\
import numpy as np
rng = np.random.default_rng(5)
def scored(table):
    out = np.empty_like(table)
    for i in range(len(table)):
        out[i] = (table[i] - table.mean(axis=0)) / table.std(axis=0)  # HOT
    return out
while time.process_time() < END:
    scored(rng.random((200, 30)))
""",
        """\
import numpy as np
rng = np.random.default_rng(5)
def scored(table):
    return (table - table.mean(axis=0)) / table.std(axis=0)
while time.process_time() < END:
    scored(rng.random((200, 30)))
""",
    ),
    "builtin": Pair(
        MISUSE,
        """\
import numpy as np
rng = np.random.default_rng(4)
while time.process_time() < END:
    values = rng.random(20000)
    total = sum(values)  # HOT
""",
        """\
import numpy as np
rng = np.random.default_rng(4)
while time.process_time() < END:
    values = rng.random(20000)
    total = values.sum()
""",
    ),
    "scalar": Pair(
        MISUSE,
        """\
import numpy as np, random
random.seed(4)
def lengths(points):
    return [np.sqrt(x * x + y * y) for x, y in points]  # HOT
while time.process_time() < END:
    lengths([(random.random(), random.random()) for _ in range(2000)])
""",
        """\
import math, random
random.seed(4)
def lengths(points):
    return [math.sqrt(x * x + y * y) for x, y in points]
while time.process_time() < END:
    lengths([(random.random(), random.random()) for _ in range(2000)])
""",
    ),
    "window": Pair(
        SAME_CALL,
        """\
import numpy as np
rng = np.random.default_rng(3)
def spectrum(frame):
    window = np.hanning(2048)  # HOT
    return np.abs(np.fft.rfft(frame * window))
while time.process_time() < END:
    spectrum(rng.random(2048))
""",
        """\
import numpy as np
rng = np.random.default_rng(3)
WINDOW = np.hanning(2048)
def spectrum(frame):
    return np.abs(np.fft.rfft(frame * WINDOW))
while time.process_time() < END:
    spectrum(rng.random(2048))
""",
    ),
    "comp": Pair(
        SLICE,
        """\
import numpy as np
rng = np.random.default_rng(3)
def pairwise(points):
    n = points.shape[0]
    p = points
    return [[(p[i, 0] - p[j, 0]) ** 2 + (p[i, 1] - p[j, 1]) ** 2 for j in range(n)] for i in range(n)]  # HOT
while time.process_time() < END:
    points = rng.random((60, 2))
    pairwise(points)
""",
        """\
import numpy as np
rng = np.random.default_rng(3)
def pairwise(points):
    d = points[:, None, :] - points[None, :, :]
    return (d ** 2).sum(axis=2)
while time.process_time() < END:
    points = rng.random((60, 2))
    pairwise(points)
""",
    ),
    "stencil": Pair(
        SLICE,
        """\
import numpy as np
rng = np.random.default_rng(3)
def smooth(signal, out):
    for i in range(1, len(signal) - 1):
        out[i] = 0.25 * signal[i - 1] + 0.5 * signal[i] + 0.25 * signal[i + 1]  # HOT
while time.process_time() < END:
    signal = rng.random(4000)
    out = np.zeros(4000)
    smooth(signal, out)
""",
        """\
import numpy as np
rng = np.random.default_rng(3)
def smooth(signal, out):
    out[1:-1] = 0.25 * signal[:-2] + 0.5 * signal[1:-1] + 0.25 * signal[2:]
while time.process_time() < END:
    signal = rng.random(4000)
    out = np.zeros(4000)
    smooth(signal, out)
""",
    ),
    "append": Pair(
        ALGORITHM,
        """\
import numpy as np
rng = np.random.default_rng(1)
def collect(values):
    kept = np.array([])
    for value in values:
        if value > 0.2:
            kept = np.append(kept, value)  # HOT
    return kept
while time.process_time() < END:
    collect(rng.random(8000).tolist())
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def collect(values):
    kept = []
    for value in values:
        if value > 0.2:
            kept.append(value)
    return np.array(kept)
while time.process_time() < END:
    collect(rng.random(8000).tolist())
""",
    ),
    "bytes": Pair(
        ALGORITHM,
        """\
import random
random.seed(1)
def body(parts):
    data = b""
    for part in parts:
        data += part  # HOT
    return data
while time.process_time() < END:
    body([random.randbytes(100) for _ in range(5000)])
""",
        """\
import random
random.seed(1)
def body(parts):
    return b"".join(parts)
while time.process_time() < END:
    body([random.randbytes(100) for _ in range(5000)])
""",
    ),
    "lookup": Pair(
        ALGORITHM,
        """\
import numpy as np
rng = np.random.default_rng(1)
def positions(ids, wanted):
    found = []
    for key in wanted:
        found.append(int(np.where(ids == key)[0][0]))  # HOT
    return found
while time.process_time() < END:
    ids = rng.permutation(20000)
    positions(ids, rng.integers(0, 20000, 500))
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def positions(ids, wanted):
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]
while time.process_time() < END:
    ids = rng.permutation(20000)
    positions(ids, rng.integers(0, 20000, 500))
""",
    ),
    "rolling": Pair(
        ALGORITHM,
        """\
import numpy as np
rng = np.random.default_rng(1)
def rolling(prices, window):
    out = np.full(len(prices), np.nan)
    for i in range(window, len(prices)):
        out[i] = prices[i - window : i].mean()  # HOT
    return out
while time.process_time() < END:
    rolling(rng.random(4000), 500)
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def rolling(prices, window):
    out = np.full(len(prices), np.nan)
    sums = np.cumsum(np.concatenate(([0.0], prices)))
    out[window:] = (sums[window:-1] - sums[: -window - 1]) / window
    return out
while time.process_time() < END:
    rolling(rng.random(4000), 500)
""",
    ),
    "inverse": Pair(
        INVARIANT,
        """\
import numpy as np
rng = np.random.default_rng(1)
def distances(points, center, cov):
    found = []
    for point in points:
        offset = point - center
        found.append(float(offset @ np.linalg.inv(cov) @ offset))  # HOT
    return found
while time.process_time() < END:
    base = rng.random((40, 40))
    distances(rng.random((100, 40)), rng.random(40), base @ base.T + np.eye(40))
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def distances(points, center, cov):
    found = []
    inverse = np.linalg.inv(cov)
    for point in points:
        offset = point - center
        found.append(float(offset @ inverse @ offset))
    return found
while time.process_time() < END:
    base = rng.random((40, 40))
    distances(rng.random((100, 40)), rng.random(40), base @ base.T + np.eye(40))
""",
    ),
    "percentile": Pair(
        INVARIANT,
        """\
import numpy as np
rng = np.random.default_rng(1)
def clipped(rows, reference):
    out = []
    for row in rows:
        high = np.percentile(reference, 95)  # HOT
        out.append(np.minimum(row, high))
    return out
while time.process_time() < END:
    clipped(rng.random((100, 50)), rng.random(10000))
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def clipped(rows, reference):
    out = []
    high = np.percentile(reference, 95)
    for row in rows:
        out.append(np.minimum(row, high))
    return out
while time.process_time() < END:
    clipped(rng.random((100, 50)), rng.random(10000))
""",
    ),
    "unique": Pair(
        INVARIANT,
        """\
import numpy as np
rng = np.random.default_rng(1)
def shares(labels, queries):
    out = []
    for query in queries:
        classes = np.unique(labels)  # HOT
        out.append(np.count_nonzero(labels == query) / len(classes))
    return out
while time.process_time() < END:
    shares(rng.integers(0, 30, 5000), rng.integers(0, 30, 50).tolist())
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def shares(labels, queries):
    out = []
    classes = np.unique(labels)
    for query in queries:
        out.append(np.count_nonzero(labels == query) / len(classes))
    return out
while time.process_time() < END:
    shares(rng.integers(0, 30, 5000), rng.integers(0, 30, 50).tolist())
""",
    ),
    "draws": Pair(
        MISUSE,
        """\
import numpy as np
rng = np.random.default_rng(1)
def rolls(count):
    total = 0
    for _ in range(count):
        total += rng.integers(1, 7)  # HOT
    return total
while time.process_time() < END:
    rolls(3000)
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def rolls(count):
    return int(rng.integers(1, 7, size=count).sum())
while time.process_time() < END:
    rolls(3000)
""",
    ),
    "max": Pair(
        MISUSE,
        """\
import numpy as np
rng = np.random.default_rng(1)
def peak(trace):
    return max(trace) - min(trace)  # HOT
while time.process_time() < END:
    peak(rng.random(10000))
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def peak(trace):
    return trace.max() - trace.min()
while time.process_time() < END:
    peak(rng.random(10000))
""",
    ),
    "means": Pair(
        MISUSE,
        """\
import numpy as np, random
random.seed(1)
def centers(pairs):
    out = []
    for low, high in pairs:
        out.append(np.mean([low, high]))  # HOT
    return out
while time.process_time() < END:
    centers([(random.random(), random.random()) for _ in range(1000)])
""",
        """\
import random
random.seed(1)
def centers(pairs):
    out = []
    for low, high in pairs:
        out.append((low + high) / 2)
    return out
while time.process_time() < END:
    centers([(random.random(), random.random()) for _ in range(1000)])
""",
    ),
    "config": Pair(
        SAME_CALL,
        """\
import json as j, random
random.seed(1)
ROLES = ["reader", "writer"]
TEXT = j.dumps({"routes": [{"path": f"/item/{n}", "limit": n * 3 % 17, "roles": ROLES} for n in range(300)]})
def allowed(number):
    routes = j.loads(TEXT)["routes"]  # HOT
    return routes[number % len(routes)]["limit"]
while time.process_time() < END:
    allowed(random.randrange(10**6))
""",
        """\
import json as j, random
random.seed(1)
ROLES = ["reader", "writer"]
TEXT = j.dumps({"routes": [{"path": f"/item/{n}", "limit": n * 3 % 17, "roles": ROLES} for n in range(300)]})
ROUTES = j.loads(TEXT)["routes"]
def allowed(number):
    return ROUTES[number % len(ROUTES)]["limit"]
while time.process_time() < END:
    allowed(random.randrange(10**6))
""",
    ),
    "dft": Pair(
        SAME_CALL,
        """\
import numpy as np
rng = np.random.default_rng(1)
def transform(block):
    n = len(block)
    k = np.arange(n)
    matrix = np.exp(-2j * np.pi * np.outer(k, k) / n)  # HOT
    return matrix @ block
while time.process_time() < END:
    transform(rng.random(128))
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
k = np.arange(128)
MATRIX = np.exp(-2j * np.pi * np.outer(k, k) / 128)
def transform(block):
    return MATRIX @ block
while time.process_time() < END:
    transform(rng.random(128))
""",
    ),
    "grid": Pair(
        SAME_CALL,
        """\
import numpy as np
rng = np.random.default_rng(1)
def field(cx, cy):
    x, y = np.meshgrid(np.linspace(-1, 1, 200), np.linspace(-1, 1, 200))  # HOT
    return float((x * cx + y * cy).max())
while time.process_time() < END:
    field(rng.random(), rng.random())
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
X, Y = np.meshgrid(np.linspace(-1, 1, 200), np.linspace(-1, 1, 200))
def field(cx, cy):
    return float((X * cx + Y * cy).max())
while time.process_time() < END:
    field(rng.random(), rng.random())
""",
    ),
    "counts": Pair(
        MISUSE,
        """\
import numpy as np
rng = np.random.default_rng(1)
def histogram(values, bins):
    counts = np.zeros(bins, dtype=int)
    for value in values:
        counts[value] += 1  # HOT
    return counts
while time.process_time() < END:
    histogram(rng.integers(0, 64, 5000).tolist(), 64)
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def histogram(values, bins):
    return np.bincount(values, minlength=bins)
while time.process_time() < END:
    histogram(rng.integers(0, 64, 5000), 64)
""",
    ),
    "threshold": Pair(
        SLICE,
        """\
import numpy as np
rng = np.random.default_rng(1)
def mask(image, level):
    rows, cols = image.shape
    out = np.zeros((rows, cols), np.uint8)
    for r in range(rows):
        for c in range(cols):
            if image[r, c] > level:  # HOT
                out[r, c] = 255
    return out
while time.process_time() < END:
    mask(rng.random((60, 60)), 0.3)
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def mask(image, level):
    return np.where(image > level, 255, 0).astype(np.uint8)
while time.process_time() < END:
    mask(rng.random((60, 60)), 0.3)
""",
    ),
}
