"""Tables of SPEC.md, from tables.toml and records.toml."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence

from tachograph.format import ColumnSpec, EnumValue, LossSpec, Specification, TableSpec

from .layouts import NONE, Field, Layout, Layouts

_LEAST = {-(1 << 63): "-2^63", -(1 << 31): "-2^31"}
_BLOCK = re.compile(r"(?<=<!-- generated: )(?P<name>[^\n]*?)(?P<head> -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)


def filled(text: str, content: Mapping[str, str]) -> str:
    """A document with the content of its generated blocks replaced.

    Errors:
        KeyError: it has a block that is not generated.
    """
    return _BLOCK.sub(lambda block: block["name"] + block["head"] + content[block["name"]], text)


def blocks(spec: Specification, layouts: Layouts) -> dict[str, str]:
    """The generated blocks of SPEC.md by name."""
    losses = ("counter", "loss", "severity", "process", "lasting", "meaning", "advice")
    return {
        "tables": "\n".join(_table(table) for table in spec.tables.values()),
        "enumerations": "\n".join(_enumeration(name, values) for name, values in spec.enums.items()),
        "losses": _markdown(losses, [_loss(loss) for loss in spec.losses]),
        "records": "\n".join(_record(layout) for layout in layouts.records.values()),
        **{f"file {name}": _file(layout) for name, layout in layouts.files.items()},
    }


def _file(layout: Layout) -> str:
    magic = ("0", f"{len(layout.magic or '')} bytes", "", f"`{layout.magic}`")
    rows = [(str(field.offset), _type(field), _name(field), field.doc or "0") for field in layout.fields]
    return _markdown(("offset", "type", "field", "meaning"), [magic, *rows])


def _record(layout: Layout) -> str:
    first = min((field.since for field in layout.fields if field.since), default=0)
    before = f", {layout.least} before version 1.{first}" if layout.least else ""
    exact = f" ({layout.size} bytes{before})" if layout.rows else ""
    by = f" Written by {layout.by}." if layout.by else ""
    head = textwrap.fill(f"**{layout.kind} {layout.name.upper()}**{exact} - {layout.doc}{by}", 120)
    if not layout.fields:
        return head + "\n"
    rows = [_field(field, layout) for field in layout.fields]
    for number, text in enumerate(layout.texts):
        place = str(layout.size) if number == 0 else "then"
        what = "bytes" if text.encoding in ("bytes", "hex") else "text"
        rows.append((place, what, f"`{text.name}`", _feeds(text.column, layout), text.doc or _encoding(text.encoding)))
    return f"{head}\n\n" + _markdown(("offset", "type", "field", "feeds", "meaning"), rows)


def _field(field: Field, layout: Layout) -> tuple[str, ...]:
    meaning = "0" if field.reserved else "; ".join(part for part in (field.doc, _unknown(field)) if part)
    meaning += f" (since 1.{field.since}: before, 0)" if field.since else ""
    return str(field.offset), _type(field), _name(field), _feeds(field.column, layout), meaning.strip()


def _unknown(field: Field) -> str:
    if field.unknown is None:
        return ""
    if field.unknown == NONE:
        return "or none"
    return f"{_LEAST.get(field.unknown, field.unknown)} unknown"


def _name(field: Field) -> str:
    return "" if field.reserved else f"`{field.name}`"


def _type(field: Field) -> str:
    if field.reserved:
        return f"{field.size} bytes" if field.size > 1 else "u8"
    return f"{field.type}[{field.count}]" if field.count > 1 else field.type


def _feeds(column: str | None, layout: Layout) -> str:
    return "" if column is None else f"`{column}`" if "." in column else f"`{layout.table}.{column}`"


def _encoding(encoding: str) -> str:
    known = {"utf8": "UTF-8", "bytes": "", "hex": "in the table as lower-case hex"}
    return known.get(encoding, f"characters of `{encoding}` bytes each")


def _table(table: TableSpec) -> str:
    sort = ", ".join(f"`{name}`" for name in table.sort)
    about = [table.doc]
    about += [f"Since 1.{table.since}."] if table.since else []
    about += [f"Sorted by {sort} over the whole file."] if sort else []
    about += [f"Recorded if `parameters.{table.recorded_if}` is true."] if table.recorded_if else []
    head = ("column", "type", "null", "unit", "refers to", "meaning")
    columns = _markdown(head, [_column(column) for column in table.columns])
    return f"### {table.name}\n\n{textwrap.fill(' '.join(about), 120)}\n\n{columns}"


def _column(column: ColumnSpec) -> tuple[str, ...]:
    target = f"`{column.references}`" if column.references else f"enum `{column.enum}`" if column.enum else ""
    least = "" if column.least is None else f"; at least {column.least}"
    since = f" (since 1.{column.since})" if column.since else ""
    null = "yes" if column.nullable else "no"
    return f"`{column.name}`", column.type, null, column.unit or "", target, column.doc + least + since


def _enumeration(name: str, values: Sequence[EnumValue]) -> str:
    rows = [(str(number), f"`{value.name}`", value.doc) for number, value in enumerate(values)]
    return f"### Enumeration `{name}`\n\n" + _markdown(("value", "name", "meaning"), rows)


def _loss(loss: LossSpec) -> tuple[str, ...]:
    lasting = "yes" if loss.lasting else ""
    return str(loss.index), f"`{loss.name}`", loss.severity, loss.of, lasting, loss.doc, loss.advice


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(line)} |\n" for line in (head, *rows)]
    return lines[0] + f"|{'---|' * len(head)}\n" + "".join(lines[1:])
