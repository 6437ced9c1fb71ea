"""CPU time of native threads, charged to the Python lines that submitted the work (docs/explanation/pools.md)."""

from .pool_sums import COLUMNS, PoolColumns, PoolSums, PoolTime

__all__ = ["COLUMNS", "PoolColumns", "PoolSums", "PoolTime"]
