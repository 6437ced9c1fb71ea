"""Makes ``vectors/refused``: recordings that a reader must refuse, one for each way to break a MUST of "Security".

What a folder cannot hold in a repository (symbolic links, FIFOs) is made by the test. See ``support.vectors``.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support.spool_builder import control, write_spool
from support.vectors import T0, VECTORS, make, unfinished, write_json

REFUSED = VECTORS / "refused"
WHOLE = VECTORS / "whole.tacho"
COLUMNS: dict[str, tuple[str, Callable[[pa.Table], pa.Table]]] = {
    # Name: the table, and what becomes of it.
    "wrong-type": ("cpu", lambda table: changed(table, "thread", table["thread"].cast(pa.string()))),
    "missing-column": ("cpu", lambda table: table.drop_columns(["stack_state"])),
    "null-where-none-may-be": ("cpu", lambda table: changed(table, "cpu_ns", nulls(table, pa.int64()))),
    "id-out-of-range": ("cpu", lambda table: changed(table, "stack", numbers(table, 99))),
    "ids-not-in-order": ("threads", lambda table: changed(table, "thread", numbers(table, 1))),
    "parent-after-child": ("stacks", lambda table: changed(table, "parent", numbers(table, 4))),
    "rows-differ": ("cpu", lambda table: table.slice(1)),
    "no-parquet": ("cpu", lambda table: table),
    "process-parent-after-child": ("processes", lambda table: changed(table, "parent", numbers(table, 0))),
    "no-utf-8": ("files", lambda table: changed(table, "path", not_utf_8(table))),
}
ATTRIBUTION = VECTORS / "attribution.tacho"
OTHERS: dict[str, tuple[Path, str, Callable[[pa.Table], pa.Table]]] = {
    # The same of another recording, which has tables that ``whole`` lacks.
    "native-parent-after-child": (
        ATTRIBUTION,
        "native_stacks",
        lambda table: changed(table, "parent", numbers(table, 9)),
    ),
    "below-its-least": (
        VECTORS / "tree.tacho",
        "processes",
        lambda table: changed(table, "user_ns", pa.array([-1] * table.num_rows, pa.int64())),
    ),
}
NAMES = {
    "zip-dots": "../escape.txt",
    "zip-absolute": "/escape.txt",
    "zip-backslash": "a\\escape.txt",
    "zip-drive": "C:/escape.txt",
}
VALID = '{"format_version": "1.0", "uuid": "u", "state": "complete", '
MANIFESTS = {
    "no-json": "{",
    "no-object": "[]",
    "no-uuid": '{"format_version": "1.0", "state": "complete"}',
    "integer-too-large": '{"format_version": "1.0", "uuid": "u", "state": "complete", "ended_ns": 9223372036854775808}',
    "no-state": '{"format_version": "1.0", "uuid": "u", "state": "done"}',
    "no-version": '{"uuid": "u", "state": "complete"}',
    "negative-rows": VALID + '"tables": {"cpu": {"rows": -1, "bytes": 1}}}',
    "table-missing": VALID + '"tables": {"cpu": {"rows": 1, "bytes": 1}}}',
    "negative-end": '{"format_version": "1.0", "uuid": "u", "state": "complete", "ended_ns": -1}',
}


def numbers(table: pa.Table, value: int) -> pa.Array:
    return pa.array([value] * table.num_rows, pa.uint32())


def not_utf_8(table: pa.Table) -> pa.Array:
    buffers = pa.array([b"/srv/\xff.py"] * table.num_rows, pa.binary()).buffers()
    return pa.Array.from_buffers(pa.string(), table.num_rows, buffers)


def nulls(table: pa.Table, kind: pa.DataType) -> pa.Array:
    return pa.nulls(table.num_rows, kind)


def changed(table: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), pa.field(name, values.type), values)


def make_refused() -> None:
    shutil.rmtree(REFUSED, ignore_errors=True)
    REFUSED.mkdir()
    for name, (table, change) in COLUMNS.items():
        zipped(name, {f"{table}.parquet": b"no Parquet" if name == "no-parquet" else file_of(table, change)})
    for name, (base, table, change) in OTHERS.items():
        zipped(name, {f"{table}.parquet": file_of(table, change, base)}, base=base)
    for name, member in NAMES.items():
        zipped(name, more=[(member, b"")])
    zipped("zip-nul", more=[("a!escape.txt", b"")])
    replaced("zip-nul", b"a!escape", b"a\0escape")
    zipped("zip-twice", more=[("a.txt", b"1"), ("b.txt", b"2")])
    replaced("zip-twice", b"b.txt", b"a.txt")
    zipped("zip-link", more=[("a.txt", b"/etc/passwd")], mode=0o120777)
    zipped("zip-bomb", more=[("spool/1-1.000000.seg", bytes(65 << 20))])
    other = REFUSED / "control-file-of-another-major.tacho"
    write_spool(other / "spool", [], control(start_ns=T0, major=2), f"4242-{T0}")
    write_json(other / "manifest.json", unfinished(format_version="1.5"))
    for name, text in MANIFESTS.items():
        (REFUSED / f"{name}.tacho").mkdir()
        (REFUSED / f"{name}.tacho" / "manifest.json").write_text(text, encoding="utf-8")
    write_json(
        VECTORS / "refused.expected.json", {path.stem: {"error": message(path)} for path in sorted(REFUSED.iterdir())}
    )


def file_of(table: str, change: Callable[[pa.Table], pa.Table], base: Path = WHOLE) -> bytes:
    out = io.BytesIO()
    pq.write_table(change(pq.read_table(base / f"{table}.parquet")), out, compression="zstd", store_schema=False)
    return out.getvalue()


def zipped(
    name: str,
    instead: dict[str, bytes] | None = None,
    more: list[tuple[str, bytes]] | None = None,
    mode: int = 0o100600,
    base: Path = WHOLE,
) -> None:
    """A recording as a zip file, with other members."""
    members = {path.name: path.read_bytes() for path in sorted(base.iterdir())} | (instead or {})
    manifest = json.loads(members["manifest.json"])
    told = {table: manifest["tables"].get(table.removesuffix(".parquet"), {}) for table in instead or {}}
    if any("sha256" in each for each in told.values()):  # a checksum that differs is another fault
        for table, each in told.items():
            each["sha256"] = hashlib.sha256(members[table]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(REFUSED / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for member, data in [*members.items(), *(more or [])]:
            about = zipfile.ZipInfo(member, (2026, 11, 20, 16, 0, 0))
            about.external_attr = (mode if (member, data) in (more or []) else 0o100600) << 16
            file.writestr(about, data, zipfile.ZIP_DEFLATED)


def replaced(name: str, old: bytes, new: bytes) -> None:
    path = REFUSED / f"{name}.zip"
    path.write_bytes(path.read_bytes().replace(old, new))


def message(path: Path) -> str:
    """What this project's reader says."""
    from tachograph.analyzer.recording.opened import Recording
    from tachograph.format import FormatError

    try:
        with Recording.open(path) as recording:
            read_all(recording)
    except FormatError as error:
        text = str(error).replace(f"{VECTORS}/", "")
        return text.partition(" (Expecting")[0].partition(": Parquet magic")[0]  # what libraries say may change
    raise AssertionError(f"{path.name} is not refused")


def read_all(recording: Any) -> None:
    """Read every row of every table."""
    for name in recording.manifest.tables:
        if recording.specification.tables[name].sort:
            columns = [column.name for column in recording.specification.tables[name].columns]
            for _ in recording.tables.batches(name, columns):
                pass
        else:
            recording.table(name)


MAKERS = {"refused": make_refused}

if __name__ == "__main__":
    make(MAKERS)
