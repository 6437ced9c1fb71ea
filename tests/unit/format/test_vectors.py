"""The golden recordings are read as their expected.json says, from a directory and from a zip file."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tachograph.analyzer.recording.opened import Recording
from tachograph.format import (
    Container,
    FormatError,
    assemble,
    check_batch,
    check_schema,
    complete,
    finished_manifest,
    load_specification,
    open_container,
    write_recording,
)
from tachograph.format.enumerations import DOMAINS

VECTORS = Path(__file__).parents[3] / "format-spec" / "vectors"
SPEC = load_specification()


def expected(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((VECTORS / f"{name}.expected.json").read_text(encoding="utf-8"))
    return document


def read_tables(container: Container) -> dict[str, pa.Table]:
    manifest = container.manifest()
    if manifest.state == "recording":
        spool = container.spool()
        assert spool is not None
        assembled = assemble(spool, SPEC)
        found = {name: assembled.table(name) for name in SPEC.tables}
        return {name: table for name, table in found.items() if table.num_rows or not SPEC.tables[name].since}
    rows = {name: entry["rows"] for name, entry in manifest.tables.items()}
    tables = {}
    for name in rows.keys() & SPEC.tables.keys():
        table = SPEC.tables[name]
        with container.parquet(f"{name}.parquet") as file:
            columns = check_schema(table, file.schema_arrow, name)
            tables[name] = complete(table, file.read(columns=columns))
        check_batch(table, tables[name], rows, name)
        assert tables[name].num_rows == rows[name]
    return tables


def check_values(tables: dict[str, pa.Table], answer: dict[str, Any]) -> None:
    assert {name: table.num_rows for name, table in tables.items()} == answer["rows"]
    assert pc.sum(tables["cpu"]["cpu_ns"]).as_py() == answer["sums"]["cpu_ns"]
    assert pc.sum(tables["waits"]["off_cpu_ns"]).as_py() == answer["sums"]["off_cpu_ns"]
    for name, picks in answer["values"].items():
        for pick in picks:
            row = tables[name].slice(pick["row"], 1).to_pylist()[0]
            found = {key: value.hex() if isinstance(value, bytes) else value for key, value in row.items()}
            assert {key: found[key] for key in pick if key != "row"} == {k: v for k, v in pick.items() if k != "row"}


def in_order(ledger: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A ledger has no order."""
    return sorted(ledger, key=lambda entry: (entry["process"] is None, entry["process"], entry["loss"]))


def packed(path: Path, target: Path, method: int, folder: str) -> Path:
    with zipfile.ZipFile(target, "w", method) as file:
        for member in sorted(path.rglob("*")):
            file.write(member, folder + member.relative_to(path).as_posix())
    return target


VECTOR_NAMES = ["whole", "extra", "killed", "memory", "memory-killed", "tree", "tree-killed", "gpu", "weights"]
VECTOR_NAMES += ["signal", "native", "pools", "touched", "calls", "redundancy", "cells", "tree-short", "attribution"]
VECTOR_NAMES += ["lines", "window", "pending", "definitions", "modules", "window-killed", "rich", "reaped"]


@pytest.mark.parametrize("name", VECTOR_NAMES)
@pytest.mark.parametrize("shape", ["directory", "stored", "deflated"])
def test_vector(name: str, shape: str, tmp_path: Path) -> None:
    path = VECTORS / f"{name}.tacho"
    if shape == "stored":
        path = packed(path, tmp_path / "a.zip", zipfile.ZIP_STORED, "")
    elif shape == "deflated":
        path = packed(path, tmp_path / "a.zip", zipfile.ZIP_DEFLATED, f"{name}.tacho/")
    answer = expected(name)
    with open_container(path) as container:
        manifest = container.manifest()
        assert manifest.state == answer["state"]
        check_values(read_tables(container), answer)
        if manifest.state == "complete":
            assert in_order(manifest.quality) == in_order(answer["quality"])
        else:
            spool = container.spool()
            assert spool is not None
            assert in_order(assemble(spool, SPEC).quality) == in_order(answer["quality"])
        assert answer.get("unknown_keys", {}) == manifest.extra


def test_the_counters_of_memory_balance() -> None:
    with open_container(VECTORS / "memory.tacho") as container:
        held = 0
        for row in read_tables(container)["memory"].to_pylist():
            held += sum(row[f"{domain}_allocated_bytes"] - row[f"{domain}_freed_bytes"] for domain in DOMAINS)
            assert held == row["footprint_bytes"]


@pytest.mark.parametrize(("name", "recorded"), [("whole", False), ("extra", False), ("memory", True)])
def test_whether_memory_was_recorded(name: str, recorded: bool) -> None:
    with open_container(VECTORS / f"{name}.tacho") as container:
        manifest = container.manifest()
        tables = read_tables(container)
    for table in SPEC.tables:
        about = SPEC.tables[table].recorded_if
        possible = SPEC.tables[table].since <= int(manifest.format_version.partition(".")[2])
        told = possible if about is None else recorded and about == "memory"
        assert SPEC.recorded(table, manifest.parameters, manifest.format_version) == told
    assert ("memory" in tables) == recorded
    exiting = tables["processes"]["exiting_ns"].to_pylist()
    assert exiting == ([5_000_650_000_000] if recorded else [None])


def test_newer_major_is_refused() -> None:
    with open_container(VECTORS / "newer-major.tacho") as container, pytest.raises(FormatError) as error:
        container.manifest()
    assert str(error.value) == expected("newer-major")["error"]


def test_finishing_the_killed_one_leaves_it_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "killed.tacho", tmp_path / "out"
    shutil.copytree(VECTORS / "killed.tacho", source)
    target.mkdir()
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    with open_container(source) as container:
        manifest, spool = container.manifest(), container.spool()
    assert spool is not None
    assembled = assemble(spool, SPEC)
    tables = write_recording(assembled, target, manifest.uuid)
    finished = finished_manifest(manifest, assembled, tables, "recovered")
    finished.write(target / "manifest.json")
    assert (manifest.state, manifest.quality) == ("recording", [])
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    with open_container(target) as container:
        check_values(read_tables(container), expected("killed"))
        found = container.manifest()
    assert (found.state, found.quality, found.uuid) == ("recovered", expected("killed")["quality"], manifest.uuid)
    assert found.format_version == SPEC.version  # of what was written, not of what was found
    assert found.clock == {"monotonic_ns": 5_000_000_000_000, "utc_ns": 1_800_000_000_000_000_000}
    assert found.parameters == manifest.parameters
    assert found.sampler_cost["helper_cpu_ns"] == 5_000_000
    assert found.ended_ns == assembled.ended_ns


def test_vectors_are_small() -> None:
    for vector in VECTORS.glob("*.tacho"):
        assert sum(path.stat().st_size for path in vector.rglob("*") if path.is_file()) < 60_000


@pytest.mark.parametrize("name", ["killed", "definitions"])
def test_each_table_has_its_digest_in_the_manifest(name: str, tmp_path: Path) -> None:
    with open_container(VECTORS / f"{name}.tacho") as container:
        manifest, spool = container.manifest(), container.spool()
    assert spool is not None
    tables = write_recording(assemble(spool, SPEC), tmp_path, manifest.uuid)
    digests = {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob("*.parquet")}
    assert {table: entry["sha256"] for table, entry in tables.items()} == digests


def read_everything(path: Path) -> None:
    with Recording.open(path) as recording:
        for table in recording.manifest.tables:
            columns = [column.name for column in SPEC.tables[table].columns]
            if SPEC.tables[table].sort:
                assert all(batch.num_rows for batch in recording.batches(table, columns))
            else:
                recording.table(table)


@pytest.mark.parametrize(("name", "answer"), expected("refused").items())
def test_what_breaks_a_rule_is_refused_in_one_line(name: str, answer: dict[str, str]) -> None:
    (path,) = (VECTORS / "refused").glob(f"{name}.*")
    with pytest.raises(FormatError) as error:
        read_everything(path)
    text = str(error.value).replace(f"{VECTORS}/", "")
    assert text.startswith(answer["error"])
    assert "\n" not in text


def test_all_vectors_together_are_small() -> None:
    assert sum(path.stat().st_size for path in VECTORS.rglob("*") if path.is_file()) < 1_500_000
