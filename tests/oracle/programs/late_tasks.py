"""Named tasks of an asyncio that is imported after many other modules, in a fork, and imported anew."""

import importlib
import json
import os
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROUNDS = ("first", "child", "parent", "again")


def burn(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(100))


def generate() -> Iterator[None]:
    burn(0.02)
    yield


def other_modules() -> None:
    """Modules that come and go, and samples of generators meanwhile."""
    for number in range(20):
        for place in range(100):
            sys.modules[f"other{number}_{place}"] = types.ModuleType("other")
        list(generate())
    for name in [name for name in sys.modules if name.startswith("other") and not name.endswith("7")]:
        del sys.modules[name]
    list(generate())


def run(name: str) -> None:
    asyncio: Any = importlib.import_module("asyncio")

    async def work() -> None:
        for _ in range(10):
            burn(0.02)
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.create_task(work(), name=name)

    asyncio.run(main())


other_modules()
run("first")
child = os.fork()
run("child" if child == 0 else "parent")
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
for each in [name for name in sys.modules if name.startswith(("asyncio", "_asyncio"))]:
    del sys.modules[each]
run("again")
Path(sys.argv[1]).write_text(json.dumps({"spent": {}, "rounds": ROUNDS, "each_s": 0.2}), encoding="utf-8")
