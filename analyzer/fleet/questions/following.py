"""Lines that are the same in several versions of a file: followed through edits, as ``diff`` follows them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd

from ...diff.source_lines import NOWHERE, follow
from .selection import Selection

MAX_VERSIONS = 200
"""Versions of a file that are followed."""


def follow_lines(selection: Selection, lines: pd.DataFrame) -> pd.DataFrame:
    """Rows of lines (key, file, line, sha256, source, amount, recordings) with those that are one line as one.

    The version with the largest amount gives the line its number and its text. A line that it does not have, and one
    whose text is unknown, is a row of its own.
    """
    texts = _texts(selection, lines)
    amounts = lines.groupby(["file", "sha256"], dropna=True)["amount"].sum()
    heaviest = {file: of_file.idxmax()[1] for file, of_file in amounts.groupby(level=0)}
    moved: dict[tuple[str, str], list[int]] = {}
    for file, digest in amounts.index[:]:
        target = heaviest[file]
        if digest != target and (file, digest) in texts and (file, target) in texts:
            moved[file, digest] = follow(texts[file, digest], texts[file, target])
    places = []
    columns = (lines[name].tolist() for name in ("key", "file", "line", "sha256"))
    for key, file, line, digest in zip(*columns, strict=True):
        found = moved.get((file, digest))
        if found is not None and not pd.isna(line) and 0 < line <= len(found) and found[int(line) - 1] != NOWHERE:
            places.append((file, heaviest[file], found[int(line) - 1] + 1))
        else:
            places.append((file, digest, key if pd.isna(line) else int(line)))
    return _as_one(lines, places)


def _texts(selection: Selection, lines: pd.DataFrame) -> dict[tuple[str, str], list[str]]:
    """The texts of files that have several versions, as lists of lines."""
    versions = lines.dropna(subset=["sha256"]).groupby("file")["sha256"].nunique()
    several = versions[(versions > 1) & (versions <= MAX_VERSIONS)].index
    if not len(several):
        return {}
    digests = lines[lines["file"].isin(several)]["sha256"].dropna().unique()
    wanted = pd.DataFrame({"sha256": digests})
    found = selection.index.dataset("sources").to_table(columns=["file", "sha256", "source"]).to_pandas()
    found = found.merge(wanted, on="sha256").drop_duplicates(["file", "sha256"])
    columns = (found[name].tolist() for name in ("file", "sha256", "source"))
    return {
        (file, digest): text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for file, digest, text in zip(*columns, strict=True)
    }


def _as_one(lines: pd.DataFrame, places: list[tuple[str, str, int]]) -> pd.DataFrame:
    groups: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    for row, place in enumerate(places):
        groups[place].append(row)
    # The row of the version that gives its number comes first.
    first = []
    for (_, digest, _), rows in groups.items():
        own = [row for row in rows if lines["sha256"].iat[row] == digest]
        first.append((own or rows)[0])
    result = lines.iloc[first].reset_index(drop=True)
    keys, amount = lines["key"].to_numpy(), lines["amount"].to_numpy()
    counts = lines["recordings"].to_numpy()
    result["keys"] = pd.Series([tuple(keys[rows].tolist()) for rows in groups.values()], dtype=object)
    result["amount"] = [float(amount[rows].sum()) for rows in groups.values()]
    # A recording has one version of a file.
    result["recordings"] = [int(counts[rows].sum()) for rows in groups.values()]
    result["row"] = np.arange(len(result))
    return result
