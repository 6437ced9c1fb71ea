"""Which row of the index a place means that is typed: FUNCTION, FILE:FUNCTION or FILE:LINE."""

from __future__ import annotations

import pandas as pd

from tachograph.format import FormatError

from ...recording.text import printable
from .selection import Selection
from .top import row_sums


def find_place(selection: Selection, text: str, column: str) -> tuple[str, pd.DataFrame]:
    """The level of a place (functions or lines) and its one row of ``top.row_sums``.

    Errors:
        FormatError: no recording has it, or several functions have the name.
    """
    file, colon, name = text.rpartition(":")
    if colon and name.isdecimal():
        return "lines", _line(row_sums(selection, "lines", column), file, int(name))
    return "functions", _function(row_sums(selection, "functions", column), text)


def _line(places: pd.DataFrame, file: str, line: int) -> pd.DataFrame:
    named = places[(places["line"] == line) & _of_file(places, file)].nlargest(1, "amount")
    if named.empty:
        raise FormatError(f"no recording has anything at {printable(f'{file}:{line}', 120)}")
    return named.reset_index(drop=True)


def _function(places: pd.DataFrame, text: str) -> pd.DataFrame:
    file, colon, name = text.rpartition(":")
    named = places[places["name"] == (name if colon else text)]
    if named.empty:
        named = places[places["name"].astype(str).str.endswith(f".{name if colon else text}")]
    if colon:
        named = named[_of_file(named, file)]
    if named.empty:
        raise FormatError(f"no recording has time in a function {printable(text, 80)!r}")
    if named["file"].nunique(dropna=False) > 1 or named["name"].nunique() > 1:
        told = ", ".join(f"{row.file}:{row.name}" for row in named.head(5).itertuples(index=False))
        raise FormatError(f"several functions have the name {printable(text, 80)!r}: name one of {told}")
    return named.head(1).reset_index(drop=True)


def _of_file(places: pd.DataFrame, file: str) -> pd.Series:
    return places["file"].astype(str).str.endswith(file)
