"""Readable names of native functions and libraries: C++ templates shortened, Cython and Rust names decoded.

Cython: ``__pyx_f_7sklearn_4tree_5_tree_21DepthFirstTreeBuilder_build`` is
``sklearn.tree._tree.DepthFirstTreeBuilder.build``. Source: Cython's ``Naming.py`` and ``ModuleNode.mangle``.

Rust: the v0 scheme is that of RFC 2603 ("Rust symbol name mangling v0"); names are written as ``rustc-demangle`` does,
without the hashes of crates. The legacy scheme looks like C++, and the recorder demangles it as such, except for its
escapes, which are decoded here. There is no dependency for this: ``__cxa_demangle`` knows no v0, and recordings are
read on machines without any tool.

A name is untrusted text: back references can make it arbitrarily long. Steps, depth and length are bounded, and a name
beyond the bounds stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath

from .text import printable

MAX_SYMBOL, MAX_NAME = 16_384, 4_096
"""Characters of a mangled name that is read, and of a demangled one."""

MAX_ARGUMENTS = 1_000
"""Characters of the generic arguments of one function or type; longer ones are left out."""

MAX_STEPS = 4_000
"""Paths, types and constants that are read for a name, those of back references each time."""

MAX_DEPTH = 100

_HASH = re.compile(r"::h[0-9a-f]{16}$")
_SUFFIX = re.compile(r"\.[\w.$@]*$")
_ESCAPE = re.compile(r"\$(SP|BP|RF|LT|GT|LP|RP|C|u[0-9a-f]{1,6})\$|\.\.")
_ESCAPED = {"SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ","}

_BASIC = dict(
    zip(
        "abcdefhijlmnopstuvxyz",
        (
            *(
                "i8",
                "bool",
                "char",
                "f64",
                "str",
                "f32",
                "u8",
                "isize",
                "usize",
                "i32",
                "u32",
                "i128",
                "u128",
                "_",
                "i16",
            ),
            *("u16", "()", "...", "i64", "u64", "!"),
        ),
        strict=True,
    )
)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
Read = Callable[[], str]

_NUMBERS = frozenset("ahijlmnostxy")
"""Types of constants that are numbers."""


def rust_name(symbol: str) -> str | None:
    """The readable name of a Rust function, without hashes; None for other names."""
    if symbol.startswith(("_R", "__R")) and len(symbol) <= MAX_SYMBOL:
        try:
            return _Reader(_SUFFIX.sub("", symbol).lstrip("_")[1:]).name()
        except _UnreadableError:
            return None
    plain = re.sub(r"\.llvm\.\w+$", "", symbol)
    if _HASH.search(plain) is None:
        return None
    # A part that would begin with an escape has an underscore in front.
    parts = (part[1:] if part.startswith("_$") else part for part in _HASH.sub("", plain).split("::"))
    return "::".join(_ESCAPE.sub(_unescaped, part) for part in parts)


def _unescaped(match: re.Match[str]) -> str:
    name = match[1]
    if name is None:
        return "::"
    if name in _ESCAPED:
        return _ESCAPED[name]
    number = int(name[1:], 16)
    return chr(number) if 32 <= number < 0x110000 and not 0xD800 <= number < 0xE000 else match[0]


class _UnreadableError(Exception):
    """It is no v0 name, or one beyond the bounds."""


class _Reader:
    """Reads one v0 name. Methods return the text that they read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._steps = 0
        self._depth = 0
        self._lifetimes = 0

    def name(self) -> str:
        if self._peek().isdigit():
            raise _UnreadableError  # a later version of the scheme
        text = self._path()
        if self._at < len(self._text):  # the crate that it was instantiated in is no part of the name
            self._path()
        if self._at < len(self._text):
            raise _UnreadableError
        return text

    def _path(self, *, value: bool = True) -> str:
        """A path; ``value``: generic arguments are behind ``::``, as in an expression."""
        self._enter()
        kind = self._next()
        if kind == "C":
            self._disambiguator()
            text = self._identifier()
        elif kind in "MXY":
            if kind != "Y":
                self._disambiguator()
                self._path()  # where the impl block stands
            own = self._type()
            text = f"<{own}>" if kind == "M" else f"<{own} as {self._path(value=False)}>"
        elif kind == "N":
            text = self._nested(value)
        elif kind == "I":
            outer = self._path(value=value)
            arguments = ", ".join(self._until_end(self._generic))
            arguments = arguments if len(arguments) <= MAX_ARGUMENTS else "…"
            text = f"{outer}{'::' if value else ''}<{arguments}>"
        elif kind == "B":
            text = self._again(lambda: self._path(value=value))
        else:
            raise _UnreadableError
        return self._leave(text)

    def _nested(self, value: bool) -> str:
        space = self._next()
        if not (space.isascii() and space.isalpha()):
            raise _UnreadableError
        outer, number, name = self._path(value=value), self._disambiguator(), self._identifier()
        if space.isupper():
            word = {"C": "closure", "S": "shim"}.get(space, space)
            return f"{outer}::{{{word}{':' if name else ''}{name}#{number}}}"
        return f"{outer}::{name}" if name else outer

    def _generic(self) -> str:
        if self._eat("L"):
            return self._lifetime()
        return self._constant() if self._eat("K") else self._type()

    def _type(self) -> str:
        self._enter()
        kind = self._next()
        if kind in _BASIC:
            text = _BASIC[kind]
        elif kind in "RQ":
            lifetime = f"{self._lifetime()} " if self._eat("L") else ""
            lifetime = "" if lifetime == "'_ " else lifetime
            text = f"&{lifetime}{'mut ' if kind == 'Q' else ''}{self._type()}"
        elif kind in "PO":
            text = f"*{'const' if kind == 'P' else 'mut'} {self._type()}"
        elif kind == "A":
            inner = self._type()
            text = f"[{inner}; {self._constant()}]"
        elif kind == "S":
            text = f"[{self._type()}]"
        elif kind == "T":
            inside = list(self._until_end(self._type))
            text = f"({inside[0]},)" if len(inside) == 1 else f"({', '.join(inside)})"
        elif kind == "F":
            text = self._function()
        elif kind == "D":
            text = self._dynamic()
        elif kind == "B":
            text = self._again(self._type)
        else:
            self._at -= 1
            text = self._path(value=False)
        return self._leave(text)

    def _function(self) -> str:
        bound = self._binder()
        words = "unsafe " if self._eat("U") else ""
        if self._eat("K"):
            abi = "C" if self._eat("C") else self._identifier().replace("_", "-")
            words += f'extern "{abi}" '
        arguments = ", ".join(self._until_end(self._type))
        returned = self._type()
        self._lifetimes -= bound
        return f"{words}fn({arguments})" + ("" if returned == "()" else f" -> {returned}")

    def _dynamic(self) -> str:
        bound = self._binder()
        traits = " + ".join(self._until_end(self._trait))
        self._lifetimes -= bound
        if not self._eat("L"):
            raise _UnreadableError
        lifetime = self._lifetime()
        return f"dyn {traits}" + ("" if lifetime == "'_" else f" + {lifetime}")

    def _trait(self) -> str:
        path = self._path(value=False)
        bindings = []
        while self._eat("p"):
            name = self._identifier()
            bindings.append(f"{name} = {self._type()}")
        if not bindings:
            return path
        return f"{path[:-1]}, {', '.join(bindings)}>" if path.endswith(">") else f"{path}<{', '.join(bindings)}>"

    def _constant(self) -> str:
        self._enter()
        kind = self._next()
        if kind == "p":
            text = "_"
        elif kind == "B":
            text = self._again(self._constant)
        elif kind in _NUMBERS or kind in "bc":
            text = self._value(kind)
        elif kind == "e":
            text = '"' + self._hex_text() + '"'
        elif kind in "RQ":
            text = f"&{'mut ' if kind == 'Q' else ''}{self._constant()}"
        elif kind == "A":
            text = f"[{', '.join(self._until_end(self._constant))}]"
        elif kind == "T":
            text = f"({', '.join(self._until_end(self._constant))})"
        elif kind == "V":
            text = self._structure()
        else:
            raise _UnreadableError
        return self._leave(text)

    def _value(self, kind: str) -> str:
        negative, digits = self._eat("n"), self._hex()
        number = int(digits or "0", 16)
        if kind == "b":
            return {0: "false", 1: "true"}.get(number) or self._fail()
        if kind == "c":
            if number >= 0x110000 or 0xD800 <= number < 0xE000:
                raise _UnreadableError
            return f"'{chr(number)}'"
        return f"{'-' if negative else ''}{number if len(digits) <= 32 else '0x' + digits}"

    def _structure(self) -> str:
        path = self._path()
        kind = self._next()
        if kind == "U":
            return path
        if kind == "T":
            return f"{path}({', '.join(self._until_end(self._constant))})"
        if kind == "S":
            return f"{path} {{ {', '.join(self._until_end(self._field))} }}"
        raise _UnreadableError

    def _field(self) -> str:
        self._disambiguator()
        name = self._identifier()
        return f"{name}: {self._constant()}"

    def _hex(self) -> str:
        end = self._text.find("_", self._at)
        digits = self._text[self._at : end]
        if end < 0 or re.fullmatch(r"[0-9a-f]*", digits) is None:
            raise _UnreadableError
        self._at = end + 1
        return digits

    def _hex_text(self) -> str:
        digits = self._hex()
        if len(digits) % 2 or len(digits) > MAX_NAME:
            raise _UnreadableError
        return bytes.fromhex(digits).decode("utf-8", "replace")

    def _lifetime(self) -> str:
        """A lifetime by its distance: 0 is erased, 1 the innermost one that is bound."""
        number = self._base_62()
        if number == 0:
            return "'_"
        place = self._lifetimes - number
        if place < 0:
            raise _UnreadableError
        return f"'{_DIGITS[10 + place]}" if place < 26 else f"'_{place}"

    def _binder(self) -> int:
        """Number of lifetimes that are bound."""
        bound = self._base_62() + 1 if self._eat("G") else 0
        if bound > MAX_STEPS:
            raise _UnreadableError
        self._lifetimes += bound
        return bound

    def _identifier(self) -> str:
        encoded = self._eat("u")
        match = re.compile(r"0|[1-9][0-9]{0,5}").match(self._text, self._at)
        if match is None:
            raise _UnreadableError
        self._at = match.end()
        self._eat("_")
        end = self._at + int(match[0])
        if end > len(self._text):
            raise _UnreadableError
        name, self._at = self._text[self._at : end], end
        return _decoded(name) if encoded else name

    def _disambiguator(self) -> int:
        return self._base_62() + 1 if self._eat("s") else 0

    def _base_62(self) -> int:
        number = 0
        if self._eat("_"):
            return 0
        for _ in range(12):
            letter = self._next()
            if letter == "_":
                return number + 1
            digit = _DIGITS.find(letter)
            if digit < 0:
                raise _UnreadableError
            number = number * 62 + digit
        raise _UnreadableError

    def _again(self, read: Read) -> str:
        """Read again at an earlier position (a back reference)."""
        start = self._at - 1
        place = self._base_62()
        if place >= start:
            raise _UnreadableError
        after, self._at = self._at, place
        text = read()
        self._at = after
        return text

    def _until_end(self, read: Read) -> Iterator[str]:
        while not self._eat("E"):
            yield read()

    def _enter(self) -> None:
        self._steps += 1
        self._depth += 1
        if self._steps > MAX_STEPS or self._depth > MAX_DEPTH:
            raise _UnreadableError

    def _leave(self, text: str) -> str:
        self._depth -= 1
        if len(text) > MAX_NAME:
            raise _UnreadableError
        return text

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _UnreadableError
        self._at += 1
        return self._text[self._at - 1]

    def _eat(self, letter: str) -> bool:
        matches = self._peek() == letter
        self._at += matches
        return matches

    @staticmethod
    def _fail() -> str:
        raise _UnreadableError


def _decoded(name: str) -> str:
    """An identifier in Punycode, whose last underscore is the delimiter."""
    plain, _, code = name.rpartition("_")
    if len(name) <= 256:
        try:
            return f"{plain}-{code}".removeprefix("-").encode("ascii").decode("punycode")
        except UnicodeError:
            pass
    return f"punycode{{{name}}}"


_FUNCTION = re.compile(r"(?:__pyx_fuse_[0-9_]*)?__pyx_(pw|pf|f|gb|specialmethod)_(?=\d)")
"""Wrappers, functions of Python, functions of C, and bodies of generators; of fused types one for each type."""

_PART = re.compile(r"(\d{1,3})")
_COUNT = re.compile(r"\d+(?=[A-Za-z_])")
_MOST_PARTS = 20


def cython_name(symbol: str) -> str | None:
    """The qualified name of a function of Cython; None for any other symbol."""
    start = _FUNCTION.match(symbol)
    if start is None:
        return None
    rest = symbol[start.end() :].partition("(")[0]
    parts: list[str] = []
    while len(parts) < _MOST_PARTS and (length := _PART.match(rest)):
        end = length.end() + int(length[1])
        if not length.end() < end < len(rest) or rest[end] != "_":
            break
        parts.append(rest[length.end() : end])
        rest = rest[end + 1 :]
    if start[1] != "f":
        rest = _COUNT.sub("", rest, count=1) if _COUNT.match(rest) else rest  # functions of one name are counted
    return ".".join([*parts, rest]) if parts and rest else None


_CLONE = re.compile(r"(\.(isra|part|constprop|cold|lto_priv|llvm)(\.\d+)*)+$|( \[clone [^\]]*\])+$|::h[0-9a-f]{16}$")
"""Suffixes that compilers give to names of functions: of copies, and the hash of Rust's older mangling."""

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
    """The short name of a module: ``numpy/_multiarray_umath``, ``libc``; empty for none."""
    if path is None:
        return ""
    installed = _PACKAGE.search(path)
    name = _ENDING.sub("", PurePosixPath(path).name) or path
    return printable(f"{installed.group(1)}/{name}" if installed else name, _SHOWN_LIBRARY)


def native_label(name: str, library: str) -> str:
    """A native function as reports and exports show it: one without a name is its ``short_library``, ``[libgomp]``."""
    return f"[{library.strip('[]') or 'unknown'}]" if name.startswith("[") else name


_DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+){2,}")
"""Names of functions of Cython."""

_REFERENCE = re.compile(r"(<|&|\*|mut |const |dyn )*")


def short_name(name: str) -> str:
    """A demangled name without its arguments, its type, text between < and >, and Cython's packages.

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
