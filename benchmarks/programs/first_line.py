"""Writes down, on the system-wide monotonic clock, when its first line ran."""

# No import before the clock is read but the one that has it, which every interpreter has loaded by now.
import time

first_line_ns = time.monotonic_ns()

import sys  # noqa: E402
from pathlib import Path  # noqa: E402

Path(sys.argv[1]).write_text(str(first_line_ns), encoding="utf-8")
