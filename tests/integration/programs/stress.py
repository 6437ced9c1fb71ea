"""Everything that makes a Python stack hard to read, in a program whose call graph is known.

CALLS is the whole truth about who calls whom among the functions of this file and of the code that it makes up (whose
names begin with ``churn:``), with a text that stands on the caller's line when it does (``|`` between alternatives). A
recorded stack in which one of these functions stands above one that it never calls, or calls it from another line, was
never there.
"""

import gc
import json
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

try:
    import greenlet
except ImportError:
    greenlet = None

CALLS: dict[str, dict[str, str]] = {
    "<module>": {"main": "main()"},
    "main": {"everything": "everything(", "main.<locals>.<listcomp>": "for n in range(3)"},
    "main.<locals>.<listcomp>": {},
    "worker": {"everything": "everything("},
    "everything": {
        "deep": "deep(",
        "even": "even(",
        "drive": "drive(",
        "raising": "raising(",
        "collect": "collect(",
        "churn": "churn(",
        "comprehend": "comprehend(",
        "switch": "switch(",
        "spawn": "spawn(",
        "limits": "limits(",
    },
    "deep": {"deep": "deep(", "leaf": "leaf("},
    "even": {"odd": "odd(", "leaf": "leaf("},
    "odd": {"even": "even(", "leaf": "leaf("},
    "drive": {"numbers": "numbers(|generator.close(", "delegating": "generator", "leaf": "leaf("},
    "delegating": {"numbers": "yield from"},
    "numbers": {"leaf": "leaf("},
    "raising": {"thrower": "thrower("},
    "thrower": {"thrower": "thrower(", "leaf": "leaf("},
    "collect": {"Node.__init__": "Node()", "leaf": "leaf("},
    "Node.__init__": {"leaf": "leaf("},
    "Node.__del__": {"leaf": "leaf("},
    "churn": {"churn:<module>": "exec("},
    "churn:<module>": {"churn:generated": "generated(", "churn:<lambda>": "again("},
    "churn:generated": {"leaf": "leaf("},
    "churn:<lambda>": {"leaf": "leaf("},
    "spawn": {},
    "short": {"deep": "deep(", "leaf": "leaf("},
    "switch": {"leaf": "leaf("},
    "green": {"bounce": "bounce(", "leaf": "leaf("},
    "bounce": {"bounce": "bounce(", "leaf": "leaf("},
    "limits": {"bottomless": "bottomless(", "leaf": "leaf("},
    "bottomless": {"bottomless": "bottomless("},
    "comprehend": {
        "comprehend.<locals>.<listcomp>": "for number",
        "comprehend.<locals>.<lambda>": "sorted(",
        "leaf": "leaf(",
    },
    "comprehend.<locals>.<listcomp>": {"leaf": "leaf("},
    "comprehend.<locals>.<lambda>": {"leaf": "leaf("},
    "leaf": {},
    "Node": {},
}
ANYWHERE = ["Node.__del__"]
"""Run by the collector, which may run at any instruction of any function."""
ROOTS = ["<module>", "Thread._bootstrap", "green", "Node.__del__"]
"""The only functions that are not called by others: a stack that begins elsewhere has lost its beginning."""


def leaf(size: int) -> int:
    total = 0
    for index in range(size):
        total += index
    return total


def deep(depth: int) -> int:
    if depth == 0:
        return leaf(20)
    return deep(depth - 1) + 1


def even(number: int) -> bool:
    if number == 0:
        return leaf(5) >= 0
    return odd(number - 1)


def odd(number: int) -> bool:
    if number == 0:
        return leaf(5) < 0
    return even(number - 1)


def numbers(count: int) -> Generator[int, int | None, int]:
    for index in range(count):
        sent = yield leaf(3) + index
        if sent:
            leaf(sent)
    return count


def delegating(count: int) -> Generator[int, int | None, int]:
    return (yield from numbers(count))


def drive(count: int) -> None:
    for _ in numbers(count):
        leaf(2)
    generator = delegating(count)
    next(generator)
    for _ in range(count // 2):
        generator.send(4)
    generator.close()


def thrower(depth: int) -> int:
    try:
        if depth == 0:
            raise ValueError(leaf(3))
        return thrower(depth - 1)
    finally:
        leaf(2)


def raising() -> None:
    for depth in (1, 5, 30):
        try:
            thrower(depth)
        except ValueError:
            continue


class Node:
    """Part of a cycle, with a finaliser in Python."""

    def __init__(self) -> None:
        self.me = self
        leaf(2)

    def __del__(self) -> None:
        leaf(2)


def collect() -> None:
    for _ in range(50):
        Node()
    gc.collect(0)
    leaf(10)


def churn(number: int) -> None:
    """Code objects that live for one call, so that their addresses are used again and again."""
    above = "\n" * (number % 50)
    source = f"{above}def generated(n):\n    return leaf(n)\ngenerated(20)\nagain = lambda n: leaf(n)\nagain(10)\n"
    exec(compile(source, f"<churn {number % 50}>", "exec"), {"leaf": leaf})  # noqa: S102


def short() -> None:
    deep(15)
    leaf(100)


def spawn(count: int) -> None:
    for _ in range(count):
        thread = threading.Thread(target=short, name="short")
        thread.start()
        thread.join()


def bounce(depth: int) -> int:
    if depth:
        return bounce(depth - 1)
    parent = greenlet.getcurrent().parent
    for _ in range(5):
        leaf(20)
        parent.switch()
    return leaf(3)


def green(depth: int) -> int:
    return bounce(depth) + leaf(2)


def switch() -> None:
    if greenlet is None:
        return
    runners = []
    for number in range(4):
        runner = greenlet.greenlet(green)
        runners.append(runner)
        runner.switch(number * 7)
    for _ in range(5):
        for runner in runners:
            runner.switch()
        leaf(5)


def bottomless(depth: int) -> int:
    return bottomless(depth + 1) + 1


def limits() -> None:
    old = sys.getrecursionlimit()
    for limit in (200, 700, 3000):
        sys.setrecursionlimit(limit)
        try:
            bottomless(0)
        except RecursionError:
            leaf(5)
        finally:
            sys.setrecursionlimit(old)


def comprehend() -> None:
    values = [leaf(number) for number in range(20)]
    sorted(values, key=lambda value: leaf(value & 7))


def everything(seconds: float, *, main_thread: bool) -> int:
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        number += 1
        deep(number % 60)
        even(number % 40)
        drive(number % 30 + 2)
        raising()
        collect()
        churn(number)
        comprehend()
        switch()
        if main_thread:
            spawn(5)
            limits()
    return number


def worker(seconds: float) -> None:
    everything(seconds, main_thread=False)


def main() -> None:
    truth, seconds = Path(sys.argv[1]), float(sys.argv[2])
    document = {"calls": CALLS, "anywhere": ANYWHERE, "roots": ROOTS, "greenlets": greenlet is not None}
    truth.write_text(json.dumps(document), encoding="utf-8")
    threads = [threading.Thread(target=worker, args=(seconds,), name=f"worker-{n}") for n in range(3)]
    for thread in threads:
        thread.start()
    rounds = everything(seconds, main_thread=True)
    for thread in threads:
        thread.join()
    print("rounds" if rounds else "nothing was done")


if __name__ == "__main__":
    main()
