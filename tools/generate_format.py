"""Makes what follows from format-spec/tables.toml: ``python tools/generate_format.py [--check]``.

Without ``--check`` the files are written; with it, nothing is, and the exit status is 1 if one is out of date.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tachograph.format import ColumnSpec, EnumValue, LossSpec, Specification, TableSpec, load_specification

ROOT = Path(__file__).resolve().parents[1]
SPEC_MD = ROOT / "format-spec" / "SPEC.md"
_BLOCK = re.compile(r"(?<=<!-- generated: )(?P<name>[^\n]*?)(?P<head> -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)


def main() -> int:
    """Write the files, or say which are out of date."""
    parser = argparse.ArgumentParser(description="Makes what follows from format-spec/tables.toml.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    check = parser.parse_args().check
    stale = [path for path, text in generated(load_specification()).items() if _read(path) != text]
    for path in stale:
        print(path.relative_to(ROOT))
    if not check:
        for path, text in generated(load_specification()).items():
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def generated(spec: Specification) -> dict[Path, str]:
    """The generated files and their texts."""
    return {SPEC_MD: filled(_read(SPEC_MD), blocks(spec))}


def filled(text: str, content: Mapping[str, str]) -> str:
    """A document with the content of its generated blocks replaced.

    Errors:
        KeyError: it has a block that is not generated.
    """
    return _BLOCK.sub(lambda block: block["name"] + block["head"] + content[block["name"]], text)


def blocks(spec: Specification) -> dict[str, str]:
    """The generated blocks of SPEC.md by name."""
    losses = ("counter", "loss", "severity", "process", "lasting", "meaning", "advice")
    return {
        "tables": "\n".join(_table(table) for table in spec.tables.values()),
        "enumerations": "\n".join(_enumeration(name, values) for name, values in spec.enums.items()),
        "losses": _markdown(losses, [_loss(loss) for loss in spec.losses]),
    }


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


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
