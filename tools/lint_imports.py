"""Checks which package imports which; exit status 1 and a line for each import that breaks a contract.

The contracts stand in pyproject.toml, ``[tool.importlinter]``. One more is checked here, because it names what is
allowed and not what is forbidden: modules that run inside the profiled program import the standard library, each other
and the extension module, and nothing else. Usage: ``lint_imports.py [FOLDER]``.

The sources are read below ``src``: it does not matter whether, and how, the package is installed.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).resolve().parent.parent

IN_PROCESS = "tachograph.recorder.inprocess"
CLOCK = "tachograph.recorder.clock"
"""Read in the program as well as in the command."""
ALLOWED = (IN_PROCESS, CLOCK, "tachograph.recorder._native", "tachograph.recorder.loaded")
ABOVE = ("tachograph", "tachograph.recorder")
"""Packages whose ``__init__`` runs before a module of IN_PROCESS does."""
ON_CALL = ("tachograph.recorder.attached", "tachograph.recorder.problems")
"""What these may import when a function of theirs is called: a program then records itself."""


def in_process_modules(tree: Path) -> dict[str, Path]:
    """The modules that run inside the profiled program, by name, and their files below ``tree``."""
    folder = tree.joinpath(*IN_PROCESS.split("."))
    found = {name: tree.joinpath(*name.split("."), "__init__.py") for name in (*ABOVE, IN_PROCESS)}
    others = [path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"]
    found[CLOCK] = tree.joinpath(*CLOCK.split(".")).with_suffix(".py")
    return found | {f"{IN_PROCESS}.{path.stem}": path for path in others}


def imported(text: str, module: str, *, package: bool) -> Iterator[tuple[int, str]]:
    """Lines and absolute names of all that a module imports, inside functions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + package] if node.level else []
            start = ".".join([*above, *filter(None, [node.module])])
            # ``from package import module`` names a module as well as ``from module import name`` does.
            yield from ((node.lineno, f"{start}.{name.name}") for name in node.names)


def foreign_imports(modules: Mapping[str, Path]) -> Iterator[str]:
    """One line for each import that the profiled program must not be made to do."""
    for module, path in modules.items():
        for line, name in imported(path.read_text(encoding="utf-8"), module, package=path.name == "__init__.py"):
            allowed_here = (*ALLOWED, *ON_CALL) if module in ABOVE else ALLOWED
            inside = any(name == allowed or name.startswith(f"{allowed}.") for allowed in allowed_here)
            if name.partition(".")[0] not in sys.stdlib_module_names and not inside:
                yield f"{module}:{line}: imports {name}, but runs inside the profiled program"


def main(arguments: Sequence[str]) -> int:
    """Checks the sources below the folder of ``arguments``, or this repository; the exit status."""
    root = Path(arguments[0]) if arguments else ROOT
    tree = root / "src"
    wrong = list(foreign_imports(in_process_modules(tree)))
    for each in wrong:
        print(each, file=sys.stderr)
    # An editable install answers for the package before sys.path does, and knows only one of its folders.
    sys.meta_path.insert(0, importlib.machinery.PathFinder)
    sys.path.insert(0, str(tree))
    kept = lint_imports(config_filename=str(root / "pyproject.toml"), no_cache=True) == EXIT_STATUS_SUCCESS
    return 0 if kept and not wrong else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
