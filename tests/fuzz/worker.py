"""One process that reads hostile recordings: ``python -m fuzz.worker FOLDER FIRST COUNT SECONDS GIGABYTES VECTORS``.

Prints one JSON object for each case in which a reader did what it must not, and one for the end. It kills itself where
a case takes longer than SECONDS; address space is bounded, so that a reader that fills memory fails.
"""

import faulthandler
import json
import random
import resource
import sys
from pathlib import Path

from fuzz.mutation import Mutator
from fuzz.readers import clear, commands, fault

CANARY = "kept-from-all-readers-3b1f"


def main() -> None:
    """See the module."""
    folder, first, count, seconds, gigabytes = Path(sys.argv[1]), *map(int, sys.argv[2:6])
    vectors = Path(sys.argv[6])
    canary = folder / "canary.py"
    canary.write_text(f"# {CANARY}\n" * 100, encoding="utf-8")
    seeds = sorted(vectors.glob("*.tacho"))
    good = vectors / "memory.tacho"
    bound = int(gigabytes * (1 << 30))
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    for number in range(first, first + count):
        faulthandler.dump_traceback_later(seconds, exit=True)
        out, target = folder / "out", folder / f"case-{number}.tacho"
        clear(out, target, target.with_suffix(".zip"))
        out.mkdir()
        (folder / "current").write_text(str(number), encoding="ascii")
        recording = Mutator(number, canary).make(seeds, target)
        for command in commands(recording, good, out, random.Random(number)):
            if (what := fault(command, out, CANARY)) is not None:
                print(json.dumps({"case": number, "command": command, "fault": what}), flush=True)
        clear(out, target, target.with_suffix(".zip"))
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"done": count, "peak_mb": peak}), flush=True)


if __name__ == "__main__":
    main()
