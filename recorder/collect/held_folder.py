"""Folders held by a descriptor: work in one stays in it, whatever takes its name meanwhile.

Root may record in a folder of another user's, who can rename what is in it and put a link there at any moment. A path
then leads elsewhere; a descriptor does not.
"""

from __future__ import annotations

import errno
import os

from tachograph.format.atomic import unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_DESCRIPTORS = "/proc/self/fd"
# O_PATH: a folder that this user may enter but not list is held as well.
_FOLDER = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


class ReplacedError(OSError):
    """A folder is not the one that it was: another one has its name."""


class HeldFolder:
    """A folder that is held by a descriptor until ``close``; ``parent``, the one that it lies in, likewise.

    ``path`` is its name, absolute: for people, and for processes that look for it themselves. ``here`` leads to the
    folder itself, through the descriptor: what is read, written and removed goes by ``here``, and only in this process.
    """

    def __init__(self, path: str, descriptor: int | None, parent: HeldFolder | None = None) -> None:
        self.path = path
        self.parent = parent
        self.descriptor = descriptor
        self._opened_parent = False
        self.here = path if descriptor is None else f"{_DESCRIPTORS}/{descriptor}"
        if descriptor is not None and not _is_same(os.fstat(descriptor), self.here):
            self.here = path  # there is no /proc here

    @classmethod
    def open(cls, path: str | os.PathLike[str], identity: tuple[int, int] | None = None) -> HeldFolder:
        """Hold a folder and its parent; ``identity`` is what it must have.

        Errors:
            NotADirectoryError: it is a symbolic link, or no folder.
            ReplacedError: it has another identity.
            OSError: it is not there, for example.
        """
        parent, name = hold_parent(path)
        try:
            folder = parent.enter(name)
        except BaseException:
            parent.close()
            raise
        folder.take_parent()
        if identity is not None and folder.identity != identity:
            folder.close()
            raise ReplacedError(0, "it was moved, and another one is in its place")
        return folder

    def enter(self, name: str) -> HeldFolder:
        """Hold a folder in this one.

        Errors:
            NotADirectoryError: it is a symbolic link, or no folder.
            OSError: it is not there, for example.
        """
        return HeldFolder(os.path.join(self.path, name), _descriptor(os.path.join(self.here, name)), self)

    def make(self, name: str) -> HeldFolder:
        """Make a folder in this one, readable by this user only whatever the umask, and hold it.

        Errors:
            FileExistsError: the name is taken.
            ReplacedError: another folder took its name at once.
        """
        os.mkdir(os.path.join(self.here, name), mode=0o700)
        folder = self.enter(name)
        try:
            if not _is_ours(folder):
                raise ReplacedError(0, "another folder took its name at once")
            os.chmod(folder.here, 0o700)
            if os.listdir(folder.here):
                raise ReplacedError(0, "another folder took its name at once")
        except BaseException:
            folder.close()
            raise
        return folder

    @property
    def name(self) -> str:
        """Its name in the folder that it lies in."""
        return os.path.basename(self.path)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode, which no other folder has."""
        status = os.stat(self.here)
        return status.st_dev, status.st_ino

    @property
    def owner(self) -> int:
        """The user id that it belongs to."""
        return os.stat(self.here).st_uid

    @property
    def is_anchored(self) -> bool:
        """True if ``here`` leads to it whatever has its name: not where there is no /proc."""
        return self.here != self.path

    def has_its_name(self) -> bool:
        """True if its name in its parent still stands for it."""
        place = self.path if self.parent is None else os.path.join(self.parent.here, self.name)
        try:
            status = os.lstat(place)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def present_path(self) -> str | None:
        """Where it is now, also after it was renamed; None if it was removed or that is not known."""
        if not self.is_anchored:
            return self.path
        try:
            path = os.readlink(self.here)
        except OSError:
            return None
        return path if _is_same(os.stat(self.here), path) else None

    def take_parent(self) -> HeldFolder:
        """Let ``close`` let its parent go as well; the folder itself."""
        self._opened_parent = True
        return self

    def close(self) -> None:
        """Let it go."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None
            self.here = f"{_DESCRIPTORS}/-1"  # not the next file with this number
        if self.parent is not None and self._opened_parent:
            self.parent.close()

    def __enter__(self) -> HeldFolder:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()


def hold_parent(path: str | os.PathLike[str]) -> tuple[HeldFolder, str]:
    """Hold the folder that ``path`` lies in; and the name of ``path`` in it.

    Errors:
        OSError: it is not there, for example.
    """
    whole = os.fspath(path)
    if not os.path.isabs(whole):  # else it does not matter if the working directory has been removed
        whole = os.path.join(os.getcwd(), whole)
    folder, name = os.path.split(whole.rstrip("/"))
    if name in ("", ".", ".."):
        folder, name = os.path.split(os.path.realpath(whole))
    return HeldFolder(folder, _descriptor(os.path.join(folder, "."))), name


def _descriptor(path: str) -> int | None:
    """A descriptor of a folder; None on a system that has none of folders."""
    if hasattr(os, "O_DIRECTORY"):
        return os.open(path, _FOLDER)
    if os.path.islink(path) or not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return None


def _is_ours(folder: HeldFolder) -> bool:
    """True if a new folder is one that this process has made; on some file systems all files have the same owner."""
    if not hasattr(os, "geteuid") or folder.owner == os.geteuid():
        return True
    probe = os.path.join(folder.here, unfinished("owner"))
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        return os.lstat(probe).st_uid == folder.owner
    finally:
        os.unlink(probe)


def _is_same(status: os.stat_result, path: str) -> bool:
    """True if a path leads to the file that has this status."""
    try:
        there = os.stat(path)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino)
