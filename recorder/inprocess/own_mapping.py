"""A mapped file of the recorder's in a program that may close, and use again, every descriptor it did not open.

Python's mmap objects keep a descriptor of their file up to 3.12, and close that number when they end. A program that
closes all descriptors, as daemons do, may have a file of its own there by then.
"""

from __future__ import annotations

import os
import sys
from mmap import mmap

from tachograph.recorder.inprocess.unforked_ranges import MOST_TRIES, mapped_outside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.recorder.inprocess.unforked_ranges import Range

MOST_BEYOND = 64
"""How far above the lowest free number its descriptor is looked for: other threads open files meanwhile."""


class OwnMapping:
    """All of the file behind ``descriptor``, mapped as ``map`` outside of ``holes``. OSError if it cannot be."""

    def __init__(self, descriptor: int, size: int, holes: Sequence[Range]) -> None:
        self._number: int | None = None
        if sys.version_info >= (3, 13):
            self.map = mapped_outside(holes, lambda: mmap(descriptor, size, trackfd=False))
        else:
            self.map = mapped_outside(holes, lambda: mmap(descriptor, size))
            self._number = self._number_of(descriptor)

    def release(self) -> None:
        """Unmap it, unless that would close a file of the program's: then it stays."""
        if self.is_apart():
            self.map.close()
        else:
            self.keep()

    def keep(self) -> None:
        """Leave it mapped until the interpreter has finalized the program's objects, if it is another file's number."""
        if not self.is_apart():
            # What is called at forks is let go of after all modules: a file of the program's is complete by then.
            os.register_at_fork(after_in_parent=self.map.tell)

    def is_apart(self) -> bool:
        """True if no other file has its number."""
        if self._number is None:
            return True
        try:
            return self._identity(self._number) == self._file
        except OSError:
            return True  # it is closed

    def _number_of(self, descriptor: int) -> int | None:
        self._file = self._identity(descriptor)
        lowest = os.dup(descriptor)
        os.close(lowest)
        for number in range(lowest + MOST_TRIES + MOST_BEYOND):
            try:
                if number != descriptor and self._identity(number) == self._file:
                    return number
            except OSError:
                continue
        return None

    @staticmethod
    def _identity(descriptor: int) -> tuple[int, int]:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino
