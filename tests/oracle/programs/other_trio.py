"""A library of tasks with the name of one that is known, and nothing else of it."""

import sys
import time
import types
from pathlib import Path

sys.modules["trio"] = types.ModuleType("trio")
until = time.monotonic() + 6
while time.monotonic() < until:
    time.sleep(0.01)
Path(sys.argv[1]).write_text("{}")
