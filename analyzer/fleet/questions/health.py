"""``fleet health`` and ``fleet recordings``: the state of the recordings, and those with most of a function or line.

``health`` counts the recordings, their losses, and those that could not be read, with the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .selection import MODES, Selection
from .top import amounts_of, find_place, metric_named, weights_of

BUSY = 0.05
"""A recording's machine was busy if its main threads had no processor for this part of their time."""


@dataclass(frozen=True)
class Health:
    """The state of a fleet.

    ``counts``: by name, how many recordings are read, left out, unfinished, with losses, on a busy machine.
    ``left_out``: path, reason. ``losses``: loss, severity, recordings, count, doc, advice, the ones where data is
    missing first. ``modes``: mode, value, recordings. ``labels``: label, recordings, values.
    """

    counts: dict[str, float]
    left_out: pd.DataFrame
    losses: pd.DataFrame
    modes: pd.DataFrame
    labels: pd.DataFrame

    def frame(self) -> pd.DataFrame:
        """All of it as one frame: kind (count, loss, left out, mode, label), name, value, recordings, text.

        Of a loss, value is how much was lost and text what helps; text is the reason why a recording is left out, a
        mode's value, or a label's most frequent values, whose number is value. NaN and None: a kind does not have it.
        """
        losses, modes, labels = self.losses, self.modes, self.labels
        parts = [
            pd.DataFrame({"kind": "count", "name": list(self.counts), "value": list(self.counts.values())}),
            losses.rename(columns={"loss": "name", "count": "value", "advice": "text"}).assign(kind="loss"),
            self.left_out.rename(columns={"path": "name", "reason": "text"}).assign(kind="left out"),
            modes.rename(columns={"mode": "name", "value": "text"}).assign(kind="mode"),
            labels.rename(columns={"label": "name", "values": "value", "most": "text"}).assign(kind="label"),
        ]
        rows = [
            {name: row.get(name) for name in ("kind", "name", "value", "recordings", "text")}
            for part in parts
            for row in part.to_dict("records")
        ]
        types = {"value": "float64", "recordings": "Int64"}
        return pd.DataFrame(rows, columns=["kind", "name", "value", "recordings", "text"]).astype(types)


def health(selection: Selection, left_out: pd.DataFrame) -> Health:
    """The state of the recordings of a selection; ``left_out`` has those that are in none: path, reason."""
    frame = selection.frame
    losses = selection.query(
        "losses",
        "SELECT loss, any_value(severity) AS severity, count(DISTINCT recording) AS recordings, sum(count) AS count,"
        " any_value(doc) AS doc, any_value(advice) AS advice FROM t GROUP BY 1"
        " ORDER BY any_value(severity) = 'note', recordings DESC, loss",
    )
    with_loss = selection.query("losses", "SELECT count(DISTINCT recording) AS n FROM t WHERE severity = 'loss'")
    cpu, unsampled = frame["cpu_s"].sum(), frame["unsampled_s"].sum()
    busy = frame["main_cpu_wait_s"].fillna(0.0) > BUSY * frame["process_s"]
    counts = {
        "recordings": len(frame),
        "left_out": len(left_out),
        "unfinished": int((frame["state"] == "recording").sum()),
        "recovered": int((frame["state"] == "recovered").sum()),
        "with_losses": int(with_loss["n"].iat[0]) if len(with_loss) else 0,
        "on_busy_machines": int(busy.sum()),
        "hosts": int(frame["host"].nunique()),
        "cpu_s": float(cpu),
        "unsampled_s": float(unsampled),
        "wall_s": float(frame["wall_s"].sum()),
        "bytes": float(frame["bytes"].sum()),
    }
    return Health(counts, left_out.reset_index(drop=True), losses, _modes(frame), _labels(selection))


def _modes(frame: pd.DataFrame) -> pd.DataFrame:
    rows = [
        (name, str(value), int(count))
        for column, name in {**MODES, "waits": "waits", "memory": "memory", "python": "Python"}.items()
        for value, count in frame[column].value_counts(dropna=False).items()
    ]
    return pd.DataFrame(rows, columns=["mode", "value", "recordings"])


def _labels(selection: Selection) -> pd.DataFrame:
    rows = []
    for name in selection.label_names():
        values = [value for value in selection.values(name) if value is not None]
        distinct = sorted(set(values), key=lambda value: (-values.count(value), value)) if len(values) < 2000 else []
        rows.append((name, len(values), len(set(values)), ", ".join(distinct[:5])))
    return pd.DataFrame(rows, columns=["label", "recordings", "values", "most"])


def recordings(
    selection: Selection,
    place: str | None = None,
    *,
    metric: str = "cpu",
    total: bool = False,
    per: str | None = None,
    limit: int = 20,
    anyway: bool = False,
) -> pd.DataFrame:
    """The recordings with the largest amounts of a place; without one, those with the largest amounts of all.

    Columns: path, host, program, day, state, ``labels`` (an object), ``amount`` (of the place in this recording),
    ``value`` (divided by the metric's whole; NaN without a place). ``attrs`` has level, name, file and line of the
    place.

    Errors:
        FormatError: there is no such place or metric, or what is asked for was not recorded.
    """
    measure = metric_named(metric)
    frame = selection.frame
    attrs: dict[str, object] = {"level": None, "name": None, "file": None, "line": None}
    if place is None:
        amount = frame[measure.of_recording].fillna(0.0).to_numpy(np.float64)
        value = np.full(len(frame), np.nan)
    else:
        selection.refuse_mixed(*measure.needs, anyway=anyway)
        column = measure.total() if total else measure.column
        level, row = find_place(selection, place, column)
        amount = amounts_of(selection, level, column, row)[0]
        weights = weights_of(selection, measure, per)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(weights > 0, amount / weights, np.nan)
        line = row["line"].iat[0] if level == "lines" else None
        file = row["file"].iat[0]
        attrs |= {"level": level, "name": row["name"].iat[0], "line": None if line is None else int(line)}
        attrs["file"] = file if isinstance(file, str) else None
    order = np.lexsort((frame["path"].to_numpy(str), -np.nan_to_num(value), -amount))
    if place is not None:
        order = order[amount[order] > 0]
    order = order[:limit]
    chosen = frame.iloc[order]
    columns = {name: chosen[name].to_numpy(object) for name in ("path", "host", "program", "day", "state")}
    answer = pd.DataFrame({**columns, "labels": chosen["tags"].to_numpy(object)})
    answer = answer.assign(amount=amount[order], value=value[order])
    answer.attrs.update(attrs)
    return answer
