"""Reads a location table entry by entry, as CPython's ``Objects/locations.md`` tells it: slow and easy to check."""

from __future__ import annotations

from collections.abc import Iterator

MAX_VARINT_BYTES = 6


def read_entries(table: bytes, line: int) -> Iterator[tuple[int, int | None]]:
    """Size in bytes of code, and line (None: no location), of each entry up to the first that is not whole."""
    at = 0
    while at < len(table) and table[at] & 0x80:
        head = table[at]
        rest = table[at + 1 :]
        end = next((number for number, byte in enumerate(rest) if byte & 0x80), len(rest))
        code, rest = head >> 3 & 15, rest[:end]
        read = _read(code, rest)
        if read is None:
            return
        step, used = read
        line += step
        yield ((head & 7) + 1) * 2, None if code == 15 else line
        at += 1 + used


def _read(code: int, rest: bytes) -> tuple[int, int] | None:
    """Lines to go on and bytes used; None if there are too few bytes."""
    if code == 15:
        return 0, 0
    if code < 13:
        needed = 1 if code < 10 else 2
        return (max(code - 10, 0), needed) if len(rest) >= needed else None
    numbers, used = [], 0
    for _ in range(1 if code == 13 else 4):
        size = next((number for number, byte in enumerate(rest[used:], 1) if not byte & 64), None)
        if size is None or size > MAX_VARINT_BYTES:
            return None
        numbers.append(sum((byte & 63) << 6 * number for number, byte in enumerate(rest[used : used + size])))
        used += size
    return -(numbers[0] >> 1) if numbers[0] & 1 else numbers[0] >> 1, used
