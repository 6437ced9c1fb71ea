"""Decides from the text of a file what an expression gets when it runs again: the same operands, or others.

This is the only place that decides it. Measurements have the last word: accesses that meet the same value again show
that the memory was not changed in between. So the text has to tell only whether a name stands for the same object, not
whether a function that gets it may change it.
"""

from __future__ import annotations

import ast
import builtins
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from ...source_code.names import Names
from ...source_code.source import LoopNode, Scope, body_of, dotted, names_in, spelled
from .additions import appended_by_calls, filled_by_calls, grown_by_calls
from .effects import (
    OwnFunctions,
    changed_by,
    changed_by_element,
    draws,
    given_arguments,
    grows,
    is_own,
    parameters_of,
    positional,
)

MAX_DEPTH = 40
"""Expressions within expressions, and names that stand for them."""


class Operands(Enum):
    """The operands of an expression, from one run to the next."""

    SAME = "the same"
    OVERLAPPING = "a slice of the same array, of which only the bounds move, or all of what only grows"
    OTHER = "others"
    UNKNOWN = "unknown"


_OF_SHAPE = frozenset({"shape", "size", "ndim", "dtype", "itemsize"})
"""Attributes of arrays that most often are the same for other arrays: as is their length."""


@dataclass(frozen=True)
class Repetition:
    """What an expression gets, and where it is run again and again."""

    operands: Operands
    call: ast.expr | None = None
    """What runs the expression's function in a loop; None if it is in a loop itself, or that is not known."""
    line: int = 0
    movable: bool = False
    """True if that call as a whole gets the same each time, and is there for its result alone."""


Caller = tuple[Names, int]
"""A line that called a function, with the names of its file."""


class Runs:
    """Decides what the expressions of a file get: in each round of a loop, or in each call of a function.

    ``callers`` are the lines that called the function, from the function's own out. ``trusting``: the program's own
    functions give the same for the same, as measurements show.
    """

    def __init__(self, names: Names, callers: Sequence[Caller] = (), *, trusting: bool = False) -> None:
        self._names = names
        self._trusting = trusting
        self._callers = callers
        self._rounds: dict[LoopNode, _Rounds] = {}
        self._own: dict[int, OwnFunctions] = {}

    def operands(self, node: ast.expr) -> Operands:
        """Those of an expression: in each round of its innermost loop, or in each call of its function."""
        return self.of(node).operands

    def of_arguments(self, call: ast.Call, loop: LoopNode) -> Operands:
        """Those of a call's arguments alone, in a loop, whatever the function does with them."""
        return self._in(self._names, loop).together([*call.args, *(keyword.value for keyword in call.keywords)])

    def grown(self, loop: LoopNode) -> set[str]:
        """The dotted names of what a loop adds to, and does not change otherwise."""
        return self._in(self._names, loop).grown

    def grown_by_calls(self, node: ast.expr) -> set[str]:
        """The texts of what each call of the function around adds to, as far as the program's text says."""
        scope = self._names.module.scope(node)
        if not isinstance(scope, ast.FunctionDef):
            return set()
        body = _Body(self._names, self._functions(self._names), scope)
        return body.grown | body.filled

    def appended_by_calls(self, node: ast.expr) -> set[str]:
        """Those of them that it adds to in their place, by a method of theirs."""
        scope = self._names.module.scope(node)
        return appended_by_calls(self._functions(self._names), scope) if isinstance(scope, ast.FunctionDef) else set()

    def changed_by_element(self, loop: LoopNode) -> set[str]:
        """The dotted names of what a loop changes in one element each time round, and not otherwise."""
        return self._in(self._names, loop).by_element()

    def _functions(self, names: Names) -> OwnFunctions:
        return self._own.setdefault(id(names), OwnFunctions(names, trusted=self._trusting))

    def _in(self, names: Names, loop: LoopNode) -> _Rounds:
        if loop not in self._rounds:
            self._rounds[loop] = _Rounds(names, self._functions(names), loop)
        return self._rounds[loop]

    def of(self, node: ast.expr) -> Repetition:
        """The same, with the place from which it is run again and again."""
        loops = self._names.module.loops(node)
        if loops:
            return Repetition(self._in(self._names, loops[0]).of(node))
        scope = self._names.module.scope(node)
        return self._of_function(node, scope) if isinstance(scope, ast.FunctionDef) else Repetition(Operands.UNKNOWN)

    def _of_function(self, node: ast.expr, scope: ast.FunctionDef) -> Repetition:
        """Of an expression outside of loops: what its function is called with is followed up the callers to a loop."""
        needed: list[ast.expr] = [node]
        so_far = Operands.SAME
        names = self._names
        for caller, line in self._callers:
            call = call_of(caller, scope, line)
            if call is None:
                break
            body = _Body(names, self._functions(names), scope)
            so_far = _worst([so_far, body.together(needed)])
            if call.by_element and any(name not in (call.given or {}) for name, _ in body.parameters_met):
                return Repetition(Operands.OTHER)
            passed = call.passed(body.parameters_met)
            if so_far is Operands.OTHER or passed is None:
                return Repetition(_worst([so_far, Operands.UNKNOWN]))
            if call.by_element:
                return Repetition(so_far, call.node, line)
            loops = caller.module.loops(call.node)
            if loops:
                rounds = self._in(caller, loops[0])
                operands = _worst([so_far, rounds.together(passed)])
                movable = rounds.together(call.parts) is Operands.SAME and call.is_for_its_result(caller)
                return Repetition(operands, call.node, line, movable)
            around = caller.module.scope(call.node)
            if isinstance(around, ast.Lambda) and isinstance(caller.module.parent.get(around), ast.Call | ast.keyword):
                return Repetition(_worst([so_far, _in_lambda(caller, around, passed)]), call.node, line)
            if not isinstance(around, ast.FunctionDef):
                return Repetition(Operands.UNKNOWN)
            names, scope, needed = caller, around, passed
        # It is not known who calls the function: what is made of no arguments is the same all the same.
        body = _Body(names, self._functions(names), scope)
        operands = _worst([so_far, body.together(needed)])
        return Repetition(Operands.UNKNOWN if operands is Operands.SAME and body.parameters_met else operands)


def _worst(values: Iterable[Operands]) -> Operands:
    """Of several parts of one expression."""
    found = set(values)
    for each in (Operands.OTHER, Operands.UNKNOWN, Operands.OVERLAPPING):
        if each in found:
            return each
    return Operands.SAME


class _Where(ABC):
    """Operands of expressions somewhere: what names stand for is decided by ``of_name``."""

    def __init__(self, names: Names, functions: OwnFunctions, changed: set[str] | None) -> None:
        """``changed`` are dotted names; None: too many to know."""
        self.names = names
        self.functions = functions
        self.changed = changed
        self.grown: set[str] = set()
        """Those of them that only grow."""
        self.filled: set[str] = set()
        """The texts of slices up to where an array is filled, place after place: ``self.rows[: self.count]``."""
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
        operands = self._of(node)
        self._depth -= 1
        if not self._open:  # else a name that is made of itself is being looked at
            self._found[node] = operands
        return operands

    def together(self, nodes: Iterable[ast.AST]) -> Operands:
        """Those of several expressions."""
        return _worst(self.of(each) for each in nodes)

    @abstractmethod
    def of_name(self, node: ast.Name, attribute: str | None) -> Operands:
        """Those of a name alone, or of an attribute of what it stands for."""

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
            terms = _terms(node)
            return Operands.OTHER if any(dotted(each) in self.grown for each in terms) else self.together(terms)
        return self.together(each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))

    def _of_dotted(self, node: ast.Name | ast.Attribute) -> Operands:
        if isinstance(node, ast.Attribute) and node.attr in _OF_SHAPE:
            return Operands.SAME
        name = dotted(node)
        if name is None:
            return self.of(node.value) if isinstance(node, ast.Attribute) else Operands.UNKNOWN
        assert self.changed is not None
        if name in self.grown:
            return Operands.OVERLAPPING
        if any(name == each or each.startswith(f"{name}.") or name.startswith(f"{each}.") for each in self.changed):
            return self._of_changed(node) if isinstance(node, ast.Name) else Operands.OTHER
        first: ast.expr = node
        attribute: str | None = None
        while isinstance(first, ast.Attribute):
            attribute = first.attr
            first = first.value
        return self.of_name(first, attribute) if isinstance(first, ast.Name) else Operands.UNKNOWN

    def _of_changed(self, node: ast.Name) -> Operands:
        """Of a name that is bound here: of the only value that it has, if that is made anew each time."""
        values = self.names.binding(node.id, node)
        if node.id in self._open or len(values) != 1 or values[0] is None or not self.bound_alone(node.id):
            return Operands.OTHER
        self._open.add(node.id)
        operands = self.of(values[0])
        self._open.discard(node.id)
        return operands

    @abstractmethod
    def bound_alone(self, name: str) -> bool:
        """True if nothing but plain assignments changes a name here."""

    def _of_call(self, node: ast.Call) -> Operands:
        if draws(self.names, node) or self._is_growth(node):
            return Operands.OTHER
        if self.names.called(node) == "len":
            return Operands.OTHER if any(dotted(each) in self.grown for each in node.args) else Operands.SAME
        parts: list[ast.AST] = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute) and self.names.called(node) is None:
            parts.append(node.func.value)
        operands = self.together(parts)
        if operands is Operands.SAME and self.functions.method_draws(node):
            return Operands.OTHER
        if operands is Operands.SAME and is_own(self.names, node):
            if self.functions.draw(node):
                return Operands.OTHER
            # What else the program's own function does is not looked into.
            return operands if self.functions.trusted else Operands.UNKNOWN
        return operands

    def _is_growth(self, node: ast.Call) -> bool:
        return (
            isinstance(node.func, ast.Attribute) and dotted(node.func.value) in self.grown and grows(self.names, node)
        )

    def _of_subscript(self, node: ast.Subscript) -> Operands:
        if self.filled and spelled(node) in self.filled:
            return Operands.OVERLAPPING
        if dotted(node.value) in self.grown and not _is_from_start(node.slice):
            return Operands.OTHER  # the last ones most often
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

    def __init__(self, names: Names, functions: OwnFunctions, loop: LoopNode) -> None:
        nodes = body_of(loop, names.module)
        self._nodes = nodes
        changed = changed_by(functions, nodes)
        self._targets = set[str]()
        if isinstance(loop, ast.For | ast.AsyncFor | ast.comprehension):
            self._targets = names_in(loop.target)
        super().__init__(names, functions, None if changed is None else changed | self._targets)
        self._mutated = functions.mutated_by(nodes)
        if changed is not None:
            self.grown = changed - (changed_by(functions, nodes, growing=False) or set()) - self._targets
        self._loop = loop

    def by_element(self) -> set[str]:
        """The dotted names of what is changed in one element each time round, and not otherwise."""
        if self.changed is None:
            return set()
        return changed_by_element(self.functions, self._nodes, self._targets, self._loop)

    def of_name(self, node: ast.Name, attribute: str | None) -> Operands:
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

    def __init__(self, names: Names, functions: OwnFunctions, scope: ast.FunctionDef) -> None:
        changed = changed_by(functions, [*scope.body])
        self._own = names.bindings(scope)
        self._parameters = parameters_of(scope)
        # A name of the function's own is made anew in each call: by what it is bound to.
        self._mutated = functions.mutated_by([*scope.body])
        if changed is not None:
            own = {name for name in changed if name.partition(".")[0] in self._own} - self._declared(scope)
            changed = (changed - own) | {
                name for name in self._mutated if name.partition(".")[0] in self._parameters or name not in self._own
            }
        super().__init__(names, functions, changed)
        self.parameters_met: set[tuple[str, str | None]] = set()
        """With the attribute of theirs that is used; None: all of them."""
        self.grown = grown_by_calls(functions, scope)
        self.filled = filled_by_calls(functions, scope)

    @staticmethod
    def _declared(scope: ast.FunctionDef) -> set[str]:
        return {name for node in ast.walk(scope) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}

    def of_name(self, node: ast.Name, attribute: str | None) -> Operands:
        if node.id in self._parameters and self._own.get(node.id) == [None]:
            self.parameters_met.add((node.id, attribute))
            return Operands.SAME
        if node.id in self._own:
            values = self._own[node.id]
            if node.id in self._open:
                return Operands.OTHER
            if len(values) != 1 or values[0] is None:
                return Operands.UNKNOWN
            self._open.add(node.id)
            operands = self.of(values[0])
            self._open.discard(node.id)
            return operands
        return _of_global(self.names, node)

    def bound_alone(self, name: str) -> bool:
        return False

    def overlaps(self, index: ast.expr) -> bool:
        return False


def _in_lambda(names: Names, function: ast.Lambda, nodes: Sequence[ast.expr]) -> Operands:
    """Those of expressions in a function that another one calls again and again, as ``key=lambda x: ...``."""
    own = parameters_of(function)
    parts = [part for node in nodes for part in ast.walk(node)]
    changes = any(isinstance(each, ast.Name) and each.id in own for each in parts)
    drawn = any(isinstance(each, ast.Call) and (draws(names, each) or is_own(names, each)) for each in parts)
    return Operands.OTHER if changes or drawn else Operands.SAME


def _is_from_start(index: ast.expr) -> bool:
    """True for a slice, but one of the last few elements."""
    return isinstance(index, ast.Slice) and not isinstance(index.lower, ast.UnaryOp)


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


@dataclass(frozen=True)
class OwnCall:
    """A place that calls a function of the program's own."""

    node: ast.expr
    given: dict[str, ast.expr] | None
    """The arguments, by the names of the parameters that get them; None if that is not known."""
    by_element: bool = False
    """True if the function is called with one element after another, as by ``map``."""
    of_name: bool = False
    """True if a name stands for the function, which may be another one each time."""

    @property
    def parts(self) -> list[ast.expr]:
        """All that the call is made of."""
        function = [self.node.func] if self.of_name and isinstance(self.node, ast.Call) else []
        return [*function, *(self.given or {}).values()]

    def passed(self, needed: set[tuple[str, str | None]]) -> list[ast.expr] | None:
        """Arguments that it passes for these parameters; None if unknown. Parameters left out are constants."""
        if self.given is None:
            return None
        operands: list[ast.expr] = []
        for name, attribute in sorted(needed, key=str):
            value = self.given.get(name)
            if value is not None:
                if attribute is not None and dotted(value) is not None:
                    value = ast.Attribute(value, attribute, ast.Load())
                operands.append(value)
        return operands

    def is_for_its_result(self, names: Names) -> bool:
        """True unless the call is a statement of its own: that is there for what it does."""
        return self.given is not None and not isinstance(names.module.parent.get(self.node), ast.Expr)


_APPLYING = frozenset({"map", "filter", "apply", "transform", "applymap", "starmap", "filterfalse", "agg", "aggregate"})
"""Functions and methods that call what they get for one element after another."""


def call_of(names: Names, function: ast.FunctionDef, line: int) -> OwnCall | None:
    """The only place on a line that calls a function, method or property of this name."""
    calls: list[OwnCall] = []
    is_property = any(dotted(each) == "property" for each in function.decorator_list)
    for node in names.module.expressions(line):
        if is_property:
            if isinstance(node, ast.Attribute) and node.attr == function.name:
                calls.append(OwnCall(node, dict(zip(positional(function), [node.value], strict=False))))
        elif isinstance(node, ast.Call):
            if _name_of(node.func) == function.name or (function.name == "__call__" and _may_be_called(names, node)):
                calls.append(OwnCall(node, given_arguments(function, node)))
            elif _name_of(node.func) in _APPLYING and any(_name_of(each) == function.name for each in node.args):
                reference = next(each for each in node.args if _name_of(each) == function.name)
                receiver = [reference.value] if isinstance(reference, ast.Attribute) else []
                calls.append(OwnCall(node, dict(zip(positional(function), receiver, strict=False)), by_element=True))
    if not calls:
        calls = [OwnCall(each, given_arguments(function, each), of_name=True) for each in _of_names(names, line)]
    return calls[0] if len(calls) == 1 else None


def _of_names(names: Names, line: int) -> list[ast.Call]:
    """The calls on a line of names that stand for functions, but for one alone: ``measure(frame)`` in a loop over them.

    That it is this function, the stack has shown.
    """
    calls = [each for each in names.module.expressions(line) if isinstance(each, ast.Call)]
    return [
        each
        for each in calls
        if isinstance(each.func, ast.Name)
        and names.called(each) is None
        and names.binding(each.func.id, each) == [None]
        if all(
            made.name != each.func.id
            for made in names.module.parent
            if isinstance(made, ast.FunctionDef | ast.ClassDef)
        )
    ]


def _may_be_called(names: Names, node: ast.Call) -> bool:
    """True for a call of a name that is no function's: an object's, with ``__call__``."""
    if not isinstance(node.func, ast.Name) or names.called(node) is not None:
        return False
    values = names.binding(node.func.id, node)
    made = [each for each in names.module.parent if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    return bool(values) and all(each.name != node.func.id for each in made)


def _name_of(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
