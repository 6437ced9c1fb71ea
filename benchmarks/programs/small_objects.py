"""Millions of small objects, made by four lines and held together: how many bytes does each line hold?

python small_objects.py COUNT REPORT [--truth]

With `--truth`, tracemalloc says so while all are held, and the report is what it says: line number -> bytes.
"""

import json
import sys
import tracemalloc
from pathlib import Path


def make(count: int) -> list[object]:
    """Some of it twice: built, dropped and built again by another line."""
    dropped = [float(number) for number in range(count)]
    del dropped
    floats = [number + 0.5 for number in range(count)]  # @floats
    strings = [str(number) for number in range(count)]  # @strings
    tuples = [(number, number) for number in range(count)]  # @tuples
    dicts = [{"number": number} for number in range(count // 4)]  # @dicts
    return [floats, strings, tuples, dicts]


def main() -> None:
    """Makes the objects and writes the report."""
    truth = "--truth" in sys.argv
    if truth:
        tracemalloc.start()
    held = make(int(sys.argv[1]))
    report: dict[str, int] = {}
    if truth:
        statistics = tracemalloc.take_snapshot().statistics("lineno")
        here = [one for one in statistics if one.traceback[0].filename == __file__]
        report = {str(one.traceback[0].lineno): one.size for one in here}
    Path(sys.argv[2]).write_text(json.dumps(report), encoding="utf-8")
    del held


if __name__ == "__main__":
    main()
