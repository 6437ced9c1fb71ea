"""The one sentence that every report can give: on what the line with most of the time spends it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from ..profile.profile import Profile
from ..recording.text import printable
from ..source_code.names import Names
from ..source_code.source import parse
from .advice.facts import Callee, Facts, Line, installed_package
from .numbers import percent, seconds

LEAST = 0.10
"""A line with less of the CPU time, at the low end of its interval, is no hot spot."""

MOSTLY = 0.5
"""A function that a line calls is named if it has this part of the line's time."""

MAX_NAME = 80

ANONYMOUS = "[anonymous]"
"""Code that was made at run time."""


@dataclass(frozen=True, slots=True)
class HotSpot:
    """The user's own line with most CPU time, libraries' included, or most waiting if the main thread mostly waits."""

    file: str
    line: int
    function: str | None
    """None of a module's own code."""
    cpu_s: float | None
    share: float | None
    """The part (0..1) of the CPU time; None of a line that waits."""
    wait_s: float | None
    """Waiting of the main threads at the line; None of a line that has CPU time."""
    callee: str | None
    """The function that has most of the line's CPU time, with its library; None if the line has it itself."""
    callee_share: float | None
    """Its part (0..1) of the line's CPU time."""
    caller: str | None
    """The user's own function that called the line's function in most of the time."""
    caller_line: int | None
    text: str = ""
    """All of that as a sentence."""


def hot_spot(profile: Profile) -> HotSpot | None:
    """The line with most of the time; None if no line has much of it."""
    facts = Facts(profile)
    found = (_waiting(facts) if _mostly_waits(profile) else None) or _running(facts)
    return None if found is None else replace(found, text=_sentence(found))


def _mostly_waits(profile: Profile) -> bool:
    """True if main threads wait for longer than the program runs, and not for the work of other threads."""
    totals, threads = profile.totals, profile.frames.threads
    if totals.main_wait_s is None or totals.main_wait_s <= totals.cpu_s:
        return False
    return bool(threads["cpu_s"][threads["main"]].sum() >= MOSTLY * threads["cpu_s"].sum())


def _running(facts: Facts) -> HotSpot | None:
    line = facts.lines[0] if facts.lines else None
    if line is None or not line.cpu_s > 0 or line.low < LEAST:
        return None
    callee, part = _callee(facts, line)
    place = _place(facts, line.file_id, line.line, "cpu_ns")
    return HotSpot(*place[:3], line.cpu_s, line.share, None, callee, part, *place[3:])


def _waiting(facts: Facts) -> HotSpot | None:
    totals, waited = facts.profile.totals, facts.amounts("main_wait_ns")
    (file, line), most = max(waited.items(), key=lambda each: each[1], default=((-1, -1), 0.0))
    if line < 0 or most / 1e9 < MOSTLY * (totals.main_wait_s or 0.0):
        return None
    place = _place(facts, file, line, "wait_ns")
    return HotSpot(*place[:3], None, None, most / 1e9, None, None, *place[3:])


def _place(facts: Facts, file: int, line: int, measure: str) -> tuple[str, int, str | None, str | None, int | None]:
    """A line with its file and function, and the other function that called this, with its line."""
    name = facts.function(file, line)
    stack = facts.callers(file, line, measure)
    own = (stack[0].file, stack[0].name) if stack else None
    callers = (each for each in stack[1:] if (each.file, each.name) != own)
    above = next((each for each in callers if each.name == "<module>" or not each.name.startswith("<")), None)
    caller = (None, None) if above is None else (_shown(above.name), above.line)
    return printable(facts.profile.calls.tree.paths[file], 4096), line, _named(name), *caller


def _sentence(spot: HotSpot) -> str:
    place = f"line {spot.line} of {spot.file.rpartition('/')[2]}"
    if spot.function is not None:
        place = f"{spot.function}() at line {spot.line}"
    if spot.wait_s is not None:
        text = f"{seconds(spot.wait_s)} of waiting is in {place}"
    elif spot.callee is None:
        text = f"{_amount(spot)} is in {place} itself, and in no one function that it calls"
    else:
        part = percent(spot.callee_share)
        text = f"{_amount(spot)} is in {place}, {'all' if part == '100' else f'{part} %'} of that in {spot.callee}"
    if spot.caller is not None and spot.function is not None:
        text += f"; {spot.function}() is called from {spot.caller} at line {spot.caller_line}"
    return text + "."


def _amount(spot: HotSpot) -> str:
    return f"{percent(spot.share)} % of the CPU time ({seconds(spot.cpu_s)})"


def _named(function: str | None) -> str | None:
    """A function as the sentence names it; None of a module's own code."""
    if function is None or function.rpartition(".")[2].startswith("<"):
        return None
    return printable(function, MAX_NAME)


def _shown(name: str) -> str:
    return "the module" if name == "<module>" else f"{printable(name, MAX_NAME)}()"


def _callee(facts: Facts, line: Line) -> tuple[str | None, float | None]:
    """The function below a line that has most of its time, and its part: the outermost of the most special ones."""
    below, least = facts.below(line), MOSTLY * line.cpu_s
    python = max((each for each in below.python if each.total_s >= least), key=_outermost, default=None)
    if python is not None:
        return _of_library(python), min(1.0, python.total_s / line.cpu_s)
    made_s = max((each.total_s for each in below.native if each.where == ANONYMOUS), default=0.0)
    compiled = _compiled(facts, line) if made_s >= least else None
    if compiled is not None:
        return f"{compiled}(), compiled by numba", min(1.0, made_s / line.cpu_s)
    native = [each for each in below.native if each.total_s >= least and not _is_interpreter(each)]
    if not native:
        return None, None
    found = max(native, key=_outermost)
    library = found.where.rpartition("/")[2]
    owner = installed_package(found.path) or library
    if library.startswith(("libpython", "python")):
        owner = "the interpreter"
    return f"{printable(found.name, MAX_NAME)} of {owner}", min(1.0, found.total_s / line.cpu_s)


def _compiled(facts: Facts, line: Line) -> str | None:
    """The only function of the file that a line calls and that numba compiled: it has no name in native stacks."""
    text = facts.profile.sources.text(line.file_id)
    module = parse(text) if text else None
    if module is None:
        return None
    names = Names(module)
    called = {
        node.func.id
        for node in module.expressions(line.line)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        for function in names.functions.get(node.func.id, ())
        if any((names.decorator(each) or "").startswith("numba.") for each in function.decorator_list)
    }
    return called.pop() if len(called) == 1 else None


def _outermost(callee: Callee) -> tuple[float, float]:
    return round(callee.total_s, 6), -callee.own_s


_EVALUATES = ("_PyEval", "PyEval", "_PyFunction", "PyObject_", "_PyObject_", "cfunction_", "method_vectorcall", "Py_")


def _is_interpreter(callee: Callee) -> bool:
    """True of what runs any Python code, and says nothing about the line."""
    return callee.name.startswith(_EVALUATES) or callee.name.startswith("[")


def _of_library(callee: Callee) -> str:
    name = printable(callee.qualified or callee.name, MAX_NAME)
    path = callee.where
    if path.startswith("<frozen importlib"):
        return "imports"
    if installed_package(path):
        return f"{name}() of {installed_package(path)}"
    *_, folder, file = ["", *path.split("/")]
    return f"{name}() of {folder if file == '__init__.py' else file.removesuffix('.py')}"
