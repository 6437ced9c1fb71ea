"""A service behind uvicorn, small enough for thousands of requests a second: ``python uvicorn_service.py PORT``."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

ITEMS = [{"id": number, "name": f"item {number}"} for number in range(20)]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def application(scope: dict[str, Any], _receive: object, send: Send) -> None:
    """A small answer, made of some objects, behind one await that takes its turn in the loop."""
    await asyncio.sleep(0)
    number = int(scope["path"].rpartition("/")[2])
    body = json.dumps([{**item, "seen": number} for item in ITEMS if item["id"] != number]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


uvicorn.run(application, port=int(sys.argv[1]), lifespan="off", access_log=False, log_level="error")
