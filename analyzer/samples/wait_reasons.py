"""What a wait was for: by the system call in which a thread waited, and by what its file descriptor is.

Numbers of system calls are those of x86-64; of another machine only the descriptors tell.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

UNKNOWN, LOCK, EITHER = "unknown", "lock", "lock or GIL"

BY_TARGET: Mapping[str, str] = {
    "file": "file",
    "socket": "socket",
    "pipe": "pipe",
    "terminal": "terminal",
    "gpu": "GPU",
    "gil": "GIL",
    "lock": LOCK,
}
"""By the names of the enumeration ``target``; these tell more than the call does."""

BY_CALL: Mapping[str, tuple[int, ...]] = {
    # futex, futex_waitv, futex_wait: by the call alone, as before format 1.4, a lock looks the same as the GIL
    EITHER: (202, 449, 455),
    "sleep": (35, 230),
    "child process": (58, 61, 247),  # vfork until the child has its program, wait4, waitid
    "socket": (42, 43, 44, 45, 46, 47, 288, 299, 307),
    "events": (7, 23, 232, 270, 271, 281, 441),  # poll, select and epoll: any of several descriptors, or a timer
    "file": (26, 73, 74, 75, 162, 208, 277, 306),  # msync, flock, fsync and others
    "signal": (34, 128, 130),
}

REASONS = tuple(dict.fromkeys((UNKNOWN, *BY_TARGET.values(), *BY_CALL)))
"""The names of reasons; a number in ``WaitBatch.reason`` is a place here."""

MACHINE = "x86_64"


class Reasons:
    """Finds the reason of waits in a recording of ``machine`` whose enumeration ``target`` has the names ``targets``.

    A recording of format 1.0 does not say its machine, and is of x86-64 as all are.
    """

    def __init__(self, targets: list[str], machine: str | None) -> None:
        self._by_target = np.array([REASONS.index(BY_TARGET.get(name, UNKNOWN)) for name in targets] + [0], np.int64)
        calls = BY_CALL if machine in (None, MACHINE) else {}
        self._by_call = np.zeros(1 + max((max(numbers) for numbers in calls.values()), default=0), np.int64)
        for name, numbers in calls.items():
            self._by_call[list(numbers)] = REASONS.index(name)

    def of(self, syscall: NDArray[np.int64], target: NDArray[np.integer]) -> NDArray[np.int64]:
        """The reason of each wait; -1 is not a system call."""
        known = (syscall >= 0) & (syscall < len(self._by_call))
        by_call = np.where(known, self._by_call[np.where(known, syscall, 0)], 0)
        # A target that this version does not know tells nothing.
        by_target = self._by_target[np.minimum(target, len(self._by_target) - 1)]
        return np.asarray(np.where(by_target > 0, by_target, by_call), np.int64)
