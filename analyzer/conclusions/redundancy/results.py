"""Finds results that were computed again: blocks of memory that held the same when they were given back.

A watchpoint follows an address, and a result that goes into fresh memory each time has none. But a watched block that
is given back has a hash of its content in the recording: a line that fills blocks of one size with the same content
again and again does the same work again. A block that begins like a shorter one is that one, copied to add to it.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from ...recording.call_tree import NOTHING

LEAST_SIZES, MANY_SIZES = 6, 30
"""Different sizes of a line's blocks, half as many as blocks or many: they grow, or shrink, from call to call."""

MOST_OF_ONE_SIZE = 0.9
"""Of blocks: others are of small objects beside them."""

_Ids = NDArray[np.int64]


LEAST_BYTES = 1024
"""Of a block that counts: smaller ones are objects rather than results, and objects of one type look the same."""


def are_repeated(block_bytes: _Ids, block_hash: _Ids, block_again: _Ids, block_head_hash: _Ids) -> NDArray[np.bool_]:
    """True for blocks of a line whose content came again: in the same place, or in another block of the line.

    A block that begins like a smaller one, which came earlier, counts as well. Hashes are NOTHING where they are not
    known: of a block that is one word over and over, and of the beginning of a short one.
    """
    known = block_hash != NOTHING
    whole = list(zip(block_bytes.tolist(), block_hash.tolist(), strict=True))
    times = Counter(each for each, is_known in zip(whole, known.tolist(), strict=True) if is_known)
    repeated = np.array([times[each] > 1 for each in whole], np.bool_) | (known & (block_again == 1))
    smallest: dict[int, int] = {}
    for place, (size, head) in enumerate(zip(block_bytes.tolist(), block_head_hash.tolist(), strict=True)):
        if head != NOTHING and known[place]:
            repeated[place] |= smallest.setdefault(head, size) < size
            smallest[head] = min(smallest[head], size)
    return np.asarray(repeated, np.bool_)


def are_of_one_size(block_bytes: _Ids) -> bool:
    """True if all blocks but a few have one size."""
    counts = np.unique(block_bytes, return_counts=True)[1]
    return bool(counts.max(initial=0) >= MOST_OF_ONE_SIZE * len(block_bytes))


def sizes_vary(block_bytes: _Ids) -> bool:
    """True if blocks have many different sizes."""
    different = len(np.unique(block_bytes))
    return different >= LEAST_SIZES and different >= min(len(block_bytes) / 2, MANY_SIZES)
