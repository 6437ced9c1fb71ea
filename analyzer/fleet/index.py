"""The index of a fleet: the sums of its recordings as a few large Parquet files, made once for each recording.

Layout of a folder of the index, one for each question and version:

- ``index.json``: the parts that count. It is replaced last, and at once; files that no entry names are ignored.
- ``TABLE/PART.parquet``: a table of ``index_tables`` for the recordings of a part.

Parts begin with the recordings of one batch, and many small ones are merged, sorted by service and day. Processes of
this machine read the recordings, or the workers of a running cluster of Dask. The catalogue is written after each
batch: an indexer that is killed goes on from there.
"""

from __future__ import annotations

import gc
import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.text import printable
from .extras import require
from .index_tables import SCHEMAS, VERSION
from .store import INDEX_FOLDER, Store, StoredRecording, StoreError

if TYPE_CHECKING:
    from ..recording.opened import Watcher


PATIENCE_S = 20
"""Seconds within which a cluster must answer."""


@dataclass(frozen=True)
class Task:
    """One batch: a call with its arguments."""

    call: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Done:
    """A batch that ended, by its number: with a result, or with why it has none."""

    number: int
    result: Any = None
    error: str | None = None


def run(tasks: Sequence[Task], cluster: str | Any | None = None, workers: int = 1) -> Iterator[Done]:
    """Runs all tasks and gives back each when it is done.

    ``cluster`` is the address of a scheduler of dask.distributed, or a Client; else ``workers`` processes of this
    machine do the work, or with 1 this process. A task that fails is tried again by the cluster, and then told.

    Errors:
        FormatError: the cluster does not answer.
    """
    if not tasks:
        return
    if cluster is not None:
        yield from _on_cluster(tasks, cluster)
    elif workers == 1:
        for number, task in enumerate(tasks):
            yield Done(number, task.call(*task.arguments))
    else:
        yield from _in_processes(tasks, workers)


def _in_processes(tasks: Sequence[Task], workers: int) -> Iterator[Done]:
    with ProcessPoolExecutor(min(workers, len(tasks)), mp_context=get_context("spawn")) as pool:
        numbers = {pool.submit(task.call, *task.arguments): number for number, task in enumerate(tasks)}
        try:
            for future in as_completed(numbers):
                try:
                    yield Done(numbers[future], future.result())
                except BrokenProcessPool:
                    yield Done(numbers[future], error="its process was killed")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _on_cluster(tasks: Sequence[Task], cluster: str | Any) -> Iterator[Done]:
    require("distributed")
    distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(cluster, timeout=PATIENCE_S) if isinstance(cluster, str) else cluster
    except (OSError, TimeoutError, ValueError) as error:
        raise FormatError(f"the cluster {printable(str(cluster), 100)} does not answer: {error}") from None
    try:
        futures = [client.submit(task.call, *task.arguments, retries=2, pure=False) for task in tasks]
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            # Both wait: a result that was lost with its worker is worked out again, and its future pending once more.
            raised = future.exception()
            if raised is None:
                yield Done(numbers[future.key], future.result())
            else:
                reason = " ".join(f"{type(raised).__name__}: {raised}".split())
                yield Done(numbers[future.key], error=printable(reason, 200))
    finally:
        if isinstance(cluster, str):
            client.close()


CATALOGUE = "index.json"
BATCH = 64
"""Recordings of a part when it is made."""

SMALL_PARTS = 16
"""Parts with few recordings that are left as they are; more are put together."""

ORPHAN_S = 86_400
"""Age of a part that no catalogue names from which on it is removed."""

PART_RECORDINGS = 5_000
"""Recordings of a part that is put together from smaller ones."""


@dataclass
class Parts:
    """The contents of ``index.json``: recordings of each part by its name."""

    parts: dict[str, int] = field(default_factory=dict)


class Index:
    """The index of a store for one question; it lies in the store ``home``."""

    def __init__(self, store: Store, question: Question, home: Store) -> None:
        self._store, self.question, self._home = store, question, home
        key = json.dumps({"version": VERSION, **asdict(question)}, sort_keys=True, default=str)
        self._folder = hashlib.sha256(key.encode()).hexdigest()[:16]
        self._parts = self._read_catalogue()

    def update(
        self,
        stored: Sequence[StoredRecording],
        *,
        cluster: str | Any | None = None,
        workers: int = 1,
        watcher: Watcher | None = None,
    ) -> dict[str, str]:
        """Adds the recordings that are not in the index yet; paths of those that no worker could sum up, and why.

        Errors:
            FormatError: the index cannot be written.
        """
        missing = self._missing(stored)
        left_out: dict[str, str] = {}
        if missing:
            self._write_catalogue()  # that it cannot be written is to be known before all the work
            left_out = self._read_all(missing, cluster, workers, watcher)
        if sum(count <= BATCH for count in self._parts.parts.values()) > SMALL_PARTS:
            self._compact({each.key for each in stored})
            self._remove_orphans()
        return left_out

    def _read_all(
        self, missing: Sequence[StoredRecording], cluster: str | Any | None, workers: int, watcher: Watcher | None
    ) -> dict[str, str]:
        """Adds recordings; paths of those that no worker could sum up, and why."""
        batches = [missing[start : start + BATCH] for start in range(0, len(missing), BATCH)]
        tasks = [Task(read_batch, (self._store.url, self._store.options, batch, self.question)) for batch in batches]
        left_out: dict[str, str] = {}
        done = 0
        for each in run(tasks, cluster, workers):
            batch = batches[each.number]
            if each.error is not None:
                left_out |= {one.path: f"no worker could read it: {each.error}" for one in batch}
            else:
                self.add(each.result, len(batch))
                self._write_catalogue()  # an indexer that is killed goes on here
            done += len(batch)
            if watcher is not None:
                watcher.step(f"indexing: {done:,} of {len(missing):,} recordings")
        return left_out

    def dataset(self, name: str) -> ds.Dataset:
        """A table of the index, of all its parts."""
        files = [self._path(name, part) for part in self._parts.parts]
        if not files:
            return ds.dataset(SCHEMAS[name].empty_table())
        return ds.dataset(files, schema=SCHEMAS[name], format="parquet", filesystem=self._home.fs)

    def local_files(self, name: str) -> list[str]:
        """The files of a table, if DuckDB can read them itself, which takes a fifth of the time; else none.

        It takes names for patterns, so those with a pattern's characters are not for it.
        """
        files = [self._path(name, part) for part in self._parts.parts]
        return files if self._home.local and not any(set("*?[{") & set(file) for file in files) else []

    def damaged(self, error: object) -> FormatError:
        """The error for an index that cannot be read."""
        return FormatError(f"the index {printable(self._home.url, 200)} is damaged ({error}): remove it")

    def recordings(self, stored: Iterable[StoredRecording]) -> pd.DataFrame:
        """The rows of recordings that are there now, the newest of each."""
        keys = pa.array([each.key for each in stored], pa.int64())
        table = self._read("recordings", ds.field("recording").isin(keys))
        return table.to_pandas().drop_duplicates("recording", keep="last").sort_values("path", ignore_index=True)

    def _read(self, name: str, condition: ds.Expression | None = None) -> pa.Table:
        try:
            return self._home.retried("cannot read the index", lambda: self.dataset(name).to_table(filter=condition))
        except (StoreError, FileNotFoundError, pa.ArrowInvalid) as error:
            raise self.damaged(error) from None

    def _missing(self, stored: Sequence[StoredRecording]) -> list[StoredRecording]:
        indexed = self._read("recordings").select(["recording", "again"]).to_pydict()
        settled = {key for key, again in zip(indexed["recording"], indexed["again"], strict=True) if not again}
        return [each for each in stored if each.key not in settled]

    def add(self, tables: Mapping[str, pa.Table], recordings: int) -> str:
        """Adds the tables of some recordings as a part; returns its name.

        Errors:
            FormatError: the index cannot be written.
        """
        part = uuid.uuid4().hex
        for name, table in tables.items():
            self._write(self._path(name, part), _parquet(table))
        self._parts.parts[part] = recordings
        return part

    def _compact(self, live: set[int]) -> None:
        """Puts parts together: recordings that are gone are left out, and sorted by service and day."""
        old = list(self._parts.parts)
        about = self._read("recordings").to_pandas().drop_duplicates("recording", keep="last")
        about = about[about["recording"].isin(live)]
        service = about["labels"].map(lambda text: json.loads(text).get("service.name", "") if text else "")
        day = about["created_utc"].str[:10].fillna("")
        order = about.assign(service=service, day=day).sort_values(["service", "day", "path"])["recording"].to_numpy()
        chunks = [order[start : start + PART_RECORDINGS] for start in range(0, len(order), PART_RECORDINGS)]
        made: dict[str, int] = {}
        for chunk in chunks:
            keys, rank = pa.array(chunk, pa.int64()), pd.Series(range(len(chunk)), chunk)
            tables = {}
            for name in SCHEMAS:
                table = self._read(name, ds.field("recording").isin(keys))
                frame_rank = pd.Series(table.column("recording").to_numpy()).map(rank).to_numpy()
                table = table.take(pa.array(frame_rank.argsort(kind="stable")))
                tables[name] = _distinct(table) if name == "sources" else table
            # A recording that was read twice is in two parts, and counts as it was read last.
            made[self.add({**tables, "recordings": _last(tables["recordings"])}, len(chunk))] = len(chunk)
        self._parts.parts = made
        self._write_catalogue()
        for part in old:
            for name in SCHEMAS:
                self._remove(self._path(name, part))

    def _remove_orphans(self) -> None:
        """Removes parts in no catalogue: of an indexer that was killed, or of one whose catalogue was replaced.

        Young ones may be those of an indexer that is at work.
        """
        folder = self._home.below(self._folder)
        try:
            files = self._home.retried("cannot list", lambda: self._home.fs.find(folder, detail=True))
        except (StoreError, FileNotFoundError):
            return
        for path, details in files.items():
            part = path.rpartition("/")[2].removesuffix(".parquet")
            if path.endswith(".parquet") and part not in self._parts.parts and _age_s(details) > ORPHAN_S:
                self._remove(path)

    def _path(self, table: str, part: str) -> str:
        return self._home.below(self._folder, table, f"{part}.parquet")

    def _read_catalogue(self) -> Parts:
        path = self._home.below(self._folder, CATALOGUE)
        try:
            document = json.loads(self._home.retried("cannot read the index", lambda: self._home.fs.cat_file(path)))
            return Parts({str(name): int(count) for name, count in document["parts"].items()})
        except FileNotFoundError:
            return Parts()
        except (StoreError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise FormatError(f"the index {printable(path, 200)} cannot be read ({error}): remove it") from None

    def _write_catalogue(self) -> None:
        document = {"tachograph": {"document": "fleet-index", "version": VERSION}, **asdict(self._parts)}
        document["question"] = {name: str(value) for name, value in asdict(self.question).items() if value is not None}
        self._write(self._home.below(self._folder, CATALOGUE), json.dumps(document, indent=1).encode())

    def _write(self, path: str, data: bytes) -> None:
        fs = self._home.fs

        def put() -> None:
            if self._home.local:
                # Source texts are in it, and recordings are readable by their owner only.
                Path(self._home.root).mkdir(mode=0o700, parents=True, exist_ok=True)
            fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            if self._home.local:
                fs.pipe_file(f"{path}.tmp", data)
                fs.mv(f"{path}.tmp", path)
            else:
                fs.pipe_file(path, data)

        try:
            self._home.retried("cannot write", put)
        except (StoreError, OSError) as error:
            where = printable(self._home.url, 200)
            raise FormatError(f"cannot write the index {where} ({error}): say where with --index") from None

    def _remove(self, path: str) -> None:
        try:
            self._home.retried("cannot remove", lambda: self._home.fs.rm_file(path))
        except (StoreError, FileNotFoundError):
            return  # it is in no catalogue any more, and takes up only room


def read_batch(
    url: str, options: dict[str, Any], batch: Sequence[StoredRecording], question: Question
) -> dict[str, pa.Table]:
    """The tables of some recordings that lie in the store ``url``."""
    from . import recording_sums  # all of the analyzer: questions alone do without

    store = Store(url, options)
    return merged([recording_sums.read_sums(store, each, question) for each in batch])


def _age_s(details: Mapping[str, Any]) -> float:
    """The age of a file in seconds; 0 where a store does not tell."""
    changed = next((details[name] for name in ("mtime", "LastModified", "created") if details.get(name)), None)
    if isinstance(changed, datetime):
        return datetime.now(changed.tzinfo).timestamp() - changed.timestamp()
    return time.time() - changed if isinstance(changed, int | float) else 0.0


def merged(parts: list[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """The tables of several recordings as one set of tables; a source text of several is kept once."""
    tables = {name: pa.concat_tables([part[name] for part in parts]) for name in SCHEMAS}
    # The command collects garbage so seldom that what recordings leave would be 0.7 MB for each of them.
    gc.collect()
    return {**tables, "sources": _distinct(tables["sources"])}


def _distinct(table: pa.Table) -> pa.Table:
    """The source texts, each once."""
    frame = table.select(["file", "sha256"]).to_pandas()
    return table.filter(pa.array(~frame.duplicated().to_numpy()))


def _last(table: pa.Table) -> pa.Table:
    keys = pd.Series(table.column("recording").to_numpy())
    return table.filter(pa.array(~keys.duplicated(keep="last").to_numpy()))


def _parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


def beside(store: Store) -> Store:
    """Where the index of a store is if nothing else is said."""
    url = store.below(INDEX_FOLDER) if store.local else f"{store.url.rstrip('/')}/{INDEX_FOLDER}"
    return Store(url, store.options)
