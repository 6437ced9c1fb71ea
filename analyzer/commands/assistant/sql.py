"""One SELECT over the tables of a recording, which can read nothing else and does not run for ever."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tachograph.format import FormatError

from ...recording.opened import Recording
from ...recording.text import printable

if TYPE_CHECKING:
    import duckdb

MOST_ROWS = 1_000
"""Rows of an answer."""

MOST_TABLE_ROWS = 20_000_000
MOST_SQL = 10_000
MOST_SECONDS = 30.0
MOST_VALUE = 200
"""Characters of a value."""

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "512MB",
    "temp_directory": "",
    "threads": "2",
}


def select(recording: Recording, sql: str, rows: int, seconds: float = MOST_SECONDS) -> Iterator[str]:
    """The rows of an answer as text, one line each, the names of columns first.

    Errors:
        FormatError: it is not one SELECT, it is wrong, it needs a table that was not recorded, or it takes too long.
    """
    import duckdb

    if len(sql) > MOST_SQL:
        raise FormatError(f"the query is longer than {MOST_SQL:,} characters")
    connection = duckdb.connect(":memory:", config=SETTINGS)
    timer = threading.Timer(seconds, connection.interrupt)
    timer.start()
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise FormatError("a query is one SELECT")
        _register(connection, recording, sql)
        connection.execute("SET lock_configuration = true")
        most = min(rows, MOST_ROWS)
        # A limit of ours, that no more is worked out: behind a line break, for a comment may end the query.
        bounded = f"SELECT * FROM (\n{statements[0].query.strip().rstrip(';')}\n) LIMIT {most + 1}"
        answer = connection.execute(bounded)
        names = [column[0] for column in answer.description or ()]
        found = answer.fetchall()
    except duckdb.InterruptException:
        raise FormatError(f"the query took longer than {seconds:g} s") from None
    except duckdb.Error as error:
        raise FormatError(f"the query failed: {printable(' '.join(str(error).split()), 400)}") from None
    finally:
        timer.cancel()
        connection.close()
    yield " | ".join(printable(name, MOST_VALUE) for name in names)
    for row in found[:most]:
        yield " | ".join(_text(value) for value in row)
    if len(found) > most:
        yield "(there are more rows)"


def _register(connection: duckdb.DuckDBPyConnection, recording: Recording, sql: str) -> None:
    """Makes the tables known that the query may mean."""
    words = {word.lower() for word in re.findall(r"[A-Za-z_]+", sql)}
    import pyarrow as pa

    for name, table in recording.specification.tables.items():
        if name not in words or not recording.recorded(name):
            continue
        if recording.rows(name) > MOST_TABLE_ROWS:
            raise FormatError(f"{name} has {recording.rows(name):,} rows, more than {MOST_TABLE_ROWS:,}")
        batches = recording.batches(name, table.schema.names)
        connection.register(name, pa.Table.from_batches(batches, schema=table.schema))


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value):,} bytes)"
    return printable(str(value), MOST_VALUE)
