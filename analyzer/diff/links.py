"""What became of each file, line and function of one recording in another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..report_data.difference import Status
from .source_files import SourceFile, pair_files
from .source_functions import Defined, Definition, Pairs, Place, definitions, pair_definitions
from .source_lines import NOWHERE, follow

MAX_PARSED = 8_000_000
"""Characters of changed sources that are parsed at most to find their functions."""

MODULE = "<module>"
NO_FILE = -1

FunctionKey = tuple[int, str, int]
"""A function: file, qualified name, first line."""


@dataclass
class Direction:
    """Where things of one side are on the other."""

    files: dict[int, int]
    same: set[int]
    """Files that have the same text on the other side (or of which no text is known: then it is assumed)."""
    lines: dict[int, list[Place | None]] = field(default_factory=dict)
    """For changed files the place of each line (index: line - 1) on the other side."""
    blind: set[int] = field(default_factory=set)
    """Files that changed and whose lines cannot be followed."""
    named: dict[FunctionKey, FunctionKey] = field(default_factory=dict)
    """Functions that the texts define and that are on both sides."""
    defined: set[FunctionKey] = field(default_factory=set)
    """All functions that changed texts define."""
    renamed: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)
    by_name: dict[tuple[int, str], FunctionKey] = field(default_factory=dict)
    """Of the other side's functions with time those whose name is unique in their file."""
    unique: set[tuple[int, str]] = field(default_factory=set)
    """Names of this side's functions with time that are unique in their file."""

    def line(self, file: int, line: int) -> Place | None:
        """The place of a line on the other side, None if it has none."""
        if file in self.same:
            return self.files[file], line
        places = self.lines.get(file, [])
        return places[line - 1] if 0 < line <= len(places) else None

    def function(self, key: FunctionKey) -> FunctionKey | None:
        """The function of the other side, None if it has none."""
        file, name, first_line = key
        if file in self.same:
            return self.files[file], name, first_line
        if key in self.named:
            return self.named[key]
        if key in self.defined:
            return None
        if file in self.lines and name != MODULE and name.endswith(">"):
            place = self.line(file, first_line)
            return None if place is None else (place[0], self._renamed_inside(file, name, place[0]), place[1])
        other = self.files.get(file)
        if other is None or (file, name) not in self.unique:
            return None
        return self.by_name.get((other, name))

    def _renamed_inside(self, file: int, name: str, other: int) -> str:
        """The name, on the other side, of a lambda or the like, which may be in a function of another name now."""
        outer, dot, own = name.rpartition(".")
        while dot and self.renamed.get((file, outer), (NO_FILE, ""))[0] != other:
            outer, dot, more = outer.rpartition(".")
            own = f"{more}.{own}"
        return f"{self.renamed[file, outer][1]}.{own}" if dot else name


class Link:
    """Two catalogues of files, and the functions that have time in each, linked in both directions."""

    def __init__(
        self,
        base: Sequence[SourceFile],
        new: Sequence[SourceFile],
        base_functions: Iterable[FunctionKey],
        new_functions: Iterable[FunctionKey],
        *,
        edited: bool = True,
    ) -> None:
        """Whether anything was ``edited`` between the two: within a side of a diff nothing was."""
        self._base, self._new = base, new
        files = pair_files(base, new, edited=edited)
        self.forward = Direction(files, set())
        self.backward = Direction({other: one for one, other in files.items()}, set())
        self.assumed = 0
        """Files whose text neither recording holds, and whose lines are compared by number."""
        self.unparsed = 0
        """Changed files in which functions were not looked for, because there was too much text."""
        self._follow_files()
        self._find_functions()
        own, other = _unique_names(base_functions), _unique_names(new_functions)
        self.forward.by_name, self.forward.unique = other, set(own)
        self.backward.by_name, self.backward.unique = own, set(other)

    def line_status(self, base: Place, new: Place) -> Status:
        """What became of a line that was followed from ``base`` to ``new``."""
        if self.forward.files.get(base[0]) != new[0]:
            return Status.MOVED
        if base[0] in self.forward.same:
            return Status.SAME
        mine, theirs = self._base[base[0]].lines or [], self._new[new[0]].lines or []
        alike = mine[base[1] - 1 : base[1]] == theirs[new[1] - 1 : new[1]]
        return Status.SAME if alike else Status.EDITED

    def function_status(self, base: FunctionKey, new: FunctionKey) -> Status:
        """What became of a function that was followed."""
        if base[1] != new[1]:
            same_place = base[1].rpartition(".")[2] == new[1].rpartition(".")[2]
            return Status.MOVED if same_place else Status.RENAMED
        if self.forward.files.get(base[0]) != new[0]:
            return Status.MOVED
        if base[0] in self.forward.same:
            return Status.SAME
        return Status.EDITED if base in self._edited or base[1] == MODULE else Status.SAME

    def _follow_files(self) -> None:
        for one, other in self.forward.files.items():
            base, new = self._base[one], self._new[other]
            same = base.same_text(new)
            if same is None and not base.has_text and not new.has_text:
                self.assumed += not base.path.startswith("<frozen ")
                same = True
            if same:
                self.forward.same.add(one)
                self.backward.same.add(other)
            elif base.lines is None or new.lines is None:
                self.forward.blind.add(one)
                self.backward.blind.add(other)
            else:
                self.forward.lines[one] = [None] * len(base.lines)
                self.backward.lines[other] = [None] * len(new.lines)
                for line, target in enumerate(follow(base.lines, new.lines), 1):
                    if target != NOWHERE:
                        self._set((one, line), (other, target + 1))

    def _set(self, base: Place, new: Place) -> None:
        """Links two lines, and unlinks what either was linked to."""
        forward, backward = self.forward.lines, self.backward.lines
        if (old := forward[base[0]][base[1] - 1]) is not None:
            backward[old[0]][old[1] - 1] = None
        if (old := backward[new[0]][new[1] - 1]) is not None:
            forward[old[0]][old[1] - 1] = None
        forward[base[0]][base[1] - 1] = new
        backward[new[0]][new[1] - 1] = base

    def _find_functions(self) -> None:
        self._edited: set[FunctionKey] = set()
        if not self.forward.lines:
            return  # No text changed: what is in one recording only merely has no time in the other.
        base, new = self._defined(self._base, self.forward), self._defined(self._new, self.backward)
        self.forward.defined, self.backward.defined = _keys(base), _keys(new)
        pairs = pair_definitions(base, new, self.forward.files, self.forward.line)
        self._follow_functions(pairs)
        for one, other in pairs.items():
            mine = (one.file, one.definition.name, one.definition.first_line)
            theirs = (other.file, other.definition.name, other.definition.first_line)
            self.forward.named[mine], self.backward.named[theirs] = theirs, mine
            self.forward.renamed[one.name], self.backward.renamed[other.name] = other.name, one.name
            if self._text(self._base, one.file, one.definition) != self._text(self._new, other.file, other.definition):
                self._edited.add(mine)

    def _defined(self, files: Sequence[SourceFile], direction: Direction) -> Defined:
        """The definitions of changed files, and of those that have no partner."""
        changed = list(direction.lines)
        alone = [n for n, file in enumerate(files) if n not in direction.files and file.has_text]
        found: Defined = {}
        parsed = 0
        for number in changed + alone:
            text = files[number].text or ""
            parsed += len(text)
            if parsed > MAX_PARSED:
                self.unparsed += 1
                continue
            if (inside := definitions(text)) is not None:
                found[number] = inside
        return found

    def _follow_functions(self, pairs: Pairs) -> None:
        """Follows the lines of functions that are at another place: a diff keeps the order of lines."""
        for one, other in pairs.items():
            mine, theirs = one.definition, other.definition
            self.forward.lines.setdefault(one.file, [None] * len(self._base[one.file].lines or ()))
            self.backward.lines.setdefault(other.file, [None] * len(self._new[other.file].lines or ()))
            places = self.forward.lines[one.file][mine.first_line - 1 : mine.last_line]
            inside = sum(
                place is not None and place[0] == other.file and theirs.first_line <= place[1] <= theirs.last_line
                for place in places
            )
            if inside * 2 >= min(len(places), theirs.last_line - theirs.first_line + 1):
                continue
            targets = follow(self._slice(self._base, one.file, mine), self._slice(self._new, other.file, theirs))
            for step, target in enumerate(targets):
                if target != NOWHERE:
                    self._set((one.file, mine.first_line + step), (other.file, theirs.first_line + target))

    @staticmethod
    def _slice(files: Sequence[SourceFile], file: int, where: Definition) -> list[str]:
        return (files[file].lines or [])[where.first_line - 1 : where.last_line]

    def _text(self, files: Sequence[SourceFile], file: int, where: Definition) -> list[str]:
        """The lines of a function as far as they matter: indentation and empty lines do not."""
        return [stripped for line in self._slice(files, file, where) if (stripped := line.strip())]


def _keys(defined: Defined) -> set[FunctionKey]:
    return {(file, each.name, each.first_line) for file, found in defined.items() for each in found}


def _unique_names(functions: Iterable[FunctionKey]) -> dict[tuple[int, str], FunctionKey]:
    found: dict[tuple[int, str], list[FunctionKey]] = defaultdict(list)
    for key in functions:
        found[key[0], key[1]].append(key)
    return {name: keys[0] for name, keys in found.items() if len(keys) == 1}
