"""Memory: who holds it, since when, and how it moved over time.

``read_heap`` reads the tables ``memory`` and ``allocations`` and makes the two agree (``calibration``); the other
modules are pure functions from the ``Heap`` to numbers: sums by site and averages per visit (``sums``), columns of
tables (``memory_columns``), curves (``curves``), and the process as a whole (``process``).
docs/explanation/memory.md explains the estimates.
"""

from __future__ import annotations

from .blocks import NEVER, Blocks
from .counters import PYTHON, Counters
from .heap import Heap, read_heap
from .moments import Moment

__all__ = ["NEVER", "PYTHON", "Blocks", "Counters", "Heap", "Moment", "read_heap"]
