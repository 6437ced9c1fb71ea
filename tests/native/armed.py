"""Run a program with the recorder of a given build: ``armed.py BUILD SPOOL SCRIPT ARGS...``, at an interval of 1 ms."""

import sys

build, spool, script = sys.argv[1:4]
sys.path.insert(0, build)
import _native

sys.path.pop(0)
_native.arm(spool, 1_000_000, True, False, 1 << 20)
sys.argv = sys.argv[3:]
with open(script, encoding="utf-8") as file:
    source = file.read()
exec(compile(source, script, "exec"), {"__name__": "__main__", "__file__": script})  # noqa: S102
