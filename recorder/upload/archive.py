"""Sends recordings with fsspec, in a process of its own: what that imports and holds is no part of the recorder's.

The process reads an order from standard input, as JSON, and writes an answer for each recording, a line of JSON each.
What it does not expect ends it with a traceback; the recordings that it did not answer for have not been sent.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import zipfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from tachograph.format import FormatError, Manifest, open_container
from tachograph.format.atomic import unfinished
from tachograph.recorder.collect.held_folder import HeldFolder
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
        manifest = checked_manifest(recording)
        uuid, created = manifest.uuid, manifest.created_utc or ""
    except FormatError as error:
        return {"problem": f"it is no recording that can be read: {error}", "again": False}
    url = destination.recording(stem or recording.name.removesuffix(".zip").removesuffix(".tacho"), created, uuid)
    try:
        if recording.is_dir():
            send_folder(recording, uuid, url, force=force or not destination.names_one)
        else:
            put(recording, url, force=force or not destination.names_one)
    except ImportError as error:
        return {"problem": str(error), "again": False}
    except (OSError, ValueError, FormatError) as error:
        return {"problem": reason(error), "again": not isinstance(error, (*PERMANENT, ValueError, FormatError))}
    return {"url": without_secrets(url), "uuid": uuid}


def send_folder(recording: Path, uuid: str, url: str, *, force: bool) -> None:
    """Make the archive of a recording and put it into the store; whatever takes the folder's name meanwhile.

    Errors:
        FormatError: another recording has its name by now.
        OSError, ValueError, ImportError: it cannot be sent.
    """
    with HeldFolder.open(os.path.realpath(recording)) as folder:
        here = Path(folder.here)
        if Manifest.read(here / MANIFEST, os.path.join(recording, MANIFEST)).uuid != uuid:
            raise FormatError(f"another recording has the name {recording} by now")
        made = here / TEMPORARY
        try:
            pack(here, made)
            put(made, url, force=force)
        finally:
            with suppress(OSError):
                made.unlink(missing_ok=True)


def checked_manifest(recording: Path) -> Manifest:
    """The manifest of a recording, or of its archive, whose files can be sent.

    Errors:
        FormatError: it is none, or one of its tables is no file, or is larger than the manifest says.
    """
    with open_container(recording) as container:
        manifest = container.manifest()
        if not recording.is_dir():
            return manifest
        for name in table_names(recording):
            size = container.size(name)  # there is none of what is no regular file
            listed = manifest.tables.get(name.removesuffix(".parquet"), {}).get("bytes", size)
            if size > listed:
                raise FormatError(f"{name} in {recording} has {size} bytes, and {listed} by its manifest")
    return manifest


def table_names(recording: Path) -> list[str]:
    """The names of the files of its tables, sorted."""
    return sorted(each.name for each in recording.iterdir() if each.suffix == ".parquet")


def pack(recording: Path, target: Path) -> None:
    """Write the archive of a recording: tables are compressed already. Equal recordings give equal archives."""
    names = table_names(recording)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as sink, zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name in (MANIFEST, *names):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o600 << 16
            with opened(recording / name) as source, archive.open(entry, "w", force_zip64=True) as member:
                shutil.copyfileobj(source, member, 1 << 20)


def opened(path: Path) -> IO[bytes]:
    """A file of the recording itself: no link that was put there leads out of it, and nothing is waited for.

    Errors:
        OSError: it cannot be opened.
        FormatError: it is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FormatError(f"{path.name} is not a regular file")
    return os.fdopen(descriptor, "rb")


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
    """The message of an error, in one line without secrets."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return without_secrets(" ".join(str(text).split()))[:300]
