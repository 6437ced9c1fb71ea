"""Libraries that bring an allocator of their own (mimalloc, jemalloc), which takes memory out of reserved address space.

Argument 2 is the library, argument 3 for pyarrow the memory pool, for duckdb the number of threads. Each holds known amounts by line, the most at the first
moment of the truth' facts, and releases one part of them before the second.
"""

import ctypes
import sys
import time

from memory_truth import MemoryTruth, fence

ROWS = 20_000_000


def settled() -> int:
    """A moment at which nothing moves: what is held now is what the rows say next."""
    moment = fence()
    time.sleep(0.6)
    return moment


def anonymous() -> int:
    """Bytes of the process's own memory that the kernel has given pages for, without what malloc keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:  # noqa: PTH123
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("Anonymous:"))


def pyarrow(truth: MemoryTruth, pool_name: str) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    pool = getattr(pa, f"{pool_name}_memory_pool")()
    base = pa.array(np.ones(ROWS, np.int64))
    warm = [work(base[:1000], 1, memory_pool=pool) for work in (pc.add, pc.multiply, pc.subtract)]
    before = pool.bytes_allocated()
    begin = fence()
    kept = pc.add(base, 1, memory_pool=pool)  # @kept
    dropped = pc.multiply(base, 3, memory_pool=pool)  # @dropped
    again = [pc.subtract(base, number, memory_pool=pool) for number in range(3)]  # @again
    truth.sizes = {"kept": kept.nbytes, "dropped": dropped.nbytes, "again": sum(each.nbytes for each in again)}
    truth.facts["whole"] = pool.bytes_allocated() - before
    full = settled()
    del dropped
    pool.release_unused()
    released = settled()
    truth.windows["held"] = (begin, full)
    truth.windows["freed"] = (full, released)
    globals().update(kept=kept, again=again, base=base, warm=warm)


def polars(truth: MemoryTruth) -> None:
    import polars as pl

    base = pl.int_range(0, 1000, eager=True)
    warm = [base + 1, base * 3]
    begin = fence()
    first = pl.int_range(0, ROWS, eager=True)  # @first
    kept = first + 1  # @kept
    dropped = first * 3  # @dropped
    truth.sizes = {
        name: int(each.estimated_size()) for name, each in (("first", first), ("kept", kept), ("dropped", dropped))
    }
    truth.facts["whole"] = sum(truth.sizes.values())
    full = settled()
    del dropped
    time.sleep(2)  # jemalloc gives pages back when they have been unused for a while
    released = settled()
    truth.windows["held"] = (begin, full)
    truth.windows["freed"] = (full, released)
    globals().update(kept=kept, first=first, warm=warm)


def duckdb(truth: MemoryTruth, threads: str) -> None:
    """Its tables are in blocks that are not filled to the last byte: the kernel says what is in use of them."""
    import duckdb as library

    connections = [library.connect(config={"threads": int(threads)}) for _ in range(2)]
    for connection in connections:
        connection.execute("create table warm as select hash(range) as a from range(1000000)")
    first, second = connections
    begin, before = fence(), anonymous()
    first.execute(f"create table kept as select hash(range) as a from range({2 * ROWS})")  # @kept
    between = anonymous()
    second.execute(f"create table dropped as select hash(range + 7) as a from range({2 * ROWS})")  # @dropped
    truth.sizes = {"kept": between - before, "dropped": anonymous() - between}
    truth.facts["whole"] = sum(truth.sizes.values())
    full = settled()
    used = anonymous()
    second.close()
    released = settled()
    truth.facts["freed"] = used - anonymous()
    truth.windows["held"] = (begin, full)
    truth.windows["freed"] = (full, released)
    globals().update(first=first)


def numpy(truth: MemoryTruth) -> None:
    import numpy as np

    begin = fence()
    kept = np.ones(ROWS)  # @kept
    dropped = kept * 3  # @dropped
    truth.sizes = {"kept": kept.nbytes, "dropped": dropped.nbytes}
    truth.facts["whole"] = sum(truth.sizes.values())
    full = settled()
    del dropped
    released = settled()
    truth.windows["held"] = (begin, full)
    truth.windows["freed"] = (full, released)
    globals().update(kept=kept)


def main() -> None:
    truth = MemoryTruth()
    globals()[sys.argv[2]](truth, *sys.argv[3:])
    truth.facts["own_allocator"] = sys.argv[2] != "numpy"
    truth.write()


if __name__ == "__main__":
    main()
