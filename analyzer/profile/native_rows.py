"""Native functions as rows: a second division of the time that the rows of Python functions hold."""

from __future__ import annotations

import numpy as np

from ..recording.frame import Column, Frame, WholeNumbers
from ..samples.call_paths import GUESSED, PATH_MEASURES, PathFacts
from ..samples.reduction import MEASURES, seconds_of
from ..statistics.intervals import wilson

_CPU, _GUESSED = MEASURES.index("cpu_ns"), PATH_MEASURES.index(GUESSED)
_TIMES = len(MEASURES)


def native_rows(facts: PathFacts, total_cpu_ns: float, effective: float, *, waits_known: bool) -> Frame:
    """One row per native function with any sample; see ``Profile.native_functions``.

    ``total_cpu_ns`` and ``effective`` are the CPU time in question and its effective number of samples.
    """
    own, total = facts.by_function()
    columns = seconds_of(own[:, :_TIMES], waits_known=waits_known)
    # Where no path is known, neither is what a function called.
    totals = seconds_of(np.nan_to_num(total[:, :_TIMES]), waits_known=waits_known, prefix="total_")
    columns |= {name: values if facts.recorded else np.full(len(values), np.nan) for name, values in totals.items()}
    columns["guessed_s"] = total[:, _GUESSED] / 1e9
    for prefix in ("", "total_"):
        seconds = columns[f"{prefix}cpu_s"]
        shares = seconds * 1e9 / total_cpu_ns if total_cpu_ns > 0 else np.full(len(seconds), np.nan)
        low, high = wilson(shares, effective)
        columns |= {f"{prefix}cpu_share": shares, f"{prefix}cpu_share_low": low, f"{prefix}cpu_share_high": high}
    used = (np.nan_to_num(total[:, :_TIMES]) > 0).any(axis=1) | (own[:, :_TIMES] > 0).any(axis=1)
    by = [-np.nan_to_num(columns[name][used]) for name in ("total_wait_s", "total_cpu_s", "cpu_s")]
    order = np.flatnonzero(used)[np.lexsort(by)]
    functions = facts.functions
    label: dict[str, Column] = {
        "function": np.array(functions.names, object)[order],
        "file": np.array(functions.sources, object)[order],
        "line": WholeNumbers.of(functions.lines)[order],
        "library": np.array(functions.libraries, object)[order],
        "language": np.full(len(order), "native", object),
        "native": order,
    }
    return Frame({**label, **{name: values[order] for name, values in columns.items()}})
