"""The ten pyperformance programs of table 1 of the Scalene paper (OSDI 2023): the ten that take longest.

They are not part of this repository: `harness.programs` installs the pyperformance package, and this module imports its
benchmark files with a stand-in for `pyperf`, which they import for its clock only.
"""

import asyncio
import gc
import importlib.util
import sys
import time
import types
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Pass = Callable[[], object]


def _async_tree(kind: str, module: Any) -> Pass:
    tree = module.BENCHMARKS[kind]()
    return lambda: asyncio.run(tree.run())


def _docutils(module: Any) -> Pass:
    return lambda: module.bench_docutils(1, module.DOC_ROOT)


def _fannkuch(module: Any) -> Pass:
    return lambda: module.fannkuch(module.DEFAULT_ARG)


def _mdp(module: Any) -> Pass:
    return lambda: module.bench_mdp(1)


def _pprint(module: Any) -> Pass:
    def both() -> None:
        if hasattr(module.p, "_safe_repr"):
            module.p._safe_repr(module.printable, {}, None, 0)  # noqa: SLF001 - it is what the benchmark measures
        module.p.pformat(module.printable)

    return both


def _raytrace(module: Any) -> Pass:
    return lambda: module.bench_raytrace(1, module.DEFAULT_WIDTH, module.DEFAULT_HEIGHT, None)


def _sympy(module: Any) -> Pass:
    # As the benchmark's own main does. The four parts are one program in the paper's table.
    gc.disable()
    parts = [getattr(module, f"bench_{name}") for name in module.BENCHMARKS]
    return lambda: [module.bench_sympy(1, part) for part in parts]


def _prepare(folder: str, one_pass: Callable[[Any], Pass]) -> Pass:
    return one_pass(load(benchmarks() / folder / "run_benchmark.py"))


PROGRAMS: dict[str, Callable[[], Pass]] = {
    "async_tree_none": partial(_prepare, "bm_async_tree", partial(_async_tree, "none")),
    "async_tree_io": partial(_prepare, "bm_async_tree", partial(_async_tree, "io")),
    "async_tree_cpu_io_mixed": partial(_prepare, "bm_async_tree", partial(_async_tree, "cpu_io_mixed")),
    "async_tree_memoization": partial(_prepare, "bm_async_tree", partial(_async_tree, "memoization")),
    "docutils": partial(_prepare, "bm_docutils", _docutils),
    "fannkuch": partial(_prepare, "bm_fannkuch", _fannkuch),
    "mdp": partial(_prepare, "bm_mdp", _mdp),
    "pprint": partial(_prepare, "bm_pprint", _pprint),
    "raytrace": partial(_prepare, "bm_raytrace", _raytrace),
    "sympy": partial(_prepare, "bm_sympy", _sympy),
}


def benchmarks() -> Path:
    """Where the installed pyperformance package keeps its benchmark files."""
    spec = importlib.util.find_spec("pyperformance")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pyperformance is not on PYTHONPATH")
    return Path(spec.origin).parent / "data-files" / "benchmarks"


def load(path: Path) -> types.ModuleType:
    """Imports a benchmark file, without its main part."""
    clock = types.ModuleType("pyperf")
    clock.__dict__["perf_counter"] = time.perf_counter
    sys.modules["pyperf"] = clock
    spec = importlib.util.spec_from_file_location("run_benchmark", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_benchmark"] = module
    spec.loader.exec_module(module)
    return module
