"""Two kinds of work by turns, each timed: for programs that measure their own truth."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

TURNS = 20


def take_turns(work: dict[str, Callable[[int], object]]) -> None:
    """Runs each kind of work as many passes as the command line says, in turns, and writes the CPU seconds of each.

    The command line has the passes in the order of `work`, and the path of the report. By turns, so that neither has
    the machine's better half; CPU time, because others may be at work.
    """
    passes = [int(text) // TURNS for text in sys.argv[1 : 1 + len(work)]]
    seconds = dict.fromkeys(work, 0.0)
    for _ in range(TURNS):
        for (name, function), count in zip(work.items(), passes, strict=True):
            start = time.process_time()
            function(count)
            seconds[name] += time.process_time() - start
    Path(sys.argv[1 + len(work)]).write_text(json.dumps(seconds), encoding="utf-8")
