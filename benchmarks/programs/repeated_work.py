"""Programs on which PieProf was measured (ESEC/FSE 2021, section 5), as far as they run without data from elsewhere.

scikit-learn's and numexpr's own benchmarks with made-up data, a network in plain NumPy in the place of NumpyDL, the
programs of table 2 that repeat themselves, and those of our oracle.
"""

import ctypes
import importlib
import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Pass = Callable[[], object]
TABLE_2 = Path(__file__).resolve().parents[2] / "tests" / "integration" / "programs" / "repetitions.py"
DIALLED = TABLE_2.parents[1] / "native" / "dialled.c"
AFTER = "_mended"
"""What the name of a program's faster form ends with."""


def table_2(name: str) -> Callable[[], Pass]:
    """A program of table 2: a tenth of a second of it."""

    def prepare() -> Pass:
        spec = importlib.util.spec_from_file_location("repetitions", TABLE_2)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(TABLE_2)
        module = importlib.util.module_from_spec(spec)
        # Under a name of its own: passes.py runs with arguments that are not this program's.
        spec.loader.exec_module(module)
        function: Callable[[], object] = getattr(module, name)

        def one_pass() -> None:
            for _ in range(10):
                function()

        return one_pass

    return prepare


def names_of_table_2() -> list[str]:
    """The programs of table 2 that have a faster form."""
    text = TABLE_2.read_text(encoding="utf-8")
    return [name for name in re.findall(r"^def (\w+)\(\)", text, re.MULTILINE) if f"def {name}{AFTER}(" in text]


def _made(kind: str, *arguments: Any, **more: Any) -> Any:
    return getattr(importlib.import_module("sklearn.datasets"), f"make_{kind}")(*arguments, random_state=1, **more)


def _fit(module: str, name: str, data: tuple[Any, ...], times: int = 1, **settings: Any) -> Pass:
    estimator = getattr(importlib.import_module(f"sklearn.{module}"), name)

    def one_pass() -> None:
        for _ in range(times):
            estimator(**settings).fit(*data)

    return one_pass


def _isotonic() -> Pass:
    np = importlib.import_module("numpy")
    fit = importlib.import_module("sklearn.isotonic").isotonic_regression
    values = np.random.default_rng(1).integers(-50, 50, size=20_000) + 50.0 * np.log(1 + np.arange(20_000))
    return lambda: [fit(values) for _ in range(20)]


def _multilabel() -> Pass:
    metrics = importlib.import_module("sklearn.metrics")
    _, true = _made("multilabel_classification", n_samples=1000, n_features=1, n_classes=100)
    return lambda: (metrics.f1_score(true, true, average="samples"), metrics.hamming_loss(true, true))


def _numexpr(expression: str, size: int) -> Callable[[], Pass]:
    def prepare() -> Pass:
        np, numexpr = importlib.import_module("numpy"), importlib.import_module("numexpr")
        numexpr.set_num_threads(1)
        random = np.random.default_rng(1)
        known = {name: random.random(size) for name in "abc"}
        times = max(1, 2_000_000 // size)
        return lambda: [numexpr.evaluate(expression, local_dict=known) for _ in range(times)]

    return prepare


def _oracle(function: str) -> Callable[[], Pass]:
    """Native code of the tests' oracle, which does nothing but load or store: all cells in each call."""

    def prepare() -> Pass:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "dialled.so"
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(DIALLED)], check=True)
            called = getattr(ctypes.CDLL(str(library)), function)
        cells, changes = (ctypes.c_uint64 * 8000)(), (ctypes.c_uint8 * 8000)(*(n % 5 == 0 for n in range(8000)))
        fresh = 0

        def one_pass() -> None:
            nonlocal fresh
            for _ in range(2000):
                fresh += 1
                if function == "store_all":
                    called(cells, changes, 8000, ctypes.c_uint64(fresh))
                else:
                    called(cells, 8000)

        return one_pass

    return prepare


def _network() -> Pass:
    """Two dense layers, forth and back, in NumPy."""
    np = importlib.import_module("numpy")
    random = np.random.default_rng(1)
    inputs, targets = random.random((128, 64)), random.random((128, 10))
    first, second = random.random((64, 32)) - 0.5, random.random((32, 10)) - 0.5

    def one_pass() -> None:
        nonlocal first, second
        for _ in range(200):
            hidden = np.maximum(inputs @ first, 0)
            error = hidden @ second - targets
            behind = (error @ second.T) * (hidden > 0)
            second = second - 1e-4 * hidden.T @ error
            first = first - 1e-4 * inputs.T @ behind

    return one_pass


PROGRAMS: dict[str, Callable[[], Pass]] = {
    "sklearn: isolation forest": lambda: _fit("ensemble", "IsolationForest", (_made("blobs", 2000)[0],), 2),
    "sklearn: isotonic": _isotonic,
    "sklearn: lasso": lambda: _fit("linear_model", "Lasso", _made("regression", 2000, 200), 5, alpha=0.01),
    "sklearn: lasso by lars": lambda: _fit("linear_model", "LassoLars", _made("regression", 500, 200), 5, alpha=0.01),
    "sklearn: outlier factor": lambda: _fit("neighbors", "LocalOutlierFactor", (_made("blobs", 3000)[0],), 3),
    "sklearn: ridge": lambda: _fit("linear_model", "Ridge", _made("regression", 4000, 200), 20),
    "sklearn: multilabel": _multilabel,
    "sklearn: k-means": lambda: _fit("cluster", "KMeans", (_made("blobs", 5000)[0],), 2, n_clusters=20, n_init=2),
    "numexpr: small arrays": _numexpr("a + b * 2 - c", 1_000),
    "numexpr: large arrays": _numexpr("(a - 3 * b) / (1 + c ** 2) + exp(-a)", 1_000_000),
    "network in NumPy": _network,
    "oracle: loads": _oracle("load_all"),
    "oracle: stores": _oracle("store_all"),
    **{f"table 2: {name}": table_2(name) for name in ("iris", "cec_4", "conv", "rotate", "regression", "product")},
    **{f"{name}{form}": table_2(name + form) for name in names_of_table_2() for form in ("", AFTER)},
}
OVERHEAD = tuple(name for name in PROGRAMS if ": " in name or name == "network in NumPy")
"""The programs whose slowdown is measured."""
