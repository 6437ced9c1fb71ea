"""What watching calls is measured on: the ten programs of table 1, and nine that do next to nothing but call."""

import importlib
from collections.abc import Callable

CATALOGUES = ("suite", "small_calls")
"""Modules beside this one."""

PROGRAMS: dict[str, Callable[[], Callable[[], object]]] = {
    name: prepare for module in CATALOGUES for name, prepare in importlib.import_module(module).PROGRAMS.items()
}
