"""What is to be recorded: a script, a module or code, and its arguments."""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tachograph.recorder.problems import Refused, reason

MAX_NAME = 60
"""Characters of a recording's name that come from the target."""


class Kind(Enum):
    """How python is told what to run."""

    SCRIPT = "script"
    MODULE = "module"
    CODE = "code"


@dataclass(frozen=True)
class Target:
    """A program: ``what`` is the script's path, the module's name or the code."""

    kind: Kind
    what: str
    arguments: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """The arguments for the interpreter."""
        how = {Kind.SCRIPT: [], Kind.MODULE: ["-m"], Kind.CODE: ["-c"]}[self.kind]
        return [*how, self.what, *self.arguments]

    def title(self) -> str:
        """A name for people: the script's file name, the module's name, ``python-c`` or ``stdin``."""
        if self.kind is Kind.CODE:
            return "python-c"
        if self.kind is Kind.MODULE:
            return self.what
        return "stdin" if self.what == "-" else Path(self.what).name

    def recording_stem(self) -> str:
        """The beginning of a recording's file name."""
        name = self.title()
        if self.kind is Kind.SCRIPT:
            name = name.removesuffix(".py")
        return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-")[:MAX_NAME] or "program"

    def check(self) -> None:
        """Refuse what python could not run anyway; a syntax error is the program's own business."""
        if self.kind is Kind.SCRIPT and self.what != "-":
            check_script(Path(self.what))


def check_script(path: Path) -> None:
    """Refuse a script that is missing, a plain directory, unreadable or no Python."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            if not (path / "__main__.py").exists():
                raise Refused(f"{path} is a directory without a __main__.py; name a script, or use -m MODULE")
            return
        if not stat.S_ISREG(status.st_mode):
            return  # a pipe, such as <(...): reading it here would take the program away from python
        with path.open("rb") as file:
            head = file.read(4096)
    except FileNotFoundError:
        raise Refused(f"there is no script {path}; options of 'tachograph record' stand before it") from None
    except (OSError, ValueError) as error:
        text = reason(error) if isinstance(error, OSError) else str(error)
        raise Refused(f"cannot read the script {path}: {text}") from None
    if not looks_like_python(path, head):
        raise Refused(f"{path} is not a Python script; name a script, or use -m MODULE")


def looks_like_python(path: Path, head: bytes) -> bool:
    """Whether python would try to run a file that begins with ``head``."""
    if head[:4] == b"PK\x03\x04" or path.suffix == ".pyc":
        return True
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True  # UTF-16: python has its own words for that
    if b"\0" in head:
        return False
    first_line = head.partition(b"\n")[0]
    if not first_line.startswith(b"#!") or b"python" in first_line:
        return True
    # "#!/bin/sh" may still be a file that is both; only a text that is no Python either is refused.
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def interpreter_flags(orig_argv: Sequence[str]) -> list[str]:
    """The interpreter's own options in ``python OPTIONS -m tachograph record ...``: the program gets them, too.

    ``orig_argv`` is :data:`sys.orig_argv`. A console script has no options of the user's.
    """
    for index in range(1, len(orig_argv)):
        if orig_argv[index : index + 2] == ["-m", "tachograph"]:
            return list(orig_argv[1:index])
        if not orig_argv[index].startswith("-") and orig_argv[index - 1] not in ("-X", "-W"):
            break
    return []


def interpreter() -> str:
    """Path of the interpreter that runs the program: this one."""
    if not sys.executable:
        raise Refused("this python does not know its own path (sys.executable is empty), so it cannot be started again")
    return sys.executable
