"""Programs for long runs, one for each thing that may grow: each runs for as many seconds as its argument says.

What they print is known. All keep a pace, and do no more where the machine has more to give.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """A program, the options that it is recorded with, and the losses that are none of its."""

    source: str
    options: tuple[str, ...] = ("--interval", "1")
    may_lose: frozenset[str] = frozenset()
    changes_size: bool = False
    """The program takes memory and gives it back: its own size says nothing."""
    tables: int = 0
    """Bytes of the recorder's tables in the program that fill up and are emptied again: its size is a sawtooth."""


LEVELS = (1 << 14, 1 << 16, 1 << 18, 1 << 20)
"""Places in a table that finds nodes: it has as many of these as it takes for 5/4 of the nodes (node_table.h)."""


def full_table(nodes: int) -> int:
    """Bytes of a table of the recorder when it is as full as it gets: nodes of 16 bytes, and their places of 4."""
    places = 0
    for level in LEVELS:
        places += level if places < nodes * 5 // 4 else 0
    return nodes * 3 // 4 * 16 + places * 4


FULL_TABLES = full_table(1 << 20) + full_table(1 << 20) + full_table(1 << 18)
"""Those of stacks, native call paths and code objects (``Sizes`` in contexts.h): then others begin that are empty."""

STEADY = """
# So many rounds a second, and no more where the machine has more to give: every window is to have as much in it.
RATE = 3000
import sys, threading, time
def leaf(n): return sum(range(n))
def deep(n): return leaf(200) if n == 0 else deep(n - 1)
def blocks(): return [bytearray(n * 97 % 50_000) for n in range(200)]
def made(n):
    exec(compile("\\n" * (n % 60) + "def f(): return sum(range(500))\\nf()", f"<made {n % 60}>", "exec"), {})
def short(): deep(5)
begin, number, kept = time.monotonic(), 0, []
while time.monotonic() < begin + float(sys.argv[1]):
    number += 1
    if number % 100 == 0: time.sleep(max(0, begin + number / RATE - time.monotonic()))
    deep(number % 40); made(number); kept = kept[-3:] + [blocks()]; bytes(1_000_000)
    if number % 20 == 0:
        thread = threading.Thread(target=short); thread.start(); thread.join()
print("done")
"""

RECURSION = """
import random, sys, time
chance = random.Random(1)
def even(n): return n and (even(n - 1) if chance.random() < 0.5 else odd(n - 1))
def odd(n): return n and (even(n - 1) if chance.random() < 0.5 else odd(n - 1))
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end: even(100)
print("done")
"""

CODES = """
import sys, time
end, number = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    number += 1
    text = f"def made_{number}(): return sum(range({number} % 7 + 2000))\\nmade_{number}()"
    exec(compile(text, f"<made {number}>", "exec"), {})
print("done")
"""

THREADS = """
import sys, threading, time
def run(): sum(range(20000))
end, number = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end or number < 10000:
    number += 50
    threads = [threading.Thread(target=run) for _ in range(50)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
print("done")
"""

FORKS = """
import os, subprocess, sys, time
end, number = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    number += 1
    child = os.fork()
    if child == 0:
        sum(range(20000))
        os._exit(number % 100)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == number % 100
    if number % 20 == 0: subprocess.run([sys.executable, "-c", "sum(range(200000))"], check=True)
    if number % 5 == 0: subprocess.run(["true"], check=True)
    time.sleep(0.02)
print("done")
"""

DISK = """
import os, sys, time
def full():
    try:
        with open("fill", "wb") as file:
            while True: file.write(bytes(1 << 16)); file.flush()
    except OSError: pass
def work(n): return [bytearray(n * 97 % 50_000) for n in range(200)]
end, number = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    full()
    until = time.monotonic() + 1
    while time.monotonic() < until: number += 1; work(number)
    os.unlink("fill")
    until = time.monotonic() + 1
    while time.monotonic() < until: number += 1; work(number)
print("done")
"""

MEMORY = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
end, refused = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end:
    held = []
    try:
        while True: held.append(bytes(range(256)) * 4096); held.append(bytearray(16 << 20))
    except MemoryError: refused += 1
    held.clear()
    [object() for _ in range(10000)]
print("done" if refused else "never refused")
"""

PRESSURE = """
import os, sys, time
held = [b"x" * (1 << 20) for _ in range(60)]
end, rounds = time.monotonic() + float(sys.argv[1]), 0
while time.monotonic() < end or rounds == 0:
    rounds += 1
    with open("file", "wb") as file:
        for _ in range(300): file.write(bytes(1 << 20))
    with open("file", "rb") as file:
        while file.read(1 << 20): pass
    [bytearray(n * 97 % 50_000) for n in range(2000)]
    time.sleep(0.1)
os.unlink("file")
print("done" if sum(map(len, held)) == 60 << 20 else "lost")
"""

LOADS: Mapping[str, Load] = {
    "recording": Load(STEADY),
    "rotation": Load(STEADY),
    "recursion": Load(RECURSION, tables=FULL_TABLES),
    "codes": Load(CODES, tables=FULL_TABLES),
    "threads": Load(THREADS),
    "forks": Load(FORKS),
    "disk": Load(DISK, may_lose=frozenset({"records_dropped", "segments_missing", "recording_stopped"})),
    "memory": Load(MEMORY, changes_size=True),
    "pressure": Load(PRESSURE),
}
