"""How much anonymous memory a process has in RAM, with or without numpy: argument 2 is ``numpy`` or ``nothing``."""

import sys
from pathlib import Path

from memory_truth import MemoryTruth, looked


def anonymous() -> int:
    """Bytes, as the kernel counts them."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


if sys.argv[2] == "numpy":
    import numpy  # noqa: F401, ICN001 - it is what is measured
truth = MemoryTruth()
truth.sizes = {"anonymous": anonymous()}
looked()
truth.write()
