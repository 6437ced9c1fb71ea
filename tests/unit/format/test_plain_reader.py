"""A reader that was written from SPEC.md alone finds in the golden recordings what their expected.json says."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from support.plain_reader import PlainRecording, RefusedError
from support.vectors import VECTORS
from tachograph.format import assemble, load_specification, open_container, write_recording

COMPLETE = ("whole", "extra", "memory", "tree", "weights", "signal", "attribution", "lines", "window")


def expected(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((VECTORS / f"{name}.expected.json").read_text(encoding="utf-8"))
    return document


@cache
def opened(name: str) -> PlainRecording:
    return PlainRecording(VECTORS / f"{name}.tacho")


@pytest.mark.parametrize("name", COMPLETE)
def test_what_is_in_the_tables(name: str) -> None:
    recording, answer = opened(name), expected(name)
    assert recording.manifest["state"] == answer["state"]
    assert recording.manifest["quality"] == answer["quality"]
    for table, count in answer["rows"].items():
        assert len(recording.rows(table)) == count
    for table, picks in answer["values"].items():
        for pick in picks:
            row = recording.rows(table)[pick.pop("row")]
            found = {key: value.hex() if isinstance(value, bytes) else value for key, value in row.items()}
            assert {key: found[key] for key in pick} == pick
    assert [{"stack": each["stack"], "line": recording.place(each["stack"])[1]} for each in answer["lines"]] == answer[
        "lines"
    ]


@pytest.mark.parametrize("name", COMPLETE)
def test_what_follows_from_them(name: str) -> None:
    assert opened(name).derived() == expected(name)["derived"]


@pytest.mark.parametrize("name", ["killed", "memory-killed", "tree-killed", "gpu", "newer-major"])
def test_what_is_not_for_it(name: str) -> None:
    with pytest.raises(RefusedError):
        PlainRecording(VECTORS / f"{name}.tacho")


@pytest.mark.parametrize("name", ["weights", "signal"])
def test_a_table_alone_says_what_it_is(name: str) -> None:
    pairs = pq.read_metadata(VECTORS / f"{name}.tacho" / "cpu.parquet").metadata
    uuid = json.loads((VECTORS / f"{name}.tacho" / "manifest.json").read_text(encoding="utf-8"))["uuid"]
    assert pairs[b"tachograph.format_version"] == b"1.2"
    assert pairs[b"tachograph.uuid"].decode() == uuid
    assert pairs[b"tachograph.table"] == b"cpu"
    assert json.loads(pairs[b"tachograph.units"]) == {"time_ns": "ns", "cpu_ns": "ns", "system_ns": "ns"}


def test_it_owes_nothing_to_tachograph() -> None:
    tests = Path(__file__).parents[2]
    code = (
        "import sys; import support.plain_reader; assert not any(name.startswith('tachograph') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=tests)


@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas"])
@pytest.mark.parametrize("name", COMPLETE)
def test_other_engines_read_every_table(name: str, engine: str) -> None:
    check_engine(engine, VECTORS / f"{name}.tacho")


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The tables of all golden recordings that are spools."""
    folders, spec = [], load_specification()
    for path in sorted(VECTORS.glob("*.tacho")):
        with open_container(path) as container:
            spool = container.spool() if (path / "spool").is_dir() else None
            if spool is not None:
                folders.append(tmp_path_factory.mktemp(path.stem))
                write_recording(assemble(spool, spec), folders[-1], container.manifest().uuid)
    return folders


@pytest.mark.parametrize("engine", ["duckdb", "polars", "pandas"])
def test_other_engines_read_what_was_recovered(recovered: list[Path], engine: str) -> None:
    assert {"rich0", "reaped0"} < {folder.name for folder in recovered}
    for folder in recovered:
        check_engine(engine, folder)


def test_each_recovered_file_says_what_it_is(recovered: list[Path]) -> None:
    spec = load_specification()
    files = [path for folder in recovered for path in folder.glob("*.parquet")]
    assert {path.stem for path in files} == set(spec.tables)
    for path in files:
        pairs = pq.read_metadata(path).metadata
        assert pairs[b"tachograph.format_version"].decode() == spec.version
        assert pairs[b"tachograph.uuid"] == b"11111111-2222-4333-8444-555555555555"
        assert pairs[b"tachograph.table"].decode() == path.stem
        units = {column.name: column.unit for column in spec.tables[path.stem].columns if column.unit}
        assert json.loads(pairs[b"tachograph.units"]) == units


def check_engine(engine: str, folder: Path) -> None:
    """A library reads in each table of a folder what Arrow reads."""
    library = pytest.importorskip(engine)
    for path in sorted(folder.glob("*.parquet")):
        truth = pq.read_table(path)
        if engine == "duckdb":
            found = library.sql(f"SELECT * FROM '{path}'")
            rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
        elif engine == "polars":
            rows = library.read_parquet(path).to_dicts()
        else:
            rows = library.read_parquet(path, dtype_backend="pyarrow").to_dict("records")
            missing = library.NA
            rows = [{key: None if value is missing else value for key, value in row.items()} for row in rows]
        assert rows == truth.to_pylist(), path.name
