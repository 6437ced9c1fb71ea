"""One recording as it takes part in a diff: its profile, and what its sources and functions are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..profile.build import build_profile
from ..profile.profile import Question
from ..recording.opened import Recording
from ..recording.progress import Watcher
from ..recording.release import release_unused
from ..recording.text import printable
from ..report_data.difference import ComparedRun
from ..samples.scope import ALL
from .catalogue import SourceFile, catalogue
from .links import FunctionKey


@dataclass(frozen=True)
class Run(ComparedRun):
    """A recording that was read, with its source files and the recorder's parameters."""

    files: list[SourceFile]
    parameters: dict[str, Any]

    def functions(self) -> list[FunctionKey]:
        """The functions that its call tree names."""
        tree = self.profile.calls.tree
        names = [printable(name) for name in tree.function_names]
        return list(zip(tree.function_files.tolist(), names, tree.function_lines.tolist(), strict=True))


def read_run(path: Path, question: Question, watcher: Watcher | None = None) -> Run:
    """Reads a recording and answers ``question``; ``watcher`` is told how far it is.

    Errors:
        FormatError: it is no recording or is damaged, or the question does not fit it.
    """
    with Recording.open(path) as recording:
        recording.watcher = watcher
        run = Run(path, build_profile(recording, question), catalogue(recording), recording.manifest.parameters)
    release_unused()
    return run


def in_one_scope(runs: list[Run], question: Question, watcher: Watcher | None = None) -> list[Run]:
    """The runs, all under one scope: what was widened for one of them is widened for all."""
    if not any(run.profile.widened for run in runs) or all(run.profile.scope == ALL for run in runs):
        return runs
    wide = replace(question, scope=ALL)
    return [run if run.profile.scope == ALL else read_run(run.path, wide, watcher) for run in runs]


def number_or_nothing(value: object) -> int | None:
    """A value of a nullable column of integers."""
    return None if value is pd.NA or value is None else int(value)  # type: ignore[call-overload]
