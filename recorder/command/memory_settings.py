"""What is recorded of memory and copies, and how its threshold is typed."""

from __future__ import annotations

import re

DEFAULT_THRESHOLD = 10_485_767
"""Bytes by which the footprint changes from one row to the next: a prime above 10 MiB (Scalene 2023, section 3.2).

A prime, so that a program which allocates round sizes in turn is not met at the same place every time.
"""

SMALLEST_THRESHOLD, LARGEST_THRESHOLD = 64 << 10, 1 << 40

# What the native recorder begins with (SPEC.md, "manifest.json"); kept in step with native/shim by a test.
BLOCK_MEAN_BYTES = 524_288
COPIES_MIN_BYTES = 512
COPIES_MEAN_BYTES = 1_048_576

_SIZE = re.compile(r"([0-9]{1,15})([KMG]?)", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_threshold(text: str) -> int:
    """The bytes that ``--memory-threshold`` means: ``10485767``, ``64K``, ``1M``, ``2G`` (units of 1024).

    Raises ValueError, with one line for the user, if it is no size or none that can be used.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a number of bytes such as 10485767, 64K or 16M")
    size = int(match[1]) * _UNITS[match[2].upper()]
    if not SMALLEST_THRESHOLD <= size <= LARGEST_THRESHOLD:
        raise ValueError(f"{text.strip()} is not between 64K and 1024G")
    return size


def memory_parameters(memory: bool, threshold: int) -> dict[str, bool | int]:
    """The manifest's parameters about memory and copies."""
    if not memory:
        return {"memory": False}
    return {
        "memory": True,
        "memory_threshold": threshold,
        "block_mean_bytes": BLOCK_MEAN_BYTES,
        "copies_min_bytes": COPIES_MIN_BYTES,
        "copies_mean_bytes": COPIES_MEAN_BYTES,
    }
