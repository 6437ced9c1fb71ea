"""The page of a fleet: one HTML file over all recordings, with the largest rows of each table.

Pages of single recordings can be written beside it: its rows link to details that one file cannot hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tachograph.format import FormatError

from ..profile.question import Question
from ..recording.opened import Recording, Watcher
from ..recording.output_file import write_page, writing
from ..recording.text import printable
from ..render.html.pack import Names, Packer, number
from ..render.html.report_page import BOX_TREE_SCRIPTS, MAX_BYTES, render
from ..report_data.numbers import counted, percent, seconds, size
from ..statistics.ratios import FEWEST, Ratios, pooled, ratios
from .questions.flame import MAX_NODES, flame
from .questions.health import Health, health
from .questions.selection import Selection, natural_order
from .questions.spans import memory, spans
from .questions.top import METRICS, Metric, amounts_by_column, amounts_of, row_sums, sums_by_column, weights_of
from .store import StoreError, key_of

STYLES = ("page.css", "charts.css", "tables.css", "fleet.css", "print.css")
SCRIPTS = (*BOX_TREE_SCRIPTS, "fleet.js")

MOST_OF_A_ROW = 8
"""Recordings with the most of a row that are named with it."""

MAX_LABELS, MAX_VALUES = 4, 12
"""Labels whose values are shown apart in each row, and the most values that such a label has."""


@dataclass(frozen=True)
class Label:
    """A label that divides the recordings into a few groups; ``of`` has the group of each, -1 where it has none."""

    name: str
    values: list[str]
    of: NDArray[np.int64]


@dataclass(frozen=True)
class Limits:
    """Sizes of the tables on the page."""

    rows: int = 200
    nodes: int = MAX_NODES
    recordings: int = 2_000

    def half(self) -> Limits:
        """Half as much."""
        return Limits(self.rows // 2, self.nodes // 2, self.recordings // 2)


def write_fleet_page(
    selection: Selection,
    left_out: pd.DataFrame,
    url: str,
    target: Path,
    *,
    anyway: bool = False,
    links: Mapping[str, str] | None = None,
) -> int:
    """Write the page to a file; returns its size in bytes. ``links`` are those to pages of recordings, by path.

    Errors:
        FormatError: the file cannot be written, or the recordings were made in different ways.
    """
    return write_page(fleet_page(selection, left_out, url, anyway=anyway, links=links), target)


def fleet_page(
    selection: Selection,
    left_out: pd.DataFrame,
    url: str,
    *,
    anyway: bool = False,
    limit: int = MAX_BYTES,
    links: Mapping[str, str] | None = None,
) -> str:
    """The page; it holds less of each table until it has at most ``limit`` bytes, and says so."""
    selection.refuse_mixed(anyway=anyway)
    limits = Limits()
    while limits.rows:
        text = _page(selection, left_out, url, limits, links or {})
        if len(text.encode("utf-8")) <= limit:
            return text
        limits = limits.half()
    raise FormatError("the page would be too large: choose some recordings with --where")


def _page(selection: Selection, left_out: pd.DataFrame, url: str, limits: Limits, links: Mapping[str, str]) -> str:
    names = Names()
    state = health(selection, left_out)
    # Those with the most CPU time are on the page; the others have no number.
    frame = selection.frame
    order = np.lexsort((frame["path"].to_numpy(str), -frame["cpu_s"].fillna(0.0).to_numpy()))
    shown = order[: limits.recordings]
    place = np.full(len(frame), -1, np.int64)
    place[shown] = np.arange(len(shown))
    metrics = [metric for metric in METRICS.values() if _recorded(selection, metric)]
    labels = _labels(selection)
    tree = flame(selection, limit=limits.nodes)
    document: dict[str, Any] = {
        "of": len(frame),
        "url": printable(url, 300),
        "metrics": [{"name": each.name, "kind": each.kind, "unit": each.unit} for each in metrics],
        "labels": [{"name": printable(each.name, 60), "values": each.values} for each in labels],
        "recordings": _recordings(frame.iloc[shown], names, links),
        "lines": _rows(selection, "lines", metrics, labels, place, limits, names),
        "functions": _rows(selection, "functions", metrics, labels, place, limits, names),
        "flame": {
            "parent": tree["parent"].tolist(),
            "name": names.numbers(tree["name"]),
            "file": names.numbers(tree["file"]),
            "cpu": [number(value, 5) for value in tree["total_cpu_s"].tolist()],
            "wait": [number(value, 5) for value in tree["total_wait_s"].tolist()],
            "recordings": [None if value is pd.NA else int(value) for value in tree["recordings"].tolist()],
            "folded": tree["folded"].tolist(),
        },
        "spans": _table(spans(selection, limit=limits.rows)),
        **_memory(selection),
    }
    document["names"] = names.texts
    remarks = _remarks(state, len(frame) - len(shown), int(tree["folded"].sum()))
    return render(
        "fleet.html.j2",
        STYLES,
        SCRIPTS,
        data=Packer().block(document),
        title=printable(url, 200),
        facts=_facts(state, frame),
        remarks=remarks,
        left_out=[(printable(row.path, 200), printable(row.reason, 300)) for row in left_out.head(200).itertuples()],
        left_out_count=len(left_out),
        lines=_top_lines(document, names.texts),
    )


def _recorded(selection: Selection, metric: Metric) -> bool:
    return all((selection.frame[need] == "yes").any() for need in metric.needs)


def _labels(selection: Selection) -> list[Label]:
    """The labels that divide the recordings into a few groups."""
    labels: list[Label] = []
    for name in selection.label_names():
        values = selection.values(name)
        distinct = sorted({value for value in values if value is not None}, key=natural_order)
        enough = 2 * sum(value is not None for value in values) >= len(values)
        if enough and 2 <= len(distinct) <= MAX_VALUES and len(labels) < MAX_LABELS:
            numbers = {value: at for at, value in enumerate(distinct)}
            of = [-1 if value is None else numbers[value] for value in values]
            labels.append(Label(name, [printable(value, 60) for value in distinct], np.array(of, np.int64)))
    return labels


def _rows(
    selection: Selection,
    level: str,
    metrics: Sequence[Metric],
    labels: Sequence[Label],
    place: NDArray[np.int64],
    limits: Limits,
    names: Names,
) -> dict[str, Any]:
    """The rows of a table with the largest amounts of each metric, and the number of the others."""
    columns = [metric.column for metric in metrics]
    sums = [each[each["amount"] > 0] for each in sums_by_column(selection, level, columns)]
    places = [each.nlargest(limits.rows, "amount", keep="first").reset_index(drop=True) for each in sums]
    amounts = amounts_by_column(selection, level, columns, places)
    units = selection.units(by_host=selection.hosts >= FEWEST)
    tables = {}
    for metric, everything, rows, of_rows in zip(metrics, sums, places, amounts, strict=True):
        weights = weights_of(selection, metric)
        shares = ratios(*pooled(of_rows, weights, units))
        groups = [_by_label(each, of_rows, weights) for each in labels]
        rest = everything["amount"].sum() - rows["amount"].sum()
        tables[metric.name] = {
            "rows": _table_rows(level, rows, of_rows, weights, shares, groups, place, names),
            "others": len(everything) - len(rows),
            "others_amount": number(float(rest), 5),
        }
    return tables


def _table_rows(
    level: str,
    places: pd.DataFrame,
    amounts: NDArray[np.float64],
    weights: NDArray[np.float64],
    shares: Ratios,
    groups: Sequence[NDArray[np.float64]],
    place: NDArray[np.int64],
    names: Names,
) -> list[dict[str, Any]]:
    rows = []
    columns = (places[name].tolist() for name in ("name", "file", "amount", "recordings"))
    for at, (name, file, amount, recordings) in enumerate(zip(*columns, strict=True)):
        row: dict[str, Any] = {
            "name": names.number(name),
            "file": names.number(file),
            "values": [number(float(each[at]), 5) for each in (shares.value, shares.low, shares.high)],
            "amount": number(float(amount), 5),
            "recordings": int(recordings),
            "most": _most(amounts[at], weights, place),
            "by": [[number(float(value), 4) for value in group[:, at]] for group in groups],
        }
        if level == "lines":
            line = places["line"].iat[at]
            row["line"] = None if pd.isna(line) else int(line)
            row["source"] = names.number(places["source"].iat[at])
        rows.append(row)
    return rows


def _by_label(label: Label, amounts: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The value of each row by the values of a label: values by rows."""
    result = np.full((len(label.values), len(amounts)), np.nan)
    for at in range(len(label.values)):
        mine = label.of == at
        whole = float(weights[mine].sum())
        if whole > 0:
            result[at] = amounts[:, mine].sum(axis=1) / whole
    return result


def _most(amounts: NDArray[np.float64], weights: NDArray[np.float64], place: NDArray[np.int64]) -> list[list[Any]]:
    """The recordings on the page with the largest amounts of a row, by their numbers there, and their values."""
    placed = np.where(place >= 0, amounts, -1.0)
    order = np.argsort(-placed, kind="stable")[:MOST_OF_A_ROW]
    return [
        [int(place[at]), number(float(amounts[at] / weights[at]), 5) if weights[at] > 0 else None]
        for at in order.tolist()
        if placed[at] > 0
    ]


def _recordings(frame: pd.DataFrame, names: Names, links: Mapping[str, str]) -> list[dict[str, Any]]:
    rows = []
    for row in frame.itertuples():
        labels = " ".join(f"{printable(key, 60)}={printable(value, 100)}" for key, value in row.tags.items())
        rows.append(
            {
                "path": names.number(printable(row.path, 300)),
                "page": links.get(row.path),
                "host": names.number(row.host if isinstance(row.host, str) else None),
                "program": names.number(printable(row.program, 200) if isinstance(row.program, str) else None),
                "created": names.number(row.created_utc if isinstance(row.created_utc, str) else None),
                "labels": names.number(labels),
                "cpu": number(float(row.cpu_s), 5),
                "wall": number(float(row.wall_s), 5),
                "wait": number(float(row.wait_s), 5),
                "peak": number(float(row.peak_bytes), 5),
            }
        )
    return rows


def _memory(selection: Selection) -> dict[str, Any]:
    if not (selection.frame["memory"] == "yes").any():
        return {"peaks": [], "leaks": []}
    answer = memory(selection, anyway=True)
    return {"peaks": _table(answer.peaks), "leaks": _table(answer.leaks.head(200))}


def _table(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a small frame for JSON."""

    def value(each: Any) -> Any:
        if isinstance(each, str):
            return printable(each, 300)
        if isinstance(each, (bool, np.bool_)):
            return bool(each)
        return None if each is None or pd.isna(each) else number(float(each), 5)

    return [{str(name): value(each) for name, each in row.items()} for row in frame.to_dict("records")]


def _facts(state: Health, frame: pd.DataFrame) -> list[str]:
    counts = state.counts
    days = sorted(frame["day"].dropna())
    span = "" if not days else days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    facts = [
        counted(int(counts["recordings"]), "recordings"),
        counted(int(counts["hosts"]), "hosts"),
        f"{seconds(counts['cpu_s'])} CPU",
        size(round(counts["bytes"])),
        span,
    ]
    return [fact for fact in facts if fact]


def _remarks(state: Health, recordings: int, folded: int) -> list[str]:
    counts = state.counts
    remarks = []
    if counts["left_out"]:
        remarks.append(f"{counted(int(counts['left_out']), 'recordings')} could not be read, and are in no figure")
    if recordings:
        remarks.append(f"{recordings:,} recordings with the least CPU time are in all figures, but not in the list")
    if folded:
        remarks.append(f"{folded:,} smallest boxes of the flame graph are in the boxes <other>")
    share = counts["unsampled_s"] / counts["cpu_s"] if counts["cpu_s"] > 0 else 0.0
    if percent(share):
        remarks.append(f"{percent(share)} % of the CPU time is in no sample")
    for name, text in (
        ("unfinished", "were never finished: what their spools hold is counted"),
        ("recovered", "were recovered after a crash"),
        ("on_busy_machines", "had too few processors: their waiting and wall time tell little"),
    ):
        if counts[name]:
            remarks.append(f"{int(counts[name]):,} recordings {text}")
    for row in state.losses.itertuples():
        if row.severity == "loss":
            many = counted(int(row.recordings), "recordings")
            remarks.append(printable(f"{row.doc}: {row.count:,.0f} in {many}; {row.advice}", 400))
    return remarks


def _top_lines(document: dict[str, Any], names: list[str]) -> list[dict[str, str]]:
    """The first lines, for readers without scripts."""
    rows = []
    for row in document["lines"]["cpu"]["rows"][:40]:
        file = names[row["file"]] if row["file"] >= 0 else names[row["name"]] if row["name"] >= 0 else "?"
        place = f"{file}:{row['line']}" if row["line"] is not None else file
        source = names[row["source"]] if row["source"] >= 0 else ""
        rows.append({"place": place, "share": percent(row["values"][0]) or "0", "source": source})
    return rows


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
    for count, path in enumerate(paths, 1):
        if watcher is not None:
            watcher.step(f"writing the pages of recordings: {count:,} of {len(paths):,}")
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
