"""``make soak``: what takes hours, part by part, each with a verdict of its own.

Without ARGS all parts are run, whole. ``--only containers kills`` runs these parts alone. The exit status is 1 if any
part failed; the table of verdicts is the last thing printed.
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from fuzz.reading import read_hostile
from integration import restrictions, support
from soak import attaches, containers, corners, endurance, foreign, interpreter, kills, packages
from soak.loads import LOADS

HOSTILE_AT_ONCE = 250

Options = argparse.Namespace
Part = Callable[[Path, Options], str]
"""Runs in a folder of its own; its verdict in words. Raises AssertionError or SystemExit, with words, if it failed."""


def main() -> None:
    """See the module."""
    options = read_arguments()
    verdicts = {name: verdict(name, PARTS[name], options) for name in options.only or PARTS}
    print()
    for name, (passed, seconds, words) in verdicts.items():
        print(f"| {name} | {'passed' if passed else 'FAILED'} | {seconds:.0f} s | {words} |")
    if not all(passed for passed, _, _ in verdicts.values()):
        raise SystemExit(1)


def read_arguments() -> Options:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(prog="make soak ARGS=...", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--kills", type=int, default=1000, metavar="N", help="runs that are killed (%(default)s)")
    parser.add_argument("--attaches", type=int, default=200, metavar="N", help="of each kind (%(default)s)")
    parser.add_argument("--hostile", type=int, default=10_000, metavar="N", help="mutated recordings (%(default)s)")
    parser.add_argument("--seconds", type=float, default=3600, help="of each long recording (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another one makes other kills and recordings")
    parser.add_argument("--modules", nargs="*", default=[], help="of CPython's tests, e.g. test_os test_signal")
    suites = f"of {', '.join(packages.SUITES)}; PACKAGE=MODULE is a part"
    parser.add_argument("--packages", nargs="*", default=[], help=suites)
    parser.add_argument("--restrictions", nargs="+", choices=restrictions.NAMES, default=restrictions.NAMES)
    parser.add_argument("--foreign", nargs="+", choices=foreign.CASES, default=[], metavar="CASE")
    parser.add_argument("--corners", nargs="+", choices=corners.NAMES, default=corners.NAMES)
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="PATTERN", help="CPython's tests that are not to be run"
    )
    return parser.parse_args()


def verdict(name: str, part: Part, options: Options) -> tuple[bool, float, str]:
    """Whether a part passed, how many seconds it took, and what it found."""
    print(f"{name} ...", flush=True)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"tachograph-soak-{name}-") as folder:
        try:
            passed, words = True, part(Path(folder), options)
        except (AssertionError, SystemExit) as error:
            passed, words = False, str(error)
    print(f"{name}: {'passed' if passed else 'FAILED'}: {words}", flush=True)
    return passed, time.monotonic() - begin, " ".join(words.split())


def soak_kills(folder: Path, options: Options) -> str:
    """Kill so many runs."""
    found = Counter[str]()
    for number in range(options.kills):
        place = folder / f"kill-{number}"
        place.mkdir()
        try:
            found[kills.kill_once(place, random.Random(f"{options.seed}-{number}"))] += 1
        except AssertionError as error:
            raise AssertionError(f"kill {number} (seed {options.seed}): {error}") from error
        support.discard(place)
    words = ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
    return f"{options.kills} kills, each recording as it should be: {words}"


def soak_attaches(folder: Path, options: Options) -> str:
    """Attach so many times to a program on standby, and to one that is entered; most are killed."""
    words = []
    for stands_by in (True, False):
        chance = random.Random(f"{options.seed}-{stands_by}")
        begun, grown = attaches.run(folder, options.attaches, chance, stands_by=stands_by)
        how = "to standby" if stands_by else "by entering"
        words.append(f"{options.attaches} {how}, {begun} recordings complete, grown by {grown / 1e6:.1f} MB")
    return "; ".join(words)


def soak_hostile(folder: Path, options: Options) -> str:
    """Read so many hostile recordings, each process some of them."""
    peak = 0
    for first in range(0, options.hostile, HOSTILE_AT_ONCE):
        size = min(HOSTILE_AT_ONCE, options.hostile - first)
        place = folder / f"hostile-{first}"
        place.mkdir()
        words = read_hostile(place, options.seed * 10_000_000 + first, size, 3600)
        peak = max(peak, words["peak_mb"])
        support.discard(place)
    return f"{options.hostile} hostile recordings, no fault; at most {peak} MB resident"


def soak_interpreter(folder: Path, options: Options) -> str:
    """Run CPython's tests."""
    count, differences = interpreter.compare(folder, options.modules, options.ignore)
    known = [each.test for each in differences if each.test in interpreter.ASK_FOR_ALLOCATORS]
    others = [each for each in differences if each.test not in interpreter.ASK_FOR_ALLOCATORS]
    assert not others, "; ".join(map(str, others))
    but = f", but for {len(known)} that see wrapped allocators" if known else ""
    return f"{count} tests of {len(options.modules) or 'all'} modules, all as bare{but}"


def soak_packages(folder: Path, options: Options) -> str:
    """Run the suites of public packages."""
    count, differences = packages.compare(folder, options.packages)
    assert not differences, "; ".join(map(str, differences))
    return f"{count} tests of {', '.join(options.packages or packages.SUITES)}, all as bare"


def soak_containers(folder: Path, options: Options) -> str:
    """Run programs under the restrictions of containers."""
    same, different, impossible = containers.run(folder, options.restrictions)
    assert not different, "; ".join(different)
    assert same > 0, "; ".join(impossible)
    not_here = f"; not possible here: {'; '.join(impossible)}" if impossible else ""
    return f"{same} pairs of a program and a restriction, all as bare{not_here}"


def soak_foreign(folder: Path, options: Options) -> str:
    """Run programs that others pack, embed or patch."""
    same, different, impossible = foreign.run(folder, options.foreign)
    assert not different, "; ".join(different)
    assert same > 0, "; ".join(impossible)
    not_here = f"; not possible here: {'; '.join(impossible)}" if impossible else ""
    return f"{same} programs, all as bare, recorded and attached to{not_here}"


def soak_restricted(folder: Path, options: Options) -> str:
    """Run programs where next to nothing is left or allowed."""
    same, different, impossible = corners.run(folder, options.corners)
    assert not different, "; ".join(different)
    assert same > 0, "; ".join(impossible)
    not_here = f"; not possible here: {'; '.join(impossible)}" if impossible else ""
    return f"{same} runs, recorded, attached to and on standby, all as bare{not_here}"


def long_recording(name: str) -> Part:
    """A recording of one of the loads."""
    return lambda folder, options: f"{options.seconds:.0f} s: {endurance.run(folder, name, options.seconds)}"


PARTS: Mapping[str, Part] = {
    "interpreter": soak_interpreter,
    "packages": soak_packages,
    "kills": soak_kills,
    "attaches": soak_attaches,
    "hostile": soak_hostile,
    "containers": soak_containers,
    "foreign": soak_foreign,
    "restricted": soak_restricted,
    **{name: long_recording(name) for name in LOADS},
}


if __name__ == "__main__":
    main()
