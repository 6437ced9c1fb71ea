"""Runs one pyperformance program in a loop and reports the time that the loop took. Both arms of a benchmark run this.

The programs are those of table 1 of the Scalene paper (OSDI 2023): the ten that take longest. They are not part of this
repository: `harness.programs` installs the pyperformance package, and this driver imports its benchmark files with a
stand-in for `pyperf`, which they import for its clock only.

    python driver.py BENCHMARKS PROGRAM (--loops N | --seconds S) --report FILE
"""

import argparse
import asyncio
import gc
import importlib.util
import json
import resource
import sys
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Pass = Callable[[], object]


@dataclass(frozen=True)
class Program:
    """One benchmark program: the pyperformance folder, and how one pass is made from its module."""

    folder: str
    one_pass: Callable[[Any], Pass]


def _async_tree(kind: str) -> Program:
    def one_pass(module: Any) -> Pass:
        tree = module.BENCHMARKS[kind]()
        return lambda: asyncio.run(tree.run())

    return Program("bm_async_tree", one_pass)


def _pprint(module: Any) -> Pass:
    def both() -> None:
        if hasattr(module.p, "_safe_repr"):
            module.p._safe_repr(module.printable, {}, None, 0)  # noqa: SLF001 - it is what the benchmark measures
        module.p.pformat(module.printable)

    return both


def _sympy(module: Any) -> Pass:
    # As the benchmark's own main does. The four parts are one program in the paper's table.
    gc.disable()
    parts = [getattr(module, f"bench_{name}") for name in module.BENCHMARKS]
    return lambda: [module.bench_sympy(1, part) for part in parts]


PROGRAMS: dict[str, Program] = {
    "async_tree_none": _async_tree("none"),
    "async_tree_io": _async_tree("io"),
    "async_tree_cpu_io_mixed": _async_tree("cpu_io_mixed"),
    "async_tree_memoization": _async_tree("memoization"),
    "docutils": Program("bm_docutils", lambda module: lambda: module.bench_docutils(1, module.DOC_ROOT)),
    "fannkuch": Program("bm_fannkuch", lambda module: lambda: module.fannkuch(module.DEFAULT_ARG)),
    "mdp": Program("bm_mdp", lambda module: lambda: module.bench_mdp(1)),
    "pprint": Program("bm_pprint", _pprint),
    "raytrace": Program(
        "bm_raytrace",
        lambda module: lambda: module.bench_raytrace(1, module.DEFAULT_WIDTH, module.DEFAULT_HEIGHT, None),
    ),
    "sympy": Program("bm_sympy", _sympy),
}


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


def run(one_pass: Pass, loops: int, seconds: float) -> dict[str, float]:
    """Repeats a pass `loops` times, or if that is 0 for at least `seconds`; one pass before that is not counted."""
    one_pass()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    done = 0
    while done < loops or (not loops and time.perf_counter() - start < seconds):
        one_pass()
        done += 1
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"loops": done, "elapsed_s": elapsed, "cpu_s": cpu, "end_ns": time.monotonic_ns()}


def main() -> None:
    """Runs the program named on the command line and writes its report, a JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmarks", type=Path)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()
    program = PROGRAMS[arguments.program]
    module = load(arguments.benchmarks / program.folder / "run_benchmark.py")
    report = run(program.one_pass(module), arguments.loops, arguments.seconds)
    arguments.report.write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
