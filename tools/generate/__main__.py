"""Makes what follows from tables.toml, records.toml, options and settings of ``record``, and the supported CPythons.

``python -m tools.generate [--check]``, in the root folder. Without ``--check`` the files are written; with it, nothing
is, and the exit status is 1 if one of them is out of date.
They are checked in, so that a build, an editor and a reviewer need no generator, and nothing is parsed at run time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tachograph.format import Specification
from tachograph.format.schema import parse_specification

from . import compiled, cpp, markdown, options, python, settings, versions
from .layouts import Layouts, load_layouts

ROOT = Path(__file__).resolve().parents[2]
FORMAT = ROOT / "format-spec"
DOCUMENTS = tuple(FORMAT / name for name in ("SPEC.md", "SPOOL.md"))
CLI_MD = ROOT / "docs" / "reference" / "cli.md"
INSIDE_MD = ROOT / "docs" / "how-to" / "record-from-inside.md"


def main() -> int:
    """Write the files, or say which are out of date."""
    parser = argparse.ArgumentParser(prog="tools.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a file is out of date")
    check = parser.parse_args().check
    stale = {path: text for path, text in generated().items() if _read(path) != text}
    for path, text in stale.items():
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def generated() -> dict[Path, str]:
    """The generated files and their texts, from the TOML files alone: what was generated before may be out of date."""
    tables = _read(FORMAT / "tables.toml")
    spec = parse_specification(tables)
    layouts = layouts_of(spec)
    return {
        FORMAT / "tables.json": compiled.document(tables),
        FORMAT / "records.json": compiled.layouts(layouts),
        **{path: markdown.filled(_read(path), markdown.blocks(spec, layouts, _read(path))) for path in DOCUMENTS},
        CLI_MD: markdown.filled(_read(CLI_MD), {"options of record": options.table()}),
        INSIDE_MD: markdown.filled(_read(INSIDE_MD), {"options from inside": options.from_inside()}),
        FORMAT / "version.py": _python(python.version(spec)),
        FORMAT / "enumerations.py": _python(python.enumerations(spec)),
        FORMAT / "spool" / "layout.py": _python(python.layout(spec, layouts)),
        ROOT / "recorder" / "inprocess" / "spool_layout.py": _python(python.in_process(spec, layouts)),
        ROOT / "native" / "include" / "tachograph" / "numbers.h": _cpp(cpp.numbers(spec)),
        ROOT / "native" / "shim" / "spool" / "layout.h": _cpp(cpp.layout(spec, layouts)),
        ROOT / "native" / "include" / "tachograph" / "options.h": _cpp(settings.options()),
        ROOT / "native" / "shim" / "spool" / "options_table.h": _cpp(settings.table()),
        **{ROOT / place: versions.written(_read(ROOT / place), place) for place in versions.PLACES},
    }


def layouts_of(spec: Specification) -> Layouts:
    """The layouts of the spool, for the tables of ``spec``."""
    columns = {name: [column.name for column in table.columns] for name, table in spec.tables.items()}
    return load_layouts(FORMAT / "records.toml", columns, [value.name for value in spec.enums["domain"]])


def _python(text: str) -> str:
    return _through(["ruff", "format", "--stdin-filename", str(ROOT / "generated.py"), "-"], text)


def _cpp(text: str) -> str:
    return _through(["clang-format", f"--assume-filename={ROOT / 'native' / 'generated.h'}"], text)


def _through(command: list[str], text: str) -> str:
    program = Path(sys.executable).parent / command[0]
    return subprocess.run([program, *command[1:]], input=text, text=True, check=True, capture_output=True).stdout


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
