"""Effects of calls, from the text: which draw something else each time, and what those of the program's own change."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from ...source_code.names import PURE, Names
from ...source_code.source import dotted

MAX_BODY = 20_000
"""Nodes of a loop or a function that are searched for what it changes."""
_DRAWING_MODULES = frozenset({"random", "secrets", "uuid", "time", "datetime", "io", "socket", "select", "subprocess"})
"""Their functions give something else at each call, or do something to the world."""
_DRAWS = frozenset(
    {
        *("random", "standard_normal", "normal", "uniform", "integers", "randint", "rand", "randn", "choice"),
        *("choices", "sample", "shuffle", "permutation", "permuted", "exponential", "poisson", "binomial", "gamma"),
        *("beta", "multinomial", "multivariate_normal", "lognormal", "gauss", "randbytes", "getrandbits", "randrange"),
        *("random_sample", "standard_exponential", "geometric", "triangular", "betavariate", "expovariate", "rvs"),
        *("standard_t", "standard_cauchy", "standard_gamma", "chisquare", "noncentral_chisquare", "noncentral_f"),
        *("dirichlet", "gumbel", "hypergeometric", "multivariate_hypergeometric", "laplace", "logseries", "pareto"),
        *("negative_binomial", "rayleigh", "vonmises", "wald", "weibull", "zipf", "gammavariate", "normalvariate"),
        *("lognormvariate", "paretovariate", "vonmisesvariate", "weibullvariate", "binomialvariate"),
        *("read", "readline", "readlines", "recv", "recvfrom", "receive", "get_nowait", "popleft", "popitem", "pop"),
        *("fetchone", "fetchmany", "fetchall", "now", "urandom", "perf_counter", "process_time", "monotonic"),
    }
)
"""Functions and methods that give something else each time, whatever has them."""
_MADE_OF_ARGUMENTS = frozenset(
    {"Random", "BytesIO", "StringIO", "timedelta", "date", "datetime", "UUID", "strptime", "fromisoformat", "inet_aton"}
)
"""Functions of those modules whose results depend on their arguments alone."""
_GROWING = frozenset({"append", "extend", "add", "insert"})
"""Methods that leave all that was there, and add to it."""
MAKING_LONGER = frozenset(
    {
        *("numpy.append", "numpy.concatenate", "numpy.hstack", "numpy.vstack", "numpy.insert", "numpy.r_"),
        *("numpy.column_stack", "numpy.row_stack", "numpy.dstack", "numpy.union1d", "pandas.concat"),
    }
)
"""Functions that make a new array of an old one and a piece."""
_MUTATORS = frozenset(
    {"setdefault", "push", "write", "pop", "popleft", "popitem", "partial_fit", "step", "backward", "setflags"}
)
"""Methods that change what has them."""
_MUTATORS_WITHOUT_RESULT = frozenset(
    {
        *("append", "extend", "insert", "add", "update", "remove", "discard", "clear", "sort", "reverse", "fill"),
        *("put", "resize", "partition", "itemset", "putpixel", "paste", "appendleft", "shuffle"),
    }
)
"""Those that give nothing back: where a result is used, it is a method of the same name that makes something new, such
as ``Image.resize``, ``str.partition`` and ``DataFrame.add``."""
_DROPPING = (ast.Expr, ast.Await, ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.ListComp, ast.Lambda)
"""What is around a call whose result is not used, or only tested."""
_INTO_FIRST = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "heappush", "heappop"})
"""Functions that change their first argument."""
_NO_WORK = PURE | {"reversed", "map", "filter", "super", "getattr", "hasattr", "next", "callable", "open", "input"}
"""Built-in functions: what they do is no work of a library."""
BUILT = frozenset({"sorted", "list", "tuple", "set", "frozenset", "dict", "bytes", "bytearray", "sum", "min", "max"})
"""Those that go through all of what they get: their results show whether that was for nothing."""


def draws(names: Names, call: ast.Call) -> bool:
    """True if a call gives something else each time, whatever it gets: random numbers, the clock, the next item."""
    function = names.called(call)
    if function in ("next", "input", "open"):
        return True
    if function is not None:
        package, _, rest = function.partition(".")
        if package in _DRAWING_MODULES and rest:
            return rest.rpartition(".")[2] not in _MADE_OF_ARGUMENTS
        of_random = rest.startswith(("random.", "stats.")) and rest.rpartition(".")[2] in _DRAWS
        return of_random or (package == "os" and not rest.startswith("path."))
    # A generator has methods of names that others have as well: logistic, power, f.
    return isinstance(call.func, ast.Attribute) and (call.func.attr in _DRAWS or names.is_random(call))


def is_work(names: Names, node: ast.AST) -> bool:
    """True if an expression may run code of a library: a call, or an operation; built-in functions are left out."""
    if isinstance(node, ast.Call):
        return names.called(node) not in _NO_WORK
    return isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp)


def is_own(names: Names, call: ast.Call) -> bool:
    """True for a function of the program's own file, by its name alone."""
    name = dotted(call.func)
    return name is not None and "." not in name and None in names.binding(name, call)


def parameters_of(scope: ast.FunctionDef | ast.Lambda) -> set[str]:
    """The names of a function's parameters."""
    return {each.arg for each in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)}


def _walk(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    waiting = list(nodes)
    for _ in range(MAX_BODY):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        waiting += ast.iter_child_nodes(node)


def grows(names: Names, call: ast.Call) -> bool:
    """True for a method that adds to what has it."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _GROWING and not _is_used(names, call)


def _is_used(names: Names, call: ast.Call) -> bool:
    """True if the result of a call goes anywhere: that of ``seen.add(x) or ...`` does not."""
    return not isinstance(names.module.parent.get(call), _DROPPING)


def changed_by(functions: OwnFunctions, nodes: Sequence[ast.AST], *, growing: bool = True) -> set[str] | None:
    """The dotted names that statements bind, store into or change by a method; None if there are too many nodes.

    Without ``growing`` a method that adds to something does not count.
    """
    changed: set[str] = set()
    count = 0
    for node in _walk(nodes):
        count += 1
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            changed.add(dotted(node) or "?")
    return None if count >= MAX_BODY else changed | functions.mutated_by(nodes, growing=growing)


def changed_by_element(functions: OwnFunctions, nodes: Sequence[ast.AST], targets: set[str], loop: ast.AST) -> set[str]:
    """The dotted names of what a loop changes in one element or row each time round, and not otherwise."""
    by_element: set[str] = set()
    otherwise: set[str] = set()
    module = functions.names.module
    for node in _walk(nodes):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            parts = [*ast.walk(node.slice)]
            is_slice = any(isinstance(part, ast.Slice | ast.List) for part in parts)
            counted = any(isinstance(part, ast.Name) and part.id in targets for part in parts)
            is_element = counted and not is_slice and module.loops(node)[:1] == [loop]
            (by_element if is_element else otherwise).add(_base(node))
        elif isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            otherwise.add(dotted(node) or "?")
        elif isinstance(node, ast.Call):
            otherwise |= functions.mutated_by_call(node)
    return by_element - otherwise - {"?"}


class OwnFunctions:
    """The functions and methods of a file: what they change of what they are called with."""

    def __init__(self, names: Names, *, trusted: bool = False) -> None:
        self.names = names
        self.trusted = trusted
        self._named: dict[str, list[ast.FunctionDef]] = {}
        self._classes: dict[str, list[ast.ClassDef]] = {}
        for node in names.module.parent:
            if isinstance(node, ast.FunctionDef):
                self._named.setdefault(node.name, []).append(node)
            elif isinstance(node, ast.ClassDef):
                self._classes.setdefault(node.name, []).append(node)
        self._changes: dict[ast.FunctionDef, set[str]] = {}

    def draw(self, call: ast.Call) -> bool:
        """True if a function that is called by its name gives something else each time, as far as the text says."""
        return self._any_draws([call])

    def method_draws(self, call: ast.Call) -> bool:
        """True if the only method of this name in the file gives something else each time."""
        name = call.func.attr if isinstance(call.func, ast.Attribute) and self.names.called(call) is None else ""
        methods = self._named.get(name, [])
        if len(methods) != 1 or self.names.module.class_around(methods[0]) is None:
            return False
        calls = [each for each in _walk([*methods[0].body]) if isinstance(each, ast.Call)]
        return any(draws(self.names, each) for each in calls) or self._any_draws(calls)

    def _any_draws(self, calls: list[ast.Call]) -> bool:
        waiting, met = [*calls], set[str]()
        while waiting:
            name = dotted(waiting.pop().func) or ""
            for function in self._named.get(name, []) if name not in met else []:
                inner = [each for each in _walk([*function.body]) if isinstance(each, ast.Call)]
                if any(draws(self.names, each) for each in inner):
                    return True
                waiting += inner
            met.add(name)
        return False

    def mutated_by(self, nodes: Sequence[ast.AST], *, growing: bool = True) -> set[str]:
        """The dotted names of objects that statements store into; without ``growing`` not of those added to."""
        mutated: set[str] = set()
        for node in _walk(nodes):
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                mutated.add(_base(node))
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name | ast.Attribute):
                mutated.add(_base(node.target))
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                mutated.add(dotted(node) or "?")
            elif isinstance(node, ast.Call) and (growing or not grows(self.names, node)):
                mutated |= self.mutated_by_call(node)
        return mutated - {"?", ""}

    def mutated_by_call(self, node: ast.Call) -> set[str]:
        """The dotted names of what a call changes."""
        names = self.names
        mutated = {_base(keyword.value) for keyword in node.keywords if keyword.arg == "out"}
        method = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
        if (names.called(node) or "").rpartition(".")[2] in _INTO_FIRST and node.args:
            mutated.add(_base(node.args[0]))
        elif names.called(node) is None:
            # The text of a method says more than its name.
            known = self._method_called(node)
            in_place = any(keyword.arg == "inplace" for keyword in node.keywords)
            changes = method in _MUTATORS or (method in _MUTATORS_WITHOUT_RESULT and not _is_used(names, node))
            if isinstance(node.func, ast.Attribute) and (changes or in_place) and known is None:
                mutated.add(_base(node.func.value))
            for own in self._named.get(method or "", []) if known is None else [known]:
                mutated |= self._mutated_by_own(own, node)
        return mutated

    def _method_called(self, node: ast.Call) -> ast.FunctionDef | None:
        """The method that a call runs, if the file has the class of what has it; None if that is not known."""
        if not isinstance(node.func, ast.Attribute):
            return None
        receiver = node.func.value
        if isinstance(receiver, ast.Name) and receiver.id == "self":
            owner = self.names.module.class_around(node)
        else:
            values = self.names.values(receiver) if isinstance(receiver, ast.Name | ast.Attribute) else [receiver]
            made = {dotted(each.func) if isinstance(each, ast.Call) else None for each in values}
            found = self._classes.get(made.pop() or "", []) if len(made) == 1 else []
            owner = found[0] if len(found) == 1 else None
        methods = [
            each
            for each in (owner.body if owner is not None else [])
            if isinstance(each, ast.FunctionDef) and each.name == node.func.attr
        ]
        return methods[0] if len(methods) == 1 else None

    def _mutated_by_own(self, function: ast.FunctionDef, node: ast.Call) -> set[str]:
        """The arguments of a call that the file's own function changes, and the object that has the method."""
        given = given_arguments(function, node) or {}
        mutated: set[str] = set()
        for name in self._changed_by(function):
            parameter, dot, rest = name.partition(".")
            if parameter in given:
                mutated.add(f"{_base(given[parameter])}{dot}{rest}")
        return mutated

    def _changed_by(self, function: ast.FunctionDef) -> set[str]:
        """The parameters, or attributes of theirs, that a function stores into."""
        if function not in self._changes:
            self._changes[function] = set()  # of one that calls itself, until that is known
            parameters = parameters_of(function)
            stands_for = _aliases(function, parameters)
            found: set[str] = set()
            for name in self.mutated_by([*function.body]):
                first, dot, rest = name.partition(".")
                if first in parameters:
                    found.add(name)
                elif first in stands_for:
                    found.add(f"{stands_for[first]}{dot}{rest}")
            self._changes[function] = found
        return self._changes[function]


def _aliases(function: ast.FunctionDef, parameters: set[str]) -> dict[str, str]:
    """Names of a function's own that stand for its parameters, or for parts of them."""
    aliases: dict[str, str] = {}
    for node in _walk([*function.body]):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            for each, value in pairs:
                name = _base(value) if isinstance(value, ast.Name | ast.Attribute | ast.Subscript) else "?"
                if isinstance(each, ast.Name) and name.partition(".")[0] in parameters:
                    aliases[each.id] = name
    return aliases


def _base(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) or "?"


def positional(function: ast.FunctionDef) -> list[str]:
    """The names of those that may be given by position."""
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def given_arguments(function: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments of a call by the function's parameters; None if they are not known."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    parameters = positional(function)
    given: dict[str, ast.expr] = {}
    if parameters[:1] == ["self"] and isinstance(call.func, ast.Attribute):
        given["self"] = call.func.value
        parameters = parameters[1:]
    elif parameters[:1] == ["self"] and function.name == "__call__":
        given["self"] = call.func
        parameters = parameters[1:]
    given |= dict(zip(parameters, call.args, strict=False))
    return given | {each.arg: each.value for each in call.keywords if each.arg is not None}
