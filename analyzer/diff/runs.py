"""The recordings of a diff: read, checked for comparability, and put together by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from ..profile.build import build_profile
from ..profile.question import Question
from ..recording.opened import Recording, Watcher
from ..recording.quality import cost_of_a_sample
from ..recording.tables import release_unused
from ..recording.text import printable
from ..report_data.difference import ComparedRun
from ..report_data.headline import CPU_WAIT_SHARE, is_severe
from ..report_data.numbers import counted, seconds
from ..report_data.section_rows import exit_text
from ..samples.summary import PROJECT
from .links import NO_FILE, Direction, FunctionKey, Link, SourceFile, catalogue

MODES = {
    "waits": "whether waiting was recorded",
    "memory": "whether memory was recorded",
    "memory_threshold": "memory threshold",
    "block_mean_bytes": "mean of the sampling of blocks",
    "copies_min_bytes": "smallest copy that counts",
}
"""Parameters of the recorder that must be equal: they change the data, or the overhead of recording."""

UNEQUAL = "not everything is equal"
"""Beginning of a remark on a difference between runs."""


@dataclass(frozen=True)
class Run(ComparedRun):
    """A recording that was read, with its source files and the recorder's parameters."""

    files: list[SourceFile]
    parameters: dict[str, Any]
    builds: dict[str, str | None]
    """Build ids of the native modules, by their printable paths."""
    sample_ns: float | None = None
    """CPU time that the recorder itself needed for a sample."""

    @property
    def libraries(self) -> dict[str, str]:
        """The version of each installed distribution that it had code of, by name; none where that is not known."""
        listed = self.parameters.get("distributions")
        pairs = listed.items() if isinstance(listed, dict) else ()
        return {printable(str(name), 80): version for name, version in pairs if isinstance(version, str)}

    @property
    def end(self) -> str | None:
        """The end of its program (the first process), if that was not the ordinary one."""
        frame = self.profile.processes
        first = frame["origin"] == "first"
        statuses = frame.loc[first if first.any() else frame.index[:1], "exit_status"].dropna()
        status = int(statuses.iloc[0]) if len(statuses) else 0
        if status == 0:
            return None
        return f"ended by {exit_text(status)}" if status < 0 else f"ended with exit status {status}"

    def functions(self) -> list[FunctionKey]:
        """The functions that its call tree names."""
        tree = self.profile.calls.tree
        names = [printable(name) for name in tree.function_names]
        return list(zip(tree.function_files.tolist(), names, tree.function_lines.tolist(), strict=True))


def read_run(path: Path, question: Question, watcher: Watcher | None = None) -> Run:
    """Read a recording and answer ``question``; ``watcher`` receives the progress.

    Errors:
        FormatError: it is not a recording or is damaged, or the question does not fit it.
    """
    with Recording.open(path) as recording:
        recording.watcher = watcher
        profile = build_profile(recording, question)
        of_sample = cost_of_a_sample(recording)
        run = Run(path, profile, catalogue(recording), recording.manifest.parameters, _builds(recording), of_sample)
    release_unused()
    return run


def _builds(recording: Recording) -> dict[str, str | None]:
    columns = (recording.table("modules").column(name).to_pylist() for name in ("path", "build_id"))
    return {printable(path, 4096): build for path, build in zip(*columns, strict=True)}


def in_one_scope(runs: list[Run], question: Question, watcher: Watcher | None = None) -> list[Run]:
    """The runs, all under one scope: widened only if that of each of them is.

    Where a program has become faster, little time may be left that is the project's, and its lines still are what was
    edited: they are compared.
    """
    if not any(run.profile.widened for run in runs) or all(run.profile.widened for run in runs):
        return runs
    narrow = replace(question, scope=PROJECT)
    return [read_run(run.path, narrow, watcher) if run.profile.widened else run for run in runs]


def number_or_nothing(value: object) -> int | None:
    """A value of a nullable column of integers."""
    return None if value is pd.NA or value is None else int(value)  # type: ignore[call-overload]


Key: TypeAlias = tuple[object, ...]
"""Identity of a row of a frame on one side; equal for rows of its runs that are the same place."""


@dataclass(frozen=True)
class Side:
    """One or more runs of one program. ``directions`` lead from the files of each run to ``files``."""

    runs: list[Run]
    files: list[SourceFile]
    functions: set[FunctionKey]
    directions: list[Direction | None]
    differing: list[str]
    """Paths of files whose text is not the same in all runs."""

    @cached_property
    def keys(self) -> list[RunKeys]:
        """The keys of the rows of each run."""
        return [RunKeys(number, direction) for number, direction in enumerate(self.directions)]


@dataclass(frozen=True)
class RunKeys:
    """Keys of the rows of one run; rows that were not followed to the side's files keep a key of their own."""

    run: int
    direction: Direction | None
    """None: the side's numbers are this run's own."""

    def file(self, file: int) -> int:
        """The side's number of a file."""
        return file if self.direction is None or file == NO_FILE else self.direction.files[file]

    def line(self, file: int, line: int | None, function: str) -> Key:
        """The key of a row of lines; ``function`` names rows without a line."""
        if file == NO_FILE or line is None:
            return (self.file(file), None, function)
        if self.direction is None:
            return (file, line)
        place = self.direction.line(file, line)
        return place if place is not None else ("only", self.run, file, line)

    def function(self, key: FunctionKey) -> Key:
        """The key of a row of functions."""
        if key[0] == NO_FILE or self.direction is None:
            return key
        followed = self.direction.function(key)
        return followed if followed is not None else ("only", self.run, *key)


def make_side(runs: Sequence[Run]) -> Side:
    """Put the runs of a side under common numbers: those of its first run, and new ones for rows that it lacks."""
    first = runs[0]
    files, functions = list(first.files), set(first.functions())
    directions: list[Direction | None] = [None]
    differing: dict[str, None] = {}
    for run in runs[1:]:
        own = run.functions()
        link = Link(run.files, files, own, functions, edited=False)
        direction = link.forward
        differing.update((run.files[file].path, None) for file in [*direction.lines, *direction.blind])
        for number, file in enumerate(run.files):
            if number not in direction.files:
                direction.files[number] = len(files)
                direction.same.add(number)
                files.append(file)
        functions |= {
            followed for key in own if key[0] != NO_FILE and (followed := direction.function(key)) is not None
        }
        directions.append(direction)
    return Side(list(runs), files, functions, directions, list(differing))


def obstacles(runs: Sequence[Run]) -> list[str]:
    """Why the recordings cannot be compared; empty if they can."""
    reasons = [
        _differing("sampler", runs, lambda run: ", ".join(run.profile.metadata.samplers)),
        _differing("interval", runs, _interval),
        _differing("Python", runs, _minor_versions),
        _differing("operating system", runs, lambda run: (run.profile.metadata.os or "?").partition(" ")[0]),
        _differing("processor", runs, lambda run: run.profile.metadata.machine or "?"),
    ]
    reasons += [_differing(name, runs, _parameter(key)) for key, name in MODES.items()]
    if any(run.profile.totals.processes > 1 for run in runs):
        # What a program leaves to others would be in one recording and not in the other.
        reasons.append(_differing("whether child processes were recorded", runs, _parameter("children")))
    return [reason for reason in reasons if reason]


def strangers(base: Side, new: Side, link: Link) -> str | None:
    """Why the sides are runs of programs that have nothing to do with each other, None if they may have.

    A program of another name is the same program if its script can be followed: it was renamed, or copied and edited.
    """
    names = [list(dict.fromkeys(_target(run) for run in side.runs)) for side in (base, new)]
    for own in names:
        if len(own) > 1:
            return f"program {' and '.join(own)} on one side"
    if names[0] == names[1]:
        return None
    followed = {base.files[one].path: new.files[other].path for one, other in link.forward.files.items()}
    if any(_is_script(one, names[0][0]) and _is_script(other, names[1][0]) for one, other in followed.items()):
        return None
    return f"program {names[0][0]} and {names[1][0]}"


def _target(run: Run) -> str:
    """Target of the run: the name of a script or command, or ``-m MODULE``; without its arguments."""
    words = run.profile.metadata.argv
    if words and _name(words[0]).startswith("python") and len(words) > 1:
        words = words[1:]
    if not words:
        return "unknown"
    return " ".join(words[:2]) if words[0] == "-m" else printable(_name(words[0]), 80)


def _name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _is_script(path: str, target: str) -> bool:
    """True if a file is the script of a target."""
    if target.startswith("-m "):
        module = target[3:].replace(".", "/")
        return path.replace("\\", "/").endswith((f"/{module}.py", f"/{module}/__main__.py"))
    return _name(path) == target


def once(runs: Sequence[Run]) -> list[Run]:
    """The runs without those that were given before: a recording that is named twice, or its copy, is one run."""
    return list({run.profile.metadata.uuid: run for run in reversed(runs)}.values())[::-1]


def remarks(base: Sequence[Run], new: Sequence[Run]) -> list[str]:
    """Reasons that make the comparison weaker without forbidding it."""
    runs = [*base, *new]
    reasons = [
        _differing("machine", runs, lambda run: run.profile.metadata.host or "?"),
        _differing("number of CPUs", runs, lambda run: str(run.profile.metadata.cpu_count or "?")),
        _differing("Python", runs, lambda run: ", ".join(run.profile.metadata.python_versions)),
        _differing("program", runs, lambda run: run.profile.metadata.program or "?"),
        _differing("number of recorded processes", runs, lambda run: str(run.profile.totals.processes)),
    ]
    notes = [f"{UNEQUAL}: {reason}" for reason in [*reasons, _libraries(runs)] if reason]
    notes += _ended_early(base, new)
    severe = [run for run in runs if data_missing(run)]
    unfinished = [run for run in runs if run.profile.quality.state == "recording" and not data_missing(run)]
    written = [run for run in unfinished if run.profile.quality.being_written]
    abandoned = [run for run in unfinished if not run.profile.quality.being_written]
    busy = [run for run in runs if (run.profile.totals.main_cpu_wait_s or 0.0) > CPU_WAIT_SHARE * _main_s(run)]
    if severe:
        notes.append(f"data is missing in {_told(severe, runs)}: see 'tachograph analyze'")
    if written:
        notes.append(f"{_told(written, runs)} {'is' if len(written) == 1 else 'are'} still being written")
    if abandoned:
        notes.append(f"{_told(abandoned, runs)} {'was' if len(abandoned) == 1 else 'were'} never finished")
    if busy:
        waited, lived = sum(run.profile.totals.main_cpu_wait_s or 0.0 for run in busy), sum(map(_main_s, busy))
        notes.append(
            f"the machine was busy in {_told(busy, runs)} (no processor for {seconds(waited)} of {seconds(lived)}):"
            " wall time and waiting tell little"
        )
    if {run.profile.metadata.uuid for run in base} & {run.profile.metadata.uuid for run in new}:
        notes.append("a recording is on both sides")
    return notes


MOST_LIBRARIES = 5
"""Libraries of other versions that are named."""


def _libraries(runs: Sequence[Run]) -> str | None:
    """The installed libraries whose version is not the same in all runs that have them."""
    names = sorted({name for run in runs for name in run.libraries})
    changed = [text for name in names if (text := _differing(name, runs, _version_of(name)))]
    more = f" and {len(changed) - MOST_LIBRARIES} more" if len(changed) > MOST_LIBRARIES else ""
    return ", ".join(changed[:MOST_LIBRARIES]) + more or None


def _version_of(library: str) -> Callable[[Run], str | None]:
    return lambda run: run.libraries.get(library)


def _ended_early(base: Sequence[Run], new: Sequence[Run]) -> list[str]:
    """Of each side, how many of its programs were killed, crashed or failed."""
    notes = []
    for name, side in (("base", base), ("new", new)):
        ends = Counter(end for run in side if (end := run.end) is not None)
        notes += [f"{name}: {how} in {count} of {counted(len(side), 'recordings')}" for how, count in ends.items()]
    return notes


def data_missing(run: Run) -> bool:
    """True if what a recording lacks weighs."""
    return any(is_severe(cause, run.profile) for cause in run.profile.quality.causes)


def _main_s(run: Run) -> float:
    return run.profile.totals.main_s


def _told(some: Sequence[Run], runs: Sequence[Run]) -> str:
    """Some of the runs, in words: a single one by its name, several by their number."""
    return some[0].name if len(some) == 1 else f"{len(some)} of {len(runs)} recordings"


def _differing(what: str, runs: Sequence[Run], value: Callable[[Run], str | None]) -> str | None:
    values = list(dict.fromkeys(each for run in runs if (each := value(run)) is not None))
    # A recorder that was killed early may not have said it.
    texts = [printable(value, 80) if value else "unknown" for value in values]
    return f"{what} {' and '.join(texts)}" if len(values) > 1 else None


def _interval(run: Run) -> str:
    interval = run.profile.metadata.interval_s
    return "?" if interval is None else f"{interval * 1e3:g} ms"


def _minor_versions(run: Run) -> str | None:
    versions = run.profile.metadata.python_versions
    return ", ".join(dict.fromkeys(".".join(version.split(".")[:2]) for version in versions)) or None


def _parameter(key: str) -> Callable[[Run], str]:
    def value(run: Run) -> str:
        # A recorder that did not know the parameter did not do what it asks for.
        setting = run.parameters.get(key)
        return "no" if setting is None or setting is False else "yes" if setting is True else str(setting)

    return value
