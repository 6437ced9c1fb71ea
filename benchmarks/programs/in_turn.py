"""Runs passes of a program when it is told to, and says what each turn took: many arms can take turns this way.

    python in_turn.py CATALOGUE PROGRAM

Each line of the standard input is a number of passes; each answer is a line of JSON. The first line is `ready`, after a
pass to warm up; at the end of the input the last one has the largest resident set.
"""

import importlib
import json
import random
import sys
import time

from passes import cpu_time, peak_rss  # type: ignore[import-not-found]  # beside this program when it runs


def main() -> None:
    """Serves turns until the input ends."""
    # Where arrays lie decides how fast they are read: not the same in each process, lest it be taken for a cost.
    shift = [bytearray(random.randrange(600, 5000)) for _ in range(random.randrange(100))]
    one_pass = importlib.import_module(sys.argv[1]).PROGRAMS[sys.argv[2]]()
    one_pass()
    print("ready", flush=True)
    for line in sys.stdin:
        cpu, own, start = cpu_time(), time.thread_time(), time.perf_counter()
        for _ in range(int(line)):
            one_pass()
        taken = {"elapsed_s": time.perf_counter() - start, "thread_s": time.thread_time() - own}
        print(json.dumps({**taken, "cpu_s": cpu_time() - cpu}), flush=True)
    shift.clear()
    print(json.dumps({"peak_rss_bytes": peak_rss()}), flush=True)


if __name__ == "__main__":
    main()
