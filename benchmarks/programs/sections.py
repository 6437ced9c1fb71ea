"""Work of seven kinds, each on lines of its own, whose CPU time is measured around it.

    python sections.py PASSES REPORT [--decorate]     # PASSES: JSON, name -> how often; writes CPU seconds by name

`--decorate` is for profilers that see decorated functions only (see passes.py).
"""

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from passes import decorate  # type: ignore[import-not-found]  # beside this program when it runs

NUMBERS = list(range(20_000))
LEFT = np.linspace(0.0, 1.0, 120 * 120).reshape(120, 120)
BLOCK = bytes(1 << 16)
TEXT = "what is it that you are looking for " * 500
NAP_S = 0.02


def python_loop() -> int:
    """Bytecode and nothing else."""
    total = 0
    for number in NUMBERS[:5000]:  # @python
        total += number * number % 7  # @python
    return total


def call() -> int:
    """A built-in function that holds the interpreter."""
    return sum(NUMBERS)  # @call


def operator() -> object:
    """Native code without a call."""
    return LEFT @ LEFT  # @operator


def method() -> int:
    """A method of a built-in type."""
    return TEXT.count("nobody")  # @method


def library() -> bytes:
    """Native code that lets others run meanwhile."""
    return hashlib.sha256(BLOCK).digest()  # @library


def read() -> bytes:
    """Waits for a pipe that another process writes into: next to no CPU time."""
    source, sink = os.pipe()
    writer = threading.Timer(NAP_S, os.write, (sink, b"x"))
    writer.start()
    answer = os.read(source, 1)  # @read
    writer.join()
    os.close(source)
    os.close(sink)
    return answer


def hashing() -> bytes:
    """What the other thread does."""
    return hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 600)  # @thread


SECTIONS: dict[str, Callable[[], object]] = {
    "python": python_loop,
    "call": call,
    "operator": operator,
    "method": method,
    "library": library,
    "read": read,
}


def repeat(name: str, passes: int) -> float:
    """CPU seconds of this thread for so many passes."""
    section = hashing if name == "thread" else SECTIONS[name]
    start = time.thread_time()
    for _ in range(passes):
        section()
    return time.thread_time() - start


def main() -> None:
    """Runs all sections in turns; the other thread's at the same time, from the first turn to the last."""
    passes, report = json.loads(sys.argv[1]), Path(sys.argv[2])
    if "--decorate" in sys.argv:
        decorate(sys.modules["__main__"])
    seconds = dict.fromkeys(passes, 0.0)

    def other() -> None:
        seconds["thread"] = repeat("thread", passes["thread"])

    beside = threading.Thread(target=other)
    beside.start()
    turns = 5
    for _ in range(turns):
        for name in SECTIONS:
            seconds[name] += repeat(name, passes[name] // turns)
    beside.join()
    report.write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    main()
