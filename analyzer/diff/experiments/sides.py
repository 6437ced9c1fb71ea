"""The two sides of an experiment: a command each, or one command in two revisions of a git repository."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tachograph.format import FormatError

from ...recording.text import printable

WORKING_TREE = "."
"""As a revision: the files as they are now."""

_GIT_S = 300
"""The longest that one git command may take."""


@dataclass(frozen=True, slots=True)
class Side:
    """What is run: a command line, the folder in which it starts, and a revision if there is one."""

    name: str
    command: tuple[str, ...]
    folder: Path
    revision: str | None = None

    @property
    def label(self) -> str:
        """How people recognize it."""
        return self.revision or shlex.join(self.command)


def two_commands(base: str, new: str) -> tuple[Side, Side]:
    """Sides of two command lines, as a shell would split them.

    Errors:
        FormatError: one is empty, or has an open quote.
    """
    return _side("base", base), _side("new", new)


def _side(name: str, line: str) -> Side:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise FormatError(f"the command {printable(line, 80)!r} cannot be split into words: {error}") from None
    if not words:
        raise FormatError(f"the command of the {name} side is empty")
    return Side(name, tuple(words), Path.cwd())


@contextmanager
def two_revisions(base: str, new: str, command: Sequence[str]) -> Iterator[tuple[Side, Side]]:
    """Sides of one command in two revisions, each in a worktree of its own that is removed afterwards.

    The revision ``.`` is the working tree as it is.

    Errors:
        FormatError: there is no command, this is no git repository, or there is no such revision.
    """
    if not command:
        raise FormatError("revisions need a command: tachograph compare --base main --new HEAD -- python bench.py")
    if shutil.which("git") is None:
        raise FormatError("comparing revisions needs git, which is not installed")
    here = Path.cwd()
    top = Path(_git(here, "rev-parse", "--show-toplevel"))
    below = here.resolve().relative_to(top.resolve())
    with ExitStack() as stack:
        sides = []
        for name, revision in (("base", base), ("new", new)):
            tree = top if revision == WORKING_TREE else stack.enter_context(_worktree(top, revision))
            folder = tree / below
            if not folder.is_dir():
                raise FormatError(f"revision {printable(revision, 80)!r} has no folder {printable(str(below), 200)}")
            sides.append(Side(name, tuple(command), folder, revision))
        yield sides[0], sides[1]


@contextmanager
def _worktree(top: Path, revision: str) -> Iterator[Path]:
    commit = _git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", named=revision)
    with tempfile.TemporaryDirectory(prefix="tachograph-compare-") as folder:
        tree = Path(folder) / top.name
        _git(top, "worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            _git(top, "worktree", "remove", "--force", str(tree))


def _git(folder: Path, *words: str, named: str | None = None) -> str:
    """What a git command prints; ``named`` is the revision that it looks for."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, errors="replace", timeout=_GIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise FormatError(f"git {words[0]} took longer than {_GIT_S} s") from None
    if done.returncode == 0:
        return done.stdout.strip()
    if named is not None:
        raise FormatError(f"there is no revision {printable(named, 80)!r} in this repository")
    lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    raise FormatError(f"git {words[0]}: {printable(lines[-1], 200)}")
