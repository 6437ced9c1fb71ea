"""CPU time of native threads, charged to the Python lines that asked for it (docs/explanation/pools.md)."""

from .pool_sums import COLUMNS, PoolColumns, PoolSums, PoolTime

__all__ = ["COLUMNS", "PoolColumns", "PoolSums", "PoolTime"]
