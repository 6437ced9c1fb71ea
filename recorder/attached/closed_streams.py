"""Keeps the numbers of standard streams that a program has closed from becoming those of our files.

A daemon that has closed its standard streams may write to them all the same, and notices nothing. What is opened while
a recording begins or ends would get these numbers, and what the daemon writes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_LAST = 2
_ANYTHING = "/"


class ClosedStreams:
    """While this is entered, no file gets the number of a closed standard stream.

    They are taken by descriptors that can be neither read from nor written to (O_PATH): for the program they are closed
    still. One that it opens meanwhile is its own.
    """

    def __init__(self) -> None:
        self._taken: list[int] = []

    def __enter__(self) -> None:
        """Take them."""
        while True:
            try:
                number = os.open(_ANYTHING, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                return  # none is left: then no file of ours gets one either
            if number > _LAST:
                os.close(number)
                return
            self._taken.append(number)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close them again."""
        for number in self._taken:
            try:
                if os.path.samestat(os.fstat(number), os.stat(_ANYTHING)):
                    os.close(number)
            except OSError:
                continue  # the program has closed it
