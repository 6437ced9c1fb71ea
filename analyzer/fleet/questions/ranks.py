"""``fleet ranks``: the late rank of a parallel run, by how much, where, and the ranks that wait for it.

Ranks meet in collectives (an all-reduce, a barrier): all leave one when the last has come. So the late rank is the one
that waits least there, and the cause is the work that it does more than the others elsewhere. No clocks of different
hosts are compared: only how long each rank spent at each place.

``waiting`` finds the function where the ranks meet: waiting by function, callees included.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.call_tree import NOTHING, Tree
from ...recording.text import printable
from ...statistics.distributions import t_quantile
from ...statistics.grouped_sums import summed
from .flame import rows_of_parents
from .selection import Selection
from .top import follow_lines

_Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Waiting:
    """Waiting of all ranks (rows) in each function (columns), callees included, in seconds.

    ``depth`` is how far from the root each function is; ``tree`` is the call tree, with each node's function and time.
    """

    names: NDArray[np.object_]
    files: NDArray[np.object_]
    depth: _Array
    seconds: _Array
    tree: Tree
    function: _Ids
    spent: _Array

    def inside(self, meeting: int) -> set[tuple[str, str | None]]:
        """Names and files of the functions that spend most of their time in calls by this one, and its own."""
        below = self.tree.nearest(self.function == meeting) != NOTHING
        of_all = np.bincount(self.function, self.spent, len(self.names))
        of_it = np.bincount(self.function[below], self.spent[below], len(self.names))
        mine = np.flatnonzero((of_it > 0.5 * of_all) | (np.arange(len(self.names)) == meeting))
        return {(self.names[each], self.files[each]) for each in mine.tolist()}


def waiting(selection: Selection) -> Waiting:
    """Waiting of the recordings of a selection, one row each."""
    rows = selection.query(
        "stacks",
        "SELECT stack, parent, depth, name, file, recording, coalesce(wait_s, 0) AS wait_s, coalesce(cpu_s, 0) AS cpu_s"
        " FROM t WHERE name <> '<other>' ORDER BY depth, stack, recording",
    )
    tree = rows.drop_duplicates("stack", keep="first").reset_index(drop=True)
    node_of = pd.Series(np.arange(len(tree)), tree["stack"].to_numpy())
    rank_of = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    own = np.zeros((len(selection), len(tree)))
    node = node_of[rows["stack"].to_numpy()].to_numpy()
    np.add.at(own, (rank_of[rows["recording"].to_numpy()].to_numpy(), node), rows["wait_s"].to_numpy())
    calls, depth = Tree(rows_of_parents(tree)), tree["depth"].to_numpy()
    keys = pd.MultiIndex.from_arrays([tree["name"], tree["file"].fillna("")])
    function, distinct = pd.factorize(keys)
    total = calls.below(own.T)
    seconds = np.zeros((len(distinct), len(selection)))
    outermost = calls.outermost(np.asarray(function))
    np.add.at(seconds, function[outermost], total[outermost])
    spent = summed(node, (rows["wait_s"] + rows["cpu_s"]).to_numpy(np.float64), len(tree))
    files = np.array([file or None for _, file in distinct], object)
    weight = own.sum(axis=0) + 1e-9
    mean = np.bincount(function, depth * weight, len(distinct)) / np.bincount(function, weight, len(distinct))
    names = np.array([name for name, _ in distinct], object)
    return Waiting(names, files, mean, seconds.T, calls, np.asarray(function), spent)


TIE = 0.95
"""Of functions that wait nearly as unevenly as the most uneven one does, the innermost is where ranks meet."""


def find_meeting(waits: Waiting, wall_s: float, least: float) -> int | None:
    """The function in which waiting is most uneven: where the difference of the median and the least is largest.

    At least ``least`` of the time of all is spent there, all ranks wait there, or all but the late one. The latter
    counts only where it is twice as uneven: a rank may have its own part of a collective.
    """
    own = waits.seconds
    if not own.size:
        return None
    much = own.sum(axis=0) >= least * wall_s
    spread = np.median(own, axis=0) - own.min(axis=0)
    missing = (own <= 0).sum(axis=0)
    all_wait, nearly = (np.where((missing <= few) & much, spread, -1.0) for few in (0, 1))
    uneven = all_wait if all_wait.max() >= 0.5 * nearly.max() else nearly
    best = float(uneven.max())
    if best <= 0:
        return None
    near = np.flatnonzero(uneven >= TIE * best)
    return int(near[np.lexsort((-uneven[near], -waits.depth[near]))[0]])


RANK_LABELS = ("rank", "slurm.procid")
RUN_LABELS = ("run", "slurm.job_id", "service.instance.id")
"""Labels that identify a run of a program. Without one, and if ranks occur twice, the user must choose."""

MEETING = 0.05
"""Ranks meet in a function if waiting in it is this part of the ranks' time, and all of them wait there."""

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ranks:
    """Times and waiting of the ranks of one run, and the late rank.

    ``ranks``: rank, host, path, cpu_s, wait_s, meeting_wait_s (waiting in the collective), late_s (how much less than
    the others' median), waited_s (how much it waited for the late one), file, line, source, function, more_s (the line
    on which it spent more than the others' median, and how much), cpu_share (of that; the rest is waiting).
    ``meeting`` is where they meet (function, or span), None where they never wait for one another.
    ``late`` is the rank that is late for certain, None if none is; ``last`` is the one that waits least, by ``late_s``
    less than the others, with the ends of a 95 % interval. ``without_cpu`` is the part of their time for which the
    ranks had no processor.
    ``spans`` is the same by named span: span, count (of one rank), rank, more_s (what this rank spends in the span,
    but for the collective, beyond the others' median), file, line, function, source (where it spends most of that),
    cpu_share (of what it spends more on that line; the rest is waiting), meeting_wait_s (the ranks' median of waiting
    in the collective in this span); the largest more_s first.
    """

    ranks: pd.DataFrame
    meeting: str | None
    meeting_file: str | None
    late: int | None
    last: int | None
    late_s: float
    late_low: float
    late_high: float
    without_cpu: float
    steps: float | None
    """Number of times the span was entered, if the program has named spans: late_s / steps is the lateness of one."""
    spans: pd.DataFrame


def ranks(selection: Selection, *, function: str | None = None, anyway: bool = False) -> Ranks:
    """The late rank; ``function`` names the collective where it is known, by a part of its name.

    Errors:
        FormatError: the recordings have no ranks, or are of several runs.
    """
    selection.refuse_mixed("waits", anyway=anyway)
    frame = _one_run(selection)
    if len(frame) < 2:
        raise FormatError("ranks are compared with one another: there is only one")
    chosen = Selection(frame, selection.index)
    waits = waiting(chosen)
    wall = float(frame["wall_s"].fillna(0.0).mean())
    meeting = find_meeting(waits, wall, MEETING) if function is None else _named(waits, function)
    inside = set() if meeting is None else waits.inside(meeting)
    waited = np.zeros(len(frame)) if meeting is None else waits.seconds[:, meeting]
    result = _told(chosen, waited, inside, _times_by_line(chosen))
    steps = _steps(chosen)
    worst = int(np.argmax(result["late_s"].to_numpy())) if meeting is not None else -1
    late_s, low, high, certain = (0.0, 0.0, 0.0, False) if worst < 0 else lateness(waited, worst, wall)
    lived = float(frame["process_s"].fillna(0.0).sum())
    return Ranks(
        ranks=result,
        meeting=None if meeting is None else str(waits.names[meeting]),
        meeting_file=None if meeting is None else waits.files[meeting],
        late=int(result["rank"].iat[worst]) if certain else None,
        last=int(result["rank"].iat[worst]) if worst >= 0 else None,
        late_s=late_s,
        late_low=low,
        late_high=high,
        without_cpu=float(frame["main_cpu_wait_s"].fillna(0.0).sum()) / lived if lived > 0 else 0.0,
        steps=steps,
        spans=_by_span(chosen, inside),
    )


USUAL, USUAL_FREEDOM = 0.15, 2
"""Waiting of equal ranks differs by this part of itself, as much as two further ranks tell."""

LEAST = 0.01
"""A rank that is late by less than this part of the run does not matter."""


def lateness(waited: _Array, worst: int, wall_s: float) -> tuple[float, float, float, bool]:
    """By how much rank ``worst`` waits less than the others, the ends of a 95 % interval, and if that is certain.

    Of equal ranks one always waits least. So it counts as late only if it lies outside of what the others' spread
    explains: their variance, moderated by what is usual, with the test of the largest externally studentized residual
    (each of the ranks may be the one: Bonferroni).
    """
    others = np.delete(waited, worst)
    freedom = len(others) - 1
    usual = np.square(USUAL * float(np.median(others)))
    own = float(others.var(ddof=1)) if freedom > 0 else 0.0
    together = (freedom * own + USUAL_FREEDOM * usual) / (freedom + USUAL_FREEDOM)
    error = float(np.sqrt(together * (1 + 1 / len(others))))
    late = float(np.median(others) - waited[worst])
    quantile, strict = (
        float(t_quantile(alpha, np.array([float(freedom + USUAL_FREEDOM)]))[0]) for alpha in (0.05, 0.1 / len(waited))
    )
    certain = late > strict * error and late >= LEAST * wall_s
    return late, late - quantile * error, late + quantile * error, certain


def has_ranks(selection: Selection) -> bool:
    """True if a recording has the label rank."""
    return any(value is not None for label in RANK_LABELS for value in selection.values(label))


def _one_run(selection: Selection) -> pd.DataFrame:
    """The recordings with a rank, by rank."""
    for label in RANK_LABELS:
        values = [int(value) if value is not None and value.isdecimal() else -1 for value in selection.values(label)]
        if any(value >= 0 for value in values):
            break
    else:
        raise FormatError("no recording has the label rank (RANK in the environment gives it)")
    frame = selection.frame.assign(rank=values)
    frame = frame[frame["rank"] >= 0].sort_values("rank", kind="stable").reset_index(drop=True)
    twice = frame[frame["rank"].duplicated()]
    if not twice.empty:
        first = twice["rank"].iat[0]
        label = next((name for name in RUN_LABELS if any(name in tags for tags in frame["tags"])), "run")
        raise FormatError(
            f"rank {first} is there {int((frame['rank'] == first).sum())} times: choose one run, with"
            f" --where {label}=... for example"
        )
    return frame


def _named(waits: Waiting, function: str) -> int:
    """The function with the most waiting whose name contains ``function``."""
    named = [number for number, name in enumerate(waits.names.tolist()) if function in str(name)]
    if not named:
        raise FormatError(f"no rank waits in a function whose name has {printable(function, 80)!r}")
    return max(named, key=lambda number: float(waits.seconds[:, number].sum()))


def _times_by_line(selection: Selection) -> tuple[pd.DataFrame, _Array]:
    """The lines, and CPU time (first) and the main thread's waiting of each rank on each: 2 by ranks by lines."""
    lines = selection.query(
        "lines",
        "SELECT key, any_value(name) AS name, any_value(file) AS file, any_value(line) AS line,"
        " any_value(sha256) AS sha256, any_value(source) AS source, sum(cpu_s + coalesce(main_wait_s, 0)) AS amount,"
        " count(DISTINCT recording) AS recordings FROM t GROUP BY key ORDER BY amount DESC, key",
    )
    places = follow_lines(selection, lines)
    row_of = {key: row for row, keys in enumerate(places["keys"]) for key in keys}
    rows_by_recording = selection.query(
        "lines",
        "SELECT key, recording, sum(cpu_s) AS cpu_s, sum(coalesce(main_wait_s, 0)) AS wait_s FROM t GROUP BY 1, 2",
    )
    times = np.zeros((2, len(selection), len(places)))
    place = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    rows = np.array([row_of[key] for key in rows_by_recording["key"].tolist()], np.int64)
    at = place[rows_by_recording["recording"].to_numpy()].to_numpy()
    for kind, column in enumerate(("cpu_s", "wait_s")):
        np.add.at(times[kind], (at, rows), rows_by_recording[column].to_numpy())
    return places, times


Functions = set[tuple[str, str | None]]
"""Names and files of functions: of those that belong to the collective."""


def _told(selection: Selection, waited: _Array, inside: Functions, lines: tuple[pd.DataFrame, _Array]) -> pd.DataFrame:
    frame, (places, parts) = selection.frame, lines
    times = parts.sum(axis=0)
    late = np.maximum(_medians_of_others(waited) - waited, 0.0)
    elsewhere = ~_belong(places, inside)
    more = np.where(elsewhere & places["file"].notna().to_numpy(), times - _medians_of_others(times), -np.inf)
    line = more.argmax(axis=1) if more.size else np.zeros(len(frame), np.int64)
    at = (np.arange(len(frame)), line)
    spent = more[at] if more.size else np.zeros(len(frame))
    of_line = [(each - _medians_of_others(each))[at] if more.size else spent for each in parts]
    # Of waiting in the collective, what is beyond the late rank's own is waiting for it.
    for_it = waited - waited.min()
    chosen = places.iloc[line].reset_index(drop=True)
    return pd.DataFrame(
        {
            "rank": frame["rank"].astype("int64"),
            "host": frame["host"],
            "path": frame["path"],
            "cpu_s": frame["cpu_s"],
            "wait_s": frame["main_wait_s"],
            "meeting_wait_s": waited,
            "late_s": late,
            "waited_s": for_it,
            "file": chosen["file"],
            "line": chosen["line"].astype("Int64"),
            "function": chosen["name"],
            "source": chosen["source"],
            "more_s": np.maximum(spent, 0.0),
            "cpu_share": _share(*of_line),
        }
    )


def _share(cpu: _Array, wait: _Array) -> _Array:
    """The part of more CPU time in both, NaN where there is neither."""
    cpu, wait = np.maximum(cpu, 0.0), np.maximum(wait, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(cpu / (cpu + wait), np.float64)


def _medians_of_others(values: _Array) -> _Array:
    """For each rank (the first axis) the medians of the others' values."""
    return np.stack([np.median(np.delete(values, number, axis=0), axis=0) for number in range(len(values))])


def _steps(selection: Selection) -> float | None:
    answer = selection.query(
        "spans", "SELECT name, median(count) AS steps FROM t WHERE count > 0 GROUP BY 1 ORDER BY 2 DESC"
    )
    return float(answer["steps"].iat[0]) if len(answer) else None


def _belong(rows: pd.DataFrame, inside: Functions) -> NDArray[np.bool_]:
    """True for rows (name, file) of these functions."""
    files = rows["file"].astype(object).where(rows["file"].notna(), None)
    return np.array([each in inside for each in zip(rows["name"], files, strict=True)], np.bool_)


def _by_span(selection: Selection, inside: Functions) -> pd.DataFrame:
    """Of each named span the rank that spends more in it than the others."""
    rows = selection.query(
        "span_lines",
        "SELECT span, key, name, any_value(file) AS file, any_value(line) AS line, recording, sum(cpu_s) AS cpu_s,"
        " sum(main_wait_s) AS wait_s FROM t GROUP BY span, key, name, recording ORDER BY span, key, name",
    )
    counts = selection.query("spans", "SELECT name, median(count) AS count FROM t WHERE count > 0 GROUP BY 1")
    count_of = dict(zip(counts["name"].tolist(), counts["count"].tolist(), strict=True))
    texts = selection.query("lines", "SELECT key, any_value(source) AS source FROM t GROUP BY 1")
    text_of = dict(zip(texts["key"].tolist(), texts["source"].tolist(), strict=True))
    place = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    answer = []
    met = pd.Series(_belong(rows, inside), rows.index)
    for span, mine in rows.groupby("span", sort=False):
        at = place[mine["recording"].to_numpy()].to_numpy()
        meets = met[mine.index].to_numpy()
        waited = np.bincount(at[meets], mine["wait_s"].to_numpy()[meets], len(selection))
        keys, column = np.unique(mine["key"].to_numpy()[~meets], return_inverse=True)
        parts = np.zeros((2, len(selection), len(keys)))
        for kind, name in enumerate(("cpu_s", "wait_s")):
            np.add.at(parts[kind], (at[~meets], column), mine[name].to_numpy()[~meets])
        times = parts.sum(axis=0)
        spent = times.sum(axis=1)
        more = spent - _medians_of_others(spent)
        rank = int(more.argmax())
        row: dict[str, object] = dict.fromkeys(("file", "line", "function", "source", "cpu_share"))
        if len(keys):
            excess = parts[:, rank] - np.median(np.delete(parts, rank, axis=1), axis=1)
            most = int((times[rank] - np.median(np.delete(times, rank, axis=0), axis=0)).argmax())
            key = keys[most]
            line = mine[~meets & (mine["key"] == key).to_numpy()].iloc[0]
            row = {
                "file": line["file"],
                "line": int(line["line"]),
                "function": line["name"],
                "source": text_of.get(key),
                "cpu_share": float(_share(*excess[:, most])),
            }
        answer.append(
            {
                "span": span,
                "count": count_of.get(span),
                "rank": int(selection.frame["rank"].iat[rank]),
                "more_s": max(float(more[rank]), 0.0),
                **row,
                "meeting_wait_s": float(np.median(waited)),
            }
        )
    columns = ["span", "count", "rank", "more_s", "file", "line", "function", "source", "cpu_share", "meeting_wait_s"]
    frame = pd.DataFrame(answer, columns=columns).astype({"line": "Int64", "count": "float64", "cpu_share": "float64"})
    return frame.sort_values("more_s", ascending=False, kind="stable", ignore_index=True)
