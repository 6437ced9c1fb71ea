"""A fleet: thousands of recordings in a folder or an object store, queried as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.text import printable
from ..samples.summary import PROJECT
from .extras import require_for
from .index import Index, beside
from .questions.compared_groups import compare
from .questions.flame import MAX_NODES, flame
from .questions.health import health, recordings
from .questions.metric_changes import TIME, History, history
from .questions.ranks import Ranks, has_ranks, ranks
from .questions.selection import Selection, parse_conditions, with_labels
from .questions.spans import memory, spans
from .questions.top import top
from .questions.when import when
from .store import KnownFolder, Store, StoredRecording, StoreError, keep_known, read_known

if TYPE_CHECKING:
    from .. import api
    from ..recording.opened import Watcher

Where = str | Sequence[str]
"""Conditions, ``label=value`` each; values may be globs. All of them must hold."""


@dataclass(frozen=True)
class WrittenPages:
    """The page of a fleet: its size in bytes, and the links from it to pages of recordings, by their paths."""

    bytes: int
    recordings: dict[str, str]


class Fleet:
    """The recordings below a URL, summed up in an index.

    Questions return frames of pandas; facts about a whole answer are in the frame's ``attrs``.
    ``recordings`` has a row for each that could be read: path, host, program, created_utc, day, tags (its labels),
    state, how it was made and its totals. ``left_out`` has path and reason of the others.
    """

    def __init__(
        self,
        url: str,
        index: Index,
        recordings: pd.DataFrame,
        left_out: pd.DataFrame,
        store: Store,
        stored: list[StoredRecording],
    ) -> None:
        self.url, self._index, self._store = url, index, store
        self._stored = {each.path: each for each in stored}
        self.recordings, self.left_out = recordings, left_out

    def select(self, where: Where = ()) -> Selection:
        """The recordings that meet all conditions.

        Errors:
            FormatError: a condition is none, or no recording meets them.
        """
        if self.recordings.empty:
            raise FormatError(f"there is no recording that can be read in {printable(self.url, 200)}")
        return Selection(self.recordings, self._index).only(parse_conditions(where))

    def top(
        self,
        *,
        level: str = "functions",
        metric: str = "cpu",
        by: str | None = None,
        where: Where = (),
        total: bool = False,
        per: str | None = None,
        limit: int = 20,
        anyway: bool = False,
    ) -> pd.DataFrame:
        """The functions, lines or stacks with the most time or memory over all recordings; see ``questions.top``."""
        selection = self.select(where)
        return top(selection, level=level, metric=metric, by=by, total=total, per=per, limit=limit, anyway=anyway)

    def health(self, where: Where = ()) -> pd.DataFrame:
        """Recordings there are, losses, and recordings that cannot be read; see ``questions.health.Health.frame``."""
        return health(self.select(where), self.left_out).frame()

    def compare(
        self,
        base: Where,
        new: Where,
        *,
        level: str = "functions",
        metric: str = "cpu",
        where: Where = (),
        total: bool = False,
        per: str | None = None,
        limit: int = 20,
        anyway: bool = False,
    ) -> pd.DataFrame:
        """Differences between the recordings that meet ``base`` and those that meet ``new``; ``questions.compare``."""
        selection = self.select(where)
        old, young = (selection.only(parse_conditions(side)) for side in (base, new))
        chosen = set(old.frame["recording"]) | set(young.frame["recording"])
        frame = selection.frame
        both = Selection(frame[frame["recording"].isin(chosen)].reset_index(drop=True), self._index)
        return compare(old, young, both, level=level, metric=metric, total=total, per=per, limit=limit, anyway=anyway)

    def when(
        self,
        function: str,
        *,
        by: str = "version",
        metric: str = "cpu",
        where: Where = (),
        total: bool = False,
        per: str | None = None,
        anyway: bool = False,
    ) -> pd.DataFrame:
        """A function's share by version (or another label, or ``day``); ``attrs["since"]`` is the first that differs.

        ``attrs`` has name, file, since, before, after and p of ``questions.when.Moved``.
        """
        moved = when(self.select(where), function, by=by, metric=metric, total=total, per=per, anyway=anyway)
        return _with(moved.groups, moved, "groups")

    def ranks(self, where: Where = (), *, function: str | None = None, anyway: bool = False) -> pd.DataFrame:
        """The late rank of a run: by how much, where, and which ranks wait for it; see ``questions.ranks``.

        ``attrs`` has the other fields of ``questions.ranks.Ranks``.
        """
        answer = self.ranking(where, function=function, anyway=anyway)
        return _with(answer.ranks, answer, "ranks")

    def ranking(self, where: Where = (), *, function: str | None = None, anyway: bool = False) -> Ranks:
        """The whole answer of ``ranks``.

        The processes of one program are its ranks if a recording without the label rank has several of them.
        """
        selection = self.select(where)
        if has_ranks(selection) or len(selection) > 1:
            return ranks(selection, function=function, anyway=anyway)
        from .processes_as_ranks import ranks_of_processes

        path = str(selection.frame["path"].iat[0])
        with self._opened(path) as local, ranks_of_processes(local, self._index.question) as inside:
            return ranks(inside, function=function, anyway=anyway)

    def history(
        self,
        where: Where = (),
        *,
        metric: str = "cpu",
        function: str | None = None,
        by: str = TIME,
        runs: int = 5,
        diffs: int = 3,
        anyway: bool = False,
    ) -> History:
        """When a metric changed, with the diffs of the newest change points; see ``questions.history``."""
        selection = self.select(where)
        return history(
            selection,
            self._opened,
            metric=metric,
            function=function,
            by=by,
            runs=runs,
            diffs=diffs,
            anyway=anyway,
        )

    def memory(self, where: Where = (), *, anyway: bool = False) -> pd.DataFrame:
        """Memory of recordings at their peaks and at the end; see ``peaks`` of ``questions.spans.FleetMemory``."""
        return memory(self.select(where), anyway=anyway).peaks

    def leaks(self, where: Where = (), *, confirmed_on: int = 2, anyway: bool = False) -> pd.DataFrame:
        """Leaks, with the number of hosts that have them; see ``leaks`` of ``questions.memory.FleetMemory``."""
        return memory(self.select(where), confirmed_on=confirmed_on, anyway=anyway).leaks

    def spans(self, where: Where = (), *, by: str | None = None, limit: int = 20) -> pd.DataFrame:
        """Durations and costs of named spans; see ``questions.spans``."""
        return spans(self.select(where), by=by, limit=limit)

    def flame(self, where: Where = (), *, limit: int = MAX_NODES) -> pd.DataFrame:
        """The call tree over all recordings, at most ``limit`` nodes and ``<other>``; see ``questions.flame``."""
        return flame(self.select(where), limit=limit)

    def find(
        self,
        place: str | None = None,
        *,
        metric: str = "cpu",
        where: Where = (),
        total: bool = False,
        per: str | None = None,
        limit: int = 20,
        anyway: bool = False,
    ) -> pd.DataFrame:
        """The recordings with the most of FUNCTION, FILE:FUNCTION or FILE:LINE; see ``questions.recordings``."""
        return recordings(self.select(where), place, metric=metric, total=total, per=per, limit=limit, anyway=anyway)

    @contextmanager
    def recording(self, path: str) -> Iterator[api.Recording]:
        """One recording with its raw tables, by its ``path``; one from a store is here as long as it is open.

        Errors:
            FormatError: the fleet has no such recording, or the store does not give it.
        """
        from .. import api

        try:
            with self._opened(path) as local, api.open(local) as opened:
                yield opened
        except StoreError as error:
            raise FormatError(f"{printable(path, 200)}: {error}") from None

    def fetch(self, paths: Sequence[str], folder: str | Path) -> list[Path]:
        """Copy recordings into a folder, each below it as in the fleet; returns their paths.

        Errors:
            FormatError: the fleet has no such recording, the store does not give it, or one is there already.
        """
        copies = []
        for path in paths:
            try:
                copies.append(self._store.copy(self._named(path), Path(folder)))
            except StoreError as error:
                raise FormatError(f"{printable(path, 200)}: {error}") from None
            except OSError as error:
                raise FormatError(f"cannot write {folder}: {error.strerror or error}") from None
        return copies

    def html(
        self,
        target: str | Path,
        where: Where = (),
        *,
        anyway: bool = False,
        pages: int = 0,
        watcher: Watcher | None = None,
    ) -> WrittenPages:
        """Writes one page over all recordings to a file, and beside it the pages of ``pages`` recordings.

        Those are the recordings with the most of the lines with the most CPU time; the page has links to them.
        """
        from .fleet_page import chosen_recordings, write_fleet_page, write_recording_pages

        selection, links = self.select(where), {}
        selection.refuse_mixed(anyway=anyway)
        if pages:
            chosen = chosen_recordings(selection, pages)
            links = write_recording_pages(chosen, self._opened, self._index.question, Path(target), watcher)
        size = write_fleet_page(selection, self.left_out, self.url, Path(target), anyway=anyway, links=links)
        return WrittenPages(size, links)

    def _opened(self, path: str) -> AbstractContextManager[Path]:
        return self._store.opened(self._named(path))

    def _named(self, path: str) -> StoredRecording:
        if path not in set(self.recordings["path"]):
            raise FormatError(f"there is no recording {printable(path, 200)} in {printable(self.url, 200)}")
        return self._stored[path]


def _with(frame: pd.DataFrame, answer: Any, left_out: str) -> pd.DataFrame:
    """The frame, with the other parts of an answer as its ``attrs``."""
    copy = frame.copy()
    copy.attrs.update({each.name: getattr(answer, each.name) for each in fields(answer) if each.name != left_out})
    return copy


def open(  # noqa: A001  # fleet.open reads as it should
    url: str,
    *,
    index: str | None = None,
    scope: str = PROJECT,
    cluster: str | Any | None = None,
    workers: int = 1,
    storage_options: Mapping[str, Any] | None = None,
    watcher: Watcher | None = None,
) -> Fleet:
    """Opens the recordings below a folder or a URL of fsspec, and sums up those that are not in the index yet.

    Args:
        url: the folder with the recordings, at any depth.
        index: where the index is; else in ``.tachograph`` beside the recordings.
        scope: whose lines are charged, as for ``analyze``; another scope is another index.
        cluster: a Client of dask.distributed or its scheduler's address; the workers read the store themselves.
        workers: without a cluster, how many processes of this machine read recordings; 1 is this process.
        storage_options: options of the store for fsspec, an endpoint for instance.
        watcher: is told how far it has come.

    Errors:
        FormatError: there is no such folder, the index cannot be written, or something is not installed.
    """
    require_for(url)
    store = Store(url, storage_options)
    if watcher is not None:
        watcher.step("listing recordings")
    home = beside(store) if index is None else Store(index, storage_options)
    remembered = Path(home.root) if store.local and home.local else None
    listed = {} if remembered is None else read_known(remembered)
    stored = store.recordings(listed)
    made = Index(store, Question(scope=scope), home)
    failures = made.update(stored, cluster=cluster, workers=workers, watcher=watcher)
    rows = made.recordings(stored)
    reasons = [(row.path, row.error) for row in rows[rows["error"].notna()].itertuples()]
    good = rows[rows["error"].isna()]
    if remembered is not None:
        _remember(remembered, stored, listed, set(good["recording"]))
    copies = good[good.duplicated("uuid", keep="first")]
    firsts = good.drop_duplicates("uuid").set_index("uuid")["path"]
    reasons += [(row.path, f"it is a copy of {firsts[row.uuid]}") for row in copies.itertuples()]
    reasons += list(failures.items())
    left_out = pd.DataFrame(sorted(reasons), columns=["path", "reason"])
    good = good.drop(copies.index).reset_index(drop=True)
    return Fleet(url, made, with_labels(good), left_out, store, stored)


def _remember(
    folder: Path, stored: Sequence[StoredRecording], listed: Mapping[str, KnownFolder], good: set[int]
) -> None:
    """Note the recordings read without fault, for the next listing. Others may yet be completed."""
    kept = {
        each.path: KnownFolder(each.stamp, each.size, each.fingerprint)
        for each in stored
        if each.stamp is not None and each.key in good
    }
    if kept != listed:
        keep_known(folder, kept)
