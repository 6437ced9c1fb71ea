"""Sends recordings with fsspec, in a process of its own: what that imports and holds is no part of the recorder's.

The process reads an order from standard input, as JSON, and writes an answer for each recording, a line of JSON each.
What it does not expect ends it with a traceback; the recordings that it did not answer for have not been sent.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from tachograph.format.atomic import unfinished
from tachograph.recorder.upload.destination import Destination, without_secrets

MANIFEST = "manifest.json"
TEMPORARY = unfinished("upload.zip")
"""An archive while it is made, in the recording's own folder: a recording's remains may have such a name."""

RENAMING = frozenset({"file", "local", "sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs", "arrow_hdfs"})
"""Protocols of stores that show a file while it is written: there it gets its name when it is whole.

In object stores a file is there at once, or not at all.
"""

PERMANENT = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
"""Errors that another try will not change soon: no such bucket, no right to write there."""


def serve() -> None:
    """Send what standard input names."""
    order = json.load(sys.stdin)
    if order["aside"]:
        os.nice(10)  # the program comes first
    for recording in order["recordings"]:
        answer = answer_for(Path(recording), Destination(order["url"]), order["stem"], force=order["force"])
        print(json.dumps({"path": recording, **answer}), flush=True)


def answer_for(recording: Path, destination: Destination, stem: str | None, *, force: bool) -> dict[str, Any]:
    """Send a recording; where it is and its uuid, or why it is not there, and whether another try may do."""
    try:
        manifest = read_manifest(recording)
        uuid, created = str(manifest["uuid"]), str(manifest.get("created_utc") or "")
    except (OSError, ValueError, KeyError, TypeError, RecursionError, zipfile.BadZipFile):
        return {"problem": "it is no recording that can be read", "again": False}
    url = destination.recording(stem or recording.name.removesuffix(".zip").removesuffix(".tacho"), created, uuid)
    made = recording / TEMPORARY
    try:
        if recording.is_dir():
            pack(recording, made)
        put(made if recording.is_dir() else recording, url, force=force or not destination.names_one)
    except ImportError as error:
        return {"problem": str(error), "again": False}
    except (OSError, ValueError) as error:
        return {"problem": reason(error), "again": not isinstance(error, (*PERMANENT, ValueError))}
    finally:
        with suppress(OSError):
            if recording.is_dir():
                made.unlink(missing_ok=True)
    return {"url": without_secrets(url), "uuid": uuid}


def read_manifest(recording: Path) -> dict[str, Any]:
    """The manifest of a recording or of its archive; it is not checked."""
    if recording.is_dir():
        with opened(recording / MANIFEST) as file:
            found = json.load(file)
    else:
        with zipfile.ZipFile(recording) as archive:
            name = next(each for each in archive.namelist() if each.rpartition("/")[2] == MANIFEST)
            found = json.loads(archive.read(name))
    if not isinstance(found, dict):
        raise TypeError(MANIFEST)
    return found


def pack(recording: Path, target: Path) -> None:
    """Write the archive of a recording: tables are compressed already. Equal recordings give equal archives."""
    names = sorted(each.name for each in recording.iterdir() if each.suffix == ".parquet")
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as sink, zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name in (MANIFEST, *names):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o600 << 16
            with opened(recording / name) as source, archive.open(entry, "w", force_zip64=True) as member:
                shutil.copyfileobj(source, member, 1 << 20)


def opened(path: Path) -> IO[bytes]:
    """A file of the recording itself: no link that was put there leads out of it."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb")


def put(file: Path, url: str, *, force: bool) -> None:
    """Put a file into the store, and see that it is there.

    Raises OSError, or what the store's module raises; ValueError if the URL is none that fsspec knows.
    """
    fsspec: Any = import_module("fsspec")
    fs, target = fsspec.core.url_to_fs(url)
    if not force and fs.exists(target):
        raise FileExistsError(f"{without_secrets(url)} is there already: --force replaces it")
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    if protocols & RENAMING:
        folder, _, name = target.rpartition("/")
        fs.makedirs(folder, exist_ok=True)
        fs.put_file(str(file), f"{folder}/{unfinished(name)}")
        fs.mv(f"{folder}/{unfinished(name)}", target)
    else:
        fs.put_file(str(file), target)
    fs.invalidate_cache()
    size = fs.info(target).get("size")
    if size is not None and size != file.stat().st_size:
        raise OSError(f"the store has {size} bytes of {file.stat().st_size}")


def reason(error: Exception) -> str:
    """What an error says, in a line without secrets."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return without_secrets(" ".join(str(text).split()))[:300]
