"""The general rules, in one table."""

from __future__ import annotations

from ..program import Rule
from .in_series import pool_waits, waits_one_by_one
from .item_by_item import each_pair, grown_by_copies, one_by_one, python_arithmetic
from .same_again import compiled_again, prepared_inside, repeated_call
from .searching import lazy_in_loop, pairs, search_in_loop

_LINES = "CPU time by line with its callers; the source of the loop, and of the functions between"

RULES = (
    Rule(
        "grown-by-copies",
        _LINES,
        "15 % of the CPU time at a line that makes an object of itself",
        grown_by_copies,
        likely=True,
    ),
    Rule(
        "prepared-inside",
        "CPU time by line, with the library's functions below it by name; the loop in the source",
        "15 % of the CPU time, and 30 % of that at the line, in one function of the library that prepares",
        prepared_inside,
        likely=True,
    ),
    Rule(
        "compiled-again",
        "CPU time in functions of a library by name, and the lines that called them",
        "15 % of the CPU time in compiling, for three lines of functions or more",
        compiled_again,
        likely=True,
    ),
    Rule(
        "repeated-call",
        _LINES,
        "15 % of the CPU time below a call that gets the same each time",
        repeated_call,
        likely=True,
    ),
    Rule(
        "search-in-loop",
        _LINES,
        "15 % of the CPU time at a line that searches the same whole",
        search_in_loop,
        likely=True,
    ),
    Rule("pairs", _LINES, "15 % of the CPU time in the inner of two loops", pairs, likely=True),
    Rule(
        "each-pair",
        _LINES,
        "15 % of the CPU time in a library's function that two loops call for each pair",
        each_pair,
        likely=True,
    ),
    Rule(
        "lazy-in-loop",
        "CPU time by line, with that of a library's threads; the query and the loop in the source",
        "15 % of the CPU time at a line that evaluates a query of the same data",
        lazy_in_loop,
        likely=True,
    ),
    Rule(
        "one-by-one",
        "CPU time by line, with the part of each library's Python code",
        "15 % of the CPU time at a line, half of it in Python code of one library",
        one_by_one,
        likely=True,
    ),
    Rule(
        "pool-waits",
        "waits for locks with the library's functions between, by name",
        "waiting for a pool at one line, all threads together, a fifth of the time, and 0.3 s",
        pool_waits,
        likely=True,
    ),
    Rule(
        "waits-one-by-one",
        "waits of the main thread with their reasons, and its callers; the source of the loop",
        "30 % of the time waiting for sockets or children at one line that a for loop runs, and 0.3 s",
        waits_one_by_one,
        likely=True,
    ),
    Rule(
        "python-arithmetic",
        _LINES,
        "40 % of the CPU time in a function of nested loops",
        python_arithmetic,
        likely=True,
    ),
)
