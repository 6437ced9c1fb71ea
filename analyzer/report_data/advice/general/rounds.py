"""The loops that run a line, by its recorded callers, and what stays the same in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ....source_code.names import Names
from ....source_code.source import Function, LoopNode, Scope, dotted, names_in
from ..facts import CallerFrame
from ..program import Program
from ..rules.repeated import bound_in, handles
from ..rules.scans import changed
from .verbs import last, stateful

SAME, UNKNOWN, VARIES = 0, 1, 2
"""What an expression is in the rounds of a loop: the worst of its parts counts."""

MAX_DEPTH = 8
MAX_LEVELS = 8
FEW = 3
"""A loop over so many things, written out, is none that matters."""

_MAPPING = frozenset(
    {
        *("map", "imap", "imap_unordered", "starmap", "filter", "reduce", "sorted", "sort", "sub", "apply", "agg"),
        *("aggregate", "transform", "applymap", "map_elements", "map_rows", "apply_along_axis", "delayed"),
        *("max", "min"),
    }
)
"""Functions that call what is handed over to them for each of many things."""

_PARTS = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


@dataclass(frozen=True)
class Level:
    """A function of the program in a chain of calls, and the node in it that led to the next inner one."""

    names: Names
    scope: Scope
    node: ast.AST
    call: ast.Call | None
    """The call of the next inner function; None if it is not certain, or the function was handed over."""
    line: int
    file: int
    handed: bool = False


@dataclass(frozen=True)
class Round:
    """A loop around a chain of calls, and the number of its level in the chain."""

    loop: LoopNode | None
    """None of a function that a library calls again and again."""
    level: int
    name: str = ""
    """The name of that function."""
    by: str = ""
    """The function that it is handed over to, ``map``; empty of a function that answers requests."""

    @property
    def line(self) -> int:
        """The first line of the loop."""
        if self.loop is None:
            return 0
        return self.loop.target.lineno if isinstance(self.loop, ast.comprehension) else self.loop.lineno

    @property
    def each(self) -> str:
        """The rounds, as a text: ``in each round of the loop of line 3``."""
        if self.loop is not None:
            return f"in each round of the loop of line {self.line}"
        return f"for each item that {self.by}() goes through" if self.by else f"at each call of “{self.name}”"

    @property
    def before(self) -> str:
        """The place at which once is enough, as a text."""
        if self.loop is not None:
            return f"once, before the loop of line {self.line}"
        return f"once, before {self.by}() begins" if self.by else "once, at the level of the module"


def levels(program: Program, chain: list[CallerFrame], hot: ast.AST) -> list[Level]:
    """The functions of the program above a line, the innermost first, as far as their source is known."""
    found: list[Level] = []
    skipping: Scope | None = None
    for number, frame in enumerate(chain):
        names = program.names(frame.file)
        statements = [] if names is None else names.module.statements.get(frame.line, [])
        if names is None or not statements or len(found) >= MAX_LEVELS:
            break
        scope = names.module.scope(hot if not found else statements[-1])
        if skipping is not None and scope is skipping:
            # A comprehension was a function of its own until Python 3.12: its caller is the same function.
            skipping = scope if frame.name in _PARTS else None
            continue
        skipping = scope if frame.name in _PARTS else None
        if not found:
            found.append(Level(names, scope, hot, None, frame.line, frame.file))
            continue
        inner = next(each.name for each in reversed(chain[:number]) if each.name not in _PARTS or number == 1)
        node, call, handed = _call_of(names, frame.line, inner, chain[number - 1].owner)
        at = node or statements[-1]
        found.append(Level(names, names.module.scope(at), at, call, frame.line, frame.file, handed))
    return found


def _call_of(names: Names, line: int, function: str, owner: str) -> tuple[ast.AST | None, ast.Call | None, bool]:
    """The call of a function on a line, or the call that it is handed over to."""
    wanted = owner if function in ("__init__", "__new__", "__post_init__") else function
    calls = [each for each in names.module.expressions(line) if isinstance(each, ast.Call)]
    direct = [each for each in calls if last(each) == wanted]
    if len(direct) == 1:
        return direct[0], direct[0], False
    for call in calls:
        for value in (*call.args, *(each.value for each in call.keywords)):
            named = dotted(value) or ""
            if named.rpartition(".")[2] == wanted or (wanted == "<lambda>" and isinstance(value, ast.Lambda)):
                return call, None, True
    return None, None, False


def rounds(found: list[Level]) -> Iterator[Round]:
    """The loops around a chain of calls, the innermost first."""
    for number, level in enumerate(found):
        for loop in level.names.module.loops(level.node):
            if not _few(loop):
                yield Round(loop, number)
        scope = level.scope
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) and any(map(handles, scope.decorator_list)):
            yield Round(None, number, scope.name)
        if level.handed:
            if number and last(level.node) in _MAPPING:
                name = getattr(found[number - 1].scope, "name", "the function")
                yield Round(None, number - 1, name, last(level.node))
            return


def _few(loop: LoopNode) -> bool:
    if isinstance(loop, ast.While):
        return False
    over = loop.iter
    if isinstance(over, ast.List | ast.Tuple):
        return len(over.elts) <= FEW
    is_range = isinstance(over, ast.Call) and last(over) == "range" and len(over.args) == 1
    end = over.args[0] if is_range and isinstance(over, ast.Call) else None
    return isinstance(end, ast.Constant) and isinstance(end.value, int) and end.value <= FEW


@dataclass
class Sameness:
    """Judges expressions of a chain of calls: the same in all rounds of one of its loops, or not."""

    levels: list[Level]
    around: Round
    _open: set[tuple[int, str]] = field(default_factory=set)

    def of(self, node: ast.expr, level: int = 0, depth: int = MAX_DEPTH) -> int:
        """``SAME``, ``VARIES`` or ``UNKNOWN`` of an expression of a level."""
        if depth == 0:
            return UNKNOWN
        names, own, worst = self.levels[level].names, _bound_inside(node), SAME
        for part in ast.walk(node):
            if isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
                return VARIES
            if isinstance(part, ast.Call) and (stateful(part, names) or self._goes_on(part)):
                return VARIES
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) and part.id not in own:
                worst = max(worst, self._name(part, level, depth))
            elif isinstance(part, ast.Attribute) and self._stored(part.attr):
                worst = VARIES
            if worst == VARIES:
                return VARIES
        return worst

    def varying(self, node: ast.expr, level: int = 0) -> bool:
        """True if an expression is certainly not the same in all rounds."""
        return self.of(node, level) == VARIES

    def _goes_on(self, call: ast.Call) -> bool:
        """True if a function of one of the files that the call may be of changes something."""
        name = last(call)
        texts = dict.fromkeys(each.names for each in self.levels)
        mine = ((function, names) for names in texts for function in names.functions.get(name, ()))
        return any(has_effects(function, names) for function, names in mine)

    @property
    def _region(self) -> ast.AST:
        level = self.levels[self.around.level]
        loop = self.around.loop
        if loop is None:
            return level.scope
        return level.names.module.parent[loop] if isinstance(loop, ast.comprehension) else loop

    def _stored(self, attribute: str) -> bool:
        """True if the loop, or a function between, stores into an attribute of this name, or changes its object."""
        watched = {f".{attribute}"}
        between = (each.scope for each in self.levels[: self.around.level])
        return changed(self._region, watched) or any(
            changed(each, watched) for each in between if not isinstance(each, ast.Module)
        )

    def _name(self, name: ast.Name, level: int, depth: int) -> int:
        names = self.levels[level].names
        if name.id in names.modules:
            return SAME
        key = (level, name.id)
        if key in self._open:
            return VARIES  # made of what it was before
        self._open.add(key)
        try:
            return self._looked_up(name, level, depth)
        finally:
            self._open.discard(key)

    def _looked_up(self, name: ast.Name, level: int, depth: int) -> int:
        at = self.levels[level]
        names, around = at.names, self.levels[self.around.level]
        scope: Scope = names.module.scope(name)
        while isinstance(scope, ast.Lambda) and name.id not in names.bindings(scope):
            scope = names.module.scope(scope)
        mine = names.bindings(scope) if isinstance(scope, Function) else {}
        if name.id in mine and scope is not at.scope:
            # Of a function around: its own level in the chain, if it is there.
            further = (n for n in range(level, len(self.levels)) if self.levels[n].scope is scope)
            level = next(further, len(self.levels))
            if level >= len(self.levels):
                return UNKNOWN
        if level > self.around.level:
            return SAME
        if self.around.loop is None and scope is around.scope and name.id in mine:
            given = {each.arg for each in ast.walk(scope.args) if isinstance(each, ast.arg)}  # type: ignore[union-attr]
            return VARIES if name.id in given else self._made_of(name.id, scope, level, depth)
        if name.id in mine and scope is not around.scope:
            return self._local(name, scope, level, depth)
        # A name of the function or the module that the loop is in, or of one around it.
        loop = self.around.loop
        if loop is not None and names is around.names and name.id in bound_in(loop, around.names):
            return self._of_round(name, level, depth)
        if names is around.names and (changed(self._region, {f"[{name.id}]"}) or _filled(self._region, name.id)):
            return VARIES
        declared = any(name.id in each.names for each in names.module.parent if isinstance(each, ast.Global))
        return UNKNOWN if declared else SAME

    def _of_round(self, name: ast.Name, level: int, depth: int) -> int:
        """A name that the loop binds: what it is made of there decides, the loop's own target varies."""
        loop, region = self.around.loop, self._region
        targets = () if loop is None or isinstance(loop, ast.While) else ast.walk(loop.target)
        if any(isinstance(each, ast.Name) and each.id == name.id for each in targets):
            return VARIES
        return self._made_of(name.id, region, self.around.level, depth) if level == self.around.level else VARIES

    def _local(self, name: ast.Name, scope: Scope, level: int, depth: int) -> int:
        """A name of a function between the loop and the line: an argument is what the call gives."""
        names = self.levels[level].names
        assert isinstance(scope, Function)
        arguments = scope.args
        places = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        others = [each.arg for each in arguments.kwonlyargs]
        if name.id not in (*places, *others) or len(names.bindings(scope)[name.id]) > 1:
            return self._made_of(name.id, scope, level, depth)
        call = self.levels[level + 1].call if level + 1 < len(self.levels) else None
        if level + 1 < len(self.levels) and self.levels[level + 1].handed:
            return VARIES
        if call is None:
            return UNKNOWN
        is_method = isinstance(names.module.parent.get(scope), ast.ClassDef)
        if is_method and places[:1] == [name.id]:
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            return UNKNOWN if owner is None else self.of(owner, level + 1, depth - 1)
        given = [each.value for each in call.keywords if each.arg == name.id]
        place = places.index(name.id) - is_method if name.id in places else None
        if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
            return UNKNOWN
        if place is not None and place < len(call.args):
            given.append(call.args[place])
        # Without a value it is the default one.
        return self.of(given[0], level + 1, depth - 1) if given else SAME

    def _made_of(self, name: str, region: ast.AST, level: int, depth: int) -> int:
        """A name by all that binds it in a region; one that is added to, or whose object is changed, varies."""
        worst = SAME
        for node in ast.walk(region):
            if isinstance(node, ast.AugAssign) and dotted(node.target) == name:
                return VARIES
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if node.value is not None and any(_binds(each, name) for each in targets):
                    worst = max(worst, self.of(node.value, level, depth - 1))
            elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) and _binds(node.target, name):
                worst = max(worst, self.of(node.iter, level, depth - 1))
            elif isinstance(node, ast.withitem) and node.optional_vars is not None and _binds(node.optional_vars, name):
                worst = max(worst, self.of(node.context_expr, level, depth - 1))
            elif isinstance(node, ast.ExceptHandler) and node.name == name:
                return VARIES
            if worst == VARIES:
                return VARIES
        return VARIES if changed(region, {f"[{name}]"}) or _filled(region, name) else worst


def has_effects(scope: Scope, names: Names, depth: int = 3) -> bool:
    """True if a function, or one of its file that it calls, may do something else than make its result."""
    if isinstance(scope, ast.Module | ast.Lambda):
        return False
    if (scope, depth) not in names.effects:
        names.effects[scope, depth] = _found_effects(scope, names, depth)
    return names.effects[scope, depth]


def _found_effects(scope: ast.FunctionDef | ast.AsyncFunctionDef, names: Names, depth: int) -> bool:
    for node in ast.walk(scope):
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Await):
            return True
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and scope.name != "__init__":
            return True
        if (
            isinstance(node, ast.Subscript)
            and not isinstance(node.ctx, ast.Load)
            and isinstance(node.value, ast.Attribute)
        ):
            return True
        if not isinstance(node, ast.Call):
            continue
        if stateful(node, names) and not _on_own(node, scope, names):
            return True
        if depth and any(has_effects(each, names, depth - 1) for each in names.functions.get(last(node), ())):
            return True
    return False


def _on_own(call: ast.Call, scope: ast.FunctionDef | ast.AsyncFunctionDef, names: Names) -> bool:
    """True if a method changes an object that the function made."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    values = names.bindings(scope).get(owner.id, []) if isinstance(owner, ast.Name) else []
    return bool(values) and any(each is not None for each in values)


_KEEPING = frozenset({"append", "add", "extend", "print", "insert", "appendleft", "put", "debug", "info", "warning"})


def _filled(region: ast.AST, name: str) -> bool:
    """True if a statement calls a function only for what it does, and has an object of this name do it, or gives it."""
    for node in ast.walk(region):
        call = node.value if isinstance(node, ast.Expr) else None
        call = call.value if isinstance(call, ast.Await) else call
        if not isinstance(call, ast.Call) or last(call) in _KEEPING:
            continue
        touched = [*call.args, *(each.value for each in call.keywords), call.func]
        if any(isinstance(each, ast.Name) and each.id == name for part in touched for each in ast.walk(part)):
            return True
    return False


def _binds(target: ast.AST, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(target)
    )


def _bound_inside(node: ast.expr) -> set[str]:
    """The names that comprehensions and lambdas inside of an expression bind."""
    bound: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.comprehension):
            bound |= names_in(part.target)
        elif isinstance(part, ast.Lambda):
            bound |= {each.arg for each in (*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs)}
    return bound
