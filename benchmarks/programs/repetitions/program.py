"""Makes scripts of the texts of programs, which run so many seconds of CPU time."""

from dataclasses import dataclass
from pathlib import Path

SLICE, SAME_CALL, ALGORITHM = "slice-underutilization", "repeated-call-same-arguments", "inefficient-algorithm"
MISUSE, INVARIANT = "api-misuse", "loop-invariant"

MARK = "# HOT"
"""At the end of the lines that repeat work."""
LIBRARY = Path(__file__).parent / "vectors.c"
"""The C functions of some programs, which look for the compiled library in the environment variable LIBRARY."""
_HEAD = "import json, os, sys, time\nEND = float(sys.argv[1])\npasses = 0\n"
_TAIL = "    passes += 1\nprint(passes)\n"


@dataclass(frozen=True)
class Pair:
    """A program that repeats work, and the same without the repetition. Each ends in the body of a loop."""

    category: str
    text: str
    mended: str


def script(text: str) -> str:
    """The whole program: its argument is the CPU time, and it prints how often it went through its work."""
    return f"{_HEAD}{text}{_TAIL}"


def marked(text: str) -> list[int]:
    """The lines of the script that repeat work."""
    return [number for number, line in enumerate(script(text).split("\n"), 1) if line.endswith(MARK)]


def packages(text: str) -> set[str]:
    """The packages that a program needs beside NumPy."""
    return {name for name in ("pandas", "scipy", "sklearn", "PIL") if name in text}
