"""Footers without what no reader needs: smaller, and the file says the same."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tachograph.format import load_specification, write_table
from tachograph.format.parquet import trimmed

SPEC = load_specification()


def file_of(rows: int, row_group: int = 1 << 20) -> bytes:
    """A file with the columns that tables have, and metadata of its own."""
    columns = {
        "whole": pa.array(range(rows), pa.int64()),
        "few": pa.array([number % 3 for number in range(rows)], pa.uint8()),
        "text": pa.array([f"name {number % 7}" for number in range(rows)]),
        "none": pa.nulls(rows, pa.uint32()),
        "flag": pa.array([number % 2 == 0 for number in range(rows)], pa.bool_()),
    }
    table = pa.table(columns).replace_schema_metadata({"said": "by the writer" * 20})
    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd", write_statistics=False, row_group_size=row_group)
    return bytes(out.getvalue().to_pybytes())


def footer_bytes(file: bytes) -> int:
    return int.from_bytes(file[-8:-4], "little")


@pytest.mark.parametrize(("rows", "row_group"), [(0, 10), (1, 10), (100, 1000), (1000, 50)])
def test_the_file_says_the_same(rows: int, row_group: int) -> None:
    file = file_of(rows, row_group)
    shorter = trimmed(file)
    before, after = (pq.ParquetFile(pa.BufferReader(each)) for each in (file, shorter))
    assert after.read().equals(before.read(), check_metadata=True)
    assert after.metadata.metadata == before.metadata.metadata
    assert after.metadata.created_by == before.metadata.created_by
    assert after.metadata.num_row_groups == before.metadata.num_row_groups
    assert shorter[: -8 - footer_bytes(shorter)] == file[: -8 - footer_bytes(file)]  # the pages
    assert len(file) - len(shorter) == footer_bytes(file) - footer_bytes(shorter) > 0
    assert trimmed(shorter) == shorter


@pytest.mark.parametrize("file", [b"", b"PAR1", b"PAR1\0\0\0\0PAR1", b"PAR1" + b"\xff" * 40 + b"PAR1", b"no Parquet"])
def test_what_is_no_parquet_stays_as_it_is(file: bytes) -> None:
    assert trimmed(file) == file


def test_damaged_footers_do_no_harm() -> None:
    """Whatever a footer has become: an answer, in time, and no error."""
    file = file_of(20)
    chance = random.Random(5)
    start = len(file) - 8 - footer_bytes(file)
    for _ in range(2000):
        damaged = bytearray(file)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(start, len(file) - 8)] = chance.randrange(256)
        assert len(trimmed(bytes(damaged))) <= len(file)


def test_tables_are_written_so(tmp_path: Path) -> None:
    """The encodings of a column are told once, by the column; a small table has no page that is all dictionary."""
    table = SPEC.tables["cpu"].schema.empty_table()
    rows = pa.Table.from_arrays(
        [pa.array([1] * 40, field.type) if not field.nullable else pa.nulls(40, field.type) for field in table.schema],
        schema=table.schema,
    )
    write_table(rows, tmp_path / "cpu.parquet", SPEC, "cpu", "a uuid")
    file = (tmp_path / "cpu.parquet").read_bytes()
    assert trimmed(file) == file
    metadata = pq.read_metadata(tmp_path / "cpu.parquet").row_group(0)
    columns = [metadata.column(number) for number in range(metadata.num_columns)]
    assert not any(column.has_dictionary_page for column in columns)
    assert {column.compression for column in columns} == {"ZSTD", "UNCOMPRESSED"}
    assert pq.read_table(tmp_path / "cpu.parquet").equals(rows)
