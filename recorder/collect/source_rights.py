"""Which files root reads for a recording: those that the process which named one may read itself.

A program that began as root and has become another user may be taken over. It names the files of its code, and must not
have root copy others into the recording. A process of which nothing is known, because it ended before it could be
looked at, has the rights of every user: what only root, or only its own user, may read stays unread. The standard
library is no secret, wherever the interpreter was installed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tachograph.recorder.collect.running import was_begun_by

_READ, _ENTER = 0o4, 0o1
_OVERRIDES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: with either, modes of files do not count."""

_LIBRARY = Path(os.__file__).resolve().parent
"""The standard library of the interpreter that records."""

_SITE = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True)
class Rights:
    """What a process may read: everything, or what modes allow its users and groups."""

    everything: bool = False
    users: frozenset[int] = frozenset()
    groups: frozenset[int] = frozenset()

    def allow(self, descriptor: int) -> bool:
        """Whether an open file may be read. Raises OSError if that cannot be found out."""
        if self.everything:
            return True
        folders = Path(os.readlink(f"/proc/self/fd/{descriptor}")).parents
        if _LIBRARY in folders and not _SITE & {folder.name for folder in folders}:
            return True
        if not self._has(os.fstat(descriptor), _READ):
            return False
        return all(self._has(folder.stat(), _ENTER) for folder in folders)

    def _has(self, status: os.stat_result, right: int) -> bool:
        mode = status.st_mode
        return bool(
            mode & right
            or (status.st_uid in self.users and mode >> 6 & right)
            or (status.st_gid in self.groups and mode >> 3 & right)
        )


EVERYTHING, EVERY_USERS = Rights(everything=True), Rights()


class SourceRights:
    """The rights of the recorded processes. Only root watches them: any other user can read no more than they can."""

    def __init__(self) -> None:
        self.watching = os.geteuid() == 0
        self._last: dict[int, Rights] = {}

    def look_at_last(self, pid: int) -> None:
        """Note the rights of a child that has ended and was not waited for yet: it will have no others."""
        if self.watching and (rights := rights_of(pid)) is not None:
            self._last[pid] = rights

    def of(self, pid: int, start_ns: int) -> Rights:
        """The rights that process ``pid``, which was there at ``start_ns`` (CLOCK_MONOTONIC), has now.

        What a process has written before may be read with them: one that has given up root's does not get them back.
        """
        if not self.watching:
            return EVERYTHING
        rights = self._last.get(pid) or rights_of(pid)
        # Afterwards: until then its id cannot have been given to another process.
        known = rights is not None and (pid in self._last or was_begun_by(pid, start_ns))
        return rights if known and rights is not None else EVERY_USERS

    @property
    def of_unknown(self) -> Rights:
        """The rights of a process of which nothing is known."""
        return EVERY_USERS if self.watching else EVERYTHING


def rights_of(pid: int) -> Rights | None:
    """The rights of a process by its user ids (real, effective, saved, of files) and group ids; None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = {key: value.split() for key, _, value in (line.partition(":") for line in text.splitlines())}
    if not fields.keys() >= {"Uid", "Gid", "Groups", "CapEff"}:
        return None
    users = frozenset(map(int, fields["Uid"]))
    if users == {0} and int(fields["CapEff"][0], 16) & _OVERRIDES:
        return EVERYTHING
    groups = frozenset(map(int, fields["Gid"] + fields["Groups"]))
    return Rights(users=users, groups=groups) if users == {0} else Rights(users=users - {0}, groups=groups - {0})
