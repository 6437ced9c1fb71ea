"""Rules about functions of libraries that have a faster form; which they are is a table, ``library_forms``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from ....source_code.source import LoopNode, names_in, short
from ..library_forms import (
    AGAIN,
    ALWAYS,
    ELEMENTS,
    FORMS,
    INSERTS,
    LEVEL,
    NO_FORMAT,
    NO_LEVEL,
    NO_SIZE,
    OF_ASDICT,
    OF_FILE,
    ONE_FORM,
    OPENPYXL,
    OWN_MAKER,
    PAIRS,
    PATTERN,
    REPEATED,
    SAFE_LOADER,
    SAME_TABLE,
    SLOWER,
    Form,
)
from ..program import MOSTLY, Finding, Program, Rule, Spot
from .repeated import runs_again, same_each_call

FORM_SHARE = 0.10
"""The line's part of the CPU time, at the low end of its interval."""

SMALL_PIECE = 512
"""Bytes at a time: fewer are a small piece."""

_READING = frozenset({"nodes", "edges", "neighbors", "degree", "number_of_nodes", "has_node", "has_edge", "adj"})
"""What a loop may use of a graph: none of it changes the graph."""


def _of(rule: str, program: Program) -> Iterator[Finding]:
    for spot in program.spots:
        if spot.line.low < FORM_SHARE:
            continue
        calls = [node for node in spot.expressions() if isinstance(node, ast.Call)]
        found = (
            spot.finding(_filled(form.text, form, node, spot), _filled(form.instead, form, node, spot))
            for form in FORMS
            if form.rule == rule
            for node in calls
            if _names(form, node, spot) and _has_the_time(form, node, spot) and _SHAPES[rule](form, node, spot)
        )
        finding = next(found, None)
        if finding is not None:
            yield finding


def _called(node: ast.Call) -> str:
    """The last part of the name of a called function."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _names(form: Form, node: ast.Call, spot: Spot) -> bool:
    """True if a call is of a function of the form, by the file's imports; of a method by its name."""
    if not form.package:
        return isinstance(node.func, ast.Attribute) and node.func.attr in form.names and spot.names.called(node) is None
    name = spot.names.called(node)
    if name is None:
        # A method of what the package made, such as an environment of templates.
        return form.rule == AGAIN and _called(node) in form.names and spot.names.imports(form.package)
    return name.partition(".")[0] == form.package and name.rpartition(".")[2] in form.names


def _has_the_time(form: Form, node: ast.Call, spot: Spot) -> bool:
    """True if samples show that most of the line's time is in that function."""
    names = form.functions or ((_called(node),) if form.where.endswith(".py") else form.names)
    spent = max(spot.below.python_s(form.where, *names), spot.below.library_s(form.where))
    return spent >= MOSTLY * spot.line.cpu_s


def _filled(text: str, form: Form, node: ast.Call, spot: Spot) -> str:
    parts = {"call": (spot.names.called(node) or _called(node)).rpartition(".")[2], "first": "its source"}
    if form.same and len(node.args) > form.same[-1]:
        parts["first"] = short(node.args[form.same[-1]], 30)
    elif form.when == SAME_TABLE and node.args:
        parts["first"] = short(node.args[0], 30)
    path = _path_of_text(node, spot)
    parts |= {"round": "round of the loop", "before": "once before the loop"}
    if form.rule == AGAIN and not spot.module.loops(node):
        parts |= _of_function(node, spot)
    piece = _piece(node)
    parts["pieces"] = "one byte" if piece in (None, 1) else f"{piece} bytes"
    return text.format(**parts, path="the file's name" if path is None else short(path, 30))


def _of_function(node: ast.Call, spot: Spot) -> dict[str, str]:
    """How often a function makes an object, and where it would be made once."""
    scope = spot.module.scope(node)
    made_of = names_in(node)
    given = not isinstance(scope, ast.Module) and made_of & spot.names.bindings(scope).keys()
    return {
        "round": f"call of “{getattr(scope, 'name', '')}”",
        "before": "once for each argument, by functools.lru_cache" if given else "once, at the level of the module",
    }


def _pairs(form: Form, node: ast.Call, spot: Spot) -> bool:
    """True if the inner of two loops has one operand, and the outer the other one."""
    loops = spot.module.loops(node)
    if len(loops) < 2 or any(isinstance(each, ast.While) for each in loops[:2]):
        return False
    operands = list(node.args)
    if not form.package and isinstance(node.func, ast.Attribute):
        operands.insert(0, node.func.value)
    inner = [varies(each, loops[0], spot) for each in operands]
    if form.same:
        if len(node.args) <= form.same[-1] + 1 or not _graph_stays(node, loops[0], spot):
            return False
        return not any(inner[each] for each in form.same) and inner[form.same[-1] + 1]
    outer = [varies(each, loops[1], spot) for each in operands]
    # One operand is the inner loop's, the other is the outer's alone.
    return any(inner) and any(mine and not also for mine, also in zip(outer, inner, strict=True))


def _elements(form: Form, node: ast.Call, spot: Spot) -> bool:
    """True if a loop goes through numbers or values, and the call is made in each of its rounds."""
    loops = spot.module.loops(node)
    if not loops or isinstance(loops[0], ast.While):
        return False
    return len(loops) >= 2 and any(varies(each, loops[0], spot) for each in node.args)


def _again(form: Form, node: ast.Call, spot: Spot) -> bool:
    """True if a loop, or each call of a function, makes the same each time: of arguments that do not change."""
    loops = spot.module.loops(node)
    if (loops and isinstance(loops[0], ast.While)) or (_called(node) == "get_template" and _own_maker(node, spot)):
        return False
    if form.same:
        given = [node.args[each] for each in form.same if each < len(node.args)]
        given += [each.value for each in node.keywords if each.arg == "schema"]
    else:
        given = [*node.args, *(each.value for each in node.keywords)]
    if not given or any(_unsteady(each) for each in given):
        return False
    if loops:
        return not any(varies(each, loops[0], spot) for each in given)
    return runs_again(spot.names, node) and all(same_each_call(spot.names, each) for each in given)


def _slower(form: Form, node: ast.Call, spot: Spot) -> bool:
    """True if nothing on the line asks for what only the slower form does."""
    return _WHEN[form.when](node, spot)


def _safe_loader(node: ast.Call, spot: Spot) -> bool:
    given = [*node.args[1:], *(each.value for each in node.keywords if each.arg in ("Loader", "Dumper"))]
    names = {each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in given}
    safe = _called(node).startswith("safe_")
    return (safe and not names) or (names <= {"SafeLoader", "SafeDumper"} and bool(names))


def _small_piece(node: ast.Call, spot: Spot) -> bool:
    """True if the size of the pieces is not given, or small."""
    if not node.args and not any(each.arg in ("chunk_size", None) for each in node.keywords):
        return True
    piece = _piece(node)
    return piece is not None and 0 < piece < SMALL_PIECE


def _piece(node: ast.Call) -> int | None:
    """The number that is given as ``chunk_size``; None if it is no number."""
    given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "chunk_size")]
    size = given[0].value if given and isinstance(given[0], ast.Constant) else None
    return size if isinstance(size, int) else None


def _no_format(node: ast.Call, spot: Spot) -> bool:
    """True if the form of the texts is not given, by name or place."""
    given = [each.value for each in node.keywords if each.arg in ("format", "unit", None)]
    return len(node.args) < 2 and all(isinstance(each, ast.Constant) and each.value == "mixed" for each in given)


def _pattern(node: ast.Call, spot: Spot) -> bool:
    """True if the separator is one character with blanks around it, or the engine in Python is named without need."""
    given = {each.arg: getattr(each.value, "value", None) for each in node.keywords}
    if None in given or given.keys() & {"skipfooter", "on_bad_lines", "dialect"}:
        return False
    separator = given.get("sep", given.get("delimiter", ","))
    return isinstance(separator, str) and len(_BLANKS.sub("", separator)) == 1


_BLANKS = re.compile(r"(?:\\s| )[*+]?")


def _inserts(node: ast.Call, spot: Spot) -> bool:
    """True if the statement is a constant text that inserts."""
    text: ast.expr | None = node.args[0] if node.args else None
    if isinstance(text, ast.Name):
        bound = spot.names.binding(text.id, text)
        text = bound[0] if len(bound) == 1 else None
    value = text.value if isinstance(text, ast.Constant) else None
    return isinstance(value, str) and value.lstrip().lower().startswith("insert")


def _own_maker(node: ast.Call, spot: Spot) -> bool:
    """True if the same function makes the ``Environment(...)`` whose method is called, of nothing of its own."""
    scope = spot.module.scope(node)
    owner: ast.expr | None = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(scope, ast.Module):
        return False
    local = spot.names.bindings(scope)
    if isinstance(owner, ast.Name):
        bound = local.get(owner.id, [])
        owner = bound[0] if len(bound) == 1 else None
    if not isinstance(owner, ast.Call) or not _called(owner).endswith("Environment"):
        return False
    return not names_in(owner) & local.keys()


def _is(keyword: ast.keyword, value: str) -> bool:
    return isinstance(keyword.value, ast.Constant) and keyword.value.value == value


def _same_table(node: ast.Call, spot: Spot) -> bool:
    """True if each round of a for loop takes rows of one table and merges them with another, neither of them new."""
    loop = spot.loop(node)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if loop is None or isinstance(loop, ast.While) or not node.args or not isinstance(node.args[0], ast.Name):
        return False
    if varies(node.args[0], loop, spot) or owner is None:
        return False
    if isinstance(owner, ast.Name):
        targets = names_in(loop.target)
        if owner.id in targets:
            return isinstance(loop.iter, ast.Call) and _called(loop.iter) == "groupby"
        bound = spot.names.binding(owner.id, owner)
        owner = bound[0] if len(bound) == 1 else None
    table = owner.value if isinstance(owner, ast.Subscript) else None
    if isinstance(table, ast.Attribute) and table.attr == "loc":
        table = table.value
    return isinstance(table, ast.Name) and not varies(table, loop, spot) and varies(owner or table, loop, spot)


def _own_level(node: ast.Call, spot: Spot) -> bool:
    """True if compressing a PNG has most of the time, and its level is not given."""
    given = {each.arg for each in node.keywords}
    return not given & {"compress_level", None} and spot.part(spot.below.native_s("ImagingZipEncode")) >= MOSTLY


_WHEN: dict[str, Callable[[ast.Call, Spot], bool]] = {
    ALWAYS: lambda node, spot: True,
    SAFE_LOADER: _safe_loader,
    OF_FILE: lambda node, spot: _path_of_text(node, spot) is not None,
    NO_SIZE: _small_piece,
    NO_FORMAT: _no_format,
    PATTERN: _pattern,
    INSERTS: _inserts,
    REPEATED: lambda node, spot: runs_again(spot.names, node),
    ONE_FORM: lambda node, spot: (
        runs_again(spot.names, node) and {each.arg for each in node.keywords} <= {"dayfirst", "yearfirst"}
    ),
    LEVEL: _own_level,
    SAME_TABLE: _same_table,
    OF_ASDICT: lambda node, spot: (
        bool(node.args)
        and isinstance(node.args[0], ast.Call)
        and spot.names.called(node.args[0]) == "dataclasses.asdict"
        and not node.args[0].keywords
    ),
    OPENPYXL: lambda node, spot: all(_is(each, "openpyxl") for each in node.keywords if each.arg in ("engine", None)),
    NO_LEVEL: lambda node, spot: (
        len(node.args) < 2 and not {each.arg for each in node.keywords} & {"compresslevel", None}
    ),
    OWN_MAKER: lambda node, spot: _own_maker(node, spot) and runs_again(spot.names, node),
}


def _path_of_text(node: ast.Call, spot: Spot) -> ast.expr | None:
    """The path of the file that the first argument was read from in the same function; None if it was not."""
    text: ast.expr | None = node.args[0] if node.args else None
    if isinstance(text, ast.Name):
        bound = spot.names.binding(text.id, text)
        text = bound[0] if len(bound) == 1 else None
    if not isinstance(text, ast.Call) or not isinstance(text.func, ast.Attribute):
        return None
    if text.func.attr == "read_text":
        return text.func.value
    opened = text.func.value
    if text.func.attr == "read" and isinstance(opened, ast.Call) and opened.args and _called(opened) == "open":
        return opened.args[0]
    return None


def varies(node: ast.expr, loop: LoopNode, spot: Spot) -> bool:
    """True if an expression has a name that a loop binds."""
    used = names_in(node)
    return bool(used & _bound(loop, spot))


def _bound(loop: LoopNode, spot: Spot) -> set[str]:
    around: ast.AST = spot.module.parent[loop] if isinstance(loop, ast.comprehension) else loop
    nodes = ast.walk(loop.target if isinstance(loop, ast.comprehension) else around)
    bound = {each.id for each in nodes if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    if isinstance(loop, ast.comprehension):
        inside = (each for each in ast.walk(around) if isinstance(each, ast.NamedExpr))
        bound |= {each.target.id for each in inside}
    return bound


def _unsteady(node: ast.expr) -> bool:
    """True if an expression may be another one each time, though its names are the same."""
    return any(isinstance(each, ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda) for each in ast.walk(node)) or any(
        isinstance(each, ast.Call) and not (_called(each)[:1].isupper()) for each in ast.walk(node)
    )


def _graph_stays(node: ast.Call, loop: LoopNode, spot: Spot) -> bool:
    """True if nothing in a loop can change the first argument, but for calls of the same function."""
    graph = node.args[0]
    if not isinstance(graph, ast.Name):
        return False
    around: ast.AST = spot.module.parent[loop] if isinstance(loop, ast.comprehension) else loop
    for each in ast.walk(around):
        if not isinstance(each, ast.Name) or each.id != graph.id:
            continue
        above = spot.module.parent.get(each)
        if isinstance(above, ast.Call) and each in above.args and spot.names.called(above) == spot.names.called(node):
            continue
        if isinstance(above, ast.Attribute) and above.attr in _READING:
            continue
        if isinstance(above, ast.Compare | ast.For | ast.comprehension):
            continue
        return False
    return True


_SHAPES = {PAIRS: _pairs, ELEMENTS: _elements, AGAIN: _again, SLOWER: _slower}


def call_for_each_pair(program: Program) -> Iterator[Finding]:
    """A function of two things in two loops, which a library has for all pairs at once."""
    return _of(PAIRS, program)


def call_for_each_element(program: Program) -> Iterator[Finding]:
    """A function of one element in a loop, which a library has for all of them at once."""
    return _of(ELEMENTS, program)


def made_again(program: Program) -> Iterator[Finding]:
    """An object that a loop, or each call of a function, makes anew from the same arguments."""
    return _of(AGAIN, program)


def slower_form(program: Program) -> Iterator[Finding]:
    """A function that has a form with the same result in less time."""
    return _of(SLOWER, program)


_NEEDS = "CPU time by line, with what the library's function below it had; calls and loops in the source"
_MOST = "10 % of the CPU time at the line, most of it in the function"

RULES = (
    Rule(PAIRS, _NEEDS, f"{_MOST}; one operand is the inner loop's, the other the outer's", call_for_each_pair),
    Rule(ELEMENTS, _NEEDS, f"{_MOST}; it is called in each round", call_for_each_element),
    Rule(
        AGAIN,
        _NEEDS,
        f"{_MOST}; in a loop, or in a function that a loop or a server calls; the arguments are the same",
        made_again,
    ),
    Rule(SLOWER, _NEEDS, _MOST, slower_form),
)
