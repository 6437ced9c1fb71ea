"""Reads what is checked out from the files of a git repository, without git: its commit, and that commit's tree.

The layout is that of git's documentation: gitrepository-layout, gitformat-pack. Files are read with bounds, and what is
not as expected is unknown (None). No path that they name is opened but those of the repository itself, its common
directory and its alternates.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tachograph.format.atomic import read_regular_file
from tachograph.format.errors import FormatError

MAX_POINTER = 4096
"""Bytes of a file that names a commit, a reference or a folder."""

MAX_PACKED_REFERENCES = 8 << 20
MAX_COMMIT = 64 << 10
"""Bytes of a commit that are inflated; its first line names the tree."""

MAX_PACKS, MAX_ALTERNATES = 200, 8

_HASH = rb"(?:[0-9a-f]{40}|[0-9a-f]{64})"
_REFERENCE = rb"refs/[^\x00-\x20\x7f~^:?*\[\\]+"


class Repository(NamedTuple):
    """``top`` is the folder of the checked out files, ``folder`` its .git, ``common`` that of the main worktree."""

    top: Path
    folder: Path
    common: Path


def find_repository(start: Path) -> Repository | None:
    """The repository that ``start``, an absolute folder, lies in; None if there is none."""
    for top in (start, *start.parents):
        marker = top / ".git"
        folder = marker if os.path.isdir(marker) else None
        if folder is None and (found := _match(rb"gitdir: ([^\0\n]+)", _read(marker))) is not None:
            folder = top / os.fsdecode(found[1])
        if folder is not None and os.path.isfile(folder / "HEAD"):
            shared = _match(rb"([^\0\n]+)", _read(folder / "commondir"))
            return Repository(top, folder, folder if shared is None else folder / os.fsdecode(shared[1]))
    return None


def read_commit(repository: Repository) -> str | None:
    """The commit that is checked out, in hexadecimal; None if there is none yet, or it cannot be told."""
    text = _read(repository.folder / "HEAD")
    for _ in range(5):  # a reference may name a reference
        if (commit := _match(b"(" + _HASH + b")", text)) is not None:
            return commit[1].decode()
        pointer = _match(rb"ref: (" + _REFERENCE + rb")", text)
        if pointer is None or b".." in pointer[1]:
            return None
        text = _reference(repository, pointer[1])
    return None


def _reference(repository: Repository, name: bytes) -> bytes | None:
    path = os.fsdecode(name)
    loose = _read(repository.folder / path) or _read(repository.common / path)
    if loose is not None:
        return loose
    packed = _read(repository.common / "packed-refs", MAX_PACKED_REFERENCES)
    found = None if packed is None else re.search(b"^(" + _HASH + b") " + re.escape(name) + b"$", packed, re.MULTILINE)
    return None if found is None else found[1]


def read_tree(repository: Repository, commit: str) -> str | None:
    """The tree of a commit, in hexadecimal; None if the commit is not stored in a simple way."""
    for objects in _object_folders(repository.common / "objects"):
        content = _loose(objects, commit) or _packed(objects, bytes.fromhex(commit))
        if content is not None and _hash_of(content) == commit:
            tree = re.match(b"tree (" + _HASH + b")\n", content)
            return None if tree is None else tree[1].decode()
    return None


def _hash_of(content: bytes) -> str:
    return hashlib.sha1(b"commit %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _object_folders(objects: Path) -> Iterator[Path]:
    """The repository's folder of objects, and those of repositories that it borrows from (git clone --shared)."""
    yield objects
    for line in (_read(objects / "info" / "alternates") or b"").splitlines()[:MAX_ALTERNATES]:
        yield objects / os.fsdecode(line)


def _loose(objects: Path, commit: str) -> bytes | None:
    data = _read(objects / commit[:2] / commit[2:], MAX_COMMIT)
    inflated = None if data is None else _inflated(data)
    found = None if inflated is None else re.match(rb"commit \d+\0", inflated)
    return None if found is None or inflated is None else inflated[found.end() :]


def _inflated(data: bytes) -> bytes | None:
    try:
        return zlib.decompressobj().decompress(data, MAX_COMMIT)
    except zlib.error:
        return None


def _packed(objects: Path, commit: bytes) -> bytes | None:
    try:
        packs = sorted((objects / "pack").glob("*.idx"))[:MAX_PACKS]
    except OSError:
        return None
    for index in packs:
        try:
            offset = _offset(index, commit)
            if offset is not None:
                return _entry(index.with_suffix(".pack"), offset)
        except (OSError, struct.error):
            continue  # removed just now, or cut: as if it were not there
    return None


def _offset(index: Path, commit: bytes) -> int | None:
    """Where a pack has an object; None if it has not. Binary search in an index of version 2."""
    with index.open("rb", buffering=0) as file:
        descriptor = file.fileno()
        if os.pread(descriptor, 8, 0) != b"\xfftOc\0\0\0\2":
            return None
        fan_out = struct.unpack(">256I", os.pread(descriptor, 1024, 8))
        size, count = len(commit), fan_out[255]
        low, high = fan_out[commit[0] - 1] if commit[0] else 0, fan_out[commit[0]]
        while low < high:
            middle = (low + high) // 2
            found = os.pread(descriptor, size, 1032 + middle * size)
            if found == commit:
                offsets = 1032 + count * (size + 4)
                (offset,) = struct.unpack(">I", os.pread(descriptor, 4, offsets + 4 * middle))
                if offset & 0x80000000:
                    place = offsets + 4 * count + 8 * (offset & 0x7FFFFFFF)
                    (offset,) = struct.unpack(">Q", os.pread(descriptor, 8, place))
                return int(offset)
            low, high = (middle + 1, high) if found < commit else (low, middle)
    return None


def _entry(pack: Path, offset: int) -> bytes | None:
    """A commit that is stored whole; one that is stored as a difference is unknown."""
    with pack.open("rb", buffering=0) as file:
        data = os.pread(file.fileno(), MAX_COMMIT, offset)
    whole_commit = bool(data) and data[0] >> 4 & 7 == 1
    start = next((at + 1 for at, byte in enumerate(data[:10]) if byte < 0x80), None)
    return _inflated(data[start:]) if whole_commit and start is not None else None


def _read(path: Path, limit: int = MAX_POINTER) -> bytes | None:
    try:
        return read_regular_file(path, limit)
    except (OSError, ValueError, FormatError):
        return None


def _match(pattern: bytes, text: bytes | None) -> re.Match[bytes] | None:
    return None if text is None else re.fullmatch(pattern, text.rstrip(b"\n"))
