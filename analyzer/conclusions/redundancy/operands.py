"""Decides from the text of a file what an expression gets when it runs again: the same operands, or others.

This is the only place that decides it. Measurements have the last word: accesses that meet the same value again show
that the memory was not changed in between. So the text has to tell only whether a name stands for the same object, not
whether a function that gets it may change it.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from ...source_code.names import PURE, Names
from ...source_code.source import LoopNode, Scope, body_of, dotted

MAX_DEPTH = 40
"""Expressions within expressions, and names that stand for them."""
MAX_BODY = 20_000
"""Nodes of a loop or a function that are searched for what it changes."""


class Operands(Enum):
    """The operands of an expression, from one run to the next."""

    SAME = "the same"
    OVERLAPPING = "a slice of the same array, of which only the bounds move"
    OTHER = "others"
    UNKNOWN = "unknown"


_DRAWING_MODULES = frozenset({"random", "secrets", "uuid", "time", "datetime", "io", "socket", "select", "subprocess"})
"""Their functions give something else at each call, or do something to the world."""
_DRAWS = frozenset(
    {
        *("random", "standard_normal", "normal", "uniform", "integers", "randint", "rand", "randn", "choice"),
        *("choices", "sample", "shuffle", "permutation", "permuted", "exponential", "poisson", "binomial", "gamma"),
        *("beta", "multinomial", "multivariate_normal", "lognormal", "gauss", "randbytes", "getrandbits", "randrange"),
        *("random_sample", "standard_exponential", "geometric", "triangular", "betavariate", "expovariate", "rvs"),
        *("read", "readline", "readlines", "recv", "recvfrom", "receive", "get_nowait", "popleft", "popitem", "pop"),
        *("fetchone", "fetchmany", "fetchall", "now", "urandom", "perf_counter", "process_time", "monotonic"),
    }
)
"""Functions and methods that give something else each time, whatever has them."""
_MUTATORS = frozenset(
    {
        *("append", "extend", "insert", "add", "update", "remove", "discard", "clear", "sort", "reverse", "fill"),
        *("put", "resize", "setflags", "partition", "itemset", "setdefault", "push", "write", "putpixel", "paste"),
        *("pop", "popleft", "popitem", "appendleft", "shuffle", "partial_fit", "step", "backward"),
    }
)
"""Methods that change what has them."""
_INTO_FIRST = frozenset({"copyto", "put", "place", "putmask", "fill_diagonal", "put_along_axis", "heappush", "heappop"})
"""Functions that change their first argument."""
_OF_SHAPE = frozenset({"shape", "size", "ndim", "dtype", "itemsize"})
"""Attributes of arrays that most often are the same for other arrays: as is their length."""
_NO_WORK = PURE | {"reversed", "map", "filter", "super", "getattr", "hasattr", "next", "callable", "open", "input"}
"""Built-in functions: what they do is no work of a library."""


def draws(names: Names, call: ast.Call) -> bool:
    """True if a call gives something else each time, whatever it gets: random numbers, the clock, the next item."""
    function = names.called(call)
    if function in ("next", "input", "open"):
        return True
    if function is not None:
        package, _, rest = function.partition(".")
        if package in _DRAWING_MODULES and rest:
            return rest != "Random"
        of_random = rest.startswith(("random.", "stats.")) and rest.rpartition(".")[2] in _DRAWS
        return of_random or package == "os"
    return isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWS


def is_work(names: Names, node: ast.AST) -> bool:
    """True if an expression may run code of a library: a call, or an operation; built-in functions are left out."""
    if isinstance(node, ast.Call):
        return names.called(node) not in _NO_WORK
    return isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp)


@dataclass(frozen=True)
class Repetition:
    """What an expression gets, and where it is run again and again."""

    operands: Operands
    call: ast.Call | None = None
    """The call in a loop that runs the expression's function; None if it is in a loop itself, or that is not known."""
    line: int = 0


class Runs:
    """Decides what the expressions of a file get: in each round of a loop, or in each call of a function.

    ``callers`` are the lines of the same file that called the function, from the function's own out.
    """

    def __init__(self, names: Names, callers: Sequence[int] = ()) -> None:
        self._names = names
        self._callers = callers
        self._rounds: dict[LoopNode, _Rounds] = {}

    def operands(self, node: ast.expr) -> Operands:
        """Those of an expression: in each round of its innermost loop, or in each call of its function."""
        return self.of(node).operands

    def of_arguments(self, call: ast.Call, loop: LoopNode) -> Operands:
        """Those of a call's arguments alone, in a loop, whatever the function does with them."""
        return self._in(loop).together([*call.args, *(keyword.value for keyword in call.keywords)])

    def _in(self, loop: LoopNode) -> _Rounds:
        if loop not in self._rounds:
            self._rounds[loop] = _Rounds(self._names, loop)
        return self._rounds[loop]

    def of(self, node: ast.expr) -> Repetition:
        """The same, with the place from which it is run again and again."""
        loops = self._names.module.loops(node)
        if loops:
            return Repetition(self._in(loops[0]).of(node))
        scope = self._names.module.scope(node)
        return self._of_function(node, scope) if isinstance(scope, ast.FunctionDef) else Repetition(Operands.UNKNOWN)

    def _of_function(self, node: ast.expr, scope: ast.FunctionDef) -> Repetition:
        """Of an expression outside of loops: what its function is called with is followed up the callers to a loop."""
        needed: list[ast.expr] = [node]
        so_far = Operands.SAME
        for line in self._callers:
            call = _call_of(self._names, scope, line)
            if call is None:
                break
            body = _Body(self._names, scope)
            so_far = _worst([so_far, body.together(needed)])
            passed = _passed(scope, call, body.parameters_met)
            if so_far is Operands.OTHER or passed is None:
                return Repetition(_worst([so_far, Operands.UNKNOWN]))
            loops = self._names.module.loops(call)
            if loops:
                return Repetition(_worst([so_far, self._in(loops[0]).together(passed)]), call, line)
            around = self._names.module.scope(call)
            if not isinstance(around, ast.FunctionDef):
                return Repetition(Operands.UNKNOWN)
            scope, needed = around, passed
        # It is not known who calls the function: what is made of no arguments is the same all the same.
        body = _Body(self._names, scope)
        found = _worst([so_far, body.together(needed)])
        return Repetition(Operands.UNKNOWN if found is Operands.SAME and body.parameters_met else found)


def _worst(values: Iterable[Operands]) -> Operands:
    """Of several parts of one expression."""
    found = set(values)
    for each in (Operands.OTHER, Operands.UNKNOWN, Operands.OVERLAPPING):
        if each in found:
            return each
    return Operands.SAME


class _Where(ABC):
    """Operands of expressions somewhere: what names stand for is decided by ``of_name``."""

    def __init__(self, names: Names, changed: set[str] | None) -> None:
        self.names = names
        self.changed = changed
        self._open: set[str] = set()
        self._depth = 0
        self._found: dict[ast.AST, Operands] = {}

    def of(self, node: ast.AST) -> Operands:
        """Those of an expression."""
        if node in self._found:
            return self._found[node]
        if self.changed is None or self._depth >= MAX_DEPTH:
            return Operands.UNKNOWN
        self._depth += 1
        found = self._of(node)
        self._depth -= 1
        if not self._open:  # else a name that is made of itself is being looked at
            self._found[node] = found
        return found

    def together(self, nodes: Iterable[ast.AST]) -> Operands:
        """Those of several expressions."""
        return _worst(self.of(each) for each in nodes)

    @abstractmethod
    def of_name(self, node: ast.Name) -> Operands:
        """Those of a name alone."""

    def _of(self, node: ast.AST) -> Operands:
        if isinstance(node, ast.Constant):
            return Operands.SAME
        if isinstance(node, ast.Name | ast.Attribute):
            return self._of_dotted(node)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.Subscript):
            return self._of_subscript(node)
        if isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return Operands.OTHER
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return self._of_inner(node)
        if isinstance(node, ast.BinOp):
            return self.together(_terms(node))
        return self.together(each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))

    def _of_dotted(self, node: ast.Name | ast.Attribute) -> Operands:
        if isinstance(node, ast.Attribute) and node.attr in _OF_SHAPE:
            return Operands.SAME
        name = dotted(node)
        if name is None:
            return self.of(node.value) if isinstance(node, ast.Attribute) else Operands.UNKNOWN
        assert self.changed is not None
        if any(name == each or each.startswith(f"{name}.") or name.startswith(f"{each}.") for each in self.changed):
            return self._of_changed(node) if isinstance(node, ast.Name) else Operands.OTHER
        first: ast.expr = node
        while isinstance(first, ast.Attribute):
            first = first.value
        return self.of_name(first) if isinstance(first, ast.Name) else Operands.UNKNOWN

    def _of_changed(self, node: ast.Name) -> Operands:
        """Of a name that is bound here: of the only value that it has, if that is made anew each time."""
        values = self.names.binding(node.id, node)
        if node.id in self._open or len(values) != 1 or values[0] is None or not self.bound_alone(node.id):
            return Operands.OTHER
        self._open.add(node.id)
        found = self.of(values[0])
        self._open.discard(node.id)
        return found

    @abstractmethod
    def bound_alone(self, name: str) -> bool:
        """True if nothing but plain assignments changes a name here."""

    def _of_call(self, node: ast.Call) -> Operands:
        if draws(self.names, node):
            return Operands.OTHER
        if self.names.called(node) == "len":
            return Operands.SAME
        parts: list[ast.AST] = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute) and self.names.called(node) is None:
            parts.append(node.func.value)
        found = self.together(parts)
        if found is Operands.SAME and _is_own(self.names, node):
            return Operands.UNKNOWN  # what the program's own function does is not looked into
        return found

    def _of_subscript(self, node: ast.Subscript) -> Operands:
        base = self.of(node.value)
        if base is not Operands.SAME:
            return base
        index = self.of(node.slice)
        return Operands.OVERLAPPING if index is Operands.OTHER and self.overlaps(node.slice) else index

    @abstractmethod
    def overlaps(self, index: ast.expr) -> bool:
        """True if a slice has elements in common with the one of the time before."""

    def _of_inner(self, node: ast.AST) -> Operands:
        """Of a comprehension or a function: its own names are made anew each time, of what it gets from here."""
        own = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        if isinstance(node, ast.Lambda):
            own |= {each.arg for each in node.args.args}
        if any(isinstance(each, ast.Call) and draws(self.names, each) for each in ast.walk(node)):
            return Operands.OTHER
        return self.together(
            each
            for each in ast.walk(node)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in own
        )


class _Rounds(_Where):
    """Operands in each round of a loop."""

    def __init__(self, names: Names, loop: LoopNode) -> None:
        nodes = body_of(loop, names.module)
        changed = _changed(names, nodes)
        self._targets = set[str]()
        if isinstance(loop, ast.For | ast.AsyncFor | ast.comprehension):
            self._targets = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        super().__init__(names, None if changed is None else changed | self._targets)
        self._mutated = _mutated(names, nodes)
        self._loop = loop

    def of_name(self, node: ast.Name) -> Operands:
        return Operands.SAME

    def bound_alone(self, name: str) -> bool:
        return name not in self._targets and name not in self._mutated

    def overlaps(self, index: ast.expr) -> bool:
        if not isinstance(index, ast.Slice) or index.step is not None:
            return isinstance(index, ast.Tuple) and any(
                self.overlaps(each) for each in index.elts if isinstance(each, ast.Slice)
            )
        moving = [each for each in (index.lower, index.upper) if each is not None and self.of(each) is Operands.OTHER]
        return len(moving) == 1 or not self._in_strides()

    def _in_strides(self) -> bool:
        """True unless the loop counts one by one: slices of steps of their length have nothing in common."""
        loop = self._loop
        if isinstance(loop, ast.While):
            return True
        function = self.names.called(loop.iter)
        if function == "enumerate":
            return False
        return function != "range" or not isinstance(loop.iter, ast.Call) or len(loop.iter.args) > 2


class _Body(_Where):
    """Operands in each call of a function, as far as its arguments do not matter: those are noted."""

    def __init__(self, names: Names, scope: ast.FunctionDef) -> None:
        changed = _changed(names, [*scope.body])
        self._own = names.bindings(scope)
        self._parameters = _parameters(scope)
        # A name of the function's own is made anew in each call: by what it is bound to.
        self._mutated = _mutated(names, [*scope.body])
        if changed is not None:
            own = {name for name in changed if name.partition(".")[0] in self._own} - self._declared(scope)
            changed = (changed - own) | {
                name for name in self._mutated if name.partition(".")[0] in self._parameters or name not in self._own
            }
        super().__init__(names, changed)
        self.parameters_met: set[str] = set()

    @staticmethod
    def _declared(scope: ast.FunctionDef) -> set[str]:
        return {name for node in ast.walk(scope) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}

    def of_name(self, node: ast.Name) -> Operands:
        if node.id in self._parameters and self._own.get(node.id) == [None]:
            self.parameters_met.add(node.id)
            return Operands.SAME
        if node.id in self._own:
            values = self._own[node.id]
            if node.id in self._open:
                return Operands.OTHER
            if len(values) != 1 or values[0] is None:
                return Operands.UNKNOWN
            self._open.add(node.id)
            found = self.of(values[0])
            self._open.discard(node.id)
            return found
        return _of_global(self.names, node)

    def bound_alone(self, name: str) -> bool:
        return False

    def overlaps(self, index: ast.expr) -> bool:
        return False


def _terms(node: ast.BinOp) -> list[ast.expr]:
    """The operands of an operation, and of those that it is made of: sums may be of thousands of terms."""
    waiting: list[ast.expr] = [node]
    terms: list[ast.expr] = []
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.BinOp):
            waiting += [each.left, each.right]
        else:
            terms.append(each)
    return terms


def _of_global(names: Names, node: ast.Name) -> Operands:
    """Of a name that a function does not bind itself."""
    if node.id in names.modules:
        return Operands.SAME
    values = names.binding(node.id, node)
    if not values:
        return Operands.SAME if hasattr(builtins, node.id) else Operands.UNKNOWN
    bound = [each for each in names.module.parent if isinstance(each, ast.Name) and each.id == node.id]
    stores = [each for each in bound if isinstance(each.ctx, ast.Store) and _is_global(names, each)]
    if any(names.module.loops(each) for each in stores):
        return Operands.OTHER
    return Operands.SAME if len(stores) == 1 else Operands.UNKNOWN


def _is_global(names: Names, node: ast.Name) -> bool:
    scope: Scope = names.module.scope(node)
    return isinstance(scope, ast.Module) or any(
        node.id in each.names for each in ast.walk(scope) if isinstance(each, ast.Global | ast.Nonlocal)
    )


def _is_own(names: Names, call: ast.Call) -> bool:
    """True for a function of the program's own file, by its name alone."""
    name = dotted(call.func)
    return name is not None and "." not in name and None in names.binding(name, call)


def _parameters(scope: ast.FunctionDef) -> set[str]:
    return {each.arg for each in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)}


def _walk(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    waiting = list(nodes)
    for _ in range(MAX_BODY):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        waiting += ast.iter_child_nodes(node)


def _changed(names: Names, nodes: Sequence[ast.AST]) -> set[str] | None:
    """The dotted names that statements bind, store into or change by a method; None if there are too many nodes."""
    changed: set[str] = set()
    count = 0
    for node in _walk(nodes):
        count += 1
        if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            changed.add(dotted(node) or "?")
    return None if count >= MAX_BODY else changed | _mutated(names, nodes)


def _mutated(names: Names, nodes: Sequence[ast.AST]) -> set[str]:
    """The dotted names of objects that statements store into."""
    mutated: set[str] = set()
    for node in _walk(nodes):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            mutated.add(_base(node))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name | ast.Attribute):
            mutated.add(_base(node.target))
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            mutated.add(dotted(node) or "?")
        elif isinstance(node, ast.Call):
            mutated |= {_base(keyword.value) for keyword in node.keywords if keyword.arg == "out"}
            method = node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)
            if (names.called(node) or "").rpartition(".")[2] in _INTO_FIRST and node.args:
                mutated.add(_base(node.args[0]))
            elif isinstance(node.func, ast.Attribute) and names.called(node) is None:
                in_place = any(keyword.arg == "inplace" for keyword in node.keywords)
                if method in _MUTATORS or in_place:
                    mutated.add(_base(node.func.value))
    return mutated - {"?", ""}


def _base(node: ast.AST) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node) or "?"


def _call_of(names: Names, function: ast.FunctionDef, line: int) -> ast.Call | None:
    """The only call of a function, or method, of this name on a line."""
    calls = [
        node
        for node in names.module.expressions(line)
        if isinstance(node, ast.Call)
        and function.name
        == (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else None
        )
    ]
    return calls[0] if len(calls) == 1 else None


def _passed(function: ast.FunctionDef, call: ast.Call, needed: set[str]) -> list[ast.expr] | None:
    """Arguments that a call passes for these parameters; None if unknown. Parameters left out are constants."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    given: dict[str, ast.expr] = {}
    if parameters[:1] == ["self"] and isinstance(call.func, ast.Attribute):
        given["self"] = call.func.value
        parameters = parameters[1:]
    given |= dict(zip(parameters, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg is not None}
    return [given[name] for name in sorted(needed) if name in given]
