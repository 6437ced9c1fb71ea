"""Run a program with the recorder of a given build: ``armed.py BUILD SPOOL SCRIPT ARGS...``, at an interval of 1 ms."""

import importlib
import sys

build, spool, script = sys.argv[1:4]
sys.path.insert(0, build)
native = importlib.import_module("_native")
settings = {"interval_ns": 1_000_000, "waits": True, "paused": False, "segment_size": 1 << 20}
native.arm(spool=spool, **settings, memory=False, memory_threshold=0, children=True, native_depth=64, redundancy=0)
sys.argv = sys.argv[3:]
with open(script, encoding="utf-8") as file:
    source = file.read()
exec(compile(source, script, "exec"), {"__name__": "__main__", "__file__": script})
