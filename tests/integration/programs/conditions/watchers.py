"""faulthandler's own timer, and everything through which a program watches itself, with what each of them saw."""

import faulthandler
import sys
import tempfile
import threading
import time
from types import FrameType
from typing import Any


def work(n: int) -> int:
    total = 0
    for i in range(n):
        total += step(i)
    return total


def step(i: int) -> int:
    return abs(i) + len([i])


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


with tempfile.TemporaryFile("w+") as file:
    faulthandler.dump_traceback_later(0.05, repeat=True, file=file)
    burn(0.3)
    faulthandler.cancel_dump_traceback_later()
    file.seek(0)
    text = file.read()
print("Timeout (0:00:00.050000)!" in text, "in burn" in text, "tachograph" in text)

events: list[tuple[str, str]] = []
sys.setprofile(lambda frame, event, arg: events.append((event, frame.f_code.co_name)))
work(2000)
sys.setprofile(None)
print(len(events), sorted(set(events)))
lines: list[int] = []


def trace(frame: FrameType, event: str, arg: object) -> Any:
    lines.append(frame.f_lineno)
    return trace


sys.settrace(trace)
work(2000)
sys.settrace(None)
print(len(lines), sum(lines))
seen: list[str] = []
threading.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_name))
thread = threading.Thread(target=work, args=(100,))
thread.start()
thread.join()
threading.setprofile(None)
print(seen.count("step"), sys.getprofile(), sys.gettrace(), threading.getprofile())
if hasattr(sys, "monitoring"):
    monitoring = sys.monitoring
    print([monitoring.get_tool(tool) for tool in range(6)])
    counts = dict.fromkeys(range(6), 0)
    for tool in range(6):
        monitoring.use_tool_id(tool, f"tool {tool}")

        def callback(*_: object, tool: int = tool) -> None:
            counts[tool] += 1

        monitoring.register_callback(tool, monitoring.events.PY_START, callback)
        monitoring.set_events(tool, monitoring.events.PY_START)
    work(2000)
    for tool in range(6):
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    print(counts)
burn(0.1)
