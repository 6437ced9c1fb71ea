"""What a usual program does: its own loops, library code of every depth, native code, waiting, two threads."""

import json
import re
import sys
import threading
import time
import zlib
from typing import Any


def parse(text: str) -> int:
    return sum(len(word) for word in re.findall(r"\w+", text))


def build(depth: int) -> dict[str, Any]:
    if depth == 0:
        return {"name": "leaf", "values": list(range(10))}
    return {"left": build(depth - 1), "right": build(depth - 1)}


def encode(depth: int) -> int:
    return len(json.dumps(build(depth), indent=1))


def decode(depth: int) -> int:
    return len(json.loads(json.dumps(build(depth))))


def compress(size: int) -> int:
    return len(zlib.compress(bytes(range(256)) * size))


def sort(size: int) -> list[int]:
    return sorted(range(size), key=lambda number: number * 7919 % 1009)


def background(until: float) -> None:
    while time.monotonic() < until:
        time.sleep(0.02)
        parse("some words of a text " * 50)


def main() -> None:
    until = time.monotonic() + float(sys.argv[1])
    thread = threading.Thread(target=background, args=(until,), name="background")
    thread.start()
    rounds = 0
    while time.monotonic() < until:
        parse("the quick brown fox jumps over the lazy dog " * 200)
        encode(rounds % 6)
        decode(rounds % 7)
        compress(40)
        sort(2000)
        rounds += 1
        if rounds % 20 == 0:
            time.sleep(0.01)
    thread.join()


if __name__ == "__main__":
    main()
