"""Where the recordings of a fleet are: a folder or the URL of an object store, by fsspec."""

from __future__ import annotations

import hashlib
import os
import posixpath
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from tachograph.format import FormatError
from tachograph.format.atomic import UNFINISHED, unfinished

from ..recording.text import printable

MANIFEST = "manifest.json"
INDEX_FOLDER = ".tachograph"
"""Folder beside the recordings that holds what was summed up of them."""

TRIES, PAUSE_S = 6, 0.05
"""How often a request is made that fails, and the first pause between two; each next one is twice as long."""

MAX_FILES = 5_000_000
"""Files that are listed at most."""

ERRORS = {
    "botocore.exceptions": ("BotoCoreError", "ClientError"),
    "aiohttp": ("ClientError",),
    "azure.core.exceptions": ("AzureError",),
    "google.auth.exceptions": ("GoogleAuthError",),
}
"""Errors of stores' modules that are no OSError: of connections, and of keys that are missing."""

Files = dict[str, tuple[int, object]]
"""Files of a folder by name: their sizes, and what another content would change."""

T = TypeVar("T")


def store_errors() -> tuple[type[Exception], ...]:
    """The errors with which a store may answer, of those modules that are loaded."""
    found: list[type[Exception]] = [OSError, TimeoutError]
    for module, names in ERRORS.items():
        if module in sys.modules:
            found += [getattr(sys.modules[module], name) for name in names]
    return tuple(found)


class StoreError(Exception):
    """The store did not give what it has: another time it may. ``message`` is one line."""


@dataclass(frozen=True)
class Found:
    """A recording that lies in a store. ``path`` is below the store's root, ``members`` are its files by name."""

    path: str
    members: Mapping[str, int]
    """Sizes in bytes; of an archive only its own, under its own name."""
    fingerprint: str
    """Changes when a file of the recording does."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self.members.values())

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
        try:
            self.fs, root = fsspec.core.url_to_fs(url, **self.options)
        except (ValueError, ImportError) as error:
            raise FormatError(f"{printable(url, 200)} is no folder and no URL that fsspec opens: {error}") from None
        self.root = str(root).rstrip("/")
        protocols = self.fs.protocol if isinstance(self.fs.protocol, tuple) else (self.fs.protocol,)
        self.local = "file" in protocols or "local" in protocols

    def below(self, *names: str) -> str:
        """The path of what lies below the root."""
        return posixpath.join(self.root, *names)

    def retried(self, what: str, call: Callable[[], T]) -> T:
        """What ``call`` returns, made again while the store fails. Raises StoreError at last."""
        pause = PAUSE_S
        for left in range(TRIES - 1, -1, -1):
            try:
                return call()
            except FileNotFoundError:
                raise
            except store_errors() as error:
                if not left or (self.local and not isinstance(error, (BlockingIOError, InterruptedError))):
                    raise StoreError(f"{what}: {_reason(error)}") from None
                if "Credentials" in type(error).__name__:
                    raise StoreError(f"{what}: {_reason(error)}") from None  # they do not come by themselves
            time.sleep(pause)
            pause *= 2
        raise AssertionError("the last try returns or raises")

    def recordings(self) -> list[Found]:
        """All recordings below the root, by path; folders that look like one and have no manifest yet are among them.

        Errors:
            FormatError: there is no such folder, or the store does not answer.
        """
        try:
            listed = self.retried("cannot list", self._listed)
        except (StoreError, FileNotFoundError) as error:
            raise FormatError(f"{printable(self.url, 200)}: {error}") from None
        if not listed and not self._is_there():
            raise FormatError(f"there is no folder {printable(self.url, 200)}")
        if sum(map(len, listed.values())) > MAX_FILES:
            raise FormatError(f"{printable(self.url, 200)} has more than {MAX_FILES:,} files: name a folder of it")
        found = []
        for folder, members in listed.items():
            archives = [name for name in members if name.endswith(".tacho.zip")]
            found += [_found(posixpath.join(folder, name), {name: members.pop(name)}) for name in archives]
            if MANIFEST in members or (members and folder.endswith(".tacho")):
                found.append(_found(folder, members))
        return sorted(found, key=lambda each: each.path)

    def _listed(self) -> dict[str, Files]:
        """The files below the root by folder and name.

        Those of an index, and of recordings that are not whole yet, are left out.
        """
        if self.local:
            return dict(_files_below(self.root or "/"))
        folders: dict[str, Files] = defaultdict(dict)
        for full, told in self.fs.find(self.root, detail=True).items():
            folder, _, name = full.removeprefix(self.root).lstrip("/").rpartition("/")
            folders[folder][name] = int(told.get("size") or 0), _changed(told)
        return {
            folder: {name: told for name, told in members.items() if not name.startswith(UNFINISHED)}
            for folder, members in folders.items()
            if not any(map(_is_hidden, folder.split("/")))
        }

    def _is_there(self) -> bool:
        try:
            return bool(self.retried("cannot look", lambda: self.fs.exists(self.root)))
        except (StoreError, FileNotFoundError) as error:
            raise FormatError(f"{printable(self.url, 200)}: {error}") from None

    @contextmanager
    def opened(self, found: Found) -> Iterator[Path]:
        """A path on this machine where the recording lies; what comes from elsewhere is removed again.

        Raises StoreError if the store does not give it.
        """
        if self.local:
            yield Path(self.below(found.path))
            return
        with TemporaryDirectory(prefix="tachograph-fleet-") as folder:
            target = Path(folder, posixpath.basename(found.path) or "recording.tacho")
            self._bring(found, target)
            yield target

    def copy(self, found: Found, folder: Path) -> Path:
        """Copies a recording below a folder, with its path in the store; where it is then.

        Raises StoreError if the store does not give it, or if something is there already; OSError if it cannot be
        written.
        """
        parts = [part for part in found.path.split("/") if part not in ("", ".", "..")] or ["recording.tacho"]
        target = folder.joinpath(*parts)
        if target.exists():
            raise StoreError(f"{target} is there already")
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(unfinished(target.name))
        self._bring(found, hidden)
        hidden.rename(target)
        return target

    def _bring(self, found: Found, target: Path) -> None:
        if found.path.endswith(".zip"):
            self._get(self.below(found.path), target)
            return
        target.mkdir(mode=0o700, exist_ok=True)
        for member in found.members:
            if "/" not in member and member not in (".", ".."):
                self._get(self.below(found.path, member), target / member)

    def _get(self, path: str, target: Path) -> None:
        try:
            self.retried(f"cannot read {posixpath.basename(path)}", lambda: self.fs.get_file(path, str(target)))
        except FileNotFoundError:
            raise StoreError(f"{posixpath.basename(path)} has gone") from None


def _files_below(root: str) -> Iterator[tuple[str, Files]]:
    """What ``Store._listed`` has of a folder of this machine; fsspec takes five times as long."""
    waiting = [(root, "")]
    while waiting:
        folder, path = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue  # it may not be read, or has gone
        files: Files = {}
        for entry in entries:
            name = entry.name
            try:
                if entry.is_dir(follow_symlinks=False):  # below a link there may be no end
                    if not _is_hidden(name):
                        waiting.append((entry.path, f"{path}/{name}" if path else name))
                elif entry.is_file() and not name.startswith(UNFINISHED):
                    status = entry.stat()
                    files[name] = status.st_size, status.st_mtime or None
            except OSError:
                continue  # it has gone
        yield path, files


def _is_hidden(folder: str) -> bool:
    """Whether a folder is an index, or a recording that is not whole yet."""
    return folder == INDEX_FOLDER or folder.startswith(UNFINISHED)


def _found(path: str, members: Files) -> Found:
    stamps = [f"{name}:{size}:{changed}" for name, (size, changed) in sorted(members.items())]
    sizes = {name: size for name, (size, _) in members.items()}
    return Found(path, sizes, f"{key_of(*stamps) & (1 << 64) - 1:016x}")


def _changed(told: Mapping[str, Any]) -> object:
    """What a store says of a file that another content would change."""
    return next((told[name] for name in ("ETag", "etag", "mtime", "LastModified") if told.get(name)), None)


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return printable(" ".join(str(text).split()), 200)
