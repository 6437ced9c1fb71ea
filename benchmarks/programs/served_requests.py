"""An asyncio server of HTTP under load, recorded and paused in turn, which says how many requests each turn served.

    tachograph record --no-children served_requests.py WORK SECONDS ANSWERS

WORK is `tasks` (a task for each request, as servers of ASGI have) or `spans` (the same, each request in a span by its
route). The load comes from another process, over CONNECTIONS connections that each send the next request when they have
an answer: the server is never idle, so what recording takes is missing from its throughput. Three turns make a
comparison: one way, the other way, and the first way again; which way comes first is drawn by lot. The file ANSWERS is
JSON: `throughput`, requests by second recorded over paused, one for each comparison; `cpu`, CPU time of the server's
process by request, recorded over paused; `rate`, requests by second of its CPU time while paused, and `served`.
"""

import asyncio
import json
import random
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tachograph import recorder
from tachograph.recorder.asgi import SpanMiddleware

CONNECTIONS = 32
TURN_S = 0.2
REQUEST = b"GET /items/17 HTTP/1.1\r\nhost: here\r\naccept: */*\r\n\r\n"
ITEMS = [{"id": number, "name": f"item {number}", "tags": ["a", "b"]} for number in range(130)]
"""So many that a processor serves some 5,000 requests a second."""

Scope = dict[str, Any]
Send = Callable[[Scope], Awaitable[None]]
Application = Callable[[Scope, Any, Send], Awaitable[None]]


async def application(scope: Scope, _receive: object, send: Send) -> None:
    """A small answer, made of some objects, behind one await that takes its turn in the loop."""
    await asyncio.sleep(0)
    number = int(scope["path"].rpartition("/")[2])
    body = json.dumps([{**item, "seen": number} for item in ITEMS if item["id"] != number]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


class Connection(asyncio.Protocol):
    """A connection; it makes a task of each request."""

    served = 0

    def __init__(self, app: Application) -> None:
        self._app = app
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where the answers go."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """One request; the client waits for the answer before it sends another."""
        method, path, _ = data.split(b" ", 2)
        scope = {"type": "http", "method": method.decode(), "path": path.decode()}
        self._task = asyncio.get_running_loop().create_task(self._answer(scope))

    async def _answer(self, scope: Scope) -> None:
        parts: list[bytes] = []

        async def send(message: Scope) -> None:
            if message["type"] == "http.response.start":
                parts.append(b"HTTP/1.1 200 OK\r\n")
                parts.extend(b"%s: %s\r\n" % header for header in message["headers"])
            else:
                self._transport.write(b"".join([*parts, b"\r\n", message["body"]]))

        await self._app(scope, None, send)
        Connection.served += 1


async def serve(app: Application, seconds: float) -> dict[str, Any]:
    """Serve for as long as it was told to, in turns."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(app), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    load = subprocess.Popen([sys.executable, __file__, "load", str(port)])
    throughput, cpu = [], []
    paused_cpu_s, paused = 0.0, 0

    async def turn(*, on: bool) -> tuple[int, float, float]:
        (recorder.resume if on else recorder.pause)()
        await asyncio.sleep(TURN_S / 10)
        served, wall, own = Connection.served, time.monotonic(), time.process_time()
        await asyncio.sleep(TURN_S)
        return Connection.served - served, time.monotonic() - wall, time.process_time() - own

    try:
        await asyncio.sleep(1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            first = random.random() < 0.5
            turns = [(on, *await turn(on=on)) for on in (first, not first, first)]
            sums = {
                on: [sum(each) for each in zip(*(rest for way, *rest in turns if way == on), strict=True)]
                for on in (True, False)
            }
            (served, wall, own), (bare, bare_wall, bare_own) = sums[True], sums[False]
            throughput.append(served / wall * bare_wall / bare)
            cpu.append(own / served * bare / bare_own)
            paused_cpu_s, paused = paused_cpu_s + bare_own, paused + int(bare)
    finally:
        load.kill()
        load.wait()
        server.close()
    return {"throughput": throughput, "cpu": cpu, "rate": paused / paused_cpu_s, "served": Connection.served}


def load(port: int) -> None:
    """The load, until this process is killed."""
    selector = selectors.DefaultSelector()
    for _ in range(CONNECTIONS):
        connection = socket.create_connection(("127.0.0.1", port))
        selector.register(connection, selectors.EVENT_READ, connection)
        connection.sendall(REQUEST)
    while True:
        for key, _ in selector.select():
            if not key.data.recv(1 << 16):
                return
            key.data.sendall(REQUEST)


if __name__ == "__main__":
    if sys.argv[1] == "load":
        load(int(sys.argv[2]))
    else:
        app = SpanMiddleware(application) if sys.argv[1] == "spans" else application
        answers = asyncio.run(serve(app, float(sys.argv[2])))
        Path(sys.argv[3]).write_text(json.dumps(answers), encoding="utf-8")
