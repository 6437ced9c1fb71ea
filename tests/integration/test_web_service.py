"""Real servers with the middlewares, under load: each route has its requests, CPU time and awaiting."""

from __future__ import annotations

import http.client
import importlib.util
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration import support
from tachograph.analyzer import Question, Recording, build_profile

pytestmark = [pytest.mark.native, pytest.mark.slow]

WORK = """
import time

def burn():
    until = time.thread_time() + 0.004
    while time.thread_time() < until:
        pass
"""
ASGI = (
    WORK
    + """
import asyncio
from tachograph.recorder.asgi import SpanMiddleware

async def service(scope, receive, send):
    if scope["path"].startswith("/burn"):
        burn()
    else:
        await asyncio.sleep(0.02)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})

app = SpanMiddleware(service)
"""
)
WSGI = (
    WORK
    + """
from tachograph.recorder.wsgi import SpanMiddleware

def service(environ, start_response):
    if environ["PATH_INFO"].startswith("/burn"):
        burn()
    else:
        time.sleep(0.02)
    start_response("200 OK", [("Content-Length", "4")])
    return [b"done"]

app = SpanMiddleware(service)
"""
)
SERVERS = {
    "uvicorn": (ASGI, ["uvicorn", "--lifespan", "off", "--log-level", "error", "--port", "{port}", "service:app"]),
    "gunicorn": (WSGI, ["gunicorn", "--threads", "4", "--bind", "127.0.0.1:{port}", "service:app"]),
}
REQUESTS = 400


def load(port: int) -> list[int]:
    def some(_: int) -> list[int]:
        connection, found = http.client.HTTPConnection("127.0.0.1", port), []
        for number in range(REQUESTS // 8):
            connection.request("GET", f"/burn/{number}" if number % 2 else "/sleep")
            response = connection.getresponse()
            response.read()
            found.append(response.status)
        return found

    with ThreadPoolExecutor(8) as pool:
        return [status for statuses in pool.map(some, range(8)) for status in statuses]


def until_served(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the server did not begin")


@pytest.mark.parametrize("server", SERVERS)
def test_routes_of_a_real_server(server: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(server) is None:
        pytest.skip(f"{server} is not installed")
    source, arguments = SERVERS[server]
    (tmp_path / "service.py").write_text(source, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tachograph", "record", "--quiet", "--output", "run.tacho", "-m"]
    with subprocess.Popen(
        [*command, *(each.format(port=port) for each in arguments)], cwd=tmp_path, env=support.environment()
    ) as process:
        try:
            until_served(port)
            assert load(port) == [200] * REQUESTS
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    with Recording(tmp_path / "run.tacho") as recording:
        profile = build_profile(recording, Question())
    frame = profile.spans
    assert frame is not None
    spans = frame.set_index("name")
    assert spans["count"][["GET /burn/{}", "GET /sleep"]].tolist() == [REQUESTS // 2] * 2
    # Each took 4 ms of its thread's own clock, and a little for the rest of it.
    assert spans.cpu_s["GET /burn/{}"] == pytest.approx(0.004 * REQUESTS / 2, rel=0.3)
    assert spans.cpu_s["GET /sleep"] < 0.2 * spans.cpu_s["GET /burn/{}"]
    slept = spans.await_s if server == "uvicorn" else spans.wait_s
    assert slept["GET /sleep"] > 0.8 * 0.02 * REQUESTS / 2
    assert spans.p50_s["GET /sleep"] >= 0.02
    if server == "uvicorn":
        # The server makes all tasks of a coroutine of its own; their root is that of the program.
        tasks = profile.tasks.query("kind == 'task'").set_index("function")
        assert tasks.cpu_s["service"] == pytest.approx(spans.cpu_s["GET /burn/{}"], rel=0.3)
        assert tasks.await_s["service"] == pytest.approx(spans.await_s["GET /sleep"], rel=0.3)
