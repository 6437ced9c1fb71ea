"""Lists the recordings in a folder of this machine; folders that are as they were are not looked through again.

Of 10,000 recordings with fourteen files each, to look at every file takes longer than any question on their sums.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tachograph.format.atomic import UNFINISHED, ReplacingFile

MANIFEST = "manifest.json"
INDEX_FOLDER = ".tachograph"
"""Folder beside the recordings that holds what was summed up of them."""

Files = dict[str, tuple[int, object]]
"""Files of a folder by name: their sizes, and what another content would change."""

NAME = "listing.json"
VERSION = 1
MAX_BYTES = 1 << 30

SETTLED_NS = 2_000_000_000
"""A folder in which nothing is younger than this can be known by its own time of change, and its manifest's.

A file system's clock has steps, and a file that is being copied is as young as its last byte."""


class Stamp(NamedTuple):
    """What tells that a folder without folders has the files that it had, and an unchanged manifest."""

    folder_ns: int
    manifest_ns: int
    manifest_bytes: int


@dataclass(frozen=True)
class KnownFolder:
    """A recording that was read without fault, as it was then."""

    stamp: Stamp
    bytes: int
    fingerprint: str


@dataclass(frozen=True)
class Folder:
    """A folder by its path below the root: its files by name, and its stamp if it can be known again by it.

    One that is as it was ``known`` has no files here.
    """

    path: str
    files: Files = field(default_factory=dict)
    stamp: Stamp | None = None
    known: KnownFolder | None = None


def folders_below(root: str, known: Mapping[str, KnownFolder]) -> Iterator[Folder]:
    """The folders below ``root``; those that are as they were ``known`` are not looked through.

    Indexes, recordings that are not whole yet, and what lies below links are left out. fsspec takes five times as long.
    """
    now_ns = time.time_ns()
    waiting = [(root, "")]
    while waiting:
        folder, path = waiting.pop()
        seen = known.get(path)
        if seen is not None and _stamp(folder) == seen.stamp:
            yield Folder(path, stamp=seen.stamp, known=seen)
            continue
        try:
            folder_ns = os.stat(folder).st_mtime_ns
            entries = list(os.scandir(folder))
        except OSError:
            continue  # it may not be read, or has gone
        files: Files = {}
        youngest_ns, leaf, stamp = folder_ns, True, None
        for entry in entries:
            name = entry.name
            try:
                if entry.is_dir(follow_symlinks=False):  # below a link there may be no end
                    leaf = False
                    if not is_hidden(name):
                        waiting.append((entry.path, f"{path}/{name}" if path else name))
                elif entry.is_file() and not name.startswith(UNFINISHED):
                    status = entry.stat()
                    files[name] = status.st_size, status.st_mtime or None
                    youngest_ns = max(youngest_ns, status.st_mtime_ns)
                    if name == MANIFEST:
                        stamp = Stamp(folder_ns, status.st_mtime_ns, status.st_size)
            except OSError:
                continue  # it has gone
        settled = leaf and youngest_ns < now_ns - SETTLED_NS
        yield Folder(path, files, stamp if settled else None)


def is_hidden(folder: str) -> bool:
    """Whether a folder is an index, or a recording that is not whole yet."""
    return folder == INDEX_FOLDER or folder.startswith(UNFINISHED)


def _stamp(folder: str) -> Stamp | None:
    try:
        manifest = os.stat(f"{folder}/{MANIFEST}")
        return Stamp(os.stat(folder).st_mtime_ns, manifest.st_mtime_ns, manifest.st_size)
    except OSError:
        return None


def read_known(folder: Path) -> dict[str, KnownFolder]:
    """What ``keep_known`` left in the folder of the index; nothing if it is not there, or not as it should be."""
    path = folder / NAME
    try:
        if path.stat().st_size > MAX_BYTES:
            return {}
        document = json.loads(path.read_bytes())
        if document["version"] != VERSION:
            return {}
        return {
            str(name): KnownFolder(Stamp(int(one), int(two), int(three)), int(size), str(fingerprint))
            for name, (one, two, three, size, fingerprint) in document["folders"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return {}


def keep_known(folder: Path, known: Mapping[str, KnownFolder]) -> None:
    """Keep for the next time which recordings are known. Where that cannot be written, all is looked through again."""
    folders = {path: (*each.stamp, each.bytes, each.fingerprint) for path, each in known.items()}
    with suppress(OSError), ReplacingFile(folder / NAME) as file:
        file.stream.write(json.dumps({"version": VERSION, "folders": folders}).encode())
