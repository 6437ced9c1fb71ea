"""The program to record: a script, a module, code or a command, and its arguments."""

from __future__ import annotations

import os
import stat
import sys

from tachograph.format.plain_records import record_class, replaced
from tachograph.recorder.command.executables import belongs_elsewhere, find_command
from tachograph.recorder.problems import Refused, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_NAME = 60
"""Characters of a recording's name that come from the target."""

_END_AND_COMMENT = 22 + 0xFFFF
"""Bytes of a zip archive's end record with the longest comment."""


class Kind:
    """The way to start the program: python with a script, a module or code, or the system (a command)."""

    SCRIPT = "script"
    MODULE = "module"
    CODE = "code"
    COMMAND = "command"


@record_class
class Target:
    """A program: ``what`` is the script's path, the module's name, the code or the command as it was typed.

    ``program`` is the path of a command's executable file.
    """

    kind: str
    """One of Kind."""
    what: str
    arguments: tuple[str, ...] = ()
    program: str | None = None

    def command(self) -> list[str]:
        """The command line as the user gave it, for python without the interpreter."""
        how = [] if self.kind in (Kind.SCRIPT, Kind.COMMAND) else ["-m"] if self.kind == Kind.MODULE else ["-c"]
        return [*how, self.what, *self.arguments]

    def invocation(self, orig_argv: Sequence[str]) -> tuple[str, list[str]]:
        """Path of the executable file, and the arguments from argv[0] on.

        ``orig_argv`` is :data:`sys.orig_argv`. Raises Refused if this python does not know its own path.
        """
        if self.program is not None:
            return self.program, self.command()
        python = interpreter()
        return python, [python, *interpreter_flags(orig_argv), *self.command()]

    def title(self) -> str:
        """A name for people: the file name of the script or command, the module's name, ``python-c`` or ``stdin``."""
        if self.kind == Kind.CODE:
            return "python-c"
        if self.kind == Kind.MODULE:
            return self.what
        return "stdin" if self.what == "-" else os.path.basename(self.what.rstrip("/"))

    def folders(self) -> tuple[str, ...]:
        """Where the program's source may lie, the likeliest first: the folder of the script, and the present one."""
        try:
            present = [os.getcwd()]
            script = [os.path.dirname(os.path.abspath(self.what))] if self.kind == Kind.SCRIPT else []
        except OSError:
            return ()  # the present folder has been removed
        return tuple(dict.fromkeys([*script, *present]))

    def recording_stem(self) -> str:
        """The beginning of a recording's file name."""
        name = self.title()
        if self.kind in (Kind.SCRIPT, Kind.COMMAND):
            name = name.removesuffix(".py").removesuffix(".sh")
        words = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else " " for c in name)
        return "_".join(words.split()).strip("._-")[:MAX_NAME] or "program"

    def resolved(self) -> Target:
        """The target, with scripts and commands distinguished. Refuses a program that cannot be run.

        A file that is Python is a script; any other name is a command if there is an executable file of that name, at
        that path or on PATH. A syntax error is the program's own business.
        """
        if self.kind != Kind.SCRIPT or self.what == "-":
            return self
        refusal = None
        try:
            head = check_script(self.what or ".")
            if head is None or not belongs_elsewhere(head):
                return self
        except Refused as error:
            refusal = error
        program = find_command(self.what, os.environ.get("PATH"))
        if program is not None:
            return replaced(self, kind=Kind.COMMAND, program=program)
        if refusal is not None:
            raise refusal
        return self


def check_script(path: str) -> bytes | None:
    """Refuse a script that is missing, a plain directory, unreadable or no Python; its beginning, if it is a file."""
    head = _head(path)
    if head is not None and not looks_like_python(path, head):
        raise Refused(f"{path} is neither a Python script nor an executable file")
    return head


def _head(path: str) -> bytes | None:
    """The beginning of a script; None where it cannot be read: a directory with a __main__.py, a pipe."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            if not os.path.exists(os.path.join(path, "__main__.py")):
                raise Refused(f"{path} is a directory without a __main__.py; name a script or a command, or use -m")
            return None
        if not stat.S_ISREG(status.st_mode):
            return None  # a pipe, such as <(...): reading it here would take the program away from python
        with open(path, "rb") as file:
            return file.read(4096)
    except FileNotFoundError:
        what = "script" if path.endswith(".py") else "script or command"
        raise Refused(f"there is no {what} {path}; options of 'tachograph record' go before it") from None
    except (OSError, ValueError) as error:
        text = reason(error) if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot read the script {path}: {text}") from None


def looks_like_python(path: str, head: bytes) -> bool:
    """True if python would try to run a file that begins with ``head``."""
    if head[:4] == b"PK\x03\x04" or path.endswith(".pyc"):
        return True
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True  # UTF-16: python has its own words for that
    if b"\0" in head:
        return is_archive_with_first_line(path)
    first_line = head.partition(b"\n")[0]
    if not first_line.startswith(b"#!") or b"python" in first_line:
        return True
    # "#!/bin/sh" may still be a file that is both; only a text that is not Python either is refused.
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def is_archive_with_first_line(path: str) -> bool:
    """True for what zipapp, shiv and pex make: a zip archive behind a line that has the shell call python."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            first_line = file.readline(4096)
            if not first_line.startswith(b"#!") or b"python" not in first_line:
                return False
            file.seek(max(os.fstat(file.fileno()).st_size - _END_AND_COMMENT, 0))
            return b"PK\x05\x06" in file.read(_END_AND_COMMENT)
    except (OSError, ValueError):
        return False


def interpreter_flags(orig_argv: Sequence[str]) -> list[str]:
    """The interpreter's own options in ``python OPTIONS -m tachograph record ...``: the program gets them, too.

    ``orig_argv`` is :data:`sys.orig_argv`. A console script has no options of the user's.
    """
    for index in range(1, len(orig_argv)):
        if orig_argv[index : index + 2] in (["-m", "tachograph"], ["-m", "tachograph.testing"]):
            return list(orig_argv[1:index])
        if not orig_argv[index].startswith("-") and orig_argv[index - 1] not in ("-X", "-W"):
            break
    return []


def interpreter() -> str:
    """Path of the interpreter that runs the program: this one."""
    if not sys.executable:
        raise Refused("this python does not know its own path (sys.executable is empty), so it cannot be started again")
    return sys.executable
