"""Runs at interpreter start in an editable install, from CPython 3.15 on: the same as ``tachograph.pth``, later.

There an editable install's own code, which finds the checkout's modules, is in a ``.start`` file (PEP 829). Those run
after all ``.pth`` files, in the order of their names, so that ``tachograph.pth`` would find no tachograph. Wheels have
a ``.pth`` only: a ``.start`` file costs each interpreter 10 ms of imports (pkgutil, re), recorded or not.
"""

import os


def at_start() -> None:
    """Run the line of ``tachograph.pth``, for which ``site`` has passed over the file itself."""
    with open(os.path.join(os.path.dirname(__file__), "tachograph.pth"), encoding="utf-8") as file:
        line = file.read()
    exec(line, {})  # noqa: S102  # our own file, run as `site` runs it
