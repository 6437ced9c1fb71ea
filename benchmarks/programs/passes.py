"""Runs passes of a program and reports the time that they took. Every arm of a benchmark runs this.

    python passes.py CATALOGUE PROGRAM (--loops N | --seconds S) --report FILE [--no-warm-up] [--decorate]

A catalogue is a module beside this one; its `PROGRAMS` maps a name to a function that prepares the program and returns
one pass of it. `--decorate` is for profilers that see decorated functions only: each function of the program's module
gets the decorator `profile` that they put among the builtins.
"""

import argparse
import builtins
import importlib
import json
import resource
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

Pass = Callable[[], object]


def run(one_pass: Pass, loops: int, seconds: float, warm_up: bool = True) -> dict[str, float | int | None]:
    """Repeats a pass `loops` times, or if that is 0 for at least `seconds`; a pass to warm up is not counted."""
    if warm_up:
        one_pass()
    before = cpu_time()
    start = time.perf_counter()
    done = 0
    while done < loops or (not loops and time.perf_counter() - start < seconds):
        one_pass()
        done += 1
    elapsed = time.perf_counter() - start
    cpu = cpu_time() - before
    return {
        "loops": done,
        "elapsed_s": elapsed,
        "cpu_s": cpu,
        "end_ns": time.monotonic_ns(),
        "peak_rss_bytes": peak_rss(),
    }


def cpu_time() -> float:
    """CPU seconds of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def peak_rss(status: Path = Path("/proc/self/status")) -> int | None:
    """The largest resident set of this process so far, in bytes; None where the system does not tell.

    Not `ru_maxrss`: that one counts what the process was before its exec, a copy of its parent.
    """
    try:
        lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    sizes = [line.split() for line in lines if line.startswith("VmHWM:")]
    return int(sizes[0][1]) * 1024 if sizes else None


def decorate(module: types.ModuleType) -> None:
    """Puts `profile` around the functions and methods that a module defines."""
    profile = builtins.__dict__["profile"]
    owners = [module, *(value for value in vars(module).values() if isinstance(value, type))]
    for owner in owners:
        for name, value in list(vars(owner).items()):
            if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                setattr(owner, name, profile(value))


def main() -> None:
    """Runs the program named on the command line and writes its report, a JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("catalogue")
    parser.add_argument("program")
    parser.add_argument("--loops", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--no-warm-up", action="store_true")
    parser.add_argument("--decorate", action="store_true")
    arguments = parser.parse_args()
    prepare = importlib.import_module(arguments.catalogue).PROGRAMS[arguments.program]
    one_pass = prepare()
    if arguments.decorate:
        decorate(sys.modules["run_benchmark"])
    report = run(one_pass, arguments.loops, arguments.seconds, not arguments.no_warm_up)
    arguments.report.write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main()
