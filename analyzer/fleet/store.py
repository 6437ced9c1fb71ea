"""Storage of a fleet's recordings: a folder or the URL of an object store, by fsspec.

Folders of this machine that have not changed since the last listing are not read again: with 10,000 recordings of
fourteen files each, looking at every file takes longer than any question on their sums.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from tachograph.format import FormatError
from tachograph.format.atomic import UNFINISHED, ReplacingFile, unfinished

from ..recording.text import printable

MANIFEST = "manifest.json"
ARCHIVE = ".tacho.zip"
INDEX_FOLDER = ".tachograph"
"""Folder beside the recordings that holds their sums."""

Files = dict[str, tuple[int, object]]
"""Files of a folder by name: their sizes, and a value that changes with the content."""

NAME = "listing.json"
VERSION = 1
MAX_BYTES = 1 << 30

SETTLED_NS = 2_000_000_000
"""A folder in which nothing is younger than this can be known by its own time of change, and its manifest's.

A file system's clock has steps, and a file that is being copied is as young as its last byte."""


class Stamp(NamedTuple):
    """Times and size that show that a folder without folders has the same files and an unchanged manifest."""

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

    An ``unchanged`` one has no files here: it is as it was when it was last read.
    """

    path: str
    files: Files = field(default_factory=dict)
    stamp: Stamp | None = None
    unchanged: KnownFolder | None = None


def folders_below(root: str, earlier: Mapping[str, KnownFolder]) -> Iterator[Folder]:
    """The folders below ``root``; those that are as in ``earlier`` are not read again.

    Indexes, incomplete recordings and everything below links are left out. fsspec takes five times as long.
    """
    now_ns = time.time_ns()
    waiting = [(root, "")]
    while waiting:
        folder, path = waiting.pop()
        unchanged = earlier.get(path)
        if unchanged is not None and _stamp(folder) == unchanged.stamp:
            yield Folder(path, stamp=unchanged.stamp, unchanged=unchanged)
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


def local_recordings(folder: Path) -> list[Path]:
    """The recordings of a folder of this machine, at any depth, by path."""
    recordings = []
    for each in folders_below(str(folder), {}):
        recordings += [folder / each.path / name for name in each.files if name.endswith(ARCHIVE)]
        if _is_recording(each):
            recordings.append(folder / each.path)
    return sorted(recordings)


def _is_recording(folder: Folder) -> bool:
    """True if a folder is a recording, or looks like one that has no manifest yet."""
    others = any(not name.endswith(ARCHIVE) for name in folder.files)
    return MANIFEST in folder.files or (others and folder.path.endswith(".tacho"))


def is_hidden(folder: str) -> bool:
    """True if a folder is an index, or a recording that is not whole yet."""
    return folder == INDEX_FOLDER or folder.startswith(UNFINISHED)


def _stamp(folder: str) -> Stamp | None:
    try:
        manifest = os.stat(f"{folder}/{MANIFEST}")
        return Stamp(os.stat(folder).st_mtime_ns, manifest.st_mtime_ns, manifest.st_size)
    except OSError:
        return None


def read_known(folder: Path) -> dict[str, KnownFolder]:
    """Folders that ``keep_known`` noted beside the index; none if the note is missing or malformed."""
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


def keep_known(folder: Path, listed: Mapping[str, KnownFolder]) -> None:
    """Keep for the next time which recordings are known. Where that cannot be written, all is looked through again."""
    folders = {path: (*each.stamp, each.bytes, each.fingerprint) for path, each in listed.items()}
    with suppress(OSError), ReplacingFile(folder / NAME) as file:
        file.stream.write(json.dumps({"version": VERSION, "folders": folders}).encode())


TRIES, PAUSE_S = 6, 0.05
"""Most attempts of a failing request, and the first pause between two; each next pause is twice as long."""

PATIENCE_S = 12.0
"""Time after which a failing request is not made again."""

ALL_PATIENCE_S = 30.0
"""Time that all failing requests of a store object may take; then each is made once. A store that fails nearly always
ends with an answer that says what it lacks."""

S3_DEFAULTS: Mapping[str, Any] = {"connect_timeout": 5, "read_timeout": 30, "retries": {"max_attempts": 1}}
"""Options of botocore, where the user gives none: it tries again by itself, for a minute and more."""

MAX_FILES = 5_000_000
"""Files that are listed at most."""

ERRORS = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "azure.core.exceptions": ("AzureError",),
    "google.auth.exceptions": ("GoogleAuthError",),
}
"""Errors of stores' modules that are no OSError: of connections, and of keys that are missing."""

T = TypeVar("T")


def store_errors() -> tuple[type[Exception], ...]:
    """The errors with which a store may answer, of those modules that are loaded."""
    classes: list[type[Exception]] = [OSError, TimeoutError]
    for module, names in ERRORS.items():
        if module in sys.modules:
            classes += [getattr(sys.modules[module], name) for name in names]
    return tuple(classes)


class StoreError(Exception):
    """The store failed in a way that may pass. ``message`` is one line."""


@dataclass(frozen=True)
class StoredRecording:
    """A recording that lies in a store. ``path`` is below the store's root, ``members`` are the names of its files."""

    path: str
    size: int
    """Bytes of all files."""
    fingerprint: str
    """Changes when a file of the recording does."""
    members: tuple[str, ...] | None = None
    """None: they were not read, because the folder is unchanged."""
    stamp: Stamp | None = None
    """The folder's stamp for the next listing, if it has one."""

    @property
    def key(self) -> int:
        """A number for this recording as it is now."""
        return key_of(self.path, self.fingerprint)


def key_of(*parts: str) -> int:
    """A number of 64 bits, with a sign, that stands for texts."""
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class Store:
    """A folder of fsspec. Requests that fail are made again a few times."""

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        import fsspec

        self.url, self.options = url, dict(options or {})
        self._patience_s = ALL_PATIENCE_S
        if url.startswith(("s3://", "s3a://")):
            self.options.setdefault("config_kwargs", dict(S3_DEFAULTS))
        try:
            self.fs, root = fsspec.core.url_to_fs(url, **self.options)
        except (ValueError, ImportError) as error:
            raise FormatError(f"{printable(url, 200)} is no folder and no URL that fsspec opens: {error}") from None
        self.root = str(root).rstrip("/")
        if hasattr(self.fs, "retries"):
            self.fs.retries = 1  # s3fs tries again by itself as well
        protocols = self.fs.protocol if isinstance(self.fs.protocol, tuple) else (self.fs.protocol,)
        self.local = "file" in protocols or "local" in protocols

    def below(self, *names: str) -> str:
        """The path of a member below the root."""
        return posixpath.join(self.root, *names)

    def retried(self, what: str, call: Callable[[], T]) -> T:
        """Result of ``call``, tried again while the store fails. Raises StoreError at last."""
        pause, began = PAUSE_S, time.monotonic()
        for left in range(TRIES - 1, -1, -1):
            tried = time.monotonic()
            try:
                return call()
            except FileNotFoundError:
                raise
            except store_errors() as error:
                self._patience_s -= time.monotonic() - tried + pause
                out_of_patience = self._patience_s < 0 or time.monotonic() + pause - began > PATIENCE_S
                if (
                    not left
                    or out_of_patience
                    or (self.local and not isinstance(error, (BlockingIOError, InterruptedError)))
                ):
                    raise StoreError(f"{what}: {_reason(error)}") from None
                if "Credentials" in type(error).__name__:
                    raise StoreError(f"{what}: {_reason(error)}") from None  # they do not come by themselves
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def recordings(self, earlier: Mapping[str, KnownFolder] | None = None) -> list[StoredRecording]:
        """All recordings below the root, by path; folders that look like one and have no manifest yet are among them.

        Folders of this machine that are as in ``earlier`` are not read again.

        Errors:
            FormatError: there is no such folder, or the store does not answer.
        """
        try:
            listed = self.retried("cannot list", lambda: self._listed(earlier or {}))
        except (StoreError, FileNotFoundError) as error:
            raise FormatError(f"{printable(self.url, 200)}: {error}") from None
        if not listed and not self._is_there():
            raise FormatError(f"there is no folder {printable(self.url, 200)}")
        if sum(len(each.files) for each in listed) > MAX_FILES:
            raise FormatError(f"{printable(self.url, 200)} has more than {MAX_FILES:,} files: name a folder of it")
        stored = []
        parents = {each.path.rpartition("/")[0] for each in listed}
        for each in listed:
            if each.unchanged is not None:
                earlier_read = each.unchanged
                stored.append(
                    StoredRecording(each.path, earlier_read.bytes, earlier_read.fingerprint, stamp=each.stamp)
                )
                continue
            is_recording = _is_recording(each)
            archives = [name for name in each.files if name.endswith(ARCHIVE)]
            stored += [_stored(posixpath.join(each.path, name), {name: each.files.pop(name)}) for name in archives]
            # A file that is called like a folder of a recording: a download or a copy that went wrong.
            files = [name for name in each.files if name.endswith(".tacho")]
            stored += [_stored(posixpath.join(each.path, name), {name: each.files.pop(name)}) for name in files]
            empty = not each.files and not archives and each.path not in parents
            if is_recording or (each.path.endswith(".tacho") and empty):
                stored.append(_stored(each.path, each.files, None if archives else each.stamp))
        return sorted(stored, key=lambda each: each.path)

    def _listed(self, earlier: Mapping[str, KnownFolder]) -> list[Folder]:
        """The folders below the root, but for indexes and recordings that are not whole yet."""
        if self.local:
            return list(folders_below(self.root or "/", earlier))
        folders: dict[str, Files] = defaultdict(dict)
        for full, details in self.fs.find(self.root, detail=True).items():
            folder, _, name = full.removeprefix(self.root).lstrip("/").rpartition("/")
            folders[folder][name] = int(details.get("size") or 0), _changed(details)
        return [
            Folder(folder, {name: details for name, details in members.items() if not name.startswith(UNFINISHED)})
            for folder, members in folders.items()
            if not any(map(is_hidden, folder.split("/")))
        ]

    def _is_there(self) -> bool:
        try:
            return bool(self.retried("cannot look", lambda: self.fs.exists(self.root)))
        except (StoreError, FileNotFoundError) as error:
            raise FormatError(f"{printable(self.url, 200)}: {error}") from None

    @contextmanager
    def opened(self, stored: StoredRecording) -> Iterator[Path]:
        """A path of the recording on this machine; a copy from elsewhere is removed again.

        Raises StoreError if the store does not give it.
        """
        if self.local:
            yield Path(self.below(stored.path))
            return
        with TemporaryDirectory(prefix="tachograph-fleet-") as folder:
            target = Path(folder, posixpath.basename(stored.path) or "recording.tacho")
            self._bring(stored, target)
            yield target

    def copy(self, stored: StoredRecording, folder: Path) -> Path:
        """Copy a recording below a folder, with its path in the store; returns its path.

        Raises StoreError if the store does not give it, or if something is there already; OSError if it cannot be
        written.
        """
        parts = [part for part in stored.path.split("/") if part not in ("", ".", "..")] or ["recording.tacho"]
        target = folder.joinpath(*parts)
        if target.exists():
            raise StoreError(f"{target} is there already")
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(unfinished(target.name))
        self._bring(stored, hidden)
        hidden.rename(target)
        return target

    def _bring(self, stored: StoredRecording, target: Path) -> None:
        if stored.path.endswith(".zip") or stored.members == (posixpath.basename(stored.path),):
            self._get(self.below(stored.path), target)
            return
        target.mkdir(mode=0o700, exist_ok=True)
        members = os.listdir(self.below(stored.path)) if stored.members is None else stored.members
        for member in members:
            if "/" not in member and member not in (".", ".."):
                self._get(self.below(stored.path, member), target / member)

    def _get(self, path: str, target: Path) -> None:
        try:
            self.retried(f"cannot read {posixpath.basename(path)}", lambda: self.fs.get_file(path, str(target)))
        except FileNotFoundError:
            raise StoreError(f"{posixpath.basename(path)} has gone") from None


def _stored(path: str, files: Files, stamp: Stamp | None = None) -> StoredRecording:
    stamps = [f"{name}:{size}:{changed}" for name, (size, changed) in sorted(files.items())]
    size = sum(size for size, _ in files.values())
    return StoredRecording(path, size, f"{key_of(*stamps) & (1 << 64) - 1:016x}", tuple(sorted(files)), stamp)


def _changed(details: Mapping[str, Any]) -> object:
    """Value in a store's description of a file that changes with the content."""
    return next((details[name] for name in ("ETag", "etag", "mtime", "LastModified") if details.get(name)), None)


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(" ".join(str(text).split()), 200)
