"""A server on this machine that keeps what it is sent, and answers what it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Received:
    """One request. Names of headers are in small letters."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Server:
    """Its replies are given in turn, the last one again and again."""

    url: str
    replies: list[Reply]
    received: list[Received] = field(default_factory=list)


@contextmanager
def server(*replies: Reply) -> Iterator[Server]:
    """Runs a server until the end of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.keep()

        def do_GET(self) -> None:
            self.keep()

        def keep(self) -> None:
            parts = urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            answer = state.replies[min(len(state.received), len(state.replies) - 1)]
            state.received.append(Received(self.command, parts.path, parse_qs(parts.query), headers, body))
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(answer.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # the name is the base class's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        state = Server(f"http://127.0.0.1:{listening.server_address[1]}", [*replies] or [Reply()])
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield state
        finally:
            listening.shutdown()
            thread.join()
