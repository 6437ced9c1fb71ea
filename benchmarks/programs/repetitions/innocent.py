"""Programs that repeat nothing, though they read the same tables and matrices again and again."""

INNOCENT = {
    "compress": """\
import bz2, lzma, random, zlib
random.seed(6)
words = [bytes(random.choices(b"abcdefghij", k=random.randint(2, 9))) for _ in range(400)]
while time.process_time() < END:
    text = b" ".join(random.choices(words, k=4000))
    packed = zlib.compress(text, 6)
    zlib.decompress(packed)
    bz2.compress(text)
""",
    "conv": """\
import ctypes, numpy as np
lib = ctypes.CDLL(os.environ["LIBRARY"])
lib.convolve.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_long]
rng = np.random.default_rng(6)
kernel = np.hanning(31)
out = np.empty(20000)
while time.process_time() < END:
    x = rng.random(20000)
    lib.convolve(out.ctypes.data, x.ctypes.data, 20000 - 31, kernel.ctypes.data, 31)
""",
    "image": """\
from PIL import Image, ImageFilter
import random
random.seed(6)
while time.process_time() < END:
    img = Image.frombytes("RGB", (256, 256), random.randbytes(256 * 256 * 3))
    small = img.resize((100, 100), Image.LANCZOS)
    soft = small.filter(ImageFilter.GaussianBlur(2))
    soft.convert("L").tobytes()
""",
    "json": """\
import json as j, random
random.seed(6)
while time.process_time() < END:
    users = [(random.randrange(10**6), f"user{random.randrange(999)}", random.random() < 0.5) for _ in range(300)]
    text = j.dumps([{"id": id, "name": name, "ok": ok, "tags": ["a", "b", "c"]} for id, name, ok in users])
    j.loads(text)
""",
    "matmul": """\
import numpy as np
rng = np.random.default_rng(6)
while time.process_time() < END:
    a, b = rng.random((160, 160)), rng.random((160, 160))
    c = a @ b
    d = np.einsum("ij,jk->ik", a, c)
    e = a.T.dot(d)
""",
    "pandas": """\
import numpy as np, pandas as pd
rng = np.random.default_rng(6)
while time.process_time() < END:
    frame = pd.DataFrame({"key": rng.integers(0, 50, 20000), "value": rng.random(20000)})
    means = frame.groupby("key")["value"].mean()
    joined = frame.join(means.rename("mean"), on="key")
    joined["rest"] = joined["value"] - joined["mean"]
""",
    "sparse": """\
import numpy as np, scipy.sparse as sp
rng = np.random.default_rng(6)
graph = sp.random(4000, 4000, 0.002, format="csr", random_state=1)
graph = sp.csr_matrix(graph / np.maximum(graph.sum(axis=0), 1e-9))
rank = np.ones(4000) / 4000
dense = np.zeros((300, 300)); dense[::30, ::30] = 1.0
while time.process_time() < END:
    rank = 0.85 * (graph @ rank) + 0.15 * rng.random(4000) / 4000
    mixed = dense @ rng.random((300, 40))
""",
    "train": """\
import numpy as np
rng = np.random.default_rng(6)
X = rng.random((4000, 50)); y = (X[:, 0] > 0.5).astype(float)
w = np.zeros(50)
def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))
def step(w, rate):
    error = sigmoid(X @ w) - y
    return w - rate * (X.T @ error) / len(y)
while time.process_time() < END:
    w = step(w, 0.5)
""",
    "bias": """\
import numpy as np
rng = np.random.default_rng(7)
bias = rng.random(20000)
mean = rng.random(20000)
while time.process_time() < END:
    x = rng.random(20000)
    x += bias
    x -= mean
""",
    "ctypesfn": """\
import ctypes, numpy as np
lib = ctypes.CDLL(os.environ["LIBRARY"])
lib.convolve.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_long]
rng = np.random.default_rng(6)
kernel = np.hanning(31)
out = np.empty(20000)
def filtered(x):
    lib.convolve(out.ctypes.data, x.ctypes.data, 20000 - 31, kernel.ctypes.data, 31)
    return out
while time.process_time() < END:
    filtered(rng.random(20000))
""",
    "layer": """\
import numpy as np
rng = np.random.default_rng(7)
W1, b1 = rng.standard_normal((64, 64)), rng.standard_normal(64)
W2, b2 = rng.standard_normal((64, 10)), rng.standard_normal(10)
def relu(z):
    return np.maximum(z, 0.0)
def infer(x):
    h = relu(x @ W1 + b1)
    return h @ W2 + b2
while time.process_time() < END:
    infer(rng.random((32, 64)))
""",
    "normalfn": """\
import numpy as np
rng = np.random.default_rng(7)
def noise(n):
    return rng.standard_normal(n)
def walk(x):
    return x + 0.1 * noise(len(x))
x = np.zeros(5000)
while time.process_time() < END:
    x = walk(x)
""",
    "pilpoint": """\
from PIL import Image
import random
random.seed(7)
table = [255 - i for i in range(256)] * 3
mask = Image.new("L", (200, 200), 128)
def toned(img):
    out = img.point(table)
    out.paste((0, 0, 0), (0, 0), mask)
    return out
while time.process_time() < END:
    toned(Image.frombytes("RGB", (200, 200), random.randbytes(200 * 200 * 3)))
""",
    "spline": """\
import numpy as np
from scipy.interpolate import CubicSpline
rng = np.random.default_rng(7)
xs = np.linspace(0, 10, 200)
curve = CubicSpline(xs, np.sin(xs))
def heights(x):
    return curve(x) + np.interp(x, xs, xs ** 2)
while time.process_time() < END:
    heights(rng.random(3000) * 10)
""",
    "fftfilter": """\
import numpy as np
rng = np.random.default_rng(1)
response = np.exp(-np.linspace(0, 4, 2049))
def filtered(block):
    return np.fft.irfft(np.fft.rfft(block) * response)
while time.process_time() < END:
    filtered(rng.random(4096))
""",
    "heap": """\
import heapq, random
random.seed(1)
def schedule(jobs):
    heap, finished = [], []
    for start, length in jobs:
        heapq.heappush(heap, (start + length, start))
        if len(heap) > 50:
            finished.append(heapq.heappop(heap))
    return finished
while time.process_time() < END:
    schedule([(random.random(), random.random()) for _ in range(3000)])
""",
    "images": """\
import numpy as np
rng = np.random.default_rng(1)
mean = rng.random((32, 32, 3)); std = rng.random((32, 32, 3)) + 0.5
def batch(images):
    out = (images - mean) / std
    flip = rng.random(len(images)) < 0.5
    out[flip] = out[flip][:, :, ::-1]
    return out.astype(np.float32)
while time.process_time() < END:
    batch(rng.random((64, 32, 32, 3)))
""",
    "jacobi": """\
import numpy as np
rng = np.random.default_rng(1)
A = rng.random((200, 200)) + 200 * np.eye(200)
D = np.diag(A)
R = A - np.diag(D)
while time.process_time() < END:
    b = rng.random(200)
    x = np.zeros(200)
    for _ in range(40):
        x = (b - R @ x) / D
""",
    "kmeans": """\
import numpy as np
rng = np.random.default_rng(1)
points = rng.random((3000, 4))
def assign(points, centers):
    return np.argmin(((points[:, None] - centers[None]) ** 2).sum(axis=2), axis=1)
while time.process_time() < END:
    centers = rng.random((8, 4))
    for _ in range(5):
        labels = assign(points, centers)
        centers = np.array([points[labels == k].mean(axis=0) if (labels == k).any() else centers[k] for k in range(8)])
""",
    "merge": """\
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
products = pd.DataFrame({"product": np.arange(500), "price": rng.random(500)})
def bill(orders):
    joined = orders.merge(products, on="product")
    return (joined["price"] * joined["count"]).groupby(joined["customer"]).sum()
while time.process_time() < END:
    orders = {"product": rng.integers(0, 500, 3000), "count": rng.integers(1, 9, 3000)}
    bill(pd.DataFrame({**orders, "customer": rng.integers(0, 200, 3000)}))
""",
    "predict": """\
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
rng = np.random.default_rng(1)
X, y = rng.random((2000, 5)), rng.random(2000)
ridge, near = Ridge().fit(X, y), KNeighborsRegressor().fit(X, y)
def serve(rows):
    return ridge.predict(rows) + near.predict(rows)
while time.process_time() < END:
    serve(rng.random((50, 5)))
""",
    "simulate": """\
import numpy as np
rng = np.random.default_rng(1)
def path(steps):
    price = 100.0
    shocks = rng.normal(0, 0.01, steps)
    return price * np.exp(np.cumsum(shocks))
while time.process_time() < END:
    [path(2000) for _ in range(20)]
""",
    "update": """\
import numpy as np
rng = np.random.default_rng(1)
velocity = np.zeros(5000)
gravity = rng.random(5000)
def step(position, dt):
    global velocity
    velocity = velocity * 0.99 - gravity * dt
    position += velocity * dt
    np.clip(position, 0, None, out=position)
    return position
position = rng.random(5000)
while time.process_time() < END:
    position = step(position, 0.01)
""",
    "words": """\
import re, random
from collections import Counter
random.seed(1)
vocabulary = ["".join(random.choices("abcdefgh", k=5)) for _ in range(2000)]
pattern = re.compile(r"[a-h]+")
while time.process_time() < END:
    text = " ".join(random.choices(vocabulary, k=5000))
    counts = Counter(pattern.findall(text))
    sorted(counts, key=counts.get)[:10]
""",
    "iadd_only": """\
import numpy as np
rng = np.random.default_rng(7)
drive = rng.random(3000)
while time.process_time() < END:
    u = rng.random(3000)
    for _ in range(300):
        u += drive
""",
    "normal_only": """\
import numpy as np
rng = np.random.default_rng(7)
def samples(n, count):
    return [rng.standard_normal(n) for _ in range(count)]
while time.process_time() < END:
    samples(500, 400)
""",
    "table_only": """\
import ctypes, random
lib = ctypes.CDLL(os.environ["LIBRARY"])
lib.crc_table.argtypes = [ctypes.c_void_p, ctypes.c_uint]
lib.crc_run.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long]
table = (ctypes.c_uint * 4096)()
lib.crc_table(table, 0xEDB88320)
def checksum(data):
    return lib.crc_run(table, data, len(data))
blocks = [random.randbytes(500) for _ in range(1000)]
while time.process_time() < END:
    for block in blocks:
        checksum(block)
""",
    "logistic": """\
import numpy as np
rng = np.random.default_rng(1)
def act(z):
    return 1.0 / (1.0 + np.exp(-z))
while time.process_time() < END:
    for row in rng.random((200, 8)):
        act(row)
""",
    "sums": """\
import random
random.seed(1)
def totals(rows):
    return [sum(row) + sum({k: v for k, v in enumerate(row)}.values()) for row in rows]
def chunks(values, n):
    return [sum(values[i : i + n]) for i in range(0, len(values), n)]
while time.process_time() < END:
    totals([[random.random() for _ in range(300)] for _ in range(30)])
    chunks([random.random() for _ in range(5000)], 200)
""",
}
