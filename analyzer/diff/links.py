"""Links the files, lines and functions of one recording to those of another.

Files may be in other checkouts, or moved, or renamed. A pair of files is made only if it is certain: each of the two is
the other's only best partner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from ..recording.opened import Recording
from ..recording.sources import main_files, shown_paths
from ..recording.text import printable
from ..report_data.difference import Status
from .source_functions import NOWHERE, Defined, Definition, Pairs, Place, definitions, follow, pair_definitions

MAX_TEXT = 4_000_000
"""Characters of a text beyond which its lines are not followed."""

SIMILAR = 0.5
"""A file of another name is the same file if this part of the shorter one's distinctive lines is in both."""

LIKE_NAMED = 0.3
"""The same for a file of the same name in another folder, and of all its lines."""

MIN_COMMON_LINES = 5

MAX_SEARCHED = 20_000_000
"""Characters of text that are searched for similar files at most."""

_SHORT_LINE = 12
"""Shorter lines (``return None``, ``else:``) do not identify a file."""

_Score = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One file as a recording holds it; ``sha256`` is None if it was not read."""

    path: str
    sha256: str | None
    _texts: pa.ChunkedArray = field(repr=False)
    _row: int = 0
    _lines: list[list[str] | None] = field(default_factory=list, repr=False)
    is_cell: bool = False
    """True if it is a cell of a notebook; its path is its number then, which is another one in each run of the cell."""
    cell_id: str | None = None
    other_paths: tuple[str, ...] = ()
    """Paths of the same file on the disk."""
    stands: bool = True
    """False for a further path of a file that another one stands for: it has no code and no partner."""

    @property
    def paths(self) -> frozenset[str]:
        """All its paths."""
        return frozenset((self.path, *self.other_paths))

    @cached_property
    def name(self) -> str:
        """Its path, fit to be shown."""
        return printable(self.path, 4096)

    @property
    def text(self) -> str | None:
        """Its text, None if the recording does not hold it (or it is absurdly long)."""
        text: str | None = self._texts[self._row].as_py()
        return text if text is not None and len(text) <= MAX_TEXT else None

    @property
    def lines(self) -> list[str] | None:
        """Its lines, without their ends, numbered as Python numbers them; None without a text."""
        if not self._lines:
            text = self.text
            # Not splitlines(): Python's own line numbers know only these line ends.
            split = None if text is None else text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            self._lines.append(split)
        return self._lines[0]

    @property
    def has_text(self) -> bool:
        """True if the recording holds the text."""
        return bool(self._texts[self._row].is_valid)

    def same_text(self, other: SourceFile) -> bool | None:
        """True if both have the same text, None if it is unknown."""
        if self.sha256 is not None and other.sha256 is not None:
            return self.sha256 == other.sha256
        if self.has_text and other.has_text:
            return self.text == other.text
        return None


def catalogue(recording: Recording) -> list[SourceFile]:
    """The files of a recording, by file id; they stay readable after it is closed."""
    files = recording.table("files")
    digests, cells, ids = (files.column(name).to_pylist() for name in ("sha256", "cell", "cell_id"))
    paths, main = shown_paths(files), main_files(files).tolist()
    others: dict[int, list[str]] = defaultdict(list)
    for row, stands_for_it in enumerate(main):
        if row != stands_for_it:
            others[stands_for_it].append(paths[row])
    return [
        SourceFile(
            path,
            digest,
            files.column("source"),
            row,
            is_cell=cell is not None,
            cell_id=cell_id,
            other_paths=tuple(sorted(others[row])),
            stands=main[row] == row,
        )
        for row, (path, digest, cell, cell_id) in enumerate(zip(paths, digests, cells, ids, strict=True))
    ]


def pair_files(base: Sequence[SourceFile], new: Sequence[SourceFile], *, edited: bool = True) -> dict[int, int]:
    """The file of ``new`` for each file of ``base`` that has one, by number.

    Where nothing was ``edited`` between the two, a file that is in one of them only has no other that resembles it.
    """
    pairs: dict[int, int] = {}
    _pair_by(lambda file: () if file.is_cell else (file.path,), base, new, pairs)
    _pair_by(lambda file: () if file.is_cell else (file.path, *file.other_paths), base, new, pairs)
    _pair_by(lambda file: () if file.cell_id is None else (file.cell_id,), base, new, pairs)
    _Pairs(base, new, pairs).find(edited=edited)
    return pairs


def _pair_by(
    keys: Callable[[SourceFile], tuple[str, ...]],
    base: Sequence[SourceFile],
    new: Sequence[SourceFile],
    pairs: dict[int, int],
) -> None:
    """Adds pairs of those without a partner that have a key in common; where several have it, the last of them."""
    taken = set(pairs.values())
    own = {key: n for n, file in enumerate(base) if n not in pairs and file.stands for key in keys(file)}
    other = {key: n for n, file in enumerate(new) if n not in taken and file.stands for key in keys(file)}
    for key, number in own.items():
        partner = other.get(key)
        if partner is not None and number not in pairs and partner not in taken:
            pairs[number] = partner
            taken.add(partner)


class _Pairs:
    """Pairs in the making, the surest first."""

    def __init__(self, base: Sequence[SourceFile], new: Sequence[SourceFile], pairs: dict[int, int]) -> None:
        self._base, self._new, self._pairs = base, new, pairs

    def find(self, *, edited: bool) -> None:
        """Add the pairs that are certain."""
        self._by_path_end(lambda common: common >= 2)
        self._by_text()
        self._by_path_end(lambda common: common == 1)
        if edited:
            self._by_similarity()

    def _left(self) -> tuple[list[int], list[int]]:
        """Files without a partner that have a real path."""
        taken = set(self._pairs.values())
        base = [n for n, file in enumerate(self._base) if n not in self._pairs and _may_pair(file)]
        return base, [n for n, file in enumerate(self._new) if n not in taken and _may_pair(file)]

    def _by_path_end(self, accepts: Callable[[int], bool]) -> None:
        """The same place in another checkout: the longest common end of the paths."""
        base, new = self._left()
        names: dict[str, list[int]] = defaultdict(list)
        for number in new:
            names[_parts(self._new[number].path)[-1]].append(number)
        scores: dict[tuple[int, int], _Score] = {}
        for one in base:
            parts = _parts(self._base[one].path)
            for other in names.get(parts[-1], ()):
                common = _common_end(parts, _parts(self._new[other].path))
                if accepts(common) and (common > 1 or self._plausible(one, other)):
                    scores[one, other] = (common,)
        self._take_best(scores)

    def _plausible(self, one: int, other: int) -> bool:
        """True if files that have only their name in common may be the same."""
        base, new = self._base[one], self._new[other]
        if (same := base.same_text(new)) is True:
            return True
        if base.lines is None or new.lines is None:
            return same is None
        mine, theirs = ({line.strip() for line in file.lines or ()} - {""} for file in (base, new))
        return bool(mine and theirs) and len(mine & theirs) >= LIKE_NAMED * min(len(mine), len(theirs))

    def _by_text(self) -> None:
        base, new = self._left()
        scores: dict[tuple[int, int], _Score] = {}
        digests: dict[str, list[int]] = defaultdict(list)
        for number in new:
            if digest := self._new[number].sha256:
                digests[digest].append(number)
        for one in base:
            for other in digests.get(self._base[one].sha256 or "", ()):
                scores[one, other] = (1,)
        self._take_best(scores)

    def _by_similarity(self) -> None:
        base, new = self._left()
        files = [self._base[n] for n in base] + [self._new[n] for n in new]
        if not base or not new or sum(len(file.text or "") for file in files) > MAX_SEARCHED:
            return
        where: dict[str, list[int]] = defaultdict(list)
        lines_of = {number: _distinctive(self._new[number]) for number in new}
        for number, lines in lines_of.items():
            for line in lines:
                where[line].append(number)
        scores: dict[tuple[int, int], _Score] = {}
        for one in base:
            lines = _distinctive(self._base[one])
            shared = Counter(number for line in lines for number in where.get(line, ()))
            for other in shared:
                score = _similarity(lines, lines_of[other])
                if score >= SIMILAR:
                    scores[one, other] = (score,)
        self._take_best(scores)

    def _take_best(self, scores: dict[tuple[int, int], _Score]) -> None:
        """Pairs each two that are each other's only best."""
        best_of_base, best_of_new = _only_best(scores, 0), _only_best(scores, 1)
        for one, other in best_of_base.items():
            if best_of_new.get(other) == one:
                self._pairs[one] = other


def _only_best(scores: dict[tuple[int, int], _Score], side: int) -> dict[int, int]:
    best: dict[int, tuple[_Score, int | None]] = {}
    for pair, score in scores.items():
        own, other = pair[side], pair[1 - side]
        current = best.get(own)
        if current is None or score > current[0]:
            best[own] = (score, other)
        elif score == current[0]:
            best[own] = (score, None)
    return {own: other for own, (_, other) in best.items() if other is not None}


def _may_pair(file: SourceFile) -> bool:
    return file.stands and not _nameless(file.path)


def _nameless(path: str) -> bool:
    return path.startswith("<")


def _parts(path: str) -> list[str]:
    return path.replace("\\", "/").split("/")


def _common_end(one: list[str], other: list[str]) -> int:
    count = 0
    for mine, theirs in zip(reversed(one), reversed(other), strict=False):
        if mine != theirs or not mine:
            break
        count += 1
    return count


def _distinctive(file: SourceFile) -> set[str]:
    """Lines that identify a file."""
    return {stripped for line in file.lines or () if len(stripped := line.strip()) >= _SHORT_LINE}


def _similarity(one: set[str], other: set[str]) -> float:
    shared = len(one & other)
    return shared / min(len(one), len(other)) if shared >= MIN_COMMON_LINES else 0.0


MAX_PARSED = 8_000_000
"""Characters of changed sources that are parsed at most to find their functions."""

MODULE = "<module>"
NO_FILE = -1

FunctionKey = tuple[int, str, int]
"""A function: file, qualified name, first line."""

_Functions = Mapping[tuple[int, str], FunctionKey]
"""By file and name, those of which one side has one alone."""


@dataclass
class Direction:
    """Where things of one side are on the other."""

    files: dict[int, int]
    same: set[int]
    """Files that have the same text on the other side (or of which no text is known, and whose functions begin where
    they did: then it is assumed)."""
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
        """Links two sets of sources. ``edited`` is False within a side of a diff, where nothing was edited."""
        self._base, self._new = base, new
        files = pair_files(base, new, edited=edited)
        self.forward = Direction(files, set())
        self.backward = Direction({other: one for one, other in files.items()}, set())
        self.assumed = 0
        """Files whose text neither recording holds, and whose lines are compared by number."""
        self.unparsed = 0
        """Changed files in which functions were not looked for, because there was too much text."""
        own, other = _unique_names(base_functions), _unique_names(new_functions)
        self._follow_files(own, other)
        self._find_functions()
        self.forward.by_name, self.forward.unique = other, set(own)
        self.backward.by_name, self.backward.unique = own, set(other)

    def line_status(self, base: Place, new: Place) -> Status:
        """Status of a line that was followed from ``base`` to ``new``."""
        if self.forward.files.get(base[0]) != new[0]:
            return Status.MOVED
        if base[0] in self.forward.same:
            return Status.SAME
        mine, theirs = self._base[base[0]].lines or [], self._new[new[0]].lines or []
        alike = mine[base[1] - 1 : base[1]] == theirs[new[1] - 1 : new[1]]
        return Status.SAME if alike else Status.EDITED

    def function_status(self, base: FunctionKey, new: FunctionKey) -> Status:
        """Status of a function that was followed."""
        if base[1] != new[1]:
            same_place = base[1].rpartition(".")[2] == new[1].rpartition(".")[2]
            return Status.MOVED if same_place else Status.RENAMED
        if self.forward.files.get(base[0]) != new[0]:
            return Status.MOVED
        if base[0] in self.forward.same:
            return Status.SAME
        return Status.EDITED if base in self._edited or base[1] == MODULE else Status.SAME

    def _follow_files(
        self,
        base_functions: _Functions,
        new_functions: _Functions,
    ) -> None:
        steady = _steady(self.forward.files, base_functions, new_functions)
        for one, other in self.forward.files.items():
            base, new = self._base[one], self._new[other]
            same = base.same_text(new)
            if same is None and not base.has_text and not new.has_text:
                # Without a text, functions that begin where they did are what can be had.
                same = steady.get(one, _nameless(base.path))
                self.assumed += same and not base.path.startswith("<frozen ")
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
        alone = [n for n, file in enumerate(files) if n not in direction.files and file.has_text and file.stands]
        defined: Defined = {}
        parsed = 0
        for number in changed + alone:
            text = files[number].text or ""
            parsed += len(text)
            if parsed > MAX_PARSED:
                self.unparsed += 1
                continue
            if (inside := definitions(text)) is not None:
                defined[number] = inside
        return defined

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
    return {(file, each.name, each.first_line) for file, definitions in defined.items() for each in definitions}


def _steady(
    files: Mapping[int, int],
    base: _Functions,
    new: _Functions,
) -> dict[int, bool]:
    """True for files whose functions that both sides have begin on the same lines; files without any are missing."""
    steady: dict[int, bool] = {}
    for (file, name), key in base.items():
        other = new.get((files.get(file, NO_FILE), name))
        if other is not None and name != MODULE:
            steady[file] = steady.get(file, True) and key[2] == other[2]
    return steady


def _unique_names(functions: Iterable[FunctionKey]) -> dict[tuple[int, str], FunctionKey]:
    keys_of: dict[tuple[int, str], list[FunctionKey]] = defaultdict(list)
    for key in functions:
        keys_of[key[0], key[1]].append(key)
    return {name: keys[0] for name, keys in keys_of.items() if len(keys) == 1}
