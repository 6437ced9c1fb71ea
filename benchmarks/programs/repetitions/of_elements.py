"""Programs that go through the same elements, make the same small matrix or search all of a table, with twins."""

from programs.repetitions.program import ALGORITHM, INVARIANT, SAME_CALL, Pair

PAIRS = {
    "moving": Pair(
        ALGORITHM,
        """\
import random
random.seed(1)
def averages(closes, n):
    out = []
    for i in range(n, len(closes)):
        out.append(sum(closes[i - n : i]) / n)  # HOT
    return out
while time.process_time() < END:
    averages([random.random() for _ in range(3000)], 200)
""",
        """\
import random
random.seed(1)
def averages(closes, n):
    out, total = [], sum(closes[:n])
    for i in range(n, len(closes)):
        out.append(total / n)
        total += closes[i] - closes[i - n]
    return out
while time.process_time() < END:
    averages([random.random() for _ in range(3000)], 200)
""",
    ),
    "shares": Pair(
        INVARIANT,
        """\
import random
random.seed(1)
def shares(counts):
    return {name: count / sum(counts.values()) for name, count in counts.items()}  # HOT
while time.process_time() < END:
    shares({str(i): random.randrange(1000) for i in range(1500)})
""",
        """\
import random
random.seed(1)
def shares(counts):
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}
while time.process_time() < END:
    shares({str(i): random.randrange(1000) for i in range(1500)})
""",
    ),
    "member": Pair(
        ALGORITHM,
        """\
import random
random.seed(2)
def kept(words, stop):
    return [word for word in words if word not in stop]  # HOT
while time.process_time() < END:
    kept([f"w{random.randrange(3000)}" for _ in range(2000)], [f"w{n}" for n in range(300)])
""",
        """\
import random
random.seed(2)
def kept(words, stop):
    known = set(stop)
    return [word for word in words if word not in known]
while time.process_time() < END:
    kept([f"w{random.randrange(3000)}" for _ in range(2000)], [f"w{n}" for n in range(300)])
""",
    ),
    "digest": Pair(
        SAME_CALL,
        """\
import hashlib, random
random.seed(1)
BLOB = random.randbytes(200000)
def etag(number):
    return hashlib.sha256(BLOB).hexdigest() + str(number)  # HOT
while time.process_time() < END:
    etag(random.random())
""",
        """\
import hashlib, random
random.seed(1)
BLOB = random.randbytes(200000)
DIGEST = hashlib.sha256(BLOB).hexdigest()
def etag(number):
    return DIGEST + str(number)
while time.process_time() < END:
    etag(random.random())
""",
    ),
    "nearest": Pair(
        ALGORITHM,
        """\
import numpy as np
rng = np.random.default_rng(1)
def nearest(grid, wanted):
    out = []
    for x in wanted:
        out.append(int(np.argmin(np.abs(grid - x))))  # HOT
    return out
while time.process_time() < END:
    nearest(np.sort(rng.random(5000)), rng.random(300).tolist())
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def nearest(grid, wanted):
    wanted = np.asarray(wanted)
    i = np.clip(np.searchsorted(grid, wanted), 1, len(grid) - 1)
    return i - (wanted - grid[i - 1] < grid[i] - wanted)
while time.process_time() < END:
    nearest(np.sort(rng.random(5000)), rng.random(300).tolist())
""",
    ),
    "one hot": Pair(
        INVARIANT,
        """\
import numpy as np
rng = np.random.default_rng(1)
def encode(labels, n):
    rows = []
    for k in labels:
        rows.append(np.eye(n)[k])  # HOT
    return np.array(rows)
while time.process_time() < END:
    encode(rng.integers(0, 300, 100).tolist(), 300)
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def encode(labels, n):
    rows = np.zeros((len(labels), n))
    rows[np.arange(len(labels)), labels] = 1
    return rows
while time.process_time() < END:
    encode(rng.integers(0, 300, 100).tolist(), 300)
""",
    ),
    "rotation": Pair(
        INVARIANT,
        """\
import numpy as np
rng = np.random.default_rng(1)
def turned(points, angle):
    out = []
    for p in points:
        r = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])  # HOT
        out.append(r @ p)
    return out
while time.process_time() < END:
    turned(rng.random((500, 2)), rng.random())
""",
        """\
import numpy as np
rng = np.random.default_rng(1)
def turned(points, angle):
    r = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points @ r.T
while time.process_time() < END:
    turned(rng.random((500, 2)), rng.random())
""",
    ),
    "vectorizer": Pair(
        SAME_CALL,
        """\
import random
from sklearn.feature_extraction.text import TfidfVectorizer
random.seed(1)
WORDS = [f"word{n}" for n in range(2000)]
DOCS = [" ".join(random.choices(WORDS, k=60)) for _ in range(300)]
def search(query):
    vectorizer = TfidfVectorizer()
    matrix = vectorizer.fit_transform(DOCS)  # HOT
    return (matrix @ vectorizer.transform([query]).T).argmax()
while time.process_time() < END:
    search(" ".join(random.choices(WORDS, k=5)))
""",
        """\
import random
from sklearn.feature_extraction.text import TfidfVectorizer
random.seed(1)
WORDS = [f"word{n}" for n in range(2000)]
DOCS = [" ".join(random.choices(WORDS, k=60)) for _ in range(300)]
VECTORIZER = TfidfVectorizer()
MATRIX = VECTORIZER.fit_transform(DOCS)
def search(query):
    return (MATRIX @ VECTORIZER.transform([query]).T).argmax()
while time.process_time() < END:
    search(" ".join(random.choices(WORDS, k=5)))
""",
    ),
}
