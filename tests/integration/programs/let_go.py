"""Runs another program when it is let go: ``let_go.py PROGRAM ARGUMENT...`` waits for a file named ``go``.

It says ``ready`` first, so that whatever the program does may be done while it is attached to.
"""

import os
import sys
import time

print("ready", flush=True)
end = time.monotonic() + 60
while not os.path.exists("go") and time.monotonic() < end:
    time.sleep(0.01)
del sys.argv[0]
with open(sys.argv[0], encoding="utf-8") as file:
    text = file.read()
exec(compile(text, sys.argv[0], "exec"))
