"""Functions of shared_cells.c on the same cells, each called from lines of its own: TRUTH LIBRARY SECONDS [TRACER].

With a tracer it goes through TURNS turns, each call by single steps, and the truth has what was accessed: how often the
pair of two functions of this program met the same value, by kind of access.
"""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

COUNT = 1500
TURNS = 4
FIRST_TURNS = 2
"""Of a traced run, that are not counted: the cells were never accessed before."""
READS, WRITES = 1, 2
NONE = 255
REGISTERS = dict(
    zip(
        ("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rdi", "rsi", "rbp", "rbx", "rdx", "rax", "rcx", "rsp"),
        range(16),
        strict=True,
    )
)
"""Their numbers in gregs of a ucontext."""
MEMORY = re.compile(r"(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+)(?:,(\d))?)?\)")
LINE = re.compile(r"^\s*([0-9a-f]+):\t([a-z]\w*)\s*(.*?)\s*(?:[#<].*)?$")


class Operand(ctypes.Structure):
    """As in single_steps.c."""

    _fields_ = (
        ("offset", ctypes.c_uint64),
        ("displacement", ctypes.c_int64),
        ("base", ctypes.c_uint8),
        ("index", ctypes.c_uint8),
        ("scale", ctypes.c_uint8),
        ("what", ctypes.c_uint8),
        ("unused", ctypes.c_uint32),
    )


class Access(ctypes.Structure):
    """As in single_steps.c."""

    _fields_ = (
        ("address", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("what", ctypes.c_uint32),
        ("context", ctypes.c_uint32),
    )


Cells = ctypes.c_uint64 * COUNT
library = ctypes.CDLL(sys.argv[2])
first, second, third = Cells(), Cells(), Cells()
turn = 0


class Tracer:
    """Calls functions of the library by single steps."""

    def __init__(self, tracer: str) -> None:
        self._steps = ctypes.CDLL(tracer)
        found = operands(sys.argv[2])
        self._operands = (Operand * len(found))(*found)
        self._accesses = (Access * (TURNS * COUNT * 40))()
        begin = ctypes.cast(library.fill, ctypes.c_void_p).value
        assert begin is not None
        self._steps.steps_prepare(
            self._operands,
            ctypes.c_long(len(found)),
            ctypes.c_uint64(begin - symbol(sys.argv[2], "fill")),
            self._accesses,
            ctypes.c_long(len(self._accesses)),
        )
        self._contexts: dict[str, int] = {}

    def call(self, function: Any, cells: Any, other: Any, count: int, value: int) -> None:
        """Calls it for the function of this program that is running."""
        caller = sys._getframe(2).f_code.co_name  # noqa: SLF001
        context = self._contexts.setdefault(caller, len(self._contexts))
        where = ctypes.cast(function, ctypes.c_void_p)
        self._steps.steps_call(where, cells, other, ctypes.c_long(count), ctypes.c_uint64(value), context)

    def start(self) -> None:
        """What came until now is not counted, but as the first access of a pair."""
        self._begin = self._steps.steps_count()

    def pairs(self) -> dict[str, list[list[Any]]]:
        """By kind: the two functions of this program, pairs of accesses, and of them those that met the same value."""
        assert self._steps.steps_lost() == 0
        names = list(self._contexts)
        met: dict[tuple[int, int], tuple[int, int]] = {}
        every: Counter[tuple[int, int, int]] = Counter()
        same: Counter[tuple[int, int, int]] = Counter()
        for at in range(self._steps.steps_count()):
            access = self._accesses[at]
            key = (access.what, access.address)
            if at >= self._begin and key in met:
                context, value = met[key]
                pair = (access.what, context, access.context)
                every[pair] += 1
                same[pair] += value == access.value
            met[key] = (access.context, access.value)
        return {
            kind: [
                [names[a], names[b], count, same[what, a, b]] for (each, a, b), count in every.items() if each == what
            ]
            for kind, what in (("load", READS), ("store", WRITES))
        }


def operands(path: str) -> list[Operand]:
    """The instructions of a library that access memory, but for the stack, as objdump tells them."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True)
    found = []
    for line in text.stdout.splitlines():
        match = LINE.match(line)
        if match is None:
            continue
        offset, name, rest = match.groups()
        memory = MEMORY.search(rest)
        if memory is None or name.startswith(("lea", "nop", "call", "jmp", "ret", "push", "pop", "cs", "data")):
            continue
        displacement, base, index, scale = memory.groups()
        if base in ("%rip", "%rsp"):
            continue
        what = READS
        if memory.end() == len(rest) and not name.startswith(("cmp", "test")):
            what = WRITES if name.startswith(("mov", "set")) else READS | WRITES
        numbers = [NONE if each is None else REGISTERS[each.lstrip("%")] for each in (base, index)]
        found.append(
            Operand(int(offset, 16), int(displacement or "0", 16), numbers[0], numbers[1], int(scale or 1), what, 0)
        )
    return found


def symbol(path: str, name: str) -> int:
    """Where a function is in a library."""
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, capture_output=True, text=True).stdout
    return next(int(line.split()[0], 16) for line in text.splitlines() if line.endswith(f" {name}"))


def directly(function: Any, cells: Any, other: Any, count: int, value: int) -> None:
    function(cells, other, ctypes.c_long(count), ctypes.c_uint64(value))


tracer = Tracer(sys.argv[4]) if len(sys.argv) > 4 else None
call = directly if tracer is None else lambda *of: tracer.call(*of)


def clear() -> None:
    call(library.fill, first, second, COUNT, 0)


def number() -> None:
    call(library.number, first, second, COUNT, turn)


def sum_before() -> None:
    call(library.total, first, second, COUNT, 0)


def highest() -> None:
    call(library.peak, first, second, COUNT, 0)


def keep() -> None:
    call(library.copy, first, second, COUNT, 0)


def sum_after() -> None:
    call(library.total, first, second, COUNT, 0)


def grow() -> None:
    call(library.scale, second, first, COUNT, 3)


def sum_kept() -> None:
    call(library.total, second, first, COUNT, 0)


def mark() -> None:
    call(library.fill, third, first, COUNT, 7)


def mark_again() -> None:
    call(library.fill, third, first, COUNT, 7)


def read_marks() -> None:
    call(library.peak, third, first, COUNT, 0)


def one_turn() -> None:
    for function in (
        *(clear, number, sum_before, highest, keep, sum_after),
        *(grow, sum_kept, mark, mark_again, read_marks),
    ):
        function()


def main() -> None:
    global turn
    truth: dict[str, Any] = {}
    if tracer is not None:
        for turn in range(TURNS):
            if turn == FIRST_TURNS:
                tracer.start()
            one_turn()
        truth = tracer.pairs()
    end = time.process_time() + float(sys.argv[3])
    while tracer is None and time.process_time() < end:
        for _ in range(20):
            turn += 1
            one_turn()
    Path(sys.argv[1]).write_text(json.dumps(truth), encoding="utf-8")


main()
