"""Lays the source folders out under their import names, as symbolic links below build/source-tree.

The folders of this repository are not named like the packages they hold (`format-spec/` is `tachograph.format`); the
mapping is the table `[tool.scikit-build.wheel.force-include]` of pyproject.toml. Installing follows that table, and so
does this script, for tools that read sources and follow no import hook: mypy, editors, `PYTHONPATH=build/source-tree`.
"""

import shutil
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "source-tree"


def package_folders(pyproject: Path) -> dict[str, Path]:
    """Import package, as a path (`tachograph/format`), to the folder that holds its sources."""
    wheel = tomllib.loads(pyproject.read_text(encoding="utf-8"))["tool"]["scikit-build"]["wheel"]
    table: dict[str, str] = wheel["force-include"]
    return {package: pyproject.parent / folder for folder, package in table.items()}


def lay_out(folders: dict[str, Path], tree: Path) -> None:
    """Makes `tree`: one real folder per package, one link per file or sub-folder in it.

    A tree that is as it should be is left alone: another tool may be reading it.
    """
    links = {
        tree / package / source.name: source
        for package, folder in folders.items()
        for source in sorted(folder.iterdir())
        if source.name != "__pycache__"
    }
    if {path: path.readlink() for path in tree.rglob("*") if path.is_symlink()} == links:
        return
    if tree.exists():
        shutil.rmtree(tree)
    for path, source in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(source)


def main() -> int:
    """Prints the folder to put on a search path."""
    try:
        lay_out(package_folders(ROOT / "pyproject.toml"), TREE)
    except OSError as error:
        print(f"source_tree: cannot make {TREE}: {error}", file=sys.stderr)
        return 2
    print(TREE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
