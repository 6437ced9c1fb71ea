"""Kinds of functions by the words of their names."""

from __future__ import annotations

import ast
import re

from ....source_code.names import Names, is_pure

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_SETTING_UP = frozenset(
    {
        *("parse", "compile", "load", "loads", "connect", "open", "create", "make", "build", "init", "initialize"),
        *("configure", "setup", "prepare", "register", "lambdify", "jit", "njit", "fromstring", "subplots", "figure"),
    }
)
_CONVERTING = frozenset(
    {
        *("astype", "tolist", "asarray", "array", "deepcopy", "copy", "encode", "decode", "dumps", "asdict", "list"),
        *("tuple", "dict", "set", "convert", "cast", "frombuffer", "tobytes", "todense", "toarray"),
    }
)
_SEARCHING = frozenset(
    {
        *("find", "findall", "search", "xpath", "select", "lookup", "filter", "index", "count", "locate", "iterfind"),
        *("query", "isin", "cssselect", "finditer"),
    }
)
_GROWING = frozenset(
    {
        *("concat", "concatenate", "append", "vstack", "hstack", "dstack", "stack", "insert", "merge", "join", "union"),
        *("extend", "cat", "row", "combine"),
    }
)
_ITEMWISE = frozenset(
    {
        *("execute", "insert", "put", "send", "write", "writerow", "save", "upload", "post", "predict", "transform"),
        *("encode", "score", "fetch", "delete", "update", "publish", "set", "at", "loc", "iloc", "iat", "item", "cell"),
        *("add", "get", "subs", "evalf", "evaluate", "interpolate", "query", "distance"),
    }
)
_STATEFUL = frozenset(
    {
        *("next", "recv", "receive", "readline", "readlines", "pop", "popleft", "popitem", "send", "write", "append"),
        *("add", "update", "insert", "push", "put", "step", "run", "train", "fit", "partial", "sleep", "wait", "join"),
        *("random", "rand", "randn", "randint", "randrange", "sample", "choice", "choices", "shuffle", "uniform"),
        *("normal", "gauss", "integers", "permutation", "now", "today", "time", "perf", "monotonic", "uuid", "token"),
        *("commit", "execute", "executemany", "save", "print", "emit", "log", "info", "debug", "warning", "error"),
        *("acquire", "release", "start", "stop", "submit", "seek", "flush", "tick", "poll", "input", "advance", "feed"),
        *("fetchone", "fetchall", "fetchmany", "call", "check", "popen", "spawn", "apply", "map", "imap", "starmap"),
        *("result", "gather", "getvalue", "clear", "remove", "discard", "reset", "close", "kill", "draw", "show"),
        *("read", "extend", "setdefault", "mutate", "evolve", "move", "simulate", "work", "main"),
    }
)
_STATEFUL_PACKAGES = frozenset({"random", "time", "secrets", "uuid", "subprocess", "socket", "threading", "itertools"})

SETUP_INSIDE = frozenset(
    {
        *("__init__", "compile", "connect", "build", "configure", "setup", "check_schema", "register", "initialize"),
        *("create_context", "create_default_context", "load_verify_locations", "prepare", "load_default_certs"),
    }
)
"""Functions inside of a library that prepare what the same arguments could share."""

_SETUP_WORDS = frozenset({"build", "create", "compile", "connect", "register", "configure", "setup", "init"})


def words(name: str) -> list[str]:
    """The words of a name, ``read_csv`` or ``ReadCsv``, in small letters."""
    return [each.lower() for each in _WORDS.findall(name)]


def last(call: ast.AST) -> str:
    """The last part of the name of a called function; empty if it has none."""
    if not isinstance(call, ast.Call):
        return ""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def constructs(call: ast.AST) -> bool:
    """True if a call makes an object of a class, by the convention for names of classes."""
    name = last(call).lstrip("_")
    return name[:1].isupper() and not name.isupper()


def sets_up(call: ast.AST) -> bool:
    """True if a call parses, compiles, loads, connects or makes something."""
    parts = words(last(call))
    return constructs(call) or bool(parts and (parts[0] in _SETTING_UP or (parts[0] in ("read", "from") and parts[1:])))


def converts(call: ast.AST) -> bool:
    """True if a call gives the same data in another type, layout or copy."""
    parts = words(last(call))
    return bool(parts) and (parts[0] in _CONVERTING or (parts[0] in ("to", "as") and len(parts) > 1))


def copies(call: ast.AST) -> bool:
    """True if a call makes an object of its own to change, of one that is there."""
    return last(call) in ("copy", "deepcopy", "list", "dict", "set", "bytearray", "clone", "copy_")


def searches(call: ast.AST) -> bool:
    """True if a call looks for something in all of what it is a method of, or is given."""
    parts = words(last(call))
    return bool(parts) and (parts[0] in _SEARCHING or parts[:2] in (["get", "by"], ["find", "all"]))


def grows(name: str) -> bool:
    """True if a function of this name makes a new object of one and of what is added to it."""
    parts = words(name)
    return bool(parts) and (parts[0] in _GROWING)


def itemwise(name: str) -> bool:
    """True if libraries have a form for many at once of functions of this name."""
    parts = words(name)
    return bool(parts) and parts[0] in _ITEMWISE


def stateful(call: ast.Call, names: Names) -> bool:
    """True if a call may give another result, or has an effect, each time, whatever it is given."""
    name, parts = names.called(call) or "", words(last(call))
    if names.is_random(call) or name.partition(".")[0] in _STATEFUL_PACKAGES:
        return True
    if not parts or constructs(call) or is_pure(name):
        return False
    if parts[0] == "read":
        # open(path).read() is the same each time; file.read() goes on.
        opened = isinstance(call.func, ast.Attribute) and last(call.func.value) == "open"
        return len(parts) == 1 and not opened
    if parts == ["get"]:
        return not call.args
    return parts[0] in _STATEFUL


def prepares(qualified: str) -> bool:
    """True if a function inside of a library prepares something, by its name."""
    name = qualified.rpartition(".")[2]
    parts = words(name)
    return name in SETUP_INSIDE or bool(parts and parts[0] in _SETUP_WORDS)
