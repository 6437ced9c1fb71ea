"""Runs the tasks of an index with Dask: here, in processes of this machine, or on a cluster that is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tachograph.format import FormatError

from ..recording.text import printable
from .extras import require

PATIENCE_S = 20
"""Seconds within which a cluster must answer."""


@dataclass(frozen=True)
class Task:
    """One batch: ``each`` is called for every item, and ``together`` with the list of what it returned."""

    each: Callable[..., Any]
    together: Callable[[list[Any]], Any]
    items: Sequence[tuple[Any, ...]]


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
    dask: Any = import_module("dask")
    graphs = [dask.delayed(task.together)([dask.delayed(task.each)(*item) for item in task.items]) for task in tasks]
    if cluster is not None:
        yield from _on_cluster(graphs, cluster)
    elif workers == 1:
        for number, graph in enumerate(graphs):
            yield Done(number, dask.compute(graph, scheduler="synchronous")[0])
    else:
        yield from _in_processes(graphs, workers)


def _in_processes(graphs: Sequence[Any], workers: int) -> Iterator[Done]:
    dask: Any = import_module("dask")
    # One round of all workers at a time: what is done is kept, whatever comes then.
    with dask.config.set({"multiprocessing.context": "spawn"}):
        for start in range(0, len(graphs), 4 * workers):
            some = graphs[start : start + 4 * workers]
            for number, result in enumerate(dask.compute(*some, scheduler="processes", num_workers=workers), start):
                yield Done(number, result)


def _on_cluster(graphs: Sequence[Any], cluster: str | Any) -> Iterator[Done]:
    require("distributed")
    distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(cluster, timeout=PATIENCE_S) if isinstance(cluster, str) else cluster
    except (OSError, TimeoutError, ValueError) as error:
        raise FormatError(f"the cluster {printable(str(cluster), 100)} does not answer: {error}") from None
    try:
        futures = client.compute(list(graphs), retries=2)
        numbers = {future.key: number for number, future in enumerate(futures)}
        for future in distributed.as_completed(futures):
            # Both wait: a result that was lost with its worker is worked out again, and its future pending once more.
            raised = future.exception()
            if raised is None:
                yield Done(numbers[future.key], future.result())
            else:
                told = " ".join(f"{type(raised).__name__}: {raised}".split())
                yield Done(numbers[future.key], error=printable(told, 200))
    finally:
        if isinstance(cluster, str):
            client.close()
