"""The sums of one recording that a fleet's index keeps. The figures are those of ``tachograph analyze``.

``SpanNodes`` adds up CPU time and waiting by named span and node of the call tree, for each span's lines.

Code is identified across hosts, folders and versions by its file's path, made free of the parts that differ from host
to host, and by its qualified name. Stacks are identified by a hash that is folded from the root: of the caller's hash
and of the function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..profile.build import ResolvedQuestion, ask, conclude, measure, named_scope
from ..profile.profile import Profile
from ..profile.question import Question
from ..recording.call_tree import NOTHING, CallTree
from ..recording.frame import Frame, WholeNumbers
from ..recording.opened import Recording
from ..recording.output_file import uncollected
from ..recording.recorded_spans import Spans
from ..recording.text import printable
from ..recording.time_window import TimeRanges
from ..samples.reduction import MEASURES as NODE_MEASURES
from ..samples.stream import CpuBatch, WaitBatch
from ..samples.summary import PROJECT, Scope
from ..statistics.grouped_sums import summed
from ..statistics.relative_buckets import buckets
from .index_tables import MEASURES, SCHEMAS, TOTALS, empty, no_rows, table_of
from .store import Store, StoredRecording, StoreError, key_of

_INSTALLED = re.compile(r".*(?:^|/)(?:site|dist)-packages/(.+)")
_STANDARD = re.compile(r".*(?:^|/)(?:lib|lib64|Lib)/(?:python|pypy)\d+\.\d+t?/(.+)")
_HOME = re.compile(r"^/(?:home|Users)/[^/]+(?=/)|^/root(?=/)")
# A folder that is named after a version, a day, a number or a commit: releases/20261101/app.py.
_VERSION = re.compile(r"(?<=/)(?:v?\d[\w.+-]*|[0-9a-f]{7,40})(?=/)")


def common_path(path: str, root: str | None) -> str:
    """The path of a source file as it is the same on every host; ``root`` is the folder of the program."""
    path = path.replace("\\", "/")
    if (match := _INSTALLED.fullmatch(path)) is not None:
        return f"site-packages/{match[1]}"
    if (match := _STANDARD.fullmatch(path)) is not None:
        return f"python/{match[1]}"
    if root is not None and path.startswith(f"{root}/"):
        return path[len(root) + 1 :]
    return _VERSION.sub("*", _HOME.sub("~", path))


_INLINED = re.compile(r"(?:^|(?<=\.))(?:<locals>\.)?<(?:list|dict|set)comp>$")


def owner(name: str) -> str:
    """The function that a function's time is counted for.

    A comprehension of a list, dict or set is a function of its own before Python 3.12, and a part of its function from
    then on: it is one everywhere, so that versions of Python compare, and a function has what its comprehensions do.
    """
    while (match := _INLINED.search(name)) is not None:
        name = name[: match.start()].removesuffix(".") or "<module>"
    return name


def program_root(tree: CallTree, project: Scope) -> str | None:
    """The folder of the script or module that was run: that of the outermost module code of the project.

    None where no stack begins in one.
    """
    if not len(tree):
        return None
    inside = np.array([project.includes(path) and not path.startswith("<") for path in tree.paths] or [False], np.bool_)
    modules = np.array([name == "<module>" for name in tree.function_names] or [False], np.bool_)
    in_project = (tree.file != NOTHING) & inside[tree.file]
    below = np.zeros(len(tree), np.bool_)
    for node, parent in enumerate(tree.parent.tolist()):  # parents come first
        below[node] = parent != NOTHING and (below[parent] or in_project[parent])
    first = in_project & ~below & (tree.function != NOTHING) & modules[tree.function]
    folders = {tree.paths[file].replace("\\", "/").rpartition("/")[0] for file in np.unique(tree.file[first]).tolist()}
    return min(folders, key=lambda folder: (folder.count("/"), len(folder), folder), default=None)


def function_keys(tree: CallTree, paths: list[str]) -> NDArray[np.int64]:
    """A number for each function of the tree; ``paths`` are its files' paths, made common."""
    names, files = tree.function_names, tree.function_files.tolist()
    return np.array([key_of(paths[file], owner(name)) for name, file in zip(names, files, strict=True)], np.int64)


def stack_hashes(tree: CallTree, keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each node: equal for equal paths of functions from the root.

    A comprehension below its function has its function's number (see ``owner``).
    """
    inlined = np.array([owner(name) != name for name in tree.function_names] + [False], np.bool_)
    own = np.append(keys, key_of("<unknown code>"))[tree.function].view(np.uint64)
    hashes = [0] * len(tree)
    parents = tree.parent.tolist()
    mask = (1 << 64) - 1
    inside = (inlined[tree.function] & (tree.parent != NOTHING)).tolist()
    for node, key in enumerate(own.tolist()):
        if inside[node] and own[parents[node]] == key:
            hashes[node] = hashes[parents[node]]
            continue
        above = hashes[parents[node]] if parents[node] != NOTHING else 0x9E3779B97F4A7C15
        # The finalizer of SplitMix64 (Steele, Lea and Flood 2014), over the caller's hash and this function's.
        mixed = (above * 0xBF58476D1CE4E5B9 + key) & mask
        mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & mask
        hashes[node] = mixed ^ mixed >> 31
    return np.array(hashes, np.uint64).view(np.int64)


_Ids = NDArray[np.int64]
_Floats = NDArray[np.float64]


class SpanNodes:
    """The sink that adds up by the innermost span and the node. Of waits, those of main threads, but not for a CPU.

    A wait is shared out by how long it lay in each span, as in the report of one recording: waits on one line that
    follow one another closely are one row, which lasts over many spans. ``own`` are the ranges of spans without those
    within them.
    """

    times = True

    def __init__(self, own: TimeRanges, main: NDArray[np.bool_], nodes: int) -> None:
        self._own, self._main, self._nodes = own, main, nodes
        self._parts: list[tuple[_Ids, int, _Floats]] = []

    def cpu(self, batch: CpuBatch) -> None:
        """Takes some CPU samples."""
        self._take(0, self._own.group_at(batch.track, batch.time_ns), batch.stack, batch.weight_ns)

    def waits(self, batch: WaitBatch) -> None:
        """Takes some waits."""
        mine = batch.for_the_world()
        mine = mine.only(self._main[mine.thread])
        row, span, part = self._own.overlaps(mine.track, mine.start_ns, mine.end_ns)
        self._take(1, span, mine.stack[row], mine.weight_ns[row] * part)

    def sums(self) -> tuple[_Ids, _Ids, _Floats]:
        """Numbers of spans, nodes, and the seconds of CPU time and waiting of each pair that has any."""
        if not self._parts:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing, np.zeros((0, 2))
        keys, place = np.unique(np.concatenate([part[0] for part in self._parts]), return_inverse=True)
        sums = np.zeros((len(keys), 2))
        start = 0
        for part, column, weight in self._parts:
            sums[:, column] += np.bincount(place[start : start + len(part)], weight, len(keys))
            start += len(part)
        return keys // self._nodes, keys % self._nodes, sums / 1e9

    def _take(self, column: int, span: _Ids, stack: NDArray[np.integer], weight: _Floats) -> None:
        inside = (span >= 0) & (stack < self._nodes)
        if inside.any():
            key, place = np.unique(span[inside] * self._nodes + stack[inside], return_inverse=True)
            self._parts.append((key, column, summed(place, weight[inside], len(key))))


OTHER = "<other>"
"""The row of everything left out of a table because it was small."""

MAX_ROWS = 2_000
"""Rows of lines, functions and stacks that are kept of a recording; the rest is one row."""

SMALL = 16 << 20
"""Bytes of a recording that is read without garbage collections."""

MAX_SOURCE = 1 << 20
"""Characters of a source text that is kept."""


def read_sums(store: Store, stored: StoredRecording, question: Question) -> dict[str, pa.Table]:
    """The tables of a recording that lies in a store; if it cannot be read, one row that says why."""
    try:
        # A small recording leaves little garbage, and a collection would go through all loaded modules.
        collected = uncollected() if stored.size <= SMALL else nullcontext()
        with store.opened(stored) as path, collected:
            return sums_of(path, stored, question)
    except StoreError as error:
        return failed(stored, str(error), again=True)
    except (FormatError, OSError) as error:
        return failed(stored, str(error))


def failed(stored: StoredRecording, why: str, *, again: bool = False) -> dict[str, pa.Table]:
    """The tables of a recording that could not be read."""
    row = {"path": stored.path, "fingerprint": stored.fingerprint, "bytes": stored.size, "again": int(again)}
    # The path of the recording itself is beside it; the beginning of a long one may be cut off in the message.
    own = re.escape(stored.path.rpartition("/")[2] or stored.path)
    row |= {"recording": stored.key, "error": printable(re.sub(rf"\S*{own}(?:/|(?=\W|$))", "", why), 300).lstrip(": ")}
    return empty() | {"recordings": table_of("recordings", {name: [value] for name, value in row.items()})}


def sums_of(path: Path, stored: StoredRecording, question: Question) -> dict[str, pa.Table]:
    """The tables of a recording that lies here.

    Errors:
        FormatError: it is not a recording, or is damaged.
    """
    with Recording.open(path) as recording:
        resolved = ask(recording, question, brief=True)
        spans = _span_nodes(resolved)
        profile = conclude(resolved, measure(resolved, *([] if spans is None else [spans])))
        files = _Files.of(recording, profile)
        return {
            "recordings": _about(recording, profile, stored),
            "losses": _losses(profile, stored.key),
            "functions": _functions(profile, files, stored.key),
            "lines": _lines(profile, files, stored.key),
            "stacks": _stacks(profile, files, stored.key),
            "spans": _spans(profile, stored.key),
            "span_durations": _span_durations(resolved.spans, stored.key),
            "span_lines": no_rows("span_lines")
            if spans is None
            else _span_lines(resolved.spans.names, spans, profile, files, stored.key),
            "leaks": _leaks(profile, files, stored.key),
            "sources": _sources(recording, profile, files, stored.key),
        }


@dataclass(frozen=True)
class _Files:
    """Common paths and digests of the files of a recording, by their ids."""

    paths: list[str]
    digests: list[str | None]

    @classmethod
    def of(cls, recording: Recording, profile: Profile) -> _Files:
        tree = profile.calls.tree
        root = program_root(tree, named_scope(PROJECT, recording))
        digests = recording.table("files").column("sha256").to_pylist()
        return cls([printable(common_path(path, root), 4096) for path in tree.paths], digests)

    def path(self, file: int, label: object) -> str | None:
        return self.paths[file] if 0 <= file < len(self.paths) else None


def _about(recording: Recording, profile: Profile, stored: StoredRecording) -> pa.Table:
    metadata, totals, memory = profile.metadata, profile.totals, profile.memory
    parameters = recording.manifest.parameters
    numbers: dict[str, Any] = {name: getattr(totals, name, None) for name in TOTALS}
    if memory is not None:
        numbers |= {name: getattr(memory, name) for name in ("peak_bytes", "end_bytes", "resident_peak_bytes")}
    row = {
        "recording": stored.key,
        "again": 0,
        "path": stored.path,
        "fingerprint": stored.fingerprint,
        "uuid": metadata.uuid,
        "created_utc": metadata.created_utc,
        "host": metadata.host,
        "program": " ".join(metadata.argv[:2] if metadata.argv[:1] == ["-m"] else metadata.argv[:1]) or None,
        "labels": json.dumps(metadata.labels, ensure_ascii=False),
        "state": profile.quality.state,
        "sampler": ", ".join(metadata.samplers) or None,
        "waits": _yes_or_no(parameters.get("waits")),
        "memory": _yes_or_no(parameters.get("memory")),
        "python": ", ".join(sorted({".".join(version.split(".")[:2]) for version in metadata.python_versions})) or None,
        "machine": metadata.machine,
        "scope": profile.scope,
        "bytes": stored.size,
        "interval_s": metadata.interval_s,
        **numbers,
    }
    return table_of("recordings", {name: [value] for name, value in row.items()})


def _yes_or_no(value: object) -> str | None:
    return None if value is None else "yes" if value is True else "no"


def _losses(profile: Profile, key: int) -> pa.Table:
    causes = profile.quality.causes
    columns = {
        name: [getattr(cause, name) for cause in causes] for name in ("loss", "severity", "doc", "advice", "count")
    }
    return table_of("losses", {"recording": [key] * len(causes), **columns})


def _functions(profile: Profile, files: _Files, key: int) -> pa.Table:
    frame = profile.frames.functions
    given = [str(name) for name in frame["function"].tolist()]
    names = [owner(name) for name in given]
    paths = [files.path(file, name) for file, name in zip(frame["file_id"].tolist(), names, strict=True)]
    keys = [key_of(path or "", name) for path, name in zip(paths, names, strict=True)]
    values = {each: _floats(frame[each]) for each in MEASURES if each in frame}
    inlined = np.array([one != other for one, other in zip(given, names, strict=True)], np.bool_)
    if inlined.any():
        # What a comprehension calls is among its function's callees already; one whose function has no row has its own.
        mine = pd.Series(keys)[~inlined]
        covered = np.isin(np.array(keys, np.int64), mine.to_numpy(np.int64)) & inlined
        values |= {each: np.where(covered, 0.0, values[each]) for each in values if each.startswith("total_")}
    return _summed("functions", {"key": keys, "name": names, "file": paths}, values, key)


def _lines(profile: Profile, files: _Files, key: int) -> pa.Table:
    frame = profile.frames.lines
    names, ids, lines = (frame[name].tolist() for name in ("function", "file_id", "line"))
    names = [owner(str(name)) for name in names]
    paths = [files.path(file, name) for file, name in zip(ids, names, strict=True)]
    digests = [files.digests[file] if path is not None else None for file, path in zip(ids, paths, strict=True)]
    keys = [
        key_of(path or str(name), str(line), digest or "")
        for path, name, line, digest in zip(paths, names, lines, digests, strict=True)
    ]
    sources = [text[:500] if isinstance(text, str) else None for text in frame["source"].tolist()]
    columns = {"key": keys, "name": names, "file": paths, "sha256": digests, "source": sources, "line": lines}
    return _summed("lines", columns, frame, key)


def _summed(name: str, labels: dict[str, list[Any]], frame: Frame | dict[str, _Floats], key: int) -> pa.Table:
    """The measures of rows, those of one key together; the smallest rows beyond MAX_ROWS are one."""
    measures = [each for each in MEASURES if each in frame]
    values = np.stack([_floats(frame[each]) for each in measures], axis=1)
    weights = np.nan_to_num(values[:, [measures.index("total_cpu_s"), measures.index("total_wait_s")]]).sum(axis=1)
    if len(weights) > MAX_ROWS:
        order = np.argsort(-weights, kind="stable")
        kept, rest = np.sort(order[:MAX_ROWS]), order[MAX_ROWS:]
        labels = {column: [each[row] for row in kept.tolist()] for column, each in labels.items()}
        for column, each in labels.items():
            each.append(key_of(OTHER) if column == "key" else OTHER if column == "name" else None)
        unknown = np.isnan(values[rest]).all(axis=0)
        values = np.vstack([values[kept], np.where(unknown, np.nan, np.nansum(values[rest], axis=0))])
    distinct, first, row_of = np.unique(np.array(labels["key"], np.int64), return_index=True, return_inverse=True)
    if len(distinct) < len(values):
        order = np.sort(first)
        groups = np.searchsorted(order, first)[row_of]
        sums = summed(groups, np.nan_to_num(values), len(order))
        counts = summed(groups, ~np.isnan(values), len(order))
        values = np.where(counts > 0, sums, np.nan)
        labels = {column: [each[row] for row in order.tolist()] for column, each in labels.items()}
    amounts: dict[str, Any] = {each: values[:, column] for column, each in enumerate(measures)}
    return table_of(name, {"recording": [key] * len(values), **labels, **amounts})


def _floats(values: Any) -> NDArray[np.float64]:
    if isinstance(values, WholeNumbers):
        return np.where(values.unknown, np.nan, values.values).astype(np.float64)
    return np.asarray(values, np.float64)


def _stacks(profile: Profile, files: _Files, key: int) -> pa.Table:
    """The call tree by functions: nodes of the same path are one, and small branches are a part of ``<other>``."""
    tree, sums = profile.calls.tree, profile.calls.sums
    columns = [NODE_MEASURES.index("cpu_ns"), NODE_MEASURES.index("wait_ns")]
    own = sums.nodes[:, columns] / 1e9
    hashes = stack_hashes(tree, function_keys(tree, files.paths))
    distinct, first, node_of = np.unique(hashes, return_index=True, return_inverse=True)
    merged = summed(node_of, own, len(distinct))
    below = summed(node_of, tree.below(own).sum(axis=1), len(distinct))
    kept = np.zeros(len(distinct), np.bool_)
    # A node is never smaller than what lies below it: the largest are a tree.
    depth = _depths(tree.parent)
    kept[np.lexsort((depth[first], -below))[:MAX_ROWS]] = True
    kept &= below > 0
    order = first[kept]
    above = np.append(hashes, 0)[tree.parent[order]]
    function = tree.function[order]
    named = [tree.function_names[each] if each != NOTHING else "<unknown code>" for each in function]
    names = [printable(owner(name), 500) for name in named]
    paths = [files.paths[tree.function_files[each]] if each != NOTHING else None for each in function]
    depths = depth[order]
    rest = merged[~kept].sum(axis=0) + sums.stackless[:, columns].sum(axis=0) / 1e9
    return table_of(
        "stacks",
        {
            "recording": [key] * (len(order) + 1),
            "stack": [*distinct[kept].tolist(), key_of(OTHER)],
            "parent": [*above.tolist(), 0],
            "depth": [*depths.tolist(), 0],
            "name": [*names, OTHER],
            "file": [*paths, None],
            "cpu_s": [*merged[kept, 0].tolist(), rest[0]],
            "wait_s": [*merged[kept, 1].tolist(), rest[1]],
        },
    )


def _depths(parent: NDArray[np.int64]) -> NDArray[np.int64]:
    depths = [0] * len(parent)
    for node, above in enumerate(parent.tolist()):
        depths[node] = depths[above] + 1 if above != NOTHING else 0
    return np.array(depths, np.int64)


def _spans(profile: Profile, key: int) -> pa.Table:
    frame = profile.frames.spans
    if frame is None or not len(frame):
        return no_rows("spans")
    names = [name for name in SCHEMAS["spans"].names if name not in ("recording", "name")]
    columns: dict[str, Any] = {name: _floats(frame[name]) for name in names}
    return table_of("spans", {"recording": [key] * len(frame), "name": frame["name"].tolist(), **columns})


def _span_durations(spans: Spans, key: int) -> pa.Table:
    if not len(spans):
        return no_rows("span_durations")
    lasted = np.maximum(spans.end_ns - spans.start_ns, 1) / 1e9
    pairs, count = np.unique(np.stack([spans.name, buckets(lasted)]), axis=1, return_counts=True)
    return table_of(
        "span_durations",
        {
            "recording": [key] * len(count),
            "name": [printable(spans.names[name], 500) for name in pairs[0].tolist()],
            "bucket": pairs[1].tolist(),
            "count": count.tolist(),
        },
    )


def _span_nodes(resolved: ResolvedQuestion) -> SpanNodes | None:
    """The sink for the lines of spans; None where there are no spans."""
    if not len(resolved.ranges[0]):
        return None
    return SpanNodes(resolved.ranges[0], resolved.recording.all_threads.main, resolved.stream.nodes)


def _span_lines(names: Sequence[str], spans: SpanNodes, profile: Profile, files: _Files, key: int) -> pa.Table:
    """The lines on which the spans spend their time, those with the most of it."""
    tree = profile.calls.tree
    span, node, amounts = spans.sums()
    node = profile.calls.charged[node]
    placed = (node != NOTHING) & (tree.line[node] != NOTHING) & (tree.file[node] != NOTHING)
    places = {"span": span[placed], "file": tree.file[node[placed]], "line": tree.line[node[placed]]}
    frame = pd.DataFrame(
        {**places, "function": tree.function[node[placed]], "cpu_s": amounts[placed, 0], "wait": amounts[placed, 1]}
    )
    frame = frame.groupby(["span", "file", "line", "function"], as_index=False, sort=False).sum()
    frame = frame.assign(all=frame["cpu_s"] + frame["wait"]).nlargest(MAX_ROWS, "all", keep="first")
    paths = [files.paths[file] for file in frame["file"]]
    digests = [files.digests[file] for file in frame["file"]]
    lines = frame["line"].tolist()
    functions = [tree.function_names[each] if each != NOTHING else "<unknown code>" for each in frame["function"]]
    return table_of(
        "span_lines",
        {
            "recording": [key] * len(frame),
            "key": [
                key_of(path, str(line), digest or "") for path, line, digest in zip(paths, lines, digests, strict=True)
            ],
            "line": lines,
            "span": [printable(names[each], 500) for each in frame["span"]],
            "name": [printable(name, 500) for name in functions],
            "file": paths,
            "sha256": digests,
            "cpu_s": frame["cpu_s"].to_numpy(),
            "main_wait_s": frame["wait"].to_numpy(),
        },
    )


def _leaks(profile: Profile, files: _Files, key: int) -> pa.Table:
    frame = profile.frames.leaks
    if frame is None or not len(frame):
        return no_rows("leaks")
    names = frame["function"].tolist()
    ids = frame["file_id"].tolist()
    columns: dict[str, Any] = {
        name: _floats(frame[name]) for name in ("likelihood", "rate_bytes_per_s", "leaked_bytes")
    }
    return table_of(
        "leaks",
        {
            "recording": [key] * len(frame),
            "name": names,
            "file": [files.path(file, name) for file, name in zip(ids, names, strict=True)],
            "line": frame["line"].tolist(),
            **columns,
        },
    )


def _sources(recording: Recording, profile: Profile, files: _Files, key: int) -> pa.Table:
    """The texts of files that lines are charged to, so that lines can be followed from version to version."""
    texts = recording.table("files").column("source")
    rows = [
        (files.paths[file], files.digests[file], text)
        for file in sorted({file for file in profile.frames.lines["file_id"].tolist() if 0 <= file < len(files.paths)})
        if files.digests[file] is not None and (text := texts[file].as_py()) is not None and len(text) <= MAX_SOURCE
    ]
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("file", "sha256", "source"))}
    return table_of("sources", {"recording": [key] * len(rows), **columns})
