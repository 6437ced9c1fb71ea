"""Whose lines are charged: scopes, applied after the fact.

The time of a frame that is out of scope (a library's) is charged to the nearest of its callers that is in scope, as
Scalene does while it samples (2023, section 2.1); here another scope costs no second run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate

PROJECT, ALL = "project", "all"

_LIBRARY = re.compile(
    r"(^|/)(site-packages|dist-packages)/"  # installed packages
    r"|(^|/)(lib|lib64|Lib)/(python|pypy)\d+\.\d+t?/"  # the standard library of an installation
    r"|(^|/)python\d+\.zip/"  # the standard library of an embedded interpreter
)
_NO_FILE = re.compile(r"^<.*>$", re.DOTALL)
OWN_CODE = ("<string>", "<stdin>")
"""What code without a file names: that of ``python -c`` and ``python < script``, and what libraries make by exec."""
_TYPED = ("<ipython-input", "<python-input")
"""How the names of what was typed begin: into IPython, and into Python's own prompt from 3.13 on."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A choice of files. ``text`` is ``project``, ``all`` or a glob."""

    text: str = PROJECT
    interpreters: tuple[str, ...] = ()
    """Directories of the interpreters that ran: what lies beside them (``pip``, ``pytest``) is not the project."""
    own_code: bool = True
    """Whether OWN_CODE is the program's."""

    def includes(self, path: str) -> bool:
        """Whether a file is in scope."""
        path = path.replace("\\", "/")
        if self.text == ALL:
            return True
        if self.text == PROJECT:
            return self._is_project(path)
        if self.text == path:
            return True  # names of cells have brackets, `In [3]`, which in a glob mean something else
        return any(re.match(translate(pattern), path) for pattern in self._patterns())

    def _patterns(self) -> list[str]:
        """A glob may match a whole path, the end of one, or a folder in it; ``*`` matches ``/`` too."""
        glob = self.text.replace("\\", "/").rstrip("/")
        return [glob, f"*/{glob}", f"{glob}/*", f"*/{glob}/*"]

    def _is_project(self, path: str) -> bool:
        if _NO_FILE.match(path):
            return (self.own_code and path in OWN_CODE) or path.startswith(_TYPED)
        if path.rpartition("/")[0] in self.interpreters:
            return False
        if any(path.startswith(f"{folder}/Lib/") for folder in self.interpreters):  # Windows
            return False
        return not _LIBRARY.search(path)
