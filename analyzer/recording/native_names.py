"""Names of native functions and libraries, as they are shown."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

from .cython_names import cython_name
from .rust_names import rust_name
from .text import printable

_CLONE = re.compile(r"(\.(isra|part|constprop|cold|lto_priv|llvm)(\.\d+)*)+$|( \[clone [^\]]*\])+$|::h[0-9a-f]{16}$")
"""What compilers put behind the names of functions: copies of them, and the hash of Rust's older mangling."""

_SHOWN_NAME, _SHOWN_LIBRARY = 4096, 300


@lru_cache(maxsize=4096)
def plain_name(symbol: str) -> str:
    """The demangled name of a recorded symbol without what compilers append to it, printable."""
    rust = rust_name(symbol)
    if rust:
        return printable(rust, _SHOWN_NAME)
    plain = _CLONE.sub("", _CLONE.sub("", symbol)) or symbol
    return printable(cython_name(plain) or plain, _SHOWN_NAME)


def library_name(path: str | None) -> str | None:
    """The file name of a module; None for none."""
    return None if path is None else printable(PurePosixPath(path).name or path, _SHOWN_LIBRARY)


_PACKAGE = re.compile(r"/(?:site|dist)-packages/([\w-]+?)(?:\.libs)?/")
_ENDING = re.compile(r"(-[0-9a-f]{8})?(\.(cpython|pypy|abi)[\w-]*)?\.so(\.\d+)*$")


def short_library(path: str | None) -> str:
    """A module as people say it: ``numpy/_multiarray_umath``, ``libc``; empty for none."""
    if path is None:
        return ""
    installed = _PACKAGE.search(path)
    name = _ENDING.sub("", PurePosixPath(path).name) or path
    return printable(f"{installed.group(1)}/{name}" if installed else name, _SHOWN_LIBRARY)


_DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+){2,}")
"""Names of functions of Cython."""

_REFERENCE = re.compile(r"(<|&|\*|mut |const |dyn )*")


def short_name(name: str) -> str:
    """A demangled name without its arguments, its type, what is between < and >, and Cython's packages.

    ``void f<int>(int)`` becomes ``f<>``, and ``<Vec<T> as Drop>::drop`` ``Vec<>::drop``. Names of operators, and those
    that are no C++ or Rust, are as they are.
    """
    if name.startswith("<"):
        return _short_method(name)
    if _DOTTED.fullmatch(name):
        return ".".join(name.split(".")[-2:])
    if "operator" in name or not ("(" in name or "<" in name):
        return name
    kept, depth, closers = [], 0, {"<": ">", "(": ")"}
    for character in name.replace("->", ""):
        if character in closers:
            depth += 1
            if depth == 1:
                kept.append(character)
        elif character in ">)":
            depth = max(0, depth - 1)
            if depth == 0:
                kept.append(character)
        elif depth == 0:
            kept.append(character)
    kept.append(closers[kept[-1]] if depth > 0 else "")  # a long name was cut
    text = "".join(kept).replace("()", "").removesuffix(" const")
    return text.rpartition(" ")[2] or name


def _short_method(name: str) -> str:
    """A method of Rust: that of the type, without the trait that it implements."""
    depth = 0
    for place, character in enumerate(name):
        # An arrow closes nothing.
        depth += (character == "<") - (character == ">" and name[place - 1] != "-")
        if depth == 0:
            own, rest = name[1:place].partition(" as ")[0], name[place + 1 :]
            return name if rest.startswith("<") else short_name(_REFERENCE.sub("", own, count=1)) + short_name(rest)
    return name
