"""Which files root reads for a recording: those that the recorded processes may read themselves.

A program that began as root and has become another user may be taken over. It names the files of its code, and must not
have root copy others into the recording.
"""

from __future__ import annotations

import os
from pathlib import Path

_READ, _ENTER = 0o4, 0o1


class SourceRights:
    """What may be read, as far as is known of the processes; without another user among them, everything."""

    def __init__(self) -> None:
        self._watching = os.geteuid() == 0
        self._users: set[int] = set()
        self._groups: set[int] = set()

    def look_at(self, pid: int) -> None:
        """Note the users and groups of a process, if it lives and is not root."""
        if not self._watching or (credentials := credentials_of(pid)) is None:
            return
        users, groups = credentials
        if users != {0}:
            self._users |= users - {0}
            self._groups |= groups - {0}

    def allow(self, descriptor: int) -> bool:
        """Whether an open file may be read. Raises OSError if that cannot be found out."""
        if not self._users:
            return True
        if not self._has(os.fstat(descriptor), _READ):
            return False
        folders = Path(os.readlink(f"/proc/self/fd/{descriptor}")).parents
        return all(self._has(folder.stat(), _ENTER) for folder in folders)

    def _has(self, status: os.stat_result, right: int) -> bool:
        mode = status.st_mode
        return bool(
            mode & right
            or (status.st_uid in self._users and mode >> 6 & right)
            or (status.st_gid in self._groups and mode >> 3 & right)
        )


def credentials_of(pid: int) -> tuple[set[int], set[int]] | None:
    """All user ids (real, effective, saved, of files) and group ids of a process; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}
    if not fields.keys() >= {"Uid", "Gid", "Groups"}:
        return None
    return {int(each) for each in fields["Uid"]}, {int(each) for each in fields["Gid"] + fields["Groups"]}
