"""``make soak``: kills at random moments, hostile recordings, an hour of flat memory. ARGS make it shorter.

``--interpreter`` runs CPython's own tests instead, bare and recorded: all of them, or the modules named after it.
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzz.reading import read_hostile
from integration import support
from soak import interpreter, kills, memory

HOSTILE_AT_ONCE = 250


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=...", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, metavar="N", help="runs that are killed (%(default)s)")
    parser.add_argument("--hostile", type=int, default=10_000, metavar="N", help="mutated recordings (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3600, help="of the run with flat memory (%(default)s)")
    parser.add_argument("--rotate", metavar="WHEN", help="let it begin a new window so often, and watch the disk too")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other kills and recordings")
    parser.add_argument("--interpreter", nargs="*", metavar="MODULE", help="CPython's tests, e.g. test_os test_signal")
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="PATTERN", help="CPython's tests that are not to be run"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tachograph-soak-") as name:
        folder = Path(name)
        if options.interpreter is not None:
            soak_interpreter(folder, options.interpreter, options.ignore)
            return
        if options.kills and support.native_recorder():
            soak_kills(folder, options.kills, options.seed)
        if options.hostile:
            soak_hostile(folder, options.hostile, options.seed)
        if options.seconds and support.native_recorder():
            soak_memory(folder, options.seconds, options.rotate)


def soak_kills(folder: Path, rounds: int, seed: int) -> None:
    """Kill so many runs."""
    begin, found = time.monotonic(), Counter[str]()
    for number in range(rounds):
        place = folder / f"kill-{number}"
        place.mkdir()
        try:
            found[kills.kill_once(place, random.Random(f"{seed}-{number}"))] += 1
        except AssertionError as error:
            raise SystemExit(f"kill {number} (seed {seed}): {error}") from error
        support.discard(place)
    words = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
    print(
        f"{rounds} kills, {rounds} recordings as they should be: {words}; {time.monotonic() - begin:.0f} s", flush=True
    )


def soak_hostile(folder: Path, count: int, seed: int) -> None:
    """Read so many hostile recordings, each process some of them."""
    begin, peak = time.monotonic(), 0
    for first in range(0, count, HOSTILE_AT_ONCE):
        size = min(HOSTILE_AT_ONCE, count - first)
        place = folder / f"hostile-{first}"
        place.mkdir()
        words = read_hostile(place, seed * 10_000_000 + first, size, 3600)
        peak = max(peak, words["peak_mb"])
        support.discard(place)
    took = time.monotonic() - begin
    print(f"{count} hostile recordings, no fault; at most {peak} MB resident; {took:.0f} s", flush=True)


def soak_interpreter(folder: Path, modules: list[str], ignored: list[str]) -> None:
    """Run CPython's tests."""
    begin = time.monotonic()
    count, differences = interpreter.compare(folder, modules, ignored)
    for difference in differences:
        print(difference, flush=True)
    print(f"{count} tests, {len(differences)} differ; {time.monotonic() - begin:.0f} s", flush=True)
    if differences:
        raise SystemExit(1)


def soak_memory(folder: Path, seconds: float, rotate: str | None) -> None:
    """Record for so long."""
    for name, growth in memory.run(folder, seconds, rotate).items():
        first, most = growth.quarter >> 10, growth.most >> 10
        print(f"{name}: {first} KB after a quarter of {seconds:.0f} s, then at most {most} KB", flush=True)


if __name__ == "__main__":
    main()
