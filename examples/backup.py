"""A small deduplicating backup tool: something real to record, and the program of `make demo`.

It packs the Python standard library's sources into one file and reads them back to check. Files are cut where their
content says so (a rolling hash, in plain Python), so that an edit moves few cuts; pieces are named by their SHA-256 and
packed by zlib (native code, in threads), written through to the disk (the kernel), and threads wait for each other.
"""

import argparse
import hashlib
import os
import queue
import random
import sys
import sysconfig
import tempfile
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

SMALLEST, LARGEST = 2_048, 65_536
CUT = (1 << 13) - 1  # a cut in every 8192 bytes or so
GEAR = [random.Random(seed).getrandbits(32) for seed in range(256)]

Job = tuple[str, bytes] | None  # None is the end of the work


def cut_points(data: bytes) -> Iterator[int]:
    """Where to cut, by a gear hash over the bytes (Xia et al., FastCDC, 2016, without its second mask)."""
    start, end = 0, len(data)
    while end - start > SMALLEST:
        rolling = 0
        position = start + SMALLEST
        for byte in data[position : start + LARGEST]:
            rolling = ((rolling << 1) + GEAR[byte]) & 0xFFFFFFFF
            position += 1
            if not rolling & CUT:
                break
        yield position
        start = position
    if start < end:
        yield end


def pieces(files: list[Path]) -> Iterator[tuple[str, bytes]]:
    """The content of all files in pieces, with the file that each piece is of."""
    for file in files:
        data = file.read_bytes()
        start = 0
        for point in cut_points(data):
            yield str(file), data[start:point]
            start = point


class Archive:
    """Pieces in one file, each stored once."""

    def __init__(self, path: Path) -> None:
        self.places: dict[bytes, tuple[int, int]] = {}
        self.order: dict[str, list[bytes]] = {}
        self._file = path.open("w+b")
        self._lock = threading.Lock()

    def add(self, packed: bytes, name: bytes) -> None:
        """Appends a packed piece, unless it is there."""
        with self._lock:
            if name not in self.places:
                self.places[name] = (self._file.tell(), len(packed))
                self._file.write(packed)

    def sync(self) -> None:
        """Waits until everything is on the disk."""
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())

    def piece(self, name: bytes) -> bytes:
        """Reads a piece back."""
        offset, length = self.places[name]
        return zlib.decompress(os.pread(self._file.fileno(), length, offset))

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def pack(jobs: "queue.Queue[Job]", archive: Archive) -> None:
    """A worker: names, packs and stores pieces until the work ends."""
    while (job := jobs.get()) is not None:
        data = job[1]
        name = hashlib.sha256(data).digest()
        if name not in archive.places:
            archive.add(zlib.compress(data, 9), name)


def keep_safe(archive: Archive, stop: threading.Event) -> None:
    """Every tenth of a second, makes sure that what is written stays written."""
    while not stop.wait(0.1):
        archive.sync()


def back_up(files: list[Path], archive: Archive, workers: int) -> int:
    """Packs all files into the archive and returns the number of bytes read."""
    jobs: queue.Queue[Job] = queue.Queue(maxsize=64)
    stop = threading.Event()
    packers = [
        threading.Thread(target=pack, args=(jobs, archive), name=f"packer-{number}") for number in range(workers)
    ]
    safe_keeper = threading.Thread(target=keep_safe, args=(archive, stop), name="safe-keeper")
    for thread in [*packers, safe_keeper]:
        thread.start()
    total = 0
    for file, data in pieces(files):
        archive.order.setdefault(file, []).append(hashlib.sha256(data).digest())
        total += len(data)
        jobs.put((file, data))
    for _ in packers:
        jobs.put(None)
    for thread in packers:
        thread.join()
    stop.set()
    safe_keeper.join()
    archive.sync()
    return total


def verify(archive: Archive) -> None:
    """Reads every file out of the archive and compares it with the original."""
    for file, names in archive.order.items():
        if b"".join(archive.piece(name) for name in names) != Path(file).read_bytes():
            sys.exit(f"backup: {file} differs from its backup")


def main() -> None:
    """Backs up some megabytes of Python sources into a temporary file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(sysconfig.get_path("stdlib")))
    parser.add_argument("--megabytes", type=float, default=24, help="stop reading after this much")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()

    files: list[Path] = []
    left = arguments.megabytes * 1e6
    for file in sorted(arguments.folder.rglob("*.py")):
        left -= file.stat().st_size
        if left < 0:
            break
        files.append(file)

    with tempfile.TemporaryDirectory() as folder:
        archive = Archive(Path(folder) / "backup.archive")
        total = back_up(files, archive, arguments.workers)
        verify(archive)
        packed = sum(length for _, length in archive.places.values())
        archive.close()
    print(f"{len(files)} files, {total / 1e6:.1f} MB, packed into {packed / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
