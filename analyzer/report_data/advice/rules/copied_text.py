"""Rules about text and bytes: what is copied whole to add to it or to cut from it, and patterns in loops."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ....source_code.names import ARRAYS, BYTES, FRAME, LIST, TEXT, TUPLE
from ....source_code.source import dotted, names_in, parts_of, short
from ..program import MOSTLY, SHARE, Finding, Program, Rule, Spot, time_figure

_CONCATENATE = (
    *("bytes_concat", "PyBytes_Concat", "bytearray_concat", "list_concat", "tuple_concat", "tupleconcat"),
    *("unicode_concatenate", "PyUnicode_Concat", "PyUnicode_Append"),
)
_SEARCHES = frozenset(
    f"re.{name}" for name in ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "compile")
)
_INSTEAD = {
    TEXT: "append the pieces to a list, and ''.join(pieces) once after the loop",
    BYTES: "append the pieces to a list, and b''.join(pieces) once after the loop; or += on a bytearray",
    LIST: "extend() or +=, which add in place",
    None: "append the pieces to a list, and join them once after the loop; += on a bytearray adds in place",
}


def grown_in_loop(program: Program) -> Iterator[Finding]:
    """``text = text + piece`` in a loop, where measurements say that the whole of it is copied."""
    for spot in program.spots:
        for statement in spot.module.statements.get(spot.line.line, ()):
            name = _grown(statement, spot)
            loop = spot.loop(statement) if name else None
            if name is None or loop is None or not spot.names.grows_only(name, loop, statement):
                continue
            kind = spot.names.kind(_target(statement))
            copied = spot.copies and _is_text(spot, kind)
            if not copied and not (spot.busy and spot.below.native_s(*_CONCATENATE) >= MOSTLY * spot.line.cpu_s):
                continue
            yield spot.finding(
                f"“{name}” is copied whole each time something is added.",
                _INSTEAD.get(kind, _INSTEAD[None]),
                spot.copy_figure() if copied else spot.time_figure(),
            )
            break


def _is_text(spot: Spot, kind: str | None) -> bool:
    """True if bytes or text are copied: the source proves it, or the file uses no arrays."""
    return kind in (TEXT, BYTES) or (kind is None and not spot.names.imports("numpy", "pandas", "torch"))


def _target(statement: ast.stmt) -> ast.expr | None:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0]
    return statement.target if isinstance(statement, ast.AugAssign) else None


def _grown(statement: ast.stmt, spot: Spot) -> str | None:
    """The name that a statement makes anew with something added to it."""
    target = _target(statement)
    name = None if target is None else dotted(target)
    if name is None or not isinstance(statement, ast.Assign | ast.AugAssign):
        return None
    if isinstance(statement, ast.AugAssign):
        # Of what += does in place nothing is made anew: only text and bytes are certain.
        proved = spot.names.kind(target) in (TEXT, BYTES)
        return name if isinstance(statement.op, ast.Add) and proved else None
    first = statement.value
    if not isinstance(first, ast.BinOp) or not isinstance(first.op, ast.Add):
        return None
    while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add):
        first = first.left
    kind = spot.names.kind(target)
    return name if dotted(first) == name and (kind is None or kind in (TEXT, BYTES, LIST, TUPLE)) else None


def cut_from_front(program: Program) -> Iterator[Finding]:
    """``data = data[n:]`` in a loop, which copies the rest."""
    for spot in program.spots:
        for statement in spot.module.statements.get(spot.line.line, ()):
            target = _target(statement)
            if not isinstance(statement, ast.Assign) or target is None or not spot.copies:
                continue
            name, value = dotted(target), statement.value
            cut = (
                isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice) and dotted(value.value) == name
            )
            if name is None or not cut or spot.loop(statement) is None:
                continue
            if value.slice.lower is None or value.slice.upper is not None:  # type: ignore[attr-defined]
                continue
            if spot.names.kind(target) in (*ARRAYS, FRAME):
                continue
            yield spot.finding(
                f"The rest of “{name}” is copied each time a piece is cut off its front.",
                f"leave “{name}” whole and keep a position in it, or cut a memoryview",
                spot.copy_figure(),
            )
            break


def pattern_in_loop(program: Program) -> Iterator[Finding]:
    """``re.search("pattern", text)`` again and again: each call looks the compiled pattern up."""
    for spot in program.spots:
        if not spot.busy:
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or spot.names.called(node) not in _SEARCHES or not node.args:
                continue
            looked_up = spot.below.python_own_s("_compile", "/re/__init__.py", "/re.py")
            share, low = program.facts.low(looked_up)
            if low < SHARE or not _constant(node.args[0], spot):
                continue
            yield spot.finding(
                f"Each call looks the pattern {short(node.args[0])} up among those that are compiled.",
                f"compile it once, outside of functions and loops, and call its {node.func.attr}()"  # type: ignore[attr-defined]
                if spot.names.called(node) != "re.compile"
                else "compile it once, outside of functions and loops",
                f"{time_figure(share, looked_up)} in looking it up",
                share,
            )
            break


def _constant(node: ast.expr, spot: Spot) -> bool:
    """True if an expression is one constant text, written there or in one place of the module."""
    if isinstance(node, ast.Name):
        values = spot.names.binding(node.id, node)
        return len(values) == 1 and isinstance(values[0], ast.Constant)
    return isinstance(node, ast.Constant)


def pattern_compiled_again(program: Program) -> Iterator[Finding]:
    """Patterns made of what changes in an inner loop, and compiled anew in each round of an outer one."""
    for spot in program.spots:
        compiled = spot.below.python_s("/re/_compiler.py", "compile") if spot.busy else 0.0
        share, low = program.facts.low(compiled)
        if low < SHARE:
            continue
        for node in spot.expressions():
            if not isinstance(node, ast.Call) or spot.names.called(node) not in _SEARCHES or not node.args:
                continue
            if _same_again(node.args[0], spot):
                yield spot.finding(
                    f"The patterns {short(node.args[0])} are compiled anew in each round of the outer loop: there are"
                    " more of them than re keeps.",
                    "compile them once, before the outer loop, into a list",
                    f"{time_figure(share, compiled)} in compiling",
                    share,
                )
                break


def _same_again(pattern: ast.expr, spot: Spot) -> bool:
    """True if an expression takes the same values in each round of the outermost loop."""
    loops = spot.module.loops(pattern)
    inner, outer = (loops[0], loops[-1]) if len(loops) > 1 else (None, None)
    if inner is None or outer is None or isinstance(inner, ast.While):
        return False
    counted = names_in(inner.target)
    made = [each for each in parts_of(pattern) if isinstance(each, ast.Name)]
    others = [each for each in made if each.id not in counted and each.id not in spot.names.modules]
    return len(others) < len(made) and all(spot.names.fixed(each, outer) for each in (inner.iter, *others))


RULES = (
    Rule(
        "text-grown-in-loop",
        "copies by line, or CPU time with the native functions below it",
        "250 MB copied per second of CPU time and 10 % of all copies, or 5 % of the CPU time, most of it in joining",
        grown_in_loop,
    ),
    Rule(
        "cut-from-front",
        "copies by line",
        "250 MB copied per second of CPU time and 10 % of all copies: less costs nothing that matters",
        cut_from_front,
    ),
    Rule(
        "pattern-in-loop",
        "CPU time by line, with what re's own functions below it had",
        "5 % of the CPU time in looking up compiled patterns",
        pattern_in_loop,
    ),
    Rule(
        "pattern-compiled-again",
        "CPU time by line, with what re's own functions below it had",
        "5 % of the CPU time in compiling patterns",
        pattern_compiled_again,
    ),
)
