"""``fleet recordings``: the recordings that have a function or a line, those with the most of it first."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .places import find_place
from .selection import Selection
from .top import amounts_of, metric_named, weights_of


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
    asked = metric_named(metric)
    frame = selection.frame
    attrs: dict[str, object] = {"level": None, "name": None, "file": None, "line": None}
    if place is None:
        amount = frame[asked.of_recording].fillna(0.0).to_numpy(np.float64)
        value = np.full(len(frame), np.nan)
    else:
        selection.refuse_mixed(*asked.needs, anyway=anyway)
        column = asked.total() if total else asked.column
        level, row = find_place(selection, place, column)
        amount = amounts_of(selection, level, column, row)[0]
        weights = weights_of(selection, asked, per)
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
    found = pd.DataFrame({**columns, "labels": chosen["tags"].to_numpy(object)})
    found = found.assign(amount=amount[order], value=value[order])
    found.attrs.update(attrs)
    return found
