"""Every Parquet file written matches the specification, is small, and is read with nothing of ours."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.spool_builder import NONE, SegmentBuilder, control, write_spool
from tachograph.format import (
    FormatError,
    NativePlace,
    SpoolDirectory,
    TableWriter,
    assemble,
    check_batch,
    check_schema,
    load_specification,
    open_container,
    write_recording,
    write_table,
)
from tachograph.format import parquet as parquet_module

SPEC = load_specification()
UUID = "3f0c6d2e-0000-4000-8000-000000000000"
PHYSICAL = {
    "bool": "BOOLEAN",
    "uint8": "INT32",
    "uint32": "INT32",
    "int32": "INT32",
    "int64": "INT64",
    "uint64": "INT64",
    "string": "BYTE_ARRAY",
    "binary": "BYTE_ARRAY",
}


def said_of_itself(metadata: pq.FileMetaData) -> dict[str, Any]:
    """The key-value metadata of a table's file; there are none but tachograph's."""
    pairs = {key.decode(): value.decode() for key, value in metadata.metadata.items()}
    assert all(key.startswith("tachograph.") for key in pairs)
    found: dict[str, Any] = {key.removeprefix("tachograph."): value for key, value in pairs.items()}
    return {**found, "units": json.loads(found["units"])}


def ten_seconds(spool: Path) -> None:
    """1000 samples, 300 stacks, 150 code objects with 150 bytes of lines each, 400 native frames."""
    import random

    chance = random.Random(1)
    segment = SegmentBuilder(0, size=1 << 20)
    segment.thread_start(0, 1, 0, main=True)
    for module in range(10):
        start = 0x7F0000000000 + (module << 24)
        segment.module(module, f"/usr/lib/lib{module}.so.1", start, start + (1 << 22), build_id=chance.randbytes(20))
    for code in range(150):
        table = bytes(
            chance.choice([0x80, 0x90, 0xD8, 0xF0]) if at % 4 == 0 else chance.randrange(64) for at in range(150)
        )
        segment.code(code, f"/home/user/package/module{code // 10}.py", f"Class{code // 5}.method{code}", code, table)
    for stack in range(300):
        parent = NONE if stack == 0 else chance.randrange(max(0, stack - 40), stack)
        segment.stack(stack, parent, chance.randrange(150), 2 * chance.randrange(300))
    pcs = [0x7F0000000000 + (chance.randrange(10) << 24) + chance.randrange(1 << 22) for _ in range(400)]
    now = 0
    for _ in range(1000):
        delta = chance.randrange(9_000_000, 11_000_000)
        now += delta
        segment.cpu(now, 0, chance.randrange(300), cpu_ns=delta - chance.randrange(9999), pc=chance.choice(pcs))
    for index in range(50):
        segment.wait(index * 10**8, index * 10**8 + chance.randrange(10**8), 0, chance.randrange(300))
    write_spool(spool, [segment.to_bytes()], control(segment_size=1 << 20, end_ns=now))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, int]]]:
    path = tmp_path_factory.mktemp("recording")
    ten_seconds(path / "spool")
    assembled = assemble(
        SpoolDirectory(path / "spool"), SPEC, resolve=lambda _, offsets: [NativePlace(f"f_{o:x}") for o in offsets]
    )
    return path, write_recording(assembled, path, UUID)


def test_files_match_the_specification(recording: tuple[Path, dict[str, dict[str, int]]]) -> None:
    path, written = recording
    rows = {name: entry["rows"] for name, entry in written.items()}
    assert rows["cpu"] == 1000
    assert sorted(each.name for each in path.glob("*.parquet")) == sorted(f"{name}.parquet" for name in written)
    assert set(written) == {name for name, table in SPEC.tables.items() if not table.since}
    for name in written:
        table = SPEC.tables[name]
        file = path / f"{name}.parquet"
        assert file.stat().st_size == written[name]["bytes"]
        assert file.stat().st_mode & 0o777 == 0o600
        with pq.ParquetFile(file) as opened:
            assert opened.schema_arrow.remove_metadata().equals(table.schema, check_metadata=True)
            assert opened.metadata.num_rows == rows[name]
            assert said_of_itself(opened.metadata) == {
                "format_version": SPEC.version,
                "uuid": UUID,
                "table": name,
                "units": {column.name: column.unit for column in table.columns if column.unit},
            }
            for column in table.columns:
                found = opened.schema.column(list(table.by_name).index(column.name))
                assert (found.name, found.physical_type) == (column.name, PHYSICAL[column.type])
                assert found.max_definition_level == int(column.nullable)
            content = opened.read()
        content.validate(full=True)
        check_schema(table, content.schema, name)
        check_batch(table, content, rows, name)


def test_ten_seconds_fit_into_48_kilobytes(recording: tuple[Path, dict[str, dict[str, int]]]) -> None:
    assert sum(entry["bytes"] for entry in recording[1].values()) < 46_000  # the manifest needs the rest


def test_finalising_is_quick(recording: tuple[Path, dict[str, dict[str, int]]], tmp_path: Path) -> None:
    times = []
    for _ in range(5):
        start = time.process_time()  # other work on the machine does not count
        write_recording(assemble(SpoolDirectory(recording[0] / "spool"), SPEC), tmp_path, UUID)
        times.append(time.process_time() - start)
    assert min(times) < 0.2


@pytest.mark.recording
def test_finalising_does_not_import_pandas(recording: tuple[Path, dict[str, dict[str, int]]], tmp_path: Path) -> None:
    code = (
        "import sys; from tachograph.format import *\n"
        "write_recording(assemble(SpoolDirectory(sys.argv[1]), load_specification()), sys.argv[2], 'a uuid')\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, recording[0] / "spool", tmp_path], check=True, timeout=60, cwd=tmp_path)


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7])
def test_a_damaged_page_is_seen(recording: tuple[Path, dict[str, dict[str, int]]], tmp_path: Path, at: float) -> None:
    data = bytearray((recording[0] / "cpu.parquet").read_bytes())
    data[int(len(data) * at)] ^= 4
    (tmp_path / "manifest.json").write_bytes(b"{}")
    (tmp_path / "cpu.parquet").write_bytes(data)
    with (
        open_container(tmp_path) as container,
        container.parquet("cpu.parquet") as file,
        pytest.raises((OSError, pa.ArrowException)),
    ):
        file.read()


def test_plain_pandas_reads_the_types(recording: tuple[Path, dict[str, dict[str, int]]]) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.read_parquet(recording[0] / "cpu.parquet")
    assert len(frame) == 1000
    assert [str(frame[name].dtype) for name in ("time_ns", "thread", "origin", "overruns")] == [
        "int64",
        "uint32",
        "uint8",
        "uint32",
    ]


def test_empty_tables(tmp_path: Path) -> None:
    for name, table in SPEC.tables.items():
        assert write_table(table.schema.empty_table(), tmp_path / "t.parquet", SPEC, name, UUID)["rows"] == 0
        assert pq.read_table(tmp_path / "t.parquet").schema.equals(table.schema)


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), TableWriter(tmp_path / "cpu.parquet", SPEC, "cpu", UUID):
        raise RuntimeError
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        write_table(pa.table({"x": [1]}), tmp_path / "cpu.parquet", SPEC, "cpu", UUID)
    assert list(tmp_path.iterdir()) == []


def processes(**changes: Any) -> pa.Table:
    schema = SPEC.tables["processes"].schema
    known = {"process": [0], "pid": [1], "start_ns": [0], **changes}
    return pa.table({name: known.get(name, [None]) for name in schema.names}, schema=schema)


def test_validation_of_batches() -> None:
    table = SPEC.tables["processes"]
    check_batch(table, processes(), {"processes": 1}, "processes")
    check_batch(table, processes(process=[7]), {"processes": 8}, "processes", first_row=7)
    for changes, message in (
        ({"parent": [1]}, "parent has the id 1, but the table processes has only 1 rows"),
        ({"process": [1]}, "row numbers"),
        ({"pid": [None]}, "1 nulls"),
    ):
        with pytest.raises(FormatError, match=message):
            check_batch(table, processes(**changes), {"processes": 1}, "processes")
    stacks = SPEC.tables["stacks"]
    for parents, good in (([None, 0, 1], True), ([None, 1, 0], False), ([0, None, None], False)):
        ids = [pa.array(range(3), pa.uint32()), pa.array(parents, pa.uint32())]
        nothing = [pa.nulls(3, field.type) for field in list(stacks.schema)[len(ids) :]]
        batch = pa.table([*ids, *nothing], schema=stacks.schema)
        if good:
            check_batch(stacks, batch, {"stacks": 3, "codes": 0}, "stacks")
        else:
            with pytest.raises(FormatError, match="before its own row"):
                check_batch(stacks, batch, {"stacks": 3, "codes": 0}, "stacks")


def test_validation_of_schemas() -> None:
    table = SPEC.tables["native_frames"]
    schema = table.schema
    assert check_schema(table, schema.append(pa.field("extra", pa.float64())), "t") == schema.names
    large = schema.set(3, pa.field("symbol", pa.dictionary(pa.int32(), pa.large_string())))
    assert check_schema(table, large, "t") == schema.names
    for bad, message in (
        (schema.remove(3), "symbol is missing"),
        (schema.append(pa.field("symbol", pa.string())), "2 columns"),
        (schema.set(2, pa.field("offset", pa.int64())), "type int64, not uint64"),
        (schema.set(3, pa.field("symbol", pa.list_(pa.string()))), "type list"),
    ):
        with pytest.raises(FormatError, match=message):
            check_schema(table, bad, "t")


@pytest.mark.recording
@pytest.mark.skipif(sys.platform == "win32", reason="no file size limits there")
def test_a_full_disk_is_an_error_and_nothing_else(tmp_path: Path) -> None:
    code = (
        "import os, resource, sys, pyarrow as pa; from tachograph.format import *\n"
        "spec = load_specification(); schema = spec.tables['native_frames'].schema\n"
        "n = range(9999); table = pa.table({**{name: [None] * 9999 for name in schema.names}, 'native_frame': n,\n"
        " 'offset': [k * k for k in n], 'symbol': [str(k * 7919) for k in n]}, schema=schema)\n"
        "for limit in (0, 10, 5000, 20000):\n"
        " resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))\n"
        " try: write_table(table, sys.argv[1] + '/native_frames.parquet', spec, 'native_frames', 'a uuid')\n"
        " except OSError as error: print(limit, error.strerror, os.listdir(sys.argv[1]), flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [f"{limit} File too large []" for limit in (0, 10, 5000, 20000)]
    assert done.stderr == ""


@pytest.mark.parametrize("other", [None, lambda: None], ids=["no such class", "another signature"])
def test_without_arrows_inner_class_the_files_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: Any
) -> None:
    (tmp_path / "spool").mkdir()
    ten_seconds(tmp_path / "spool")
    for name in ("inner", "outer"):
        (tmp_path / name).mkdir()
        write_recording(assemble(SpoolDirectory(tmp_path / "spool"), SPEC), tmp_path / name, UUID)
        monkeypatch.setattr(parquet_module, "load_writer", lambda: other)
    inner, outer = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("inner", "outer")
    )
    assert "cpu.parquet" in inner
    assert inner == outer


def test_much_text_is_packed_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources of torch took 0.9 s at the end of each recording, for a sixth of their size."""
    asked: list[dict[str, int]] = []
    make = parquet_module._writer

    def noted(*arguments: Any, **options: Any) -> Any:
        asked.append(options["compression_level"])
        return make(*arguments, **options)

    monkeypatch.setattr(parquet_module, "_writer", noted)
    empty = SPEC.tables["files"].schema.empty_table()
    for size in (10, parquet_module.MANY_BYTES + 1):
        row = {"file": 0, "path": "/a.py", "source": "x" * size}
        table = pa.Table.from_pylist([{**dict.fromkeys(empty.column_names), **row}], empty.schema)
        write_table(table, tmp_path / "files.parquet", SPEC, "files", UUID)
        assert pq.read_table(tmp_path / "files.parquet").column("source")[0].as_py() == row["source"]
    assert [each.get("source", 9) for each in asked] == [9, 3]
