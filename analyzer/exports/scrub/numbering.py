"""New ids for what is left: tables with ids lose the rows that nothing refers to any more."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tachograph.format import TableSpec

from ...recording.opened import Recording

_GONE = -1


class Numbering:
    """Which rows of the tables with ids are used, and their new ids.

    Add what is used, then call ``close``, then renumber.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        tables = recording.specification.tables
        self._used = {
            name: np.zeros(recording.rows(name), np.bool_)
            for name, spec in tables.items()
            if spec.id_column is not None
        }
        self._new: dict[str, NDArray[np.int64]] = {}

    def use(self, table: pa.Table, spec: TableSpec) -> None:
        """All that rows of a long table refer to is used."""
        for column in spec.columns:
            if column.references is not None:
                self.use_ids(column.references, _ids(table.column(column.name)))

    def use_ids(self, name: str, ids: NDArray[np.int64]) -> None:
        """Rows of a table with ids are used."""
        self._used[name][ids[ids != _GONE]] = True

    def forbid(self, name: str, allowed: NDArray[np.bool_]) -> None:
        """Rows of a table with ids are not used, whatever refers to them."""
        self._used[name] &= allowed

    def close(self) -> None:
        """Follows what used rows refer to, and gives out the new ids."""
        self._use_callers("native_stacks")
        for column in ("stack", "native_frame"):
            self._use_from("native_stacks", column, column + "s")
        self._use_callers("stacks")
        for name, column, target in (
            ("threads", "start_frame", "native_frames"),
            ("stacks", "code", "codes"),
            ("codes", "file", "files"),
            ("native_frames", "module", "modules"),
            ("modules", "process", "processes"),
            ("threads", "process", "processes"),
        ):
            self._use_from(name, column, target)
        for name, used in self._used.items():
            self._new[name] = np.append(np.where(used, np.cumsum(used) - 1, _GONE), _GONE)

    def kept(self, name: str) -> NDArray[np.bool_]:
        """Which rows of a table of definitions are left."""
        return self._used[name]

    def renumber(self, table: pa.Table, spec: TableSpec) -> pa.Table:
        """A table with new ids; one that leads nowhere any more is null."""
        arrays = []
        for column in spec.columns:
            values = table.column(column.name)
            target = spec.name if column.name == spec.id_column else column.references
            if target is not None:
                new = self._new[target][_ids(values)]
                values = pa.array(new, mask=new == _GONE).cast(table.schema.field(column.name).type)
            arrays.append(values)
        return pa.Table.from_arrays(arrays, schema=spec.schema)

    def _use_from(self, name: str, column: str, target: str) -> None:
        self.use_ids(target, _ids(self._recording.table(name).column(column))[self._used[name]])

    def _use_callers(self, tree: str) -> None:
        used = self._used[tree]
        parents = _ids(self._recording.table(tree).column("parent")).tolist()
        # Every parent comes before its children, so one pass from the end reaches all of them.
        for node in np.flatnonzero(used)[::-1].tolist():
            above = parents[node]
            while above != _GONE and not used[above]:
                used[above] = True
                above = parents[above]


def _ids(column: pa.ChunkedArray) -> NDArray[np.int64]:
    return np.asarray(column.cast("int64").fill_null(_GONE).to_numpy(), np.int64)
