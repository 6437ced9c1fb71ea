"""The commit that is checked out, read from git's files, and git's answer whether files differ from it.

The layout is that of git's documentation: gitrepository-layout. Files are read with bounds, and what is not as expected
is unknown (None). No path that they name is opened but those of the repository itself and its common directory.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tachograph.format.atomic import read_regular_file
from tachograph.format.errors import FormatError
from tachograph.recorder.collect.child_process import ChildProcess

MAX_POINTER = 4096
"""Bytes of a file that names a commit, a reference or a folder."""

MAX_PACKED_REFERENCES = 8 << 20

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
        if folder is None and (link := _match(rb"gitdir: ([^\0\n]+)", _read(marker))) is not None:
            folder = top / os.fsdecode(link[1])
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
    line = None if packed is None else re.search(b"^(" + _HASH + b") " + re.escape(name) + b"$", packed, re.MULTILINE)
    return None if line is None else line[1]


def is_dirty(repository: Repository, commit: str, seconds: float) -> bool | None:
    """True if tracked files differ from ``commit``, by git's own account.

    None if there is no git, if it takes longer than ``seconds``, refuses (a repository of another user), or has another
    commit checked out by now. Untracked files do not count, nor do changed files inside of submodules.
    """
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", os.fspath(repository.top)]
    command += ["status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=dirty"]
    # A variable such as GIT_DIR would lead to another repository; settings of the user's (GIT_CONFIG_...) hold.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    try:
        # A session of its own: it is ended with all that it has started, and no key of the terminal reaches it.
        git = ChildProcess(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except (OSError, ValueError):
        return None
    with git:
        try:
            answer, _ = git.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            if git.poll() is None:  # else its number may be another's
                with suppress(ProcessLookupError):
                    os.killpg(git.pid, signal.SIGKILL)
            return None
    lines = answer.splitlines()
    # Where the recording command is process 1 it may collect the status first, so the answer itself has to be whole.
    if git.returncode != 0 or b"# branch.oid " + commit.encode() not in lines:
        return None
    return any(not line.startswith(b"#") for line in lines)


def _read(path: Path, limit: int = MAX_POINTER) -> bytes | None:
    try:
        return read_regular_file(path, limit)
    except (OSError, ValueError, FormatError):
        return None


def _match(pattern: bytes, text: bytes | None) -> re.Match[bytes] | None:
    return None if text is None else re.fullmatch(pattern, text.rstrip(b"\n"))
