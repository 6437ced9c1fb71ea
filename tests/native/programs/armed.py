"""Run a program with the recorder of a given build, as the environment says: ``armed.py BUILD SCRIPT ARGS...``."""

import importlib
import sys

build, script = sys.argv[1:3]
sys.path.insert(0, build)
native = importlib.import_module("_native")
native.arm()
sys.argv = sys.argv[2:]
with open(script, encoding="utf-8") as file:
    source = file.read()
exec(compile(source, script, "exec"), {"__name__": "__main__", "__file__": script})
