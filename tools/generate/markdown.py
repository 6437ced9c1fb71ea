"""Generated blocks of the format's documents, from tables.toml and records.toml."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from tachograph.format import ColumnSpec, EnumValue, Specification, TableSpec

from .layouts import Layout, Layouts

_TABLES = "tables "
_BLOCK = re.compile(r"(?<=<!-- generated: )(?P<name>[^\n]*?) -->\n.*?(?=<!-- end -->)", re.DOTALL)
_COMMON = "cpu"
"""The table that other tables share columns with."""
_ROOM = 400
"""Characters that the meanings of columns in one row take at most."""


def filled(text: str, content: Mapping[str, str]) -> str:
    """A document with the content of its generated blocks replaced.

    Errors:
        KeyError: it has a block that is not generated.
    """
    return _BLOCK.sub(lambda block: f"{block['name']} -->\n{_apart(content[block['name']])}\n", text)


def _apart(block: str) -> str:
    """A block as it follows a comment: a paragraph or a table would be a part of that, a heading is not."""
    return block if block.startswith("#") else f"\n{block}"


def blocks(spec: Specification, layouts: Layouts, text: str) -> dict[str, str]:
    """The generated blocks of a document by name; ``text`` names the tables of each of its blocks "tables A B"."""
    enumerations = ("enumeration", "values")
    records = ("kind", "record", "bytes", "row", "table", "meaning")
    named = [match["name"] for match in _BLOCK.finditer(text) if match["name"].startswith(_TABLES)]
    placed = {table for name in named for table in name.removeprefix(_TABLES).split()}
    return {
        **{name: _tables(spec, name.removeprefix(_TABLES).split()) for name in named},
        "further tables": _tables(spec, [name for name in spec.tables if name not in placed]),
        "enumerations": _markdown(enumerations, [_enumeration(name, values) for name, values in spec.enums.items()]),
        "pending": _pending(layouts),
        "parts": _parts(layouts),
        "records": _markdown(records, [_record(layout) for layout in layouts.records.values()]),
    }


def _pending(layouts: Layouts) -> str:
    block, size = layouts.records["block"], layouts.constants["pending_size"][0]
    first, since = layouts.constants["control_size"][0], _first_since(block)
    return (
        f"They lie from byte {first} on: up to {size // block.size} places of {block.size} bytes, as far as the file"
        f" reaches\n(before version 1.{since}: {size // block.least} of {block.least} bytes).\n"
    )


def _parts(layouts: Layouts) -> str:
    kinds = [layout for layout in layouts.records.values() if layout.rows and layout.in_parts]
    files = ", ".join(f"`{each.rows}` {each.name.upper()}" for each in kinds)
    return textwrap.fill(f"ROWS, and the kind: {files}.", 120, break_on_hyphens=False) + "\n"


def _record(layout: Layout) -> tuple[str, ...]:
    before = f" ({layout.least} before 1.{_first_since(layout)})" if layout.least else ""
    size = f"{layout.size}{before}" if not layout.texts else f"from {layout.size}"
    table = f"`{layout.table}`" if layout.table else ""
    by = f" Written by {layout.by}." if layout.by else ""
    return str(layout.kind), layout.name.upper(), size, "yes" if layout.rows else "", table, layout.doc + by


def _first_since(layout: Layout) -> int:
    return min((field.since for field in layout.fields if field.since), default=0)


def _tables(spec: Specification, names: Sequence[str]) -> str:
    flows = _flows([value.name for value in spec.enums["domain"]])
    common = [_column(column) for column in spec.tables[_COMMON].columns]
    return "\n".join(_table(spec.tables[name], flows, () if name == _COMMON else common) for name in names)


def _flows(domains: Sequence[str]) -> dict[str, tuple[str, ...] | None]:
    """Rows in place of those of exact flows, by the first column of each; None where another row has the column."""
    names = [f"{domain}_{flow}_bytes" for domain in domains for flow in ("allocated", "freed")]
    of = ", ".join(f"`{domain}`" for domain in domains)
    meaning = (
        f"bytes allocated, and freed, since the process's previous row; a column for each domain: {of}; at least 0"
    )
    row = ("`DOMAIN_allocated_bytes`, `DOMAIN_freed_bytes`", "int64", "no", "bytes", "", meaning)
    return {**dict.fromkeys(names), names[0]: row}


def _table(table: TableSpec, flows: Mapping[str, tuple[str, ...] | None], common: Sequence[tuple[str, ...]]) -> str:
    sort = ", ".join(f"`{name}`" for name in table.sort)
    about = [table.doc]
    about += [f"Since 1.{table.since}."] if table.since else []
    about += [f"Sorted by {sort} over the whole file."] if sort else []
    about += [f"Recorded if `parameters.{table.recorded_if}` is true."] if table.recorded_if else []
    head = ("column", "type", "null", "unit", "refers to", "meaning")
    rows = [row for column in table.columns if (row := flows.get(column.name, _column(column))) is not None]
    shared = [row for row in rows if row in common]
    own = _grouped([row for row in rows if row not in shared or len(shared) == 1])
    if len(shared) > 1:
        own.append((", ".join(row[0] for row in shared), "", "", "", "", f"as in `{_COMMON}`"))
    return f"### {table.name}\n{textwrap.fill(' '.join(about), 120)}\n\n{_markdown(head, own)}"


def _grouped(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Neighbours that differ in name and meaning alone in one row, where their meanings are short."""
    groups: list[list[tuple[str, ...]]] = []
    for row in rows:
        near = groups[-1] if groups and groups[-1][0][1:-1] == row[1:-1] else None
        if near is not None and sum(len(each[0]) + len(each[-1]) for each in (*near, row)) <= _ROOM:
            near.append(row)
        else:
            groups.append([row])
    return [group[0] if len(group) == 1 else _joined(group) for group in groups]


def _joined(group: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    meaning = "<br>".join(f"{row[0]}: {row[-1]}" for row in group)
    return ", ".join(row[0] for row in group), *group[0][1:-1], meaning


def _column(column: ColumnSpec) -> tuple[str, ...]:
    target = f"`{column.references}`" if column.references else f"enum `{column.enum}`" if column.enum else ""
    least = "" if column.least is None else f"; at least {column.least}"
    since = f" (since 1.{column.since})" if column.since else ""
    null = "yes" if column.nullable else "no"
    return f"`{column.name}`", column.type, null, column.unit or "", target, column.doc + least + since


def _enumeration(name: str, values: Sequence[EnumValue]) -> tuple[str, ...]:
    return f"`{name}`", "<br>".join(f"{number} `{value.name}` {value.doc}" for number, value in enumerate(values))


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(line)} |\n" for line in (head, *rows)]
    return lines[0] + f"|{'---|' * len(head)}\n" + "".join(lines[1:])
