"""Libraries that bring an allocator of their own (mimalloc, jemalloc), which takes memory out of reserved address space.

Argument 2 is the library, argument 3 for pyarrow the memory pool, for duckdb the number of threads. Each holds known amounts by line, the most at the first
moment of the truth' facts, and releases one part of them before the second.
"""

import ctypes
import os
import sys
import time

from memory_truth import MemoryTruth, fence

ROWS = 20_000_000


def settled() -> int:
    """A moment at which nothing moves: what is held now is what the rows say next."""
    moment = fence()
    time.sleep(0.6)
    return moment


class MallocInfo(ctypes.Structure):
    """What glibc says of malloc (mallinfo2), of which only the bytes of the blocks in use are read."""

    _fields_ = (("before", ctypes.c_size_t * 7), ("used", ctypes.c_size_t), ("behind", ctypes.c_size_t * 2))


def mappings() -> list[tuple[int, int]]:
    """Begin and end of the mappings that are of no file and not malloc's heap, in order."""
    found = []
    with open("/proc/self/maps", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            place, _, _, _, _, *name = line.split()
            if not name:
                begin, end = place.split("-")
                found.append((int(begin, 16), int(end, 16)))
    return found


class InUse:
    """What the program has in use: pages of its own mappings, and blocks of malloc.

    All that malloc hands out is on the heap from now on. What was mapped before is left out: a recorder's tables.
    """

    ARENA_MAX, MMAP_THRESHOLD = -8, -3

    def __init__(self) -> None:
        self.libc = ctypes.CDLL(None)
        self.libc.mallopt(self.ARENA_MAX, 1)
        self.libc.mallopt(self.MMAP_THRESHOLD, 32 << 20)
        self.libc.mallinfo2.restype = MallocInfo
        self.page = os.sysconf("SC_PAGESIZE")
        self.others = mappings()

    def bytes(self) -> int:
        pages = sum(self.between(begin, end) for begin, end in mappings())
        return pages + int(self.libc.mallinfo2().used)

    def between(self, begin: int, end: int) -> int:
        """Bytes of [begin, end) that are in memory and in none of the others."""
        total = 0
        for other_begin, other_end in [*self.others, (end, end)]:
            if begin < other_begin and begin < end:
                total += self.resident(begin, min(end, other_begin))
            if other_end > begin:
                begin = other_end
        return total

    def resident(self, begin: int, end: int) -> int:
        pages = (ctypes.c_ubyte * ((end - begin) // self.page))()
        self.libc.mincore(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), pages)
        return bytes(pages).count(1) * self.page


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
    memory = InUse()
    import duckdb as library

    connections = [library.connect(config={"threads": int(threads)}) for _ in range(2)]
    for connection in connections:
        connection.execute("create table warm as select hash(range) as a from range(1000000)")
    first, second = connections
    begin, before = fence(), memory.bytes()
    first.execute(f"create table kept as select hash(range) as a from range({2 * ROWS})")  # @kept
    between = memory.bytes()
    second.execute(f"create table dropped as select hash(range + 7) as a from range({2 * ROWS})")  # @dropped
    truth.sizes = {"kept": between - before, "dropped": memory.bytes() - between}
    truth.facts["whole"] = sum(truth.sizes.values())
    full = settled()
    used = memory.bytes()
    second.close()
    released = settled()
    truth.facts["freed"] = used - memory.bytes()
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
