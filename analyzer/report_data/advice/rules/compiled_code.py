"""A rule about Cython code of the project: arrays without types, whose elements become Python objects."""

from __future__ import annotations

from collections.abc import Iterator

from ...numbers import percent
from ..facts import Callee, installed_package
from ..program import MOSTLY, Finding, Program, Rule, Spot

UNTYPED_SHARE = 0.15
"""The part of the CPU time at the line that calls the compiled function, at the low end of its interval."""

ELEMENTS = 0.25
"""The part of the line's time in NumPy's functions that take one element out, or put one in."""

_ACCESS = ("array_subscript", "array_assign_subscript", "array_item", "array_assign_item")
_OBJECTS = frozenset({"PyArray_Scalar", "gentype_alloc", "gentype_generic_method", "scalar_value"})
"""Functions of NumPy that make an object of an element, or read one."""


def untyped_elements(program: Program) -> Iterator[Finding]:
    """A function of Cython that takes elements out of arrays as Python objects."""
    for spot in program.spots:
        if spot.line.low < UNTYPED_SHARE:
            continue
        function = _compiled(spot)
        access_s = sum(each.total_s for each in spot.below.native if each.name in _ACCESS and "/numpy/" in each.path)
        made = any(each.name in _OBJECTS and "/numpy/" in each.path for each in spot.below.native)
        if function is None or not made or access_s < ELEMENTS * spot.line.cpu_s:
            continue
        yield spot.finding(
            f"“{function.name}” is compiled, but its arrays have no types: to take elements out as Python objects is"
            f" {percent(access_s / spot.line.cpu_s)} % of the line's time, and to calculate with them takes more.",
            "types in the Cython source: a memoryview for each array (double[:, :] values), Py_ssize_t for indices, and"
            " double for numbers; cython -a FILE shows in yellow what is left of Python",
        )


def _compiled(spot: Spot) -> Callee | None:
    """The function of Cython, of no installed package, that most of the line's time is in."""
    for each in spot.below.native:
        module = each.path.rpartition("/")[2].partition(".")[0]
        own = not installed_package(each.path) and module and module in each.name.split(".")[:-1]
        if own and each.total_s >= MOSTLY * spot.line.cpu_s:
            return each
    return None


RULES = (
    Rule(
        "untyped-elements",
        "CPU time by line, with native functions below it by name",
        "15 % of the CPU time, half of the line's in Cython code of the project, a quarter in elements of arrays",
        untyped_elements,
    ),
)
