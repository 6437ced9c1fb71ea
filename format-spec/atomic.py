"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


class ReplacingFile:
    """A new file, readable by its owner only, that takes its name when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".tmp-{path.name}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self._temporary, flags, 0o600)
        except FileExistsError:
            # Left by a killed writer; unlink removes the name only, also where somebody made it a link.
            self._temporary.unlink()
            descriptor = os.open(self._temporary, flags, 0o600)
        self.stream = open(descriptor, "wb")  # noqa: SIM115  # closed by commit or discard

    def commit(self) -> int:
        """Close the file and give it its name; returns its size."""
        try:
            self.stream.close()
            size = self._temporary.stat().st_size
            self._temporary.replace(self._path)
        except BaseException:
            self.discard()
            raise
        return size

    def discard(self) -> None:
        """Close the file and remove it."""
        self.stream.close()
        self._temporary.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file in the same way (0600, at once).

    Errors:
        OSError: it cannot be written.
    """
    file = ReplacingFile(path)
    try:
        file.stream.write(data)
    except BaseException:
        file.discard()
        raise
    file.commit()
