"""Arrow arrays and Arrow functions without the modules that are slow to import.

``pyarrow.array`` imports pandas at its first call where that is installed: 0.3 s, more than finalising a recording may
take. ``pyarrow.compute`` makes a documented wrapper for each of Arrow's 300 functions when it is imported, which takes
longer than finishing a short recording. The functions here take plain Python values, and call Arrow by name.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pyarrow as pa

    from .row_kind import Packed


@lru_cache(maxsize=1)
def load_functions() -> Any:
    """The module that has Arrow's functions; loading it takes a while the first time."""
    try:
        # It comes with Arrow's functions; pyarrow.compute passes on what is in it.
        from pyarrow import _compute
    except ImportError:
        import pyarrow.compute as _compute
    return _compute


def call(name: str, *arguments: Any) -> Any:
    """The result of Arrow's function ``name``, with its own defaults for options."""
    return load_functions().call_function(name, list(arguments))


def index_in(values: pa.Array | pa.ChunkedArray, value_set: pa.Array) -> Any:
    """For each value its place in ``value_set``, null where it is not there."""
    return _looked_up("index_in", values, value_set)


def is_in(values: pa.Array | pa.ChunkedArray, value_set: pa.Array) -> Any:
    """For each value whether it is in ``value_set``."""
    return _looked_up("is_in", values, value_set)


def _looked_up(name: str, values: pa.Array | pa.ChunkedArray, value_set: pa.Array) -> Any:
    module = load_functions()
    return module.call_function(name, [values], module.SetLookupOptions(value_set=value_set))


def converted(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> Any:
    """The values as another type.

    Errors:
        pyarrow.ArrowInvalid: one of them does not fit it.
    """
    module = load_functions()
    return module.call_function("cast", [values], module.CastOptions.safe(kind))


def bounds(values: pa.Array | pa.ChunkedArray) -> tuple[Any, Any]:
    """The least and the greatest value; None and None where there is none."""
    extremes = call("min_max", values).as_py()
    return extremes["min"], extremes["max"]


def total(values: pa.Array | pa.ChunkedArray) -> int:
    """The sum of integers, or how many are true; 0 where there are none."""
    return int(call("sum", values).as_py() or 0)


def sorted_by(table: pa.Table, order: Sequence[tuple[str, str]]) -> pa.Table:
    """The rows of a table in another order; rows that are alike in it stay as they were.

    ``order`` has names of columns, each with ``ascending`` or ``descending``.
    """
    module = load_functions()
    options = module.SortOptions(sort_keys=list(order))
    return call("take", table, module.call_function("sort_indices", [table], options))


_CODES = {"uint8": "B", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q", "double": "d"}
_ALIASES = {code: name for name, code in _CODES.items()}


def column(values: Collection[Any], kind: pa.DataType) -> pa.Array:
    """An array of the specification's types (integers, float64, bool, string, binary) with None for null.

    Errors:
        OverflowError, TypeError: a value does not fit the type.
    """
    import pyarrow as pa

    present = [value is not None for value in values]
    validity = None if all(present) else pa.py_buffer(_bits(present))
    name = str(kind)
    if name == "bool":
        return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(_bits(values))])
    if name in ("string", "binary"):
        pieces = [b"" if value is None else value.encode() if name == "string" else value for value in values]
        offsets = array("i", accumulate(map(len, pieces), initial=0))
        return pa.Array.from_buffers(
            kind, len(values), [validity, pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(pieces))]
        )
    numbers = array(_CODES[name], [0 if value is None else value for value in values])
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(numbers.tobytes())])


def numbers_of(values: array[int]) -> pa.Array:
    """An Arrow array of an array of whole numbers, without a copy."""
    import pyarrow as pa

    kind = pa.type_for_alias(_ALIASES[values.typecode])
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def numbers_in(values: pa.Array) -> memoryview:
    """The numbers of an Arrow array of whole numbers without null, without a copy."""
    code = cast("Packed", _CODES[str(values.type)])
    held = memoryview(values.buffers()[1] or b"").cast(code)
    return held[values.offset : values.offset + len(values)]


def numbers_but(values: array[int], none: int) -> pa.Array:
    """An Arrow array of an array of whole numbers, with null where the number is ``none``."""
    numbers = numbers_of(values)
    return call("if_else", call("equal", numbers, scalar(none, numbers.type)), scalar(None, numbers.type), numbers)


class Pieces:
    """A column of texts or bytes that grows, and takes no more than what it holds."""

    def __init__(self) -> None:
        self._joined = bytearray()
        self._ends = array("i", [0])
        self._known = bytearray()

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, number: int) -> bytes | None:
        start, end = self._ends[number : number + 2]
        return bytes(self._joined[start:end]) if self._known[number] else None

    def append(self, piece: bytes | None) -> None:
        """Add one; None is null.

        Errors:
            OverflowError: all of them together have 2 GB or more.
        """
        self._joined += piece or b""
        self._ends.append(len(self._joined))
        self._known.append(piece is not None)

    def column(self, kind: pa.DataType) -> pa.Array:
        """All pieces as an array of strings or binary; nothing can be added any more."""
        import pyarrow as pa

        validity = None if all(self._known) else pa.py_buffer(_bits(self._known))
        return pa.Array.from_buffers(kind, len(self), [validity, pa.py_buffer(self._ends), pa.py_buffer(self._joined)])


@lru_cache(maxsize=512)
def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """One value, or null."""
    return column([value], kind)[0]


def table_of(rows: Iterable[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    """A table of rows in the order of the schema's columns."""
    return table_of_columns(list(zip(*rows, strict=True)) or [()] * len(schema), schema)


def table_of_columns(columns: Sequence[Collection[object]], schema: pa.Schema) -> pa.Table:
    """A table of columns in the order of the schema."""
    import pyarrow as pa

    arrays = [column(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _bits(flags: Iterable[object]) -> bytes:
    """One bit for each flag, lowest first, in whole bytes."""
    digits = "".join(["1" if flag else "0" for flag in flags])
    return int(digits[::-1] or "0", 2).to_bytes((len(digits) + 7) // 8, "little")
