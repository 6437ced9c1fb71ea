"""A process that holds memory of one kind, and knows how much of it lives and how much an allocator keeps. Argument 2
says which kind.
"""

import ctypes
import gc
import importlib
import mmap
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing import shared_memory

from memory_truth import MemoryTruth, looked

MB = 1 << 20
PAGE = 4096
kept: list[object] = []


def malloc_keeps() -> dict[str, int]:
    """Large blocks among small ones, which live on: the heap cannot shrink."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    large, small = [], []
    for _ in range(20_000):
        large.append(libc.malloc(10_000))
        ctypes.memset(large[-1], 1, 10_000)
        small.append(libc.malloc(600))
        ctypes.memset(small[-1], 1, 600)
    kept.append(small)
    for block in large:
        libc.free(ctypes.c_void_p(block))
    return {"live": 20_000 * 600, "kept_malloc": 20_000 * 10_000}


def heaps_of_threads_keep() -> dict[str, int]:
    """Eight threads that hold blocks until all have them, and give back all but one in fifty."""
    barrier = threading.Barrier(8)
    held: list[int] = []

    def work() -> None:
        blocks = [bytearray(9_000) for _ in range(2_000)]
        barrier.wait()
        kept.append(blocks[::50])
        held.append(len(blocks[::50]))
        blocks.clear()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lives = sum(held) * 9_000
    return {"live": lives, "kept_malloc": 8 * 2_000 * 9_000 - lives}


def pools_keep() -> dict[str, int]:
    """One pair of each hundred lives, and the number in it: in each pool of 16 KiB there is at least one."""
    gc.disable()
    objects = [(number, number) for number in range(1000, 1_500_000)]
    size = sum((sys.getsizeof(each) + 15) // 16 * 16 for each in (objects[0], objects[0][0]))
    kept.append(objects[::100])
    count = len(objects)
    lives = len(objects[::100])
    del objects
    return {"live": lives * size, "kept_pymalloc": (count - lives) * size}


def blocks_live() -> dict[str, int]:
    kept.extend(bytearray(b"x" * 40_000) for _ in range(5_000))
    return {"live": 5_000 * 40_000}


def large_blocks_live() -> dict[str, int]:
    kept.append(bytearray(b"x" * (150 * MB)))
    return {"live": 150 * MB}


def arrays_live() -> dict[str, int]:
    import numpy as np

    kept.append(np.ones(20 * MB))
    return {"live": 160 * MB}


def frames_live() -> dict[str, int]:
    import numpy as np
    import pandas as pd

    kept.append(pd.DataFrame({f"c{number}": np.arange(2 * MB, dtype=np.float64) for number in range(8)}))
    return {"live": 128 * MB}


def anonymous_mapping() -> dict[str, int]:
    """Private, and half of it touched."""
    memory = mmap.mmap(-1, 200 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for page in range(0, 100 * MB, PAGE):
        memory[page] = 1
    kept.append(memory)
    return {"live": 100 * MB}


def shared() -> dict[str, int]:
    block = shared_memory.SharedMemory(create=True, size=150 * MB)
    buffer = block.buf
    assert buffer is not None
    buffer[:] = b"x" * (150 * MB)
    kept.append(block)
    return {"shared": 150 * MB}


def shared_anonymous() -> dict[str, int]:
    memory = mmap.mmap(-1, 150 * MB)
    memory[:] = b"x" * (150 * MB)
    kept.append(memory)
    return {"shared": 150 * MB}


def mapped_file() -> dict[str, int]:
    with tempfile.TemporaryFile(dir=os.path.dirname(sys.argv[1])) as file:
        for _ in range(150):
            file.write(b"x" * MB)
        file.flush()
        memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        sum(memory[page] for page in range(0, 150 * MB, PAGE))
    kept.append(memory)
    return {"files": 150 * MB}


def arrow_table() -> dict[str, int]:
    """Of the allocator that pyarrow brings."""
    import pyarrow as pa

    buffers = [pa.allocate_buffer(20 * MB) for _ in range(6)]
    for buffer in buffers:
        ctypes.memset(buffer.address, 1, buffer.size)
    kept.append(buffers)
    return {"live": 120 * MB}


def arrow_keeps() -> dict[str, int]:
    """Of the allocator that pyarrow brings: it was asked not to give back after a while what is free."""
    import pyarrow as pa

    buffers = [pa.allocate_buffer(20 * MB) for _ in range(6)]
    for buffer in buffers:
        ctypes.memset(buffer.address, 1, buffer.size)
    kept.append(buffers[:2])
    return {"live": 40 * MB, "kept_arrow": 80 * MB}


def malloc_pinned() -> dict[str, int]:
    """One small block in twenty lives: about one in each page of the heap."""
    count, every = 500_000, 20
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    blocks = (ctypes.c_size_t * count)()
    for number in range(count):
        blocks[number] = libc.malloc(200)  # @pinning
        ctypes.memset(blocks[number], 1, 200)
    for number in range(count):
        if number % every:
            libc.free(ctypes.c_void_p(blocks[number]))
    kept.append(blocks)
    pinning = count // every * 208
    return {"live": pinning + ctypes.sizeof(blocks), "kept_malloc": count * 208 - pinning, "pinning": pinning}


def arrow_system() -> dict[str, int]:
    """Of the pool of pyarrow that calls malloc."""
    return arrow_buffers("system")


def arrow_jemalloc() -> dict[str, int]:
    """Of the jemalloc that pyarrow brings."""
    return arrow_buffers("jemalloc")


def arrow_buffers(name: str) -> dict[str, int]:
    import pyarrow as pa

    pool = getattr(pa, f"{name}_memory_pool")()
    buffers = [pa.allocate_buffer(5 * MB, memory_pool=pool) for _ in range(24)]
    for buffer in buffers:
        ctypes.memset(buffer.address, 1, buffer.size)
    kept.append(buffers)
    return {"live": 120 * MB}


def polars_frame(rows: int = 16 * MB) -> dict[str, int]:
    import polars as pl

    frame = pl.select(pl.int_range(0, rows).alias("a"))
    kept.append(frame)
    return {"live": int(frame.estimated_size())}


def duckdb_table(rows: int = 20_000_000) -> dict[str, int]:
    """As much as duckdb says that its buffers take."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"create table held as select hash(range) as a from range({rows})")
    kept.append(connection)
    used = connection.execute("select sum(memory_usage_bytes) from duckdb_memory()").fetchone()
    assert used is not None
    return {"live": int(used[0])}


def polars_keeps() -> dict[str, int]:
    """Half of it is released. jemalloc was asked not to give back after a while what is free."""
    import polars as pl

    base = pl.int_range(0, 2_500_000, eager=True)
    columns = [base + number for number in range(9)]
    del base
    kept.append(columns[::2])
    each = int(columns[0].estimated_size())
    return {"live": 5 * each, "kept_jemalloc": 5 * each}  # of the nine columns, and of the first one


def duckdb_keeps(rows: int = 10_000_000) -> dict[str, int]:
    """A table that was dropped, and what was in use meanwhile: jemalloc gives it back only while it is called."""
    import duckdb

    before = resident()
    connection = duckdb.connect(config={"threads": 1})
    for name in ("held", "dropped"):
        connection.execute(f"create table {name} as select hash(range) as a from range({rows})")
    connection.execute("drop table dropped")
    connection.execute("checkpoint")
    used = connection.execute("select sum(memory_usage_bytes) from duckdb_memory()").fetchone()
    kept.append(connection)
    assert used is not None
    return {"live": int(used[0]), "kept_jemalloc": resident() - before - int(used[0])}


def vectors_of_cpp() -> dict[str, int]:
    """A library in C++ that holds vectors and nodes of a map, and has released others."""
    library = ctypes.CDLL(sys.argv[3])
    library.hold.restype = ctypes.c_size_t
    return {"live": int(library.hold())}


KINDS: dict[str, Callable[[], dict[str, int]]] = {
    each.__name__: each
    for each in (
        malloc_keeps,
        heaps_of_threads_keep,
        pools_keep,
        blocks_live,
        large_blocks_live,
        arrays_live,
        frames_live,
        anonymous_mapping,
        shared,
        shared_anonymous,
        mapped_file,
        arrow_table,
        arrow_keeps,
        malloc_pinned,
        arrow_system,
        arrow_jemalloc,
        polars_frame,
        polars_keeps,
        duckdb_table,
        duckdb_keeps,
        vectors_of_cpp,
    )
}
LIBRARIES = {
    "arrays_live": ["numpy"],
    "frames_live": ["pandas"],
    "arrow_table": ["pandas", "pyarrow"],
    "arrow_keeps": ["pandas", "pyarrow"],
    "arrow_system": ["pyarrow"],
    "arrow_jemalloc": ["pyarrow"],
    "polars_frame": ["polars"],
    "polars_keeps": ["polars"],
    "duckdb_keeps": ["duckdb"],
    "duckdb_table": ["duckdb"],
}


ROWS: dict[str, Callable[[int], dict[str, int]]] = {
    "polars_frame": polars_frame,
    "polars_keeps": polars_frame,
    "duckdb_table": duckdb_table,
    "duckdb_keeps": duckdb_keeps,
}


def resident() -> int:
    with open("/proc/self/smaps_rollup") as file:
        (line,) = (line for line in file if line.startswith("Rss:"))
    return int(line.split()[1]) * 1024


def main() -> None:
    truth = MemoryTruth()
    if sys.argv[2] == "arrow_keeps":
        os.environ["MIMALLOC_PURGE_DELAY"] = "-1"
    if sys.argv[2] == "polars_keeps":
        os.environ["_RJEM_MALLOC_CONF"] = "dirty_decay_ms:-1,muzzy_decay_ms:-1"
    # What the interpreter and the libraries have is no part of the truth: there is a reading of it before, for which
    # large programs wait longer.
    libraries = LIBRARIES.get(sys.argv[2], [])
    for name in libraries:
        importlib.import_module(name)
    if "pyarrow" in libraries:
        importlib.import_module("pyarrow").array(range(10))
    if sys.argv[2] in ROWS:  # the pages of their code come with the first use
        ROWS[sys.argv[2]](1_000_000)
    truth.facts["ready_ns"] = time.monotonic_ns()
    time.sleep(6 if libraries else 1.5)
    truth.facts["before_ns"] = time.monotonic_ns()
    truth.sizes.update(KINDS[sys.argv[2]]())
    truth.facts["pinning"] = truth.sizes.pop("pinning", 0)
    looked(2.5)
    truth.facts["resident"] = resident()
    truth.write()
    time.sleep(0.3)
    for each in kept:
        if isinstance(each, shared_memory.SharedMemory):
            each.unlink()


if __name__ == "__main__":
    main()
