"""A rule about arrays of a few numbers: to begin a call of NumPy takes longer than the arithmetic itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import numpy as np

from ...numbers import percent
from ..facts import Callee
from ..program import Finding, Program, Rule, Spot, time_figure
from .repeated import round_of

LOOP_SHARE = 0.20
"""The part of the CPU time that the lines of one file have together, at the low end of its interval."""

BEGINNING = 0.15
"""The part of each line's time in NumPy's own beginning of calls: looking for types, loops and memory."""

ARITHMETIC = 0.25
"""The most that all the rest of native code outside of the interpreter may have: else the arrays are not small."""

_BEGINS = re.compile(
    r"PyUFunc_|ufunc_generic|convert_ufunc|execute_ufunc|try_trivial|resolve_|promote_|should_use_min_scalar|IsAligned"
    r"|binop_|binary_op|validate_casting|get_array_|npyiter_|NpyIter_|npy_alloc|npy_free|npy_cache|default_free"
    r"|default_malloc|default_calloc|cblas_matrixproduct|simple_binary_operation|PyArrayIdentityHash|linear_search"
    r"|PyArray_(NewFromDescr|DescrFromType|DescrFromScalar|FromAny|CheckFromAny|Return|Ensure|Scalar|GenericBinary"
    r"|GenericUnary|GetCast|CanCast|ResultType|Legacy|MatrixProduct|UpdateFlags|SetBase|ToScalar)"
    r"|array_(dealloc|alloc|add|subtract|multiply|true_divide|floor_divide|power|negative|richcompare|remainder|item)"
)
"""Functions of NumPy that run once for a call, however large its arrays are.

What looks at each item of a list that is made into an array (``discover_dtype``, ``PyArray_Pack``) is none of them.
"""


def small_arrays(program: Program) -> Iterator[Finding]:
    """Lines in loops that call NumPy for a few numbers at a time."""
    by_file: dict[int, list[Spot]] = {}
    for spot in program.spots:
        begins = spot.busy and spot.names.imports("numpy") and _beginning_s(spot) >= BEGINNING * spot.line.cpu_s
        if begins and _in_loop(spot):
            by_file.setdefault(spot.line.file_id, []).append(spot)
    for spots in by_file.values():
        cpu_s = sum(spot.line.cpu_s for spot in spots)
        share, low = program.facts.low(cpu_s)
        if low < LOOP_SHARE:
            continue
        arithmetic = sum(_arithmetic_s(spot) for spot in spots)
        python_s = float(np.nansum([spot.line.python_s for spot in spots]))
        if arithmetic > ARITHMETIC * cpu_s or python_s <= 0:
            continue
        top = spots[0]
        where = (
            "this line" if len(spots) == 1 else f"lines {', '.join(str(n) for n in sorted(s.line.line for s in spots))}"
        )
        yield top.finding(
            f"NumPy is called for a few numbers at a time at {where}: at most {percent(arithmetic / cpu_s) or '0'} % of"
            " the time is arithmetic, the rest begins and ends calls.",
            "many at a time: one array with another axis in place of the loop; or, of two or three numbers, floats and"
            " math; or compile the loop (Numba, Cython)",
            time_figure(share, cpu_s),
            share,
        )


def _beginning_s(spot: Spot) -> float:
    return sum(each.own_s for each in spot.below.native if _begins_call(each))


def _arithmetic_s(spot: Spot) -> float:
    return sum(
        each.own_s
        for each in spot.below.native
        if not _begins_call(each) and not each.path.rpartition("/")[2].startswith(("libpython", "python"))
    )


def _begins_call(native: Callee) -> bool:
    return "/numpy" in native.path and _BEGINS.match(native.name) is not None


def _in_loop(spot: Spot) -> bool:
    """True if a loop of the file runs the line, and more than a name is on it."""
    statements = [each for each in spot.module.statements.get(spot.line.line, ()) if not hasattr(each, "body")]
    return any(
        bool(spot.module.loops(each)) or round_of(spot.names, each) is not None
        for each in statements
        if not isinstance(each, ast.Import | ast.ImportFrom)
    )


RULES = (
    Rule(
        "small-arrays",
        "CPU time by line, with NumPy's functions below it by name",
        "20 % of the CPU time at lines in loops, 15 % of that in the beginning of calls, at most 25 % in arithmetic",
        small_arrays,
    ),
)
