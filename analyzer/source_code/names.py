"""Meanings of the names in a file, as far as its text proves them, and the names that a loop changes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cached_property

from .source import Function, LoopNode, Module, Scope, body_of, dotted

MAX_DEPTH = 6
"""Longest chain of names that is followed."""

MAX_VALUES = 20
"""Most values of a name that are examined; of one with more nothing is proved."""

MAX_BODY = 20_000
"""Most nodes of a loop's body that are examined; of a larger one nothing is proved."""

LIST, TUPLE, SET, DICT = "list", "tuple", "set", "dict"
TEXT, BYTES, BYTEARRAY = "str", "bytes", "bytearray"
ARRAY, SINGLE, DOUBLE, LOCK, QUEUE, FRAME = "array", "float32 array", "float64 array", "lock", "queue", "frame"
SAME = "the same as the name that is being looked at"
ARRAYS = frozenset({ARRAY, SINGLE, DOUBLE})

_CALLS = {
    **{name: name for name in (LIST, TUPLE, SET, DICT, TEXT, BYTES, BYTEARRAY)},
    "sorted": LIST,
    "bytes.fromhex": BYTES,
    "frozenset": SET,
    "collections.defaultdict": DICT,
    "collections.OrderedDict": DICT,
    "threading.Lock": LOCK,
    "threading.RLock": LOCK,
    "multiprocessing.Lock": LOCK,
    "queue.Queue": QUEUE,
    "queue.SimpleQueue": QUEUE,
    "collections.deque": QUEUE,
    "pandas.DataFrame": FRAME,
    "pandas.read_csv": FRAME,
    "pandas.read_parquet": FRAME,
    "pandas.concat": FRAME,
}
_MAKES_ARRAYS = frozenset(
    {
        *("zeros", "ones", "empty", "full", "arange", "linspace", "array", "asarray", "ascontiguousarray"),
        *("asfortranarray", "eye", "identity", "zeros_like", "ones_like", "empty_like", "full_like", "concatenate"),
        *("vstack", "hstack", "stack", "frombuffer", "fromfile", "loadtxt", "dot", "matmul"),
    }
)
_DOUBLES = frozenset({"zeros", "ones", "empty", "linspace", "eye", "identity"})
"""They make arrays of 64-bit floating point unless another dtype is named."""
_RANDOM_DOUBLES = frozenset({"rand", "random", "random_sample", "standard_normal", "normal", "uniform", "randn"})
_OF_TEXT = {"split": LIST, "splitlines": LIST, "rsplit": LIST, "join": TEXT, "strip": TEXT, "lower": TEXT}
_OF_TEXT |= {"upper": TEXT, "replace": TEXT, "encode": BYTES}

UNKNOWN_CALL = "()"
"""Among the changes of a loop: a call of something that may change what every function reaches."""

PURE = frozenset(
    {
        *("len", "sum", "min", "max", "sorted", "any", "all", "abs", "round", "print", "str", "repr", "int", "float"),
        *("bool", "hash", "isinstance", "type", "id", "range", "zip", "enumerate", "set", "frozenset", "tuple", "list"),
        *("dict", "bytes", "iter"),
    }
)
"""Functions that do not change their arguments."""

PURE_METHODS = frozenset(
    {
        *("get", "keys", "values", "items", "count", "index", "find", "rfind", "startswith", "endswith", "split"),
        *("splitlines", "strip", "lower", "upper", "replace", "join", "encode", "decode", "format", "isdigit"),
        *("isalpha", "hex", "copy", "sum", "mean", "max", "min", "std", "var", "dot", "any", "all", "argmax", "argmin"),
        *("astype", "tolist", "tobytes", "to_numpy", "reshape", "ravel", "flatten", "item", "nonzero", "cumsum"),
        *("search", "match", "findall", "finditer", "fullmatch", "sub"),
    }
)
"""Methods that change nothing, whatever has them."""

Bindings = dict[str, list[ast.expr | None]]
"""Values of names; None stands for an unknown one."""


class Names:
    """The meanings of the names in a module."""

    def __init__(self, module: Module, given: Mapping[str, str] | None = None) -> None:
        self.module = module
        self._given = given or {}
        """Names that other texts have imported for this one: cells of a notebook share theirs."""
        self._bindings: dict[ast.AST, Bindings] = {}
        self._attributes: dict[ast.ClassDef, Bindings] = {}
        self._changes: dict[LoopNode, set[str] | None] = {}
        self._open: set[str] = set()
        self.effects: dict[tuple[ast.AST, int], bool] = {}
        """Functions by whether they may do something else than make their results, as far as was asked."""

    @cached_property
    def modules(self) -> dict[str, str]:
        """Imported names and their origins: ``np`` for ``numpy``, ``sleep`` for ``time.sleep``."""
        modules = dict(self._given)
        for node in self.module.parent:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    modules[alias.asname or alias.name.partition(".")[0]] = (
                        alias.name if alias.asname else alias.name.partition(".")[0]
                    )
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        return modules

    @cached_property
    def mentions(self) -> dict[str, list[ast.Name]]:
        """All nodes of each name."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.module.parent:
            if isinstance(node, ast.Name):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def functions(self) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
        """The functions and methods of the file by name."""
        found: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
        for node in self.module.parent:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(node.name, []).append(node)
        return found

    def imports(self, *packages: str) -> bool:
        """True if the file imports one of these packages."""
        return any(each.partition(".")[0] in packages for each in self.modules.values())

    def called(self, call: ast.AST) -> str | None:
        """The full name of a called function, ``numpy.append``: a built-in's, or one that was imported."""
        name = dotted(call.func) if isinstance(call, ast.Call) else None
        if name is None:
            return None
        first, dot, rest = name.partition(".")
        if first in self.modules:
            return self.modules[first] + dot + rest
        # A name of the program's own hides a built-in one.
        return name if not dot and not self._bound(first, call) else None

    def decorator(self, decorator: ast.expr) -> str | None:
        """The full name of a decorator, with arguments or without; None if it is not known."""
        bare = ast.copy_location(ast.Call(decorator, [], []), decorator)
        return self.called(decorator if isinstance(decorator, ast.Call) else bare)

    def _bound(self, name: str, at: ast.AST) -> bool:
        return any(name in self.bindings(scope) for scope in self._scopes(at))

    def _scopes(self, node: ast.AST) -> Iterator[Scope]:
        scope = self.module.scope(node)
        while True:
            yield scope
            if isinstance(scope, ast.Module):
                return
            scope = self.module.scope(scope)

    def binding(self, name: str, at: ast.AST) -> list[ast.expr | None]:
        """The values of a name in the scope that binds it; empty if there is none; imports are left out."""
        for scope in self._scopes(at):
            values = self.bindings(scope).get(name)
            if values is not None:
                return [None] if isinstance(scope, ast.Module) and name in self._made_global else values
        return []

    @cached_property
    def _made_global(self) -> set[str]:
        declared = (node for node in self.module.parent if isinstance(node, ast.Global | ast.Nonlocal))
        return {name for node in declared for name in node.names}

    def bindings(self, scope: Scope) -> Bindings:
        """Values bound to each name of a function or the module; statements that only add (``+=``) do not count."""
        if scope not in self._bindings:
            bindings: Bindings = {}
            if isinstance(scope, Function):
                arguments = scope.args
                for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                    bindings[each.arg] = [None]
                for other in (arguments.vararg, arguments.kwarg):
                    if other is not None:
                        bindings[other.arg] = [None]
            for node in _inside(scope):
                _bind(node, bindings)
            self._bindings[scope] = bindings
        return self._bindings[scope]

    def values(self, node: ast.Name | ast.Attribute) -> list[ast.expr | None]:
        """The values of a name, or of ``self.NAME`` in the class around."""
        return self.binding(node.id, node) if isinstance(node, ast.Name) else self._attribute(node)

    def _attribute(self, node: ast.Attribute) -> list[ast.expr | None]:
        """All that ``self.NAME`` is assigned in the class around."""
        owner = self.module.class_around(node)
        if owner is None or not isinstance(node.value, ast.Name) or node.value.id != "self":
            return [None]
        if owner not in self._attributes:
            bindings: Bindings = {}
            for each in ast.walk(owner):
                if isinstance(each, ast.Assign | ast.AnnAssign):
                    targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                    for target in targets:
                        value = each.value if each.value is not None else None
                        for part in ast.walk(target):
                            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                                bindings.setdefault(part.attr, []).append(value if part is target else None)
            self._attributes[owner] = bindings
        return self._attributes[owner].get(node.attr, [None])

    def kind(self, node: ast.expr | None, depth: int = MAX_DEPTH) -> str | None:
        """Kind of object that an expression is, if the text proves it."""
        if node is None or depth == 0:
            return None
        if isinstance(node, ast.Constant):
            return TEXT if isinstance(node.value, str) else BYTES if isinstance(node.value, bytes) else None
        for types, kind in _DISPLAYS:
            if isinstance(node, types):
                return kind
        if isinstance(node, ast.Call):
            return self._kind_of_call(node, depth)
        if isinstance(node, ast.BinOp):
            return self._kind_of_operation(node, depth)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return self.kind(node.value, depth - 1)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._kind_of_name(node, depth)
        return None

    def _kind_of_name(self, node: ast.Name | ast.Attribute, depth: int) -> str | None:
        """The kind that all values of a name share; values made of the name itself are of its kind."""
        name = dotted(node)
        if name is None or name in self._open:
            return None if name is None else SAME
        values = self.values(node)
        self._open.add(name)
        kinds = {self.kind(value, depth - 1) for value in values[:MAX_VALUES]} - {SAME}
        self._open.discard(name)
        return kinds.pop() if len(kinds) == 1 and len(values) <= MAX_VALUES else None

    def _kind_of_operation(self, node: ast.BinOp, depth: int) -> str | None:
        left, right = self.kind(node.left, depth - 1), self.kind(node.right, depth - 1)
        if left in ARRAYS or right in ARRAYS:
            return left if left == right else ARRAY
        if left == SAME:
            return SAME if right is None else right
        if isinstance(node.op, ast.Mod):
            return left if left in (TEXT, BYTES) else None
        return left if left == right or right is None else left if isinstance(node.op, ast.Mult) else None

    def _kind_of_call(self, node: ast.Call, depth: int) -> str | None:
        name = self.called(node)
        if name in _CALLS:
            return _CALLS[name]
        if name is not None and name.startswith("numpy."):
            last = name.rpartition(".")[2]
            if last in _MAKES_ARRAYS or (name.startswith("numpy.random.") and last in _RANDOM_DOUBLES):
                return self._with_dtype(node, last)
            return None
        if isinstance(node.func, ast.Attribute):
            owner, method = self.kind(node.func.value, depth - 1), node.func.attr
            if method == "astype" and node.args:
                return _DTYPES.get(_dtype_name(node.args[0]), ARRAY) if owner in ARRAYS else None
            if method == "copy":
                return owner
            if method in ("read_text", "decode"):
                return TEXT
            if owner == TEXT:
                return _OF_TEXT.get(method)
            if method in _RANDOM_DOUBLES and self._is_generator(node.func.value, depth):
                return self._with_dtype(node, method)
        return None

    def _is_generator(self, node: ast.expr, depth: int) -> bool:
        """True if an expression is a generator of random numbers, ``numpy.random.default_rng()``."""
        if isinstance(node, ast.Name) and depth > 0:
            values = self.binding(node.id, node)
            return len(values) == 1 and values[0] is not None and self._is_generator(values[0], depth - 1)
        return self.called(node) == "numpy.random.default_rng"

    def is_random(self, call: ast.Call) -> bool:
        """True if a call is one of NumPy's generators of random numbers, or of its own one."""
        if not isinstance(call.func, ast.Attribute):
            return False
        return (self.called(call) or "").startswith("numpy.random.") or self._is_generator(call.func.value, MAX_DEPTH)

    def _with_dtype(self, node: ast.Call, function: str) -> str:
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                return _DTYPES.get(_dtype_name(keyword.value), ARRAY)
        plain = function in _DOUBLES or function in _RANDOM_DOUBLES
        return DOUBLE if plain and len(node.args) < 2 else ARRAY

    def changes(self, loop: LoopNode) -> set[str] | None:
        """The dotted names that a loop may change or bind; None if they are unknown.

        Objects that are passed to an unknown function, stored into, or have a method called that is not known to change
        nothing, may change.
        """
        if loop not in self._changes:
            self._changes[loop] = self._found_changes(loop)
        return self._changes[loop]

    def _found_changes(self, loop: LoopNode) -> set[str] | None:
        changes: set[str] = set()
        waiting = body_of(loop, self.module)
        if isinstance(loop, ast.comprehension):
            waiting.append(loop.target)
        for _ in range(MAX_BODY):
            if not waiting:
                return changes
            node = waiting.pop()
            self._change(node, changes)
            waiting += ast.iter_child_nodes(node)
        return None

    def _change(self, node: ast.AST, changes: set[str]) -> None:
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            changes.add(dotted(node) or "")
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            changes.add(_base(node))
        elif isinstance(node, ast.Global | ast.Nonlocal):
            changes.update(node.names)
        elif isinstance(node, ast.Call):
            name = self.called(node)
            out = any(keyword.arg in ("out", None) for keyword in node.keywords)
            pure = name is not None and not out and (name in PURE or is_pure(name))
            if isinstance(node.func, ast.Attribute) and name is None:
                pure = node.func.attr in PURE_METHODS and not out
                if not pure:
                    changes.add(_base(node.func.value))
            if not pure:
                changes.add(UNKNOWN_CALL)
                for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                    changes.update(_handed_over(argument))

    def fixed(self, node: ast.AST, loop: LoopNode) -> bool:
        """True if an expression is the same each time round a loop: built of names that the loop does not change."""
        changed = self.changes(loop)
        if changed is None or "" in changed:
            return False
        for part in ast.walk(node):
            if isinstance(part, ast.Name | ast.Attribute):
                name = dotted(part)
                if name is None:
                    continue
                if any(name == each or name.startswith(f"{each}.") for each in changed):
                    return False
                if UNKNOWN_CALL in changed and self._shared(part):
                    return False
            elif isinstance(part, ast.Call | ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr | ast.Lambda):
                return False
        return True

    def _shared(self, node: ast.Name | ast.Attribute) -> bool:
        """True if other functions can reach the object of a name: a global object that can be changed."""
        if not isinstance(node, ast.Name) or node.id in self.modules or self.kind(node) in (TEXT, BYTES, TUPLE):
            return False
        return not any(
            node.id in self.bindings(each) for each in self._scopes(node) if not isinstance(each, ast.Module)
        )

    def grows_only(self, name: str, loop: LoopNode, growth: ast.stmt) -> bool:
        """True if a loop binds ``name`` nowhere but in statements of the same shape as ``growth``."""
        if isinstance(loop, ast.comprehension):
            return False
        for count, node in enumerate(ast.walk(loop)):
            if count > MAX_BODY:
                return False
            if not isinstance(node, ast.Name | ast.Attribute) or isinstance(node.ctx, ast.Load):
                continue
            if dotted(node) == name and not self._is_growth(self.module.parent[node], name, growth):
                return False
        return True

    @staticmethod
    def _is_growth(statement: ast.AST, name: str, growth: ast.stmt) -> bool:
        if statement is growth or isinstance(statement, ast.AugAssign):
            return True
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.BinOp | ast.Subscript):
            return False
        first: ast.expr = statement.value
        while isinstance(first, ast.BinOp):
            first = first.left
        return dotted(first.value if isinstance(first, ast.Subscript) else first) == name


_NAMED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
    ast.MatchMapping,
)
_PURE_PACKAGES = frozenset({"numpy", "math", "re", "json", "time", "statistics", "operator"})
_CHANGING = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "sleep"})
_DISPLAYS: tuple[tuple[tuple[type[ast.AST], ...], str], ...] = (
    ((ast.List, ast.ListComp), LIST),
    ((ast.Tuple,), TUPLE),
    ((ast.Dict, ast.DictComp), DICT),
    ((ast.Set, ast.SetComp), SET),
    ((ast.JoinedStr,), TEXT),
)
_DTYPES = {"float32": SINGLE, "single": SINGLE, "float64": DOUBLE, "double": DOUBLE, "float": DOUBLE}


def is_pure(name: str) -> bool:
    """True if a library's function changes none of its arguments."""
    package, _, rest = name.partition(".")
    return package in _PURE_PACKAGES and rest not in _CHANGING and not rest.startswith("random.")


def _dtype_name(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return (dotted(node) or "").rpartition(".")[2]


def _base(node: ast.AST) -> str:
    """The dotted name below subscripts: ``table`` of ``table[0][1]``; empty for anything else."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) or ("?" if isinstance(node, ast.Call | ast.Constant | ast.JoinedStr) else "")


def _handed_over(argument: ast.expr) -> Iterator[str]:
    """The names of objects that are passed to a function; new objects of an expression are not among them."""
    if isinstance(argument, ast.Starred):
        argument = argument.value
    if isinstance(argument, ast.Name | ast.Attribute | ast.Subscript):
        base = _base(argument)
        if base:
            yield base
    elif isinstance(argument, ast.List | ast.Tuple | ast.Set):
        for each in argument.elts:
            yield from _handed_over(each)


def _inside(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope; of functions and classes inside it only their heads."""
    waiting: list[ast.AST] = [scope.body] if isinstance(scope, ast.Lambda) else list(scope.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*Function.__args__, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def _bind(node: ast.AST, bindings: Bindings) -> None:
    """Add the bindings of a node."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _bind_target(target, node.value, bindings)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        if node.value is not None:
            _bind_target(node.target, node.value, bindings)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        _bind_target(node.target, None, bindings)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        _bind_target(node.optional_vars, None, bindings)
    else:
        for name in _named(node):
            bindings.setdefault(name, []).append(None)


def _named(node: ast.AST) -> list[str]:
    """The names that a node binds to unknown values."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        return node.names
    if not isinstance(node, _NAMED):
        return []
    name: str | None = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
    return [name] if name else []


def _bind_target(target: ast.expr, value: ast.expr | None, bindings: Bindings) -> None:
    if isinstance(target, ast.Name):
        bindings.setdefault(target.id, []).append(value)
        return
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and _in_pairs(target.elts, value.elts):
        for name, each in zip(target.elts, value.elts, strict=True):  # x, y = 1, 2
            _bind_target(name, each, bindings)
        return
    for part in ast.walk(target):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            bindings.setdefault(part.id, []).append(None)


def _in_pairs(targets: list[ast.expr], values: list[ast.expr]) -> bool:
    return len(targets) == len(values) and not any(isinstance(each, ast.Starred) for each in (*targets, *values))
