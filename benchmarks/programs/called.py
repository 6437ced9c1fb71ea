"""What watching calls is measured on: table 1, nine programs that do next to nothing but call, and the paper's."""

import importlib
from collections.abc import Callable

CATALOGUES = ("suite", "small_calls", "flame_html")
"""Modules beside this one."""

PROGRAMS: dict[str, Callable[[], Callable[[], object]]] = {
    name: prepare for module in CATALOGUES for name, prepare in importlib.import_module(module).PROGRAMS.items()
}
