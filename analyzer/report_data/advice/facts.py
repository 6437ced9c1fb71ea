"""Measurements of each line of the user's own code, and of the functions that it called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...profile.profile import Profile
from ...profile.span_sums import MEASURE, wait_measure
from ...recording.call_tree import NOTHING, Tree
from ...samples.call_paths import PATH_MEASURES
from ...samples.reduction import rank
from ...samples.summary import PROJECT, Scope
from ...statistics.grouped_sums import summed
from ...statistics.intervals import poisson_sums, wilson

_CPU = PATH_MEASURES.index("cpu_ns")
_Ids = NDArray[np.int64]
MAX_STACKS = 200
"""Stacks of one line whose callers are looked at, those with most of its time first."""
MAX_CALLERS = 40

MOST_COLLECTED = 0.5
"""The part of the collector's time that has to be below one function."""

_LOOPS = ("/asyncio/base_events.py", "/nest_asyncio.py", "/trio/_core/_run.py", "/selectors.py")
"""Files whose functions wait for all tasks of an event loop."""


@dataclass(frozen=True, slots=True)
class Callee:
    """A function below a line: ``where`` is its file or library, seconds of CPU time with (and without) its calls."""

    name: str
    where: str
    total_s: float
    own_s: float
    path: str = ""
    """The path of a native function's library."""
    qualified: str = ""
    """The name of a Python function with its class."""


@dataclass(frozen=True, slots=True)
class CallerFrame:
    """A line of the user's own in a stack: its function's name, and the class or function that this is in."""

    file: int
    line: int
    name: str
    owner: str


@dataclass(frozen=True)
class Line:
    """Measurements of a line; libraries' time belongs to the line that called them. Unknown is NaN."""

    file_id: int
    line: int
    cpu_s: float
    share: float
    low: float
    """The low end of the share's interval."""
    python_s: float
    copied_bytes: float
    copied_low: float


@dataclass(frozen=True)
class Below:
    """The functions that one line called, with their CPU time."""

    python: tuple[Callee, ...]
    """Python functions that are not the user's own."""
    native: tuple[Callee, ...]
    packages: Mapping[str, float]
    """Seconds of CPU time by the top-level package whose Python code was innermost; ``""`` is the user's own."""

    def native_s(self, *names: str) -> float:
        """CPU time in native functions of these names, with all that they called; they must not call each other."""
        return sum(each.total_s for each in self.native if each.name in names)

    def python_own_s(self, name: str, *files: str) -> float:
        """CPU time of a Python function itself, in a file whose path ends so."""
        return sum(each.own_s for each in self.python if each.name == name and each.where.endswith(files))

    def python_s(self, folder: str, *names: str) -> float:
        """The most that any function of these names (none: of any name) below ``folder`` has, with its calls."""
        return max(
            (each.total_s for each in self.python if folder in each.where and (not names or each.name in names)),
            default=0.0,
        )

    def library_s(self, folder: str) -> float:
        """CPU time in the native libraries below ``folder``: of one function with its calls, or of all without."""
        theirs = [each for each in self.native if folder in each.path]
        return max(sum(each.own_s for each in theirs), max((each.total_s for each in theirs), default=0.0))


class Facts:
    """The lines of a profile, charged for what they called, whatever the scope of the question."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        calls = profile.calls
        self._tree = calls.tree
        own = Scope(PROJECT)
        mine = np.array([*map(own.includes, self._tree.paths), False], np.bool_)
        self._inside: NDArray[np.bool_] = mine[self._tree.file] & calls.in_scope
        self._charged = self._tree.nearest(self._inside)

    @cached_property
    def lines(self) -> list[Line]:
        """The lines that have CPU time or copies, most CPU time first."""
        tree, sums, totals = self._tree, self.profile.calls.sums, self.profile.totals
        placed = np.flatnonzero(self._charged != NOTHING)
        at = self._charged[placed]
        placed, at = placed[tree.line[at] != NOTHING], at[tree.line[at] != NOTHING]
        if not len(placed):
            return []
        group, count = rank([tree.file[at], tree.line[at]])
        first = np.zeros(count, np.int64)
        first[group[::-1]] = at[::-1]

        def of_lines(name: str) -> NDArray[np.float64]:
            if name not in sums.names:
                return np.full(count, np.nan)
            return summed(group, sums.nodes[placed, sums.column(name)], count)

        cpu, python, copied = of_lines("cpu_ns") / 1e9, of_lines("python_ns") / 1e9, of_lines("copied_bytes")
        rest, variance = of_lines("copied_beyond"), of_lines("copied_variance")
        copied_low = poisson_sums(copied - rest, rest, variance)[0]
        share = cpu / totals.cpu_s if totals.cpu_s > 0 else np.zeros(count)
        low = wilson(share, totals.effective_samples)[0]
        columns = (tree.file[first], tree.line[first], cpu, share, np.nan_to_num(low), python, copied, copied_low)
        rows = zip(*(each.tolist() for each in columns), strict=True)
        return sorted((Line(*row) for row in rows), key=lambda line: (-line.cpu_s, line.file_id, line.line))

    def low(self, cpu_s: float) -> tuple[float, float]:
        """The share of the CPU time that some seconds are, and the low end of its interval."""
        totals = self.profile.totals
        share = cpu_s / totals.cpu_s if totals.cpu_s > 0 else 0.0
        return share, float(np.nan_to_num(wilson(np.array([share]), totals.effective_samples)[0][0]))

    def waiting(self, reason: str) -> dict[tuple[int, int], float]:
        """Seconds that all threads waited for a reason, by file and line."""
        tree, sums = self._tree, self.profile.calls.sums
        name = wait_measure(reason)
        if name not in sums.names:
            return {}
        waited = sums.nodes[:, sums.column(name)]
        waited_s: dict[tuple[int, int], float] = {}
        for node in np.flatnonzero((waited > 0) & (self._charged != NOTHING)).tolist():
            at = self._charged[node]
            place = int(tree.file[at]), int(tree.line[at])
            if place[1] != NOTHING:
                waited_s[place] = waited_s.get(place, 0.0) + float(waited[node]) / 1e9
        return waited_s

    def _waited_ns(self, without: Sequence[str]) -> NDArray[np.float64]:
        """Waiting of each node for anything but some reasons; empty if waiting was not recorded."""
        sums = self.profile.calls.sums
        if "wait_ns" not in sums.names:
            return np.zeros(0)
        left_out = [sums.column(wait_measure(each)) for each in without if wait_measure(each) in sums.names]
        waited: NDArray[np.float64] = sums.nodes[:, sums.column("wait_ns")] - sums.nodes[:, left_out].sum(axis=1)
        return waited

    def waiting_at_lines(self, without: Sequence[str]) -> dict[tuple[int, int], float]:
        """Seconds that all threads waited for anything but some reasons, by file and line."""
        tree, waited = self._tree, self._waited_ns(without)
        waited_s: dict[tuple[int, int], float] = {}
        for node in np.flatnonzero(waited > 0).tolist():
            at = self._charged[node]
            if at != NOTHING and tree.line[at] != NOTHING:
                place = int(tree.file[at]), int(tree.line[at])
                waited_s[place] = waited_s.get(place, 0.0) + float(waited[node]) / 1e9
        return waited_s

    def waiting_below(
        self, name_of: Callable[[int, int], str | None], without: Sequence[str]
    ) -> dict[tuple[int, int, str], list[tuple[int, float]]]:
        """Waits at each line of the user's own (file, line, name) below lines that ``name_of`` names.

        Each is a node of the call tree with its nanoseconds.
        Waiting in an event loop that runs below such a line is left out: a loop waits for its tasks.
        """
        tree, waited = self._tree, self._waited_ns(without)
        nodes = np.flatnonzero(waited > 0)
        nodes = nodes[self._charged[nodes] != NOTHING]
        if not len(nodes):
            return {}
        looping = np.array([each.replace("\\", "/").endswith(_LOOPS) for each in tree.paths] + [False], np.bool_)
        loop = tree.nearest(looping[tree.file])
        named: dict[tuple[int, int], str | None] = {}
        waits: dict[tuple[int, int, str], list[tuple[int, float]]] = {}
        for node in nodes.tolist():
            at = above = int(self._charged[node])
            # Parents come before their children: what is behind the loop's own frames is above the loop.
            while above != NOTHING and above > loop[node]:
                place = int(tree.file[above]), int(tree.line[above])
                if self._inside[above] and place[1] != NOTHING:
                    if place not in named:
                        named[place] = name_of(*place)
                    if named[place] is not None:
                        key = (int(tree.file[at]), int(tree.line[at]), str(named[place]))
                        waits.setdefault(key, []).append((node, float(waited[node])))
                        break
                above = int(tree.parent[above])
        return waits

    def amounts(self, measure: str) -> dict[tuple[int, int], float]:
        """A measure by file and line, where there is any of it; empty if it was not recorded."""
        tree, sums = self._tree, self.profile.calls.sums
        if measure not in sums.names:
            return {}
        amounts, found = sums.nodes[:, sums.column(measure)], dict[tuple[int, int], float]()
        for node in np.flatnonzero((amounts > 0) & (self._charged != NOTHING)).tolist():
            at = self._charged[node]
            place = int(tree.file[at]), int(tree.line[at])
            found[place] = found.get(place, 0.0) + float(amounts[node])
        return found

    def awaited_below(self) -> dict[tuple[int, int], float]:
        """Seconds that tasks awaited at or below each line of the user's own, all tasks together."""
        tree, sums = self._tree, self.profile.calls.sums
        if "await_ns" not in sums.names:
            return {}
        awaited = sums.nodes[:, sums.column("await_ns")]
        spent: dict[tuple[int, int], float] = {}
        for node in np.flatnonzero(awaited > 0).tolist():
            above, lines = node, set()
            while above != NOTHING:
                if self._inside[above] and tree.line[above] != NOTHING:
                    lines.add((int(tree.file[above]), int(tree.line[above])))
                above = int(tree.parent[above])
            for place in lines:
                spent[place] = spent.get(place, 0.0) + float(awaited[node]) / 1e9
        return spent

    def total_waiting(self, reason: str) -> float:
        """Seconds that all threads waited for a reason, also where no Python line is known."""
        sums = self.profile.calls.sums
        return sums.total(wait_measure(reason)) / 1e9 if wait_measure(reason) in sums.names else 0.0

    def spent_within(self, file: int, first: int, last: int) -> float:
        """Seconds that threads ran or waited in a range of lines, with all that these called."""
        tree, sums = self._tree, self.profile.calls.sums
        inside = (tree.file == file) & (tree.line >= first) & (tree.line <= last)
        outermost = tree.outermost(np.where(inside, 0, NOTHING).astype(np.int64))
        columns = [sums.column("cpu_ns"), sums.column("wait_ns")]
        return float(tree.below(sums.nodes[:, columns])[outermost].sum()) / 1e9

    def cpu_below(self, functions: Sequence[tuple[str, str]], not_of: Callable[[str], bool] | None = None) -> float:
        """CPU seconds in some functions, each a name and the end of a file's path, with all that they called.

        ``not_of`` says of a path that what its functions call does not count.
        """
        tree, sums = self._tree, self.profile.calls.sums
        files = (_path(tree.paths, file) for file in tree.function_files.tolist())
        named = zip(tree.function_names, files, strict=True)
        matching = np.array(
            [
                any(name.rpartition(".")[2] == each and file.endswith(end) for each, end in functions)
                for name, file in named
            ]
            + [False],
            np.bool_,
        )
        outermost = tree.outermost(np.where(matching[tree.function], 0, NOTHING).astype(np.int64))
        if not_of is not None:
            theirs = np.array([not_of(_path(tree.paths, file)) for file in range(len(tree.paths))] + [False], np.bool_)
            outermost &= ~theirs[np.append(tree.file, NOTHING)[tree.parent]]
        cpu = sums.nodes[:, [sums.column("cpu_ns")]]
        return float(tree.below(cpu)[outermost].sum()) / 1e9

    def ran_after_import(self, packages: Sequence[str]) -> bool:
        """True if code of some packages has CPU time or waited, other than while a module was imported."""
        tree, sums = self._tree, self.profile.calls.sums
        importing = np.array([path.startswith("<frozen importlib") for path in tree.paths] + [False], np.bool_)
        paths = [path.replace("\\", "/") for path in tree.paths]
        theirs = np.array([package_name(path) in packages for path in paths] + [False], np.bool_)
        spent = sums.nodes[:, [sums.column("cpu_ns"), sums.column("wait_ns")]].sum(axis=1) > 0
        inside = tree.nearest(theirs[tree.file]) != NOTHING
        return bool((spent & inside & (tree.nearest(importing[tree.file]) == NOTHING)).any())

    def collecting_s(self) -> float:
        """CPU time in the garbage collector on lines of the user's own: not in imports, nor at the end."""
        tree, sums = self._tree, self.profile.calls.sums
        importing = np.array([path.startswith("<frozen importlib") for path in tree.paths] + [False], np.bool_)
        own = (self._charged != NOTHING) & (tree.nearest(importing[tree.file]) == NOTHING)
        return float(sums.nodes[own, sums.column(MEASURE)].sum()) / 1e9

    def collecting_below(self) -> tuple[str, float, float] | None:
        """The innermost function of the user's own below which most of the collecting is.

        Its name, its part of the CPU time and of the collector's, with all that it calls. None if most is below the
        modules' own code alone.
        """
        tree, sums = self._tree, self.profile.calls.sums
        columns = sums.nodes[:, [sums.column(MEASURE), sums.column("cpu_ns")]]
        function = np.where(self._inside & (self._charged != NOTHING), tree.function, NOTHING)
        outermost, below = tree.outermost(function), tree.below(columns)
        whole = columns.sum(axis=0)
        placed = outermost & (function != NOTHING)
        count = len(tree.function_names)
        collected, cpu = (summed(function[placed], below[placed, each], count) for each in (0, 1))
        most = np.flatnonzero(collected >= MOST_COLLECTED * whole[0]).tolist()
        named = [each for each in most if not tree.function_names[each].startswith("<")]
        if not named or whole[0] <= 0:
            return None
        inner = min(named, key=lambda each: (cpu[each], each))
        return tree.function_names[inner], float(cpu[inner] / whole[1]), float(collected[inner] / cpu[inner])

    def function(self, file: int, line: int) -> str | None:
        """The name of the function that most of a line's time belongs to."""
        tree, sums = self._tree, self.profile.calls.sums
        cpu = sums.nodes[:, sums.column("cpu_ns")]
        nodes = np.flatnonzero((tree.file == file) & (tree.line == line) & (tree.function != NOTHING))
        if not len(nodes):
            return None
        functions = tree.function[nodes]
        by_function = summed(functions, cpu[nodes], len(tree.function_names))
        return tree.function_names[int(functions[np.argmax(by_function[functions])])]

    def callers(self, file: int, line: int, measure: str = "cpu_ns") -> list[CallerFrame]:
        """The user's own lines of the stack that most of a line's CPU time has, the line itself first."""
        tree, charged = self._tree, self._charged
        cpu = self.profile.calls.sums.nodes[:, self.profile.calls.sums.column(measure)]
        placed = charged != NOTHING
        amounts = np.bincount(charged[placed], weights=cpu[placed], minlength=len(tree))
        nodes = np.flatnonzero((tree.file == file) & (tree.line == line) & self._inside)
        stacks: dict[tuple[CallerFrame, ...], float] = {}
        for node in nodes[np.argsort(-amounts[nodes], kind="stable")][:MAX_STACKS].tolist():
            stack: list[CallerFrame] = []
            at = node
            while at != NOTHING and len(stack) < MAX_CALLERS:
                if self._inside[at] and tree.line[at] != NOTHING and tree.function[at] != NOTHING:
                    *owners, name = tree.function_names[int(tree.function[at])].split(".")
                    stack.append(CallerFrame(int(tree.file[at]), int(tree.line[at]), name, (owners or [""])[-1]))
                at = int(tree.parent[at])
            key: tuple[CallerFrame, ...] = tuple(stack)
            stacks[key] = stacks.get(key, 0.0) + float(amounts[node])
        if not stacks:
            return []
        most: tuple[CallerFrame, ...] = max(stacks, key=lambda each: stacks[each])
        return list(most)

    def waited_in(self, file: int, line: int, reason: str) -> dict[str, float]:
        """Seconds waited for a reason at a line, by the functions of libraries (with their classes) on the way."""
        tree, sums = self._tree, self.profile.calls.sums
        name = wait_measure(reason)
        if name not in sums.names:
            return {}
        waited, spent = sums.nodes[:, sums.column(name)], dict[str, float]()
        for node in np.flatnonzero((waited > 0) & (self._charged != NOTHING)).tolist():
            charged, at, on_way = int(self._charged[node]), node, set()
            if (tree.file[charged], tree.line[charged]) != (file, line):
                continue
            while at != charged:
                if tree.function[at] != NOTHING:
                    on_way.add(tree.function_names[int(tree.function[at])])
                at = int(tree.parent[at])
            for each in on_way:
                spent[each] = spent.get(each, 0.0) + float(waited[node]) / 1e9
        return spent

    def cpu_inside(self, wanted: Callable[[str, str], bool]) -> tuple[float, str, str, dict[tuple[int, int], float]]:
        """CPU seconds in functions of libraries (name with class, path) with their calls, other than in imports.

        With that the function that has most of it, its path, and the user's own lines that called them.
        """
        tree, sums = self._tree, self.profile.calls.sums
        functions = [
            (name, _path(tree.paths, file))
            for name, file in zip(tree.function_names, tree.function_files.tolist(), strict=True)
        ]
        matching = np.array([wanted(*each) for each in functions] + [False], np.bool_)
        importing = np.array(["importlib._bootstrap" in path for _, path in functions] + [False], np.bool_)
        outermost = tree.outermost(np.where(matching[tree.function] & ~self._inside, 0, NOTHING).astype(np.int64))
        below = tree.below(sums.nodes[:, [sums.column("cpu_ns")]])[:, 0] / 1e9
        in_import = tree.nearest(importing[tree.function]) != NOTHING
        by_function, lines, whole = dict[int, float](), dict[tuple[int, int], float](), 0.0
        for node in np.flatnonzero(outermost & ~in_import & (self._charged != NOTHING)).tolist():
            at, spent = int(self._charged[node]), float(below[node])
            whole += spent
            by_function[int(tree.function[node])] = by_function.get(int(tree.function[node]), 0.0) + spent
            place = int(tree.file[at]), int(tree.line[at])
            lines[place] = lines.get(place, 0.0) + spent
        most = max(by_function, key=lambda each: by_function[each], default=None)
        return (whole, *(("", "") if most is None else functions[most]), lines)

    def cpu_at(self, file: int, line: int) -> float:
        """CPU seconds at a line, with all that it called."""
        tree, sums = self._tree, self.profile.calls.sums
        here = (tree.file == file) & (tree.line == line)
        outermost = tree.outermost(np.where(here, 0, NOTHING).astype(np.int64))
        return float(tree.below(sums.nodes[:, [sums.column("cpu_ns")]])[outermost].sum()) / 1e9

    @cached_property
    def _paths(self) -> tuple[_Ids, _Ids]:
        """The file and the line that each node of the call paths is charged to."""
        paths, tree = self.profile.paths.tree, self._tree
        inside = (paths.stack != NOTHING) & np.append(self._inside, False)[paths.stack]
        at = np.append(paths.stack, NOTHING)[paths.nearest(inside)]
        return np.append(tree.file, NOTHING)[at], np.append(tree.line, NOTHING)[at]

    def share_of_libraries(self, measure: str, file_id: int, line: int) -> float:
        """The part (0..1) of a line's measure that is in code outside of the project; 0 if the line has none of it."""
        calls, tree = self.profile.calls, self._tree
        node = calls.charged
        mine = (node != NOTHING) & (tree.file[node] == file_id) & (tree.line[node] == line)
        amounts = calls.sums.nodes[:, calls.sums.names.index(measure)]
        whole = float(amounts[mine].sum())
        return float(amounts[mine & ~self._inside].sum()) / whole if whole > 0 else 0.0

    def below(self, line: Line) -> Below:
        """The functions that a line called, with their CPU time."""
        facts, tree = self.profile.paths, self._tree
        files, lines = self._paths
        nodes = np.flatnonzero((files == line.file_id) & (lines == line.line))
        place = np.full(len(facts.tree) + 1, NOTHING, np.int64)
        place[nodes] = np.arange(len(nodes))
        paths = Tree(place[facts.tree.parent[nodes]])
        stack, native = facts.tree.stack[nodes], facts.tree.native[nodes]
        cpu = facts.sums[nodes, _CPU] / 1e9
        # A Python function's own time includes that of the native ones that it called.
        is_python = stack != NOTHING
        innermost = paths.nearest(is_python)
        python_own = summed(innermost[innermost != NOTHING], cpu[innermost != NOTHING], len(nodes))
        theirs = is_python & ~np.append(self._inside, False)[stack]
        function = np.where(theirs, np.append(tree.function, NOTHING)[stack], NOTHING)
        names, where = tree.function_names, tree.function_files
        python = [
            Callee(
                names[each].rpartition(".")[2], _path(tree.paths, int(where[each])), total, own, qualified=names[each]
            )
            for each, total, own in _summed(paths, function, cpu, python_own)
        ]
        libraries = facts.functions.libraries
        natives = [
            Callee(facts.functions.names[each], libraries[each] or "", total, own, facts.functions.paths[each] or "")
            for each, total, own in _summed(paths, native, cpu, cpu)
        ]
        packages: dict[str, float] = {}
        for each in np.flatnonzero(python_own > 0).tolist():
            package = package_name(_path(tree.paths, int(tree.file[stack[each]]))) if theirs[each] else ""
            packages[package] = packages.get(package, 0.0) + float(python_own[each])
        return Below(tuple(python), tuple(natives), packages)


def _path(paths: list[str], file: int) -> str:
    return paths[file].replace("\\", "/") if file != NOTHING else ""


def _summed(
    paths: Tree, keys: _Ids, cpu: NDArray[np.float64], own: NDArray[np.float64]
) -> list[tuple[int, float, float]]:
    """For each key its CPU time with all below it, each sample once, and its own."""
    size = int(keys.max(initial=-1)) + 1
    outermost, placed = paths.outermost(keys), keys != NOTHING
    below = paths.below(cpu[:, np.newaxis])[:, 0]
    total = summed(keys[outermost], below[outermost], size)
    alone = summed(keys[placed], own[placed], size)
    return [(key, float(total[key]), float(alone[key])) for key in np.flatnonzero(total > 0).tolist()]


def installed_package(path: str) -> str:
    """The top-level package that a file is installed with; empty of one that is not."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.rpartition(folder)[2].partition("/")[0].removesuffix(".py")
    return ""


def package_name(path: str) -> str:
    """The top-level package of a library's file, or the file's own name."""
    own = path.rpartition("/")[2].removesuffix(".py") if "/" in path else path
    return installed_package(path) or own
