"""Frames: tables in memory, as named numpy columns of one length.

They become pandas frames where those are needed, and not before: loading pandas takes as long as all the rest of a
report in the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd
    from _typeshed import DataclassInstance

_Arrays = TypeVar("_Arrays", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class WholeNumbers:
    """Whole numbers, some of which are unknown."""

    values: NDArray[np.int64]
    unknown: NDArray[np.bool_]

    @classmethod
    def of(cls, values: Sequence[int | None]) -> WholeNumbers:
        """Numbers, None where one is unknown."""
        unknown = np.array([value is None for value in values], np.bool_)
        return cls(np.array([0 if value is None else value for value in values], np.int64), unknown)

    @classmethod
    def of_floats(cls, values: NDArray[np.float64]) -> WholeNumbers:
        """Counts, NaN where one is unknown."""
        unknown = np.isnan(values)
        return cls(np.where(unknown, 0, values).astype(np.int64), unknown)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: NDArray[Any] | slice) -> WholeNumbers:
        return WholeNumbers(self.values[rows], self.unknown[rows])

    def filled(self, otherwise: int) -> NDArray[np.int64]:
        """The numbers, ``otherwise`` where one is unknown."""
        return np.where(self.unknown, otherwise, self.values)

    def floats(self) -> NDArray[np.float64]:
        """The numbers in floating point, NaN where one is unknown."""
        return np.where(self.unknown, np.nan, self.values)

    def tolist(self) -> list[int | None]:
        """The numbers, None where one is unknown."""
        pairs = zip(self.values.tolist(), self.unknown.tolist(), strict=True)
        return [None if unknown else value for value, unknown in pairs]


Column = NDArray[Any] | WholeNumbers
"""Numbers, whole numbers some of which are unknown, or objects (text, None where it is unknown)."""

Row = dict[str, Any]
"""A row by the names of its columns: None, or NaN in floating point, is unknown."""


class Frame:
    """Columns by name, all of one length. What is unknown is NaN in floating point, and None elsewhere."""

    def __init__(self, columns: Mapping[str, Column | list[Any]]) -> None:
        self.columns: dict[str, Column] = {
            name: texts(values) if isinstance(values, list) else values for name, values in columns.items()
        }

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]], names: Sequence[str]) -> Frame:
        """Rows of numbers, each with a value for each name; no rows are columns of floating point."""
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        return cls({name: np.array(values) for name, values in zip(names, columns, strict=True)})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def take(self, rows: NDArray[Any] | slice) -> Frame:
        """Some rows: by their numbers, by a mask, or a slice."""
        return Frame({name: values[rows] for name, values in self.columns.items()})

    def with_columns(self, columns: Mapping[str, Column | list[Any]]) -> Frame:
        """The same with more columns, or with others under their names."""
        return Frame({**self.columns, **columns})

    def select(self, names: Sequence[str]) -> Frame:
        """Some columns, in this order."""
        return Frame({name: self.columns[name] for name in names})

    def largest_first(self, *names: str) -> NDArray[np.int64]:
        """The numbers of the rows by these columns, NaN last; rows that are equal in all of them as they were."""
        return np.lexsort([falling(self.columns[name]) for name in reversed(names)]).astype(np.int64)

    def row(self, number: int) -> Row:
        """One row."""
        return {name: _item(values, number) for name, values in self.columns.items()}

    def rows(self) -> Iterator[Row]:
        """The rows, one after the other."""
        columns = [values.tolist() for values in self.columns.values()]
        for values in zip(*columns, strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def pandas(self, *objects: str) -> pd.DataFrame:
        """The same as pandas has it: nullable integers where a whole number can be unknown, and texts as texts.

        The columns named ``objects`` stay objects, and None in them None.
        """
        import pandas as pd

        columns = {name: _of_pandas(values) for name, values in self.columns.items()}
        return pd.DataFrame(columns | {name: pd.Series(self[name], dtype=object) for name in objects})


def take_rows(arrays: _Arrays, rows: NDArray[Any] | slice) -> _Arrays:
    """Some rows of a dataclass of arrays of one length: a mask, numbers or a slice. Other fields stay as they are."""
    values = {each.name: getattr(arrays, each.name) for each in fields(arrays)}
    taken: dict[str, Any] = {name: value[rows] for name, value in values.items() if isinstance(value, np.ndarray)}
    return replace(arrays, **taken)


def texts(values: Sequence[Any]) -> NDArray[Any]:
    """Texts, or other objects, as a column."""
    return np.fromiter(values, object, len(values))


def _item(values: Column, number: int) -> Any:
    if isinstance(values, WholeNumbers):
        return None if values.unknown[number] else int(values.values[number])
    return values.item(number)


def falling(values: Any) -> NDArray[np.float64]:
    """Sort keys: the largest first, unknown values last."""
    if isinstance(values, WholeNumbers):
        values = values.floats()
    return -np.asarray(values, np.float64)


def _of_pandas(values: Column) -> Any:
    import pandas as pd

    if isinstance(values, WholeNumbers):
        return pd.arrays.IntegerArray(values.values, values.unknown)
    return values.tolist() if values.dtype == object else values


def rows_of_pandas(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a pandas frame as records; unknown values are None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [dict(zip(plain.columns, row, strict=True)) for row in plain.itertuples(index=False, name=None)]
