"""The process that runs a query of an assistant: started as a script, it imports nothing of ours, which takes a second.

It gets an order (a line of JSON: the query, its bounds, the names of tables) and the tables (streams of Arrow) on
standard input, and writes lines of JSON: ``"ready"`` when it has them, the names of columns, each row as a list of
texts, and ``"end"``, or ``{"problem": text}`` before it. Arguments: where modules are imported from.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "512MB",
    "temp_directory": "",
    "threads": "2",
}


class RefusedError(Exception):
    """The query is refused; one line that says why."""


def serve() -> None:
    """Run the query that standard input holds."""
    import duckdb
    import pyarrow as pa

    order = json.loads(sys.stdin.buffer.readline())
    connection = duckdb.connect(":memory:", config=SETTINGS)
    for name in order["tables"]:
        with pa.ipc.open_stream(sys.stdin.buffer) as stream:
            connection.register(name, stream.read_all())
    connection.execute("SET lock_configuration = true")
    limit_memory(order["memory"])
    tell("ready")
    try:
        for row in rows(connection, order["sql"], order["rows"], order["cut"]):
            tell(row)
    except RefusedError as error:
        tell({"problem": str(error)})
    except duckdb.Error as error:
        tell({"problem": "the query failed: " + " ".join(str(error)[:4000].split())})
    tell("end")
    os._exit(0)  # what the query has left is not worth the time to put it in order


def tell(value: object) -> None:
    """Write a line."""
    sys.stdout.buffer.write(json.dumps(value).encode() + b"\n")
    sys.stdout.buffer.flush()


def rows(connection: duckdb.DuckDBPyConnection, sql: str, most: int, cut: int) -> Iterator[list[str]]:
    """The names of columns, then at most so many rows; texts are cut."""
    import duckdb

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise RefusedError("a query is one SELECT")
    # A limit of ours, that no more is worked out: behind a line break, for a comment may end the query.
    bounded = f"SELECT * FROM (\n{statements[0].query.strip().rstrip(';')}\n) LIMIT {most}"
    answer = connection.execute(bounded)
    yield [column[0][:cut] for column in answer.description or ()]
    for row in iter(answer.fetchone, None):
        yield [text(value)[:cut] for value in row]


def text(value: Any) -> str:
    """A value as text."""
    if value is None:
        return "null"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({len(value):,} bytes)"
    return str(value)


def limit_memory(more: int) -> None:
    """Let this process have so much more memory and no more, where the kernel tells what it has."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
    except (ImportError, OSError):
        return
    most = pages * resource.getpagesize() + more
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    sys.path[:] = sys.argv[1:]
    serve()
