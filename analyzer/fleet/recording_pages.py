"""Pages of single recordings beside the page of a fleet: what its rows lead to and one file cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from urllib.parse import quote

import numpy as np

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.opened import Recording, Watcher
from ..recording.output_file import writing
from .questions.selection import Selection
from .questions.top import amounts_of, row_sums
from .store import StoreError, key_of

LEADING_LINES = 200
"""Lines whose recordings are chosen: those with the most CPU time."""

Opened = Callable[[str], AbstractContextManager[Path]]
"""Gives the place of a recording on this machine, by its path in the fleet, while it is entered."""


def chosen_recordings(selection: Selection, count: int) -> list[str]:
    """Paths of ``count`` recordings: of each line the one with the most CPU time there, then the second of each.

    Lines come in the order of their CPU time; those that are left are the recordings with the most CPU time in all.
    """
    lines = row_sums(selection, "lines", "cpu_s").nlargest(LEADING_LINES, "amount", keep="first")
    amounts = amounts_of(selection, "lines", "cpu_s", lines.reset_index(drop=True))
    nth = np.argsort(-amounts, axis=1, kind="stable")[:, :count]
    largest = np.argsort(-selection.frame["cpu_s"].fillna(0.0).to_numpy(), kind="stable")
    numbers = dict.fromkeys([*nth.T.ravel().tolist(), *largest.tolist()])
    return [str(path) for path in selection.frame["path"].iloc[list(numbers)[:count]]]


def write_recording_pages(
    paths: list[str], opened: Opened, question: Question, page: Path, watcher: Watcher | None = None
) -> dict[str, str]:
    """Writes the report of each recording into a folder beside ``page``; the links to those that could be written.

    Errors:
        FormatError: a report or the folder cannot be written.
    """
    from ..render.write import write_reports
    from ..report_data.report_data import build_report_data

    folder = page.with_name(f"{page.stem}-recordings")
    with writing(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
    links = {}
    for number, path in enumerate(paths, 1):
        if watcher is not None:
            watcher.step(f"writing the pages of recordings: {number:,} of {len(paths):,}")
        # Not after the path, which may have any characters and be of any length.
        name = f"{key_of(path) & (1 << 64) - 1:016x}.html"
        with ExitStack() as stack:
            try:
                recording = stack.enter_context(Recording.open(stack.enter_context(opened(path))))
                data = build_report_data(recording, question)
            except (StoreError, FormatError):
                continue  # it was removed, or has changed, since it was summed up
            write_reports(recording, data, str(folder / name), None)
        links[path] = f"{quote(folder.name)}/{name}"
    return links
