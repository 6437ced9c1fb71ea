"""What is recorded of memory and copies, and how its threshold is typed."""

from __future__ import annotations

import re

DEFAULT_THRESHOLD = 10_485_767
"""Bytes by which the footprint changes from one row to the next: a prime above 10 MiB (Scalene 2023, section 3.2).

A prime, so that a program which allocates round sizes in turn is not met at the same place every time.
"""

SMALLEST_THRESHOLD, LARGEST_THRESHOLD = 64 << 10, 1 << 40

RATES = {"block_mean_bytes": 524_288, "copies_min_bytes": 512, "copies_mean_bytes": 1_048_576}
"""What the native recorder begins with (SPEC.md, "manifest.json"); kept in step with native/shim by a test."""

# Compiled when it is needed: the program is not kept waiting for that.
_SIZE = r"([0-9]{1,15})([KMGkmg]?)"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_threshold(text: str) -> int:
    """The bytes that ``--memory-threshold`` means: ``10485767``, ``64K``, ``1M``, ``2G`` (units of 1024).

    Raises ValueError, with one line for the user, if it is no size or none that can be used.
    """
    match = re.fullmatch(_SIZE, text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a number of bytes such as 10485767, 64K or 16M")
    size = int(match[1]) * _UNITS[match[2].upper()]
    if not SMALLEST_THRESHOLD <= size <= LARGEST_THRESHOLD:
        raise ValueError(f"{text.strip()} is not between 64K and 1024G")
    return size
