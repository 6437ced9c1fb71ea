"""Arrow's functions by name, without ``pyarrow.compute``, and methods that would load it.

That module makes a documented wrapper for each of Arrow's 300 functions when it is imported, which takes longer than
finishing a short recording. What is here calls the same functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


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
    """What Arrow's function ``name`` gives for some arguments, with its own defaults."""
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


def cast(values: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> Any:
    """The values as another type.

    Errors:
        pyarrow.ArrowInvalid: one of them does not fit it.
    """
    module = load_functions()
    return module.call_function("cast", [values], module.CastOptions.safe(kind))


def bounds(values: pa.Array | pa.ChunkedArray) -> tuple[Any, Any]:
    """The least and the greatest value; None and None where there is none."""
    found = call("min_max", values).as_py()
    return found["min"], found["max"]


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
