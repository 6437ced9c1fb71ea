"""The clocks with which a program measures itself, and the file that it leaves.

Every program of this folder is run as ``python PROGRAM TRUTH [ARGUMENT...]``. It does its work in blocks of random
length (so that no sampler can beat with it), adds up the CPU time of the calling thread around each block by name, and
writes the sums to TRUTH as JSON. The lines on which the work named ``x`` is done carry the comment ``# @x``.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

Block = Callable[[int], object]


class Clocks:
    """CPU time by name. ``first_ns`` is what the process had used when the program began to run."""

    def __init__(self) -> None:
        self.first_ns = time.process_time_ns()
        self.spent: dict[str, int] = {}
        self.facts: dict[str, object] = {}
        self.random = random.Random(20231010)

    def run(self, name: str, block: Block, size: int) -> None:
        """Run a block of about ``size`` rounds and add its thread's CPU time to ``name``."""
        rounds = int(size * self.random.uniform(0.6, 1.4)) + 1
        begin = time.thread_time_ns()
        block(rounds)
        self.add(name, time.thread_time_ns() - begin)

    def add(self, name: str, ns: int) -> None:
        self.spent[name] = self.spent.get(name, 0) + ns

    def cycle(self, seconds: float, work: list[tuple[str, Block, int]]) -> None:
        """Run all blocks in turn, in a new order each time, until this thread has used ``seconds`` of CPU time."""
        end = time.thread_time_ns() + int(seconds * 1e9)
        while time.thread_time_ns() < end:
            self.random.shuffle(work)
            for name, block, size in work:
                self.run(name, block, size)

    def write(self) -> None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        document = {
            "spent": self.spent,
            "facts": self.facts,
            "first_ns": self.first_ns,
            "process_ns": time.process_time_ns(),
            "kernel_ns": int(usage.ru_stime * 1e9),
        }
        Path(sys.argv[1]).write_text(json.dumps(document), encoding="utf-8")


def seconds(default: float) -> float:
    """How much CPU time to use: the program's second argument, or ``default``."""
    return float(sys.argv[2]) if len(sys.argv) > 2 else default
