"""Programs whose time is in native code, called by Python and calling it back: what native call paths cost."""

import importlib
import importlib.util
import json
import re
from collections.abc import Callable

Pass = Callable[[], object]


def standard_library() -> Pass:
    """json, re and sorting with a key."""
    data = {str(number): [number, number / 7, "text" * 5] for number in range(500)}

    def one_pass() -> None:
        for _ in range(20):
            json.loads(json.dumps(data))
            re.sub(r"(\d+)", r"<\1>", "a1b22c333" * 200)
            sorted(data, key=lambda name: -int(name))

    return one_pass


def arrays() -> Pass:
    """numpy: sorting, element-wise functions, and one that calls Python for each element."""
    np = importlib.import_module("numpy")
    array = np.random.default_rng(1).random((400, 400))
    called = np.frompyfunc(lambda value: value * 2 + 1, 1, 1)

    def one_pass() -> None:
        for _ in range(10):
            np.sort(array, axis=1)
            np.exp(array)
            np.unique((array * 50).astype(int))
            called(array[:20])

    return one_pass


def products() -> Pass:
    """OpenBLAS, with as many threads as it takes: kernels without unwind tables."""
    np = importlib.import_module("numpy")
    array = np.random.default_rng(1).random((400, 400))

    def one_pass() -> None:
        for _ in range(20):
            array @ array

    return one_pass


def tables() -> Pass:
    """pandas: group by, merge, sort, apply."""
    np, pd = importlib.import_module("numpy"), importlib.import_module("pandas")
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"key": random.integers(0, 200, 20_000), "value": random.random(20_000)})

    def one_pass() -> None:
        for _ in range(3):
            frame.groupby("key")["value"].agg(["mean", "std", "max"])
            frame.merge(frame.head(200), on="key")
            frame.sort_values(["key", "value"])
            frame["value"].apply(lambda value: value + 1)

    return one_pass


def learning() -> Pass:
    """scikit-learn: a forest, in Cython."""
    np, ensemble = importlib.import_module("numpy"), importlib.import_module("sklearn.ensemble")
    random = np.random.default_rng(1)
    x, y = random.random((500, 10)), random.integers(0, 2, 500)

    def one_pass() -> None:
        ensemble.RandomForestClassifier(20, random_state=1).fit(x, y)

    return one_pass


_NEEDED = {arrays: "numpy", products: "numpy", tables: "pandas", learning: "sklearn"}
_ALL: dict[str, Callable[[], Pass]] = {
    "standard library": standard_library,
    "arrays": arrays,
    "matrix products": products,
    "tables": tables,
    "machine learning": learning,
}
PROGRAMS: dict[str, Callable[[], Pass]] = {
    name: prepare
    for name, prepare in _ALL.items()
    if prepare not in _NEEDED or importlib.util.find_spec(_NEEDED[prepare]) is not None
}
"""Those whose libraries are installed."""
