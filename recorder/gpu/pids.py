"""Which processes are being recorded, as the spool tells."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

LOOK_AGAIN_S = 0.5


class RecordedPids:
    """The process ids of the recorded processes; the spool is looked at only when a new one is asked for."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._known: set[int] = set()
        self._looked = -LOOK_AGAIN_S

    def among(self, pids: Iterable[int]) -> list[int]:
        """Those of ``pids`` that are recorded."""
        asked = set(pids)
        now = time.monotonic()
        if not asked <= self._known and now - self._looked >= LOOK_AGAIN_S:
            self._looked = now
            self._look()
        return sorted(asked & self._known)

    def _look(self) -> None:
        try:
            names = os.listdir(self._spool)
        except OSError:
            return
        prefixes = (name.partition("-")[0] for name in names if name.endswith(".ctl"))
        self._known.update(int(prefix) for prefix in prefixes if prefix.isdecimal())
