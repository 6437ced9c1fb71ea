"""Call trees of the report: the callees of the program, and of one line, with the rest folded.

Both are made of the sums by call path (``samples.call_paths``), so that they add up to the figures of every other view.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..recording.call_tree import NOTHING, Branching
from ..recording.native_names import short_library
from ..recording.text import printable
from ..samples.call_paths import PATH_MEASURES, PathFacts, labels
from ..samples.summary import UNKNOWN_CODE
from .profile import Profile

HELD = ("allocated_bytes", "live_at_peak_bytes", "live_at_end_bytes", "copied_bytes")
"""Measures in bytes of a branch, as far as they were recorded."""

_CPU, _PYTHON, _NATIVE, _KERNEL, _GUESSED, _WAIT = (
    PATH_MEASURES.index(name) for name in ("cpu_ns", "python_ns", "native_ns", "kernel_ns", "guessed_ns", "wait_ns")
)


COMPILATION = ("compilation",)
"""The key of the branch of a JIT compiler."""

_COMPILER = ("_compile_for_args", "numba/core/dispatcher.py")
"""The function of numba that compiles another one, and its file."""


@dataclass
class Branch(Branching):
    """A function (or a label without a stack) and its callees. Times in seconds; text is printable."""

    name: str
    language: str | None
    """``python``, ``native``, or None for a label."""
    file: str | None = None
    """Its source file; of a native function None where no debug information was recorded."""
    line: int | None = None
    """Its first line."""
    library: str | None = None
    """The file name of the module that holds a native function."""
    module: str | None = None
    """The same in short, with its package."""
    cpu_s: float = 0.0
    """CPU time with all that it called."""
    own_cpu_s: float = 0.0
    python_s: float = 0.0
    native_s: float = 0.0
    kernel_s: float = 0.0
    guessed_s: float = 0.0
    """The part of ``cpu_s`` whose native path is a guess."""
    wait_s: float | None = None
    """Waiting, with all that it called, for anything but a processor; None where it was not recorded."""
    allocated_bytes: float | None = None
    """Bytes that it allocated, callees included; this and the next are None where they were not recorded."""
    live_at_peak_bytes: float | None = None
    live_at_end_bytes: float | None = None
    copied_bytes: float | None = None
    children: list[Branch] = field(default_factory=list)
    """The one with most CPU time first."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A line in scope that called the function of another one; ``share`` (0..1) is of the time spent there."""

    function: str
    file: str
    line: int
    share: float


@dataclass(frozen=True)
class LineCalls:
    """Callees of one line: CPU time, waiting, allocations and copies below it.

    Functions in scope that it called are not part of it.
    """

    file: str
    line: int
    source: str | None
    whole: Branch
    """The line itself; its children are the callees that are out of scope or native."""
    own: dict[str, float]
    """The part that is not its children's, by recorded measure of ``HELD``, and ``wait_s`` where recorded."""
    callers: tuple[Caller, ...] = ()
    """The lines in scope from which its function was called, the most time first; none where no caller is in scope."""


def call_tree(profile: Profile) -> list[Branch]:
    """The functions in scope as they called each other, the heaviest first.

    Of libraries the called function is shown, and below it those native functions in which the time was
    spent; frames between are folded. A native function that passes a call on to Python code of its own package is
    folded (numpy's dispatcher), and so are functions of the interpreter whose time is mostly Python's.
    """
    facts, scope = profile.paths, profile.calls.in_scope
    growing = _Branches(facts, profile.calls.waits_known)
    shown, place, entered = (np.full(len(facts.tree) + 1, NOTHING, np.int64) for _ in range(3))
    own = facts.sums[:, _CPU] > 0
    columns = (facts.tree.parent, facts.tree.stack, facts.tree.native, facts.tree.label, own)
    for node, (parent, stack, native, label, used) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        above, entry = int(shown[parent]), int(entered[parent])
        if label != NOTHING or (stack != NOTHING and scope[stack]):
            shown[node] = place[node] = growing.child(above, growing.key(stack, native, label))
            continue
        if entry != NOTHING and stack != NOTHING and growing.dispatches(entry, stack):
            above, entry = growing.caller(entry), NOTHING
        if entry == NOTHING:
            entry = growing.child(above, growing.key(stack, native, label))
            shown[node] = place[node] = entered[node] = entry
            continue
        shown[node] = entered[node] = place[node] = entry
        if native != NOTHING and used:
            place[node] = growing.child(entry, growing.key(stack, native, label))
    return growing.finished(place[:-1], drop_python=True)


def line_calls(profile: Profile, where: str) -> LineCalls:
    """CPU time, waiting, allocations and copies below the line ``FILE:N``.

    Errors:
        FormatError: it is not a line, no file or several files are meant, or nothing was charged to the line.
    """
    return calls_of_line(profile, *_line_named(where, profile))


def calls_of_line(profile: Profile, file: int, number: int) -> LineCalls:
    """The same of a line of a file by its row in ``files``.

    Errors:
        FormatError: nothing was charged to the line.
    """
    facts, tree = profile.paths, profile.calls.tree
    in_scope, stack = profile.calls.in_scope, facts.tree.stack
    python = stack != NOTHING
    anchors = facts.tree.nearest(python & np.append(in_scope, False)[stack])
    at = np.append(stack, NOTHING)[anchors]
    mine = (at != NOTHING) & (np.append(tree.file, NOTHING)[at] == file) & (np.append(tree.line, NOTHING)[at] == number)
    times = (facts.sums[:, _CPU], facts.sums[:, _WAIT])
    if not any((values[mine] > 0).any() for values in (*times, *facts.held.values())):
        charged = "no time and no memory" if facts.held else "no time"
        place = printable(f"{tree.paths[file]}:{number}", 200)
        raise FormatError(f"{place}: {charged} was charged to this line (see --scope, --from and --to)")
    growing = _Branches(facts, profile.calls.waits_known)
    root = growing.child(NOTHING, ("line",))
    places = np.full(len(facts.tree), NOTHING, np.int64)
    columns = (facts.tree.parent, stack, facts.tree.native)
    for node, (parent, python_node, native) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if mine[node]:
            above = root if anchors[node] == node else int(places[parent])
            key = growing.key(python_node, native, NOTHING)
            places[node] = root if anchors[node] == node else growing.below(above, key, python_node)
    (whole,) = growing.finished(places)
    own = {
        name: max(0.0, getattr(whole, name) - sum(getattr(child, name) for child in whole.children))
        for name in ("wait_s", *HELD)
        if getattr(whole, name) is not None
    }
    source, callers = profile.sources.line(file, number), _callers(profile, file, number)
    return LineCalls(printable(tree.paths[file], 4096), number, source, whole, own, callers)


def _callers(profile: Profile, file: int, number: int) -> tuple[Caller, ...]:
    """The lines in scope from which the function of a line was called, by the time that was charged to the line."""
    calls, tree = profile.calls, profile.calls.tree
    at = calls.charged
    mine = np.flatnonzero(at != NOTHING)
    mine = mine[(tree.file[at[mine]] == file) & (tree.line[at[mine]] == number)]
    spent = calls.sums.nodes[:, [calls.sums.column(name) for name in ("cpu_ns", "wait_ns")]].sum(axis=1)[mine]
    above = np.append(tree.parent, NOTHING)[at[mine]]
    caller = np.append(tree.nearest(calls.in_scope), NOTHING)[above]
    sums: dict[tuple[int, int, int], float] = {}
    for node, amount in zip(caller.tolist(), spent.tolist(), strict=True):
        if node != NOTHING and amount > 0 and tree.line[node] != NOTHING and tree.function[node] != NOTHING:
            key = int(tree.function[node]), int(tree.file[node]), int(tree.line[node])
            sums[key] = sums.get(key, 0.0) + amount
    whole = float(spent.sum())
    return tuple(
        Caller(
            printable(tree.function_names[function]),
            printable(tree.paths[path], 4096),
            line,
            sums[function, path, line] / whole,
        )
        for function, path, line in sorted(sums, key=lambda key: (-sums[key], key))
    )


class _Branches:
    """Branches by number, equal ones of one caller being one; a function that calls itself is one with its caller."""

    def __init__(self, facts: PathFacts, waits_known: bool) -> None:
        self._facts = facts
        self._waits_known = waits_known
        self._numbers: dict[tuple[int, Hashable], int] = {}
        self._keys: list[tuple[str, int] | tuple[str]] = []
        self._parent: list[int] = []
        calls = facts.calls
        self._compilers = {
            number
            for number, (name, file) in enumerate(zip(calls.function_names, calls.function_files.tolist(), strict=True))
            if name.rpartition(".")[2] == _COMPILER[0] and file != NOTHING and calls.paths[file].endswith(_COMPILER[1])
        }

    def key(self, stack: int, native: int, label: int) -> tuple[str, int]:
        if stack != NOTHING:
            return "python", int(self._facts.calls.function[stack])
        return ("native", native) if native != NOTHING else ("label", label)

    def child(self, parent: int, key: tuple[str, int] | tuple[str]) -> int:
        if parent != NOTHING and self._keys[parent] == key:
            return parent
        number = self._numbers.setdefault((parent, key), len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
            self._parent.append(parent)
        return number

    def below(self, parent: int, key: tuple[str, int] | tuple[str], stack: int) -> int:
        """The same, where a JIT compiler is one branch of its caller, with all of its passes and native code."""
        if self._keys[parent] == COMPILATION:
            return parent
        if key[0] != "python" or key[-1] not in self._compilers:
            return self.child(parent, key)
        while self.dispatches(parent, stack):
            parent = self._parent[parent]
        return self.child(parent, COMPILATION)

    def caller(self, number: int) -> int:
        """The caller of a branch."""
        return self._parent[number]

    def dispatches(self, number: int, stack: int) -> bool:
        """True if a branch is a native function of the same package as the Python frame ``stack``."""
        kind, *which = self._keys[number]
        file = int(self._facts.calls.file[stack])
        if kind != "native" or file == NOTHING:
            return False
        package = short_library(self._facts.functions.paths[which[0]]).partition("/")
        return bool(package[1]) and f"-packages/{package[0]}/" in self._facts.calls.paths[file].replace("\\", "/")

    def finished(self, place: NDArray[np.int64], *, drop_python: bool = False) -> list[Branch]:
        """The branches without a caller, with the sums of the nodes at ``place``.

        ``drop_python`` folds native functions into their callers whose time is mostly Python's and that call none.
        """
        held = [name for name in HELD if name in self._facts.held]
        values = np.column_stack([self._facts.sums, *(self._facts.held[name] for name in held)])
        sums = np.zeros((len(self._keys), values.shape[1]))
        np.add.at(sums, place[place != NOTHING], values[place != NOTHING])
        own = sums[:, _CPU].tolist()
        python = [key[0] == "python" for key in self._keys]
        for number in range(len(self._parent) - 1, -1, -1):
            above = self._parent[number]
            if above != NOTHING:
                sums[above] += sums[number]
                python[above] |= python[number]
        bytes_ = sums[:, len(PATH_MEASURES) :].tolist()
        branches = [
            replace(self._branch(number, row, own[number]), **dict(zip(held, bytes_[number], strict=True)))
            for number, row in enumerate(sums[:, : len(PATH_MEASURES)] / 1e9)
        ]
        roots: list[Branch] = []
        dropped = [False] * len(branches)
        for number, branch in enumerate(branches):
            above = self._parent[number]
            if above != NOTHING and dropped[above]:
                dropped[number] = True
            elif drop_python and above != NOTHING and not python[number] and _mostly_python(branch):
                dropped[number] = True
                branches[above].own_cpu_s += branch.cpu_s
            elif branch.cpu_s > 0 or branch.wait_s or any(bytes_[number]):
                (roots if above == NOTHING else branches[above].children).append(branch)
        for branch in branches:
            branch.children.sort(key=_least)
        return sorted(roots, key=_least)

    def _branch(self, number: int, seconds: NDArray[np.float64], own_ns: float) -> Branch:
        kind, *which = self._keys[number]
        calls, functions = self._facts.calls, self._facts.functions
        columns = (_CPU, _PYTHON, _NATIVE, _KERNEL, _GUESSED)
        cpu_s, python_s, native_s, kernel_s, guessed_s = (float(seconds[column]) for column in columns)
        times = Branch("", None, None, None, None, None, cpu_s, own_ns / 1e9, python_s, native_s, kernel_s, guessed_s)
        times.wait_s = float(seconds[_WAIT]) if self._waits_known else None
        if kind == "label":
            return replace(times, name=labels()[which[0]])
        if kind == COMPILATION[0]:
            return replace(times, name="compilation by numba")
        if kind == "native":
            path, name = functions.paths[which[0]], functions.names[which[0]]
            library = functions.libraries[which[0]]
            source, line = functions.sources[which[0]], functions.lines[which[0]]
            return replace(
                times,
                name=name,
                language="native",
                file=source,
                line=line,
                library=library,
                module=short_library(path),
            )
        if kind == "line" or which[0] == NOTHING:
            return replace(times, name="" if kind == "line" else UNKNOWN_CODE, language="python")
        file, line = int(calls.function_files[which[0]]), int(calls.function_lines[which[0]])
        path = None if file == NOTHING else printable(calls.paths[file], 4096)
        return replace(times, name=printable(calls.function_names[which[0]]), language="python", file=path, line=line)


def _mostly_python(branch: Branch) -> bool:
    """True if the time of a native function is mostly Python's, or if it has no CPU time."""
    return branch.cpu_s <= 0 or 2 * branch.python_s > branch.cpu_s


def _least(branch: Branch) -> float:
    return -branch.cpu_s


def _line_named(where: str, profile: Profile) -> tuple[int, int]:
    """The file and the number of ``FILE:N``; FILE is a path or the end of one.

    Of several such files, the one whose line has any time or memory.
    """
    name, _, digits = where.replace("\\", "/").rpartition(":")
    if not name or not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        raise FormatError(f"--line '{printable(where, 80)}' is not FILE:N, a file and the number of a line")
    paths = [path.replace("\\", "/") for path in profile.calls.tree.paths]
    files = [number for number, path in enumerate(paths) if path == name]
    files = files or [number for number, path in enumerate(paths) if path.endswith(f"/{name.removeprefix('./')}")]
    if not files:
        raise FormatError(f"no recorded file is '{printable(name, 80)}'")
    if len({paths[number] for number in files}) > 1:
        lines = zip(profile.frames.lines["file_id"].tolist(), profile.frames.lines["line"].tolist(), strict=True)
        charged = {file for file, line in lines if line == int(digits)}
        files = [number for number in files if number in charged] or files
    if len({paths[number] for number in files}) > 1:
        several = ", ".join(printable(paths[number], 80) for number in files[:3])
        raise FormatError(f"'{printable(name, 80)}' may be several files: {several}")
    return files[0], int(digits)
