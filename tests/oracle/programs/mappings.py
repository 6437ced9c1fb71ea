"""Anonymous mappings that a program makes itself: whole, grown, moved, cut in parts, and replaced where they lie.

Sizes are counted in pages, as the kernel maps them. Argument 2 is ``small`` or ``huge``: huge ones are larger than 32 bits
count, and a part of them is touched: of large mappings, and of address space that is only reserved, without access or without
the kernel's promise of memory, a program holds what it has touched.
"""

import ctypes
import mmap
import sys

from memory_truth import MemoryTruth, looked

PAGE = mmap.PAGESIZE
READ_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
PRIVATE, NORESERVE, FIXED, MAY_MOVE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 0x4000, 0x10, 1
NO_ACCESS = 0
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
FAILED = ctypes.c_void_p(-1).value


def pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


class Space:
    """Mappings and their count."""

    def __init__(self) -> None:
        self.allocated = self.freed = 0

    def map(self, size: int, address: int | None = None, flags: int = 0) -> int:
        found = libc.mmap(address, size, READ_WRITE, PRIVATE | flags, -1, 0)  # @kept
        assert found != FAILED, ctypes.get_errno()
        self.allocated += pages(size)
        return int(found)

    def unmap(self, address: int, size: int) -> None:
        assert libc.munmap(address, size) == 0, ctypes.get_errno()
        self.freed += pages(size)

    def remap(self, address: int, old: int, new: int) -> int:
        found = libc.mremap(address, old, new, MAY_MOVE)
        assert found != FAILED, ctypes.get_errno()
        self.freed += pages(old)
        self.allocated += pages(new)
        return int(found)


def small(space: Space) -> None:
    for number in range(1, 200):
        size = number * 1000
        space.unmap(space.map(size), size)

    block = space.map(40 * PAGE)
    block = space.remap(block, 40 * PAGE, 4000 * PAGE)
    block = space.remap(block, 4000 * PAGE, 300 * PAGE)
    space.unmap(block, 300 * PAGE)

    block = space.map(100 * PAGE)  # the middle first, then both ends in one call that also meets the hole
    space.unmap(block + 40 * PAGE, 20 * PAGE)
    assert libc.munmap(block, 100 * PAGE) == 0
    space.freed += 80 * PAGE

    block = space.map(64 * PAGE)  # replaced in its place: the old pages are gone
    space.map(16 * PAGE, block + 8 * PAGE, FIXED)
    space.freed += 16 * PAGE
    space.unmap(block, 64 * PAGE)

    for _ in range(3):  # a mapping of Python's own
        mapping = mmap.mmap(-1, 5 << 20)
        space.allocated += 5 << 20
        mapping.close()
        space.freed += 5 << 20

    with open("/proc/self/exe", "rb") as file:  # noqa: PTH123 - a file is not the program's memory
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ).close()

    space.map(700 * PAGE)


def reserve() -> None:
    """Two reservations that stay and two that go, none of which is counted."""
    size = 6 << 30
    for protection, flags in ((NO_ACCESS, PRIVATE), (READ_WRITE, PRIVATE | NORESERVE)):
        assert libc.mmap(None, size, protection, flags, -1, 0) != FAILED
        assert libc.munmap(libc.mmap(None, size, protection, flags, -1, 0), size) == 0


def huge(space: Space) -> None:
    reserve()
    size, touched, kept = 5 << 30, 64 << 20, 160 << 20
    whole = Space()
    block = whole.map(size)
    ctypes.memset(block, 1, touched)
    ctypes.memset(block + (3 << 30), 1, touched)
    block = whole.remap(block, size, size + (1 << 30))  # its pages go and come
    whole.unmap(block, size + (1 << 30))
    block = whole.map(size)
    ctypes.memset(block + (4 << 30), 1, kept + touched)
    whole.unmap(block + (4 << 30), touched)
    looked(2.0)
    space.allocated, space.freed = 4 * touched + kept + touched, 4 * touched + touched


def main() -> None:
    truth, space = MemoryTruth(), Space()
    libc.munmap(libc.mmap(None, PAGE, READ_WRITE, PRIVATE, -1, 0), PAGE)  # ctypes may map something for the first call
    with truth.window("mappings"):
        (huge if sys.argv[2] == "huge" else small)(space)
    truth.sizes = {"allocated": space.allocated, "freed": space.freed}
    truth.write()


if __name__ == "__main__":
    main()
