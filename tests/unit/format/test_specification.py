"""SPEC.md and tables.toml say the same, and what is written is what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tachograph.format import Specification, load_specification
from tachograph.format.plain_records import fields_of

ROOT = Path(__file__).parents[3]
SPEC_PATH = Path(__file__).parents[3] / "format-spec" / "SPEC.md"
GENERATED = r"<!-- generated: .*?<!-- end -->"


@pytest.fixture(scope="module")
def spec() -> Specification:
    return load_specification()


@pytest.fixture(scope="module")
def text() -> str:
    return SPEC_PATH.read_text(encoding="utf-8")


def markdown_tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of the first table after each heading."""
    found: dict[str, list[list[str]]] = {}
    heading, done = "", False
    for line in text.splitlines():
        if line.startswith("#"):
            heading, done = line.lstrip("# ").strip("`"), False
        elif line.startswith("|"):
            if not done:
                found.setdefault(heading, []).append([cell.strip() for cell in line.strip("|").split("|")])
        elif heading in found:
            done = True
    return {name: rows[2:] for name, rows in found.items()}


def test_what_is_generated_is_up_to_date() -> None:
    """Tables and enumerations of the documents are those of the TOML files; ``make generate`` makes them so."""
    made = subprocess.run(
        [sys.executable, "-m", "tools.generate", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (made.stdout, made.returncode) == ("", 0), made.stderr


def test_version_and_reserved_names_agree(spec: Specification, text: str) -> None:
    assert f"\nVersion: {spec.version}\n" in text
    assert ", ".join(f"`{name}`" for name in spec.reserved_tables) in text
    assert not set(spec.reserved_tables) & set(spec.tables)


def test_every_table_has_its_place_once(spec: Specification, text: str) -> None:
    headings = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    assert {name: headings.count(name) for name in spec.tables} == dict.fromkeys(spec.tables, 1)


def test_the_documents_can_be_read_in_a_day(text: str) -> None:
    """What CPU time by line needs is in one place, at the beginning; prose is wrapped."""
    first = text.partition("\n# Part 1")[2].partition("\n# Part 2")[0]
    assert len(first.splitlines()) <= 350
    pages = [SPEC_PATH.with_name(name).read_text(encoding="utf-8") for name in ("SPEC.md", "SPOOL.md", "WRITING.md")]
    written = [re.sub(GENERATED, "", page, flags=re.DOTALL) for page in pages]
    assert sum(len(page.splitlines()) for page in pages) <= 1500
    assert sum(len(page.splitlines()) for page in written[:2]) <= 930
    wide = [line for page in pages for line in page.splitlines() if len(line) > 120 and not line.startswith("|")]
    assert wide == []


def test_every_generated_block_has_content() -> None:
    pages = [SPEC_PATH.with_name(name).read_text(encoding="utf-8") for name in ("SPEC.md", "SPOOL.md")]
    blocks = [block for page in pages for block in re.findall(GENERATED, page, re.DOTALL)]
    assert len(blocks) == sum(page.count("<!-- generated") for page in pages) > 15
    assert [block for block in blocks if block.count("\n") < 3] == []


def test_references_and_enums_exist(spec: Specification) -> None:
    for table in spec.tables.values():
        for column in table.columns:
            assert column.references is None or column.references in spec.tables
            assert column.enum is None or column.enum in spec.enums
            assert column.since <= table.since or column.nullable
            assert column.since <= spec.minor
            assert column.least is None or column.type == "int64"
        assert set(table.sort) <= set(table.by_name)


def test_manifest_fields_agree(text: str) -> None:

    from tachograph.format import Manifest

    documented = [name for row in markdown_tables(text)["Manifest"] for name in re.findall(r"`(\w+)`", row[0])]
    assert set(documented) == fields_of(Manifest).keys() - {"extra"}


def test_a_table_that_is_missing(spec: Specification) -> None:
    """It is empty only where it was recorded; what is no plain true is no yes."""
    for name, table in spec.tables.items():
        always, key = table.recorded_if is None, table.recorded_if or "memory"
        assert spec.recorded(name, {key: True}, spec.version)
        for parameters in ({}, {key: False}, {key: None}, {key: "true"}, {key: 1}):
            assert spec.recorded(name, parameters, spec.version) == always
            assert spec.recorded(name, parameters, "1.0") == (always and not table.since)


def test_importing_costs_no_pyarrow_and_no_parsing(tmp_path: Path) -> None:
    code = "import sys, tachograph.format as f; f.load_specification(); f.Manifest; f.SpoolDirectory; f.FormatError\n"
    code += "assert not {'pyarrow', 'tomllib'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=tmp_path)


def test_a_field_of_a_row_has_a_type_that_a_table_has(tmp_path: Path) -> None:
    layouts = ROOT / "format-spec" / "records.toml"
    text = layouts.read_text(encoding="utf-8")
    before, cpu = text.split("[records.cpu]")
    wrong = cpu.replace("fields = [", 'fields = [\n  { name = "core", type = "u16" }, { reserved = 6 },', 1)
    (tmp_path / "records.toml").write_text(f"{before}[records.cpu]{wrong}", encoding="utf-8")
    code = (
        "import pathlib, sys; from tools.generate.layouts import load_layouts; from tachograph.format import"
        " load_specification; tables = load_specification().tables;"
        " columns = {name: [each.name for each in table.columns] for name, table in tables.items()};"
        " load_layouts(pathlib.Path(sys.argv[1]), columns, ['native'])"
    )
    done = [
        subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, capture_output=True, text=True, check=False)
        for path in (layouts, tmp_path / "records.toml")
    ]
    assert done[0].returncode == 0, done[0].stderr
    assert done[1].stderr.rstrip().endswith("cpu: no column of a table is u16, so no field of a row can be")
