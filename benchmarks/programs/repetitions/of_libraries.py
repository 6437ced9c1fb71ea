"""Programs that repeat work with pandas, SciPy, scikit-learn, Pillow or C, each with a twin that does not."""

from programs.repetitions.program import INVARIANT, MISUSE, SAME_CALL, SLICE, Pair

PAIRS = {
    "frame": Pair(
        INVARIANT,
        """\
import numpy as np, pandas as pd
rng = np.random.default_rng(5)
def above(frame, limits):
    counts = []
    for limit in limits:
        order = frame["value"].sort_values()  # HOT
        counts.append(len(order) - order.searchsorted(limit))
    return counts
while time.process_time() < END:
    frame = pd.DataFrame({"value": rng.random(5000)})
    above(frame, rng.random(100))
""",
        """\
import numpy as np, pandas as pd
rng = np.random.default_rng(5)
def above(frame, limits):
    order = frame["value"].sort_values()
    return len(order) - order.searchsorted(limits)
while time.process_time() < END:
    frame = pd.DataFrame({"value": rng.random(5000)})
    above(frame, rng.random(100))
""",
    ),
    "scaler": Pair(
        SAME_CALL,
        """\
import numpy as np
from sklearn.preprocessing import StandardScaler
rng = np.random.default_rng(3)
TRAIN = rng.random((20000, 20))
def normalised(rows):
    return StandardScaler().fit(TRAIN).transform(rows)  # HOT
while time.process_time() < END:
    normalised(rng.random((10, 20)))
""",
        """\
import numpy as np
from sklearn.preprocessing import StandardScaler
rng = np.random.default_rng(3)
TRAIN = rng.random((20000, 20))
SCALER = StandardScaler().fit(TRAIN)
def normalised(rows):
    return SCALER.transform(rows)
while time.process_time() < END:
    normalised(rng.random((10, 20)))
""",
    ),
    "pil": Pair(
        SLICE,
        """\
from PIL import Image
import random
random.seed(2)
def invert(img):
    out = Image.new("RGB", img.size)
    for y in range(img.size[1]):
        for x in range(img.size[0]):
            r, g, b = img.getpixel((x, y))  # HOT
            out.putpixel((x, y), (255 - r, 255 - g, 255 - b))  # HOT
    return out
while time.process_time() < END:
    img = Image.frombytes("RGB", (64, 64), random.randbytes(64 * 64 * 3))
    invert(img)
""",
        """\
from PIL import Image, ImageChops
import random
random.seed(2)
def invert(img):
    return ImageChops.invert(img)
while time.process_time() < END:
    img = Image.frombytes("RGB", (64, 64), random.randbytes(64 * 64 * 3))
    invert(img)
""",
    ),
    "apply": Pair(
        MISUSE,
        """\
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
def spread(frame):
    return frame.apply(lambda row: row["high"] - row["low"], axis=1)  # HOT
while time.process_time() < END:
    spread(pd.DataFrame({"high": rng.random(500) + 1, "low": rng.random(500)}))
""",
        """\
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
def spread(frame):
    return frame["high"] - frame["low"]
while time.process_time() < END:
    spread(pd.DataFrame({"high": rng.random(500) + 1, "low": rng.random(500)}))
""",
    ),
    "filter": Pair(
        SAME_CALL,
        """\
import numpy as np
from scipy import signal
rng = np.random.default_rng(1)
def smooth(samples):
    b, a = signal.butter(4, 0.1)  # HOT
    return signal.lfilter(b, a, samples)
while time.process_time() < END:
    smooth(rng.random(500))
""",
        """\
import numpy as np
from scipy import signal
rng = np.random.default_rng(1)
B, A = signal.butter(4, 0.1)
def smooth(samples):
    return signal.lfilter(B, A, samples)
while time.process_time() < END:
    smooth(rng.random(500))
""",
    ),
    "rows": Pair(
        SLICE,
        """\
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
def revenue(frame):
    total = 0.0
    for i in range(len(frame)):
        total += frame["price"].iloc[i] * frame["count"].iloc[i]  # HOT
    return total
while time.process_time() < END:
    revenue(pd.DataFrame({"price": rng.random(500), "count": rng.integers(1, 9, 500)}))
""",
        """\
import numpy as np, pandas as pd
rng = np.random.default_rng(1)
def revenue(frame):
    return (frame["price"] * frame["count"]).sum()
while time.process_time() < END:
    revenue(pd.DataFrame({"price": rng.random(500), "count": rng.integers(1, 9, 500)}))
""",
    ),
    "turns": Pair(
        INVARIANT,
        """\
import ctypes
import numpy as np
lib = ctypes.CDLL(os.environ["LIBRARY"])
lib.vec_norm.restype = lib.vec_dot.restype = ctypes.c_double
lib.vec_norm.argtypes = [ctypes.c_void_p, ctypes.c_long]
lib.vec_dot.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
rng = np.random.default_rng(5)
def cosines(query, rows):
    found = []
    for row in rows:
        n, x = len(query), query.ctypes.data
        found.append(lib.vec_dot(x, row.ctypes.data, n) / lib.vec_norm(x, n))  # HOT
    return found
while time.process_time() < END:
    cosines(rng.random(2000), rng.random((200, 2000)))
""",
        """\
import ctypes
import numpy as np
lib = ctypes.CDLL(os.environ["LIBRARY"])
lib.vec_norm.restype = lib.vec_dot.restype = ctypes.c_double
lib.vec_norm.argtypes = [ctypes.c_void_p, ctypes.c_long]
lib.vec_dot.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
rng = np.random.default_rng(5)
def cosines(query, rows):
    found, norm = [], lib.vec_norm(query.ctypes.data, len(query))
    for row in rows:
        found.append(lib.vec_dot(query.ctypes.data, row.ctypes.data, len(query)) / norm)
    return found
while time.process_time() < END:
    cosines(rng.random(2000), rng.random((200, 2000)))
""",
    ),
}
