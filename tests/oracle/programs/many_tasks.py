"""A name for each task, as for each request of a server: more names than are kept. Each of them blocks for a while."""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path

THREADS, TASKS, SECONDS = 30, 50, 0.04


async def request() -> None:
    time.sleep(SECONDS)


async def serve(thread: int) -> None:
    for number in range(TASKS):
        await asyncio.create_task(request(), name=f"request {thread}/{number}")


threads = [threading.Thread(target=lambda n=n: asyncio.run(serve(n))) for n in range(THREADS)]
for each in threads:
    each.start()
for each in threads:
    each.join()
facts = {"spent": {}, "tasks": THREADS * TASKS, "blocked_s": THREADS * TASKS * SECONDS}
Path(sys.argv[1]).write_text(json.dumps(facts), encoding="utf-8")
