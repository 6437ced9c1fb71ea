"""``fleet ranks``: which rank of a parallel run is late, by how much, where, and which ranks wait for it.

Ranks meet in collectives (an all-reduce, a barrier): all leave one when the last has come. So the rank that is late is
the one that waits least there, and what it does in the meantime is what it does more than the others elsewhere. No
clocks of different hosts are compared: only how long each rank was where.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format import FormatError

from ...recording.text import printable
from .following import follow_lines
from .selection import Selection

RANK_LABELS = ("rank", "slurm.procid")
RUN_LABELS = ("run", "slurm.job_id", "service.instance.id")
"""Labels that tell runs of a program apart. Where there is none, and ranks come twice, the user must choose."""

MEETING = 0.05
"""Ranks meet in a function if waiting in it is this part of the ranks' time, and all of them wait there."""

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Ranks:
    """What the ranks of one run did.

    ``ranks``: rank, host, path, cpu_s, wait_s, meeting_wait_s (waiting in the collective), late_s (how much less than
    the others' median), waited_s (how much it waited for the late one), file, line, source, function, more_s (the line
    on which it spent more than the others' median, and how much).
    ``meeting`` is where they meet (function, or span), None where they never wait for one another.
    ``late`` is the rank that is late, None if none is.
    ``spans`` is the same by named span: span, count (of one rank), rank, more_s (what this rank spends in the span,
    but for the collective, beyond the others' median), file, line, function, source (where it spends most of that),
    meeting_wait_s (the ranks' median of waiting in the collective in this span); the largest more_s first.
    """

    ranks: pd.DataFrame
    meeting: str | None
    meeting_file: str | None
    late: int | None
    late_s: float
    steps: float | None
    """How often the span was entered, where the program has named spans: then late_s / steps is the lateness of one."""
    spans: pd.DataFrame


def ranks(selection: Selection, *, function: str | None = None, anyway: bool = False) -> Ranks:
    """Who is late; ``function`` names the collective where it is known, by a part of its name.

    Errors:
        FormatError: the recordings have no ranks, or are of several runs.
    """
    selection.refuse_mixed("waits", anyway=anyway)
    frame = _one_run(selection)
    if len(frame) < 2:
        raise FormatError("ranks are compared with one another: there is only one")
    chosen = Selection(frame, selection.index)
    waits = _by_function(chosen)
    meeting = _meeting(chosen, waits, function)
    times = _times_by_line(chosen)
    result = _told(chosen, waits, meeting, times)
    steps = _steps(chosen)
    late = result["late_s"].to_numpy()
    worst = int(np.argmax(late)) if meeting is not None else -1
    is_late = worst >= 0 and late[worst] > 0
    return Ranks(
        ranks=result,
        meeting=None if meeting is None else str(waits.names[meeting]),
        meeting_file=None if meeting is None else waits.files[meeting],
        late=int(result["rank"].iat[worst]) if is_late else None,
        late_s=float(late[worst]) if is_late else 0.0,
        steps=steps,
        spans=_by_span(chosen, None if meeting is None else str(waits.names[meeting])),
    )


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


class _Waits(NamedTuple):
    """Waiting of main threads in each function: names and files of the functions, and ranks by functions."""

    names: NDArray[np.object_]
    files: NDArray[np.object_]
    own: _Array


def _by_function(selection: Selection) -> _Waits:
    rows = selection.query(
        "functions",
        "SELECT key, any_value(name) AS name, any_value(file) AS file, recording, sum(main_wait_s) AS own"
        " FROM t GROUP BY key, recording",
    )
    keys, column = np.unique(rows["key"].to_numpy(), return_inverse=True)
    place = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    row = place[rows["recording"].to_numpy()].to_numpy()
    own = np.zeros((len(selection), len(keys)))
    own[row, column] = rows["own"].fillna(0.0).to_numpy()
    first = pd.Series(column).drop_duplicates().index.to_numpy()
    names, files = np.empty(len(keys), object), np.empty(len(keys), object)
    names[column[first]], files[column[first]] = rows["name"].to_numpy()[first], rows["file"].to_numpy()[first]
    return _Waits(names, files, own)


def _meeting(selection: Selection, waits: _Waits, function: str | None) -> int | None:
    """The function in which the ranks meet: where the difference between the most and the least waiting is largest.

    All ranks but the late one must wait there.
    """
    own = waits.own
    if not own.size:
        return None
    if function is not None:
        named = [number for number, name in enumerate(waits.names.tolist()) if function in str(name)]
        if not named:
            raise FormatError(f"no rank waits in a function whose name has {printable(function, 80)!r}")
        return max(named, key=lambda number: float(own[:, number].sum()))
    wall = selection.frame["wall_s"].fillna(0.0).to_numpy()
    often = (own > 0).sum(axis=0) >= len(own) - 1
    much = own.sum(axis=0) >= MEETING * wall.sum() / len(own)
    spread = np.where(often & much, np.median(own, axis=0) - own.min(axis=0), -1.0)
    best = int(spread.argmax())
    return best if spread[best] > 0 else None


def _times_by_line(selection: Selection) -> tuple[pd.DataFrame, _Array]:
    """CPU and main thread waiting by line and rank."""
    lines = selection.query(
        "lines",
        "SELECT key, any_value(name) AS name, any_value(file) AS file, any_value(line) AS line,"
        " any_value(sha256) AS sha256, any_value(source) AS source, sum(cpu_s + coalesce(main_wait_s, 0)) AS amount,"
        " count(DISTINCT recording) AS recordings FROM t GROUP BY key ORDER BY amount DESC, key",
    )
    places = follow_lines(selection, lines)
    row_of = {key: row for row, keys in enumerate(places["keys"]) for key in keys}
    found = selection.query(
        "lines", "SELECT key, recording, sum(cpu_s + coalesce(main_wait_s, 0)) AS amount FROM t GROUP BY 1, 2"
    )
    times = np.zeros((len(selection), len(places)))
    place = pd.Series(np.arange(len(selection)), selection.frame["recording"].to_numpy())
    rows = np.array([row_of[key] for key in found["key"].tolist()], np.int64)
    np.add.at(times, (place[found["recording"].to_numpy()].to_numpy(), rows), found["amount"].to_numpy())
    return places, times


def _told(selection: Selection, waits: _Waits, meeting: int | None, lines: tuple[pd.DataFrame, _Array]) -> pd.DataFrame:
    frame, (places, times) = selection.frame, lines
    waited = waits.own[:, meeting] if meeting is not None else np.zeros(len(frame))
    others = _median_of_others(waited)
    late = np.maximum(others - waited, 0.0) if meeting is not None else np.zeros(len(frame))
    elsewhere = np.ones(len(places), np.bool_)
    if meeting is not None:
        elsewhere = (places["name"] != waits.names[meeting]).to_numpy()
    more = np.where(elsewhere & places["file"].notna().to_numpy(), times - _medians_of_others(times), -np.inf)
    line = more.argmax(axis=1) if more.size else np.zeros(len(frame), np.int64)
    spent = more[np.arange(len(frame)), line] if more.size else np.zeros(len(frame))
    # Of waiting in the collective, what is beyond the late rank's own is waiting for it.
    for_it = waited - waited.min() if meeting is not None else np.zeros(len(frame))
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
        }
    )


def _median_of_others(values: _Array) -> _Array:
    return np.array([np.median(np.delete(values, number)) for number in range(len(values))])


def _medians_of_others(values: _Array) -> _Array:
    return np.stack([np.median(np.delete(values, number, axis=0), axis=0) for number in range(len(values))])


def _steps(selection: Selection) -> float | None:
    found = selection.query(
        "spans", "SELECT name, median(count) AS steps FROM t WHERE count > 0 GROUP BY 1 ORDER BY 2 DESC"
    )
    return float(found["steps"].iat[0]) if len(found) else None


def _by_span(selection: Selection, meeting: str | None) -> pd.DataFrame:
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
    found = []
    for span, mine in rows.groupby("span", sort=False):
        at = place[mine["recording"].to_numpy()].to_numpy()
        meets = (mine["name"] == meeting).to_numpy()
        waited = np.bincount(at[meets], mine["wait_s"].to_numpy()[meets], len(selection))
        keys, column = np.unique(mine["key"].to_numpy()[~meets], return_inverse=True)
        times = np.zeros((len(selection), len(keys)))
        np.add.at(times, (at[~meets], column), (mine["cpu_s"] + mine["wait_s"]).to_numpy()[~meets])
        spent = times.sum(axis=1)
        more = spent - _median_of_others(spent)
        rank = int(more.argmax())
        row: dict[str, object] = dict.fromkeys(("file", "line", "function", "source"))
        if len(keys):
            excess = times[rank] - np.median(np.delete(times, rank, axis=0), axis=0)
            key = keys[int(excess.argmax())]
            line = mine[~meets & (mine["key"] == key).to_numpy()].iloc[0]
            row = {
                "file": line["file"],
                "line": int(line["line"]),
                "function": line["name"],
                "source": text_of.get(key),
            }
        found.append(
            {
                "span": span,
                "count": count_of.get(span),
                "rank": int(selection.frame["rank"].iat[rank]),
                "more_s": max(float(more[rank]), 0.0),
                **row,
                "meeting_wait_s": float(np.median(waited)),
            }
        )
    columns = ["span", "count", "rank", "more_s", "file", "line", "function", "source", "meeting_wait_s"]
    frame = pd.DataFrame(found, columns=columns).astype({"line": "Int64", "count": "float64"})
    return frame.sort_values("more_s", ascending=False, kind="stable", ignore_index=True)
