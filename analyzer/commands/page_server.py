"""A server of pages for the browser of one user on this machine.

It listens on 127.0.0.1 alone. Other users of the machine can connect to that, and so can any page in the browser, so
each address begins with a secret, and requests have to name this server as their host (no DNS name that was made to
point here). It answers GET alone, and only from pages that are made for the request: it opens no file by a path in an
address. The browser is started with an address that works once, because command lines are public.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol
from urllib.parse import parse_qs, unquote, urlsplit

HOST = "127.0.0.1"
IDLE_S = 30
"""Seconds that a connection may be silent."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of each answer: no other site may read or frame it, and no address with a secret goes to another site."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer."""

    text: str
    kind: str = "text/html"
    status: HTTPStatus = HTTPStatus.OK


class PageSource(Protocol):
    """Makes the pages."""

    def page(self, names: tuple[str, ...], options: Mapping[str, str]) -> Page | None:
        """The page at an address below the secret, whose parts are ``names``; None if there is none."""
        ...


class PageServer(ThreadingHTTPServer):
    """Serves the pages of a source on a port, or on any free one (0).

    Errors:
        OSError: the port cannot be had.
    """

    daemon_threads = True
    block_on_close = False
    """An answer that takes long does not hold up the end."""

    def __init__(self, source: PageSource, port: int) -> None:
        self.source = source
        self.token = secrets.token_urlsafe(24)
        self._once: str | None = None
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which a browser may ask for this server."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"

    @property
    def url(self) -> str:
        """The address of the first page, with the secret."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    def one_time_url(self) -> str:
        """An address that leads to ``url`` once."""
        with self._lock:
            self._once = secrets.token_urlsafe(24)
            return f"http://{HOST}:{self.server_port}/once/{self._once}"

    def use_up(self, secret: str) -> bool:
        """True if ``secret`` is that of the address that works once; from now on it is not."""
        with self._lock:
            if self._once is None or not _same(secret, self._once):
                return False
            self._once = None
            return True

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle of an answer is no error of ours."""
        import sys

        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "tachograph"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain; charset=utf-8"

    def parse_request(self) -> bool:
        """Reads the request; anything but GET, from an address of ours, is refused."""
        if not super().parse_request():
            return False
        if self.command != "GET":
            return self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST)
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            return self._refuse(HTTPStatus.BAD_REQUEST)
        return True

    def do_GET(self) -> None:  # http.server calls it so
        """Sends the page."""
        address = urlsplit(self.path)
        # Split before the escapes are resolved: a name may have a slash.
        secret, *rest = [unquote(part, errors="surrogateescape") for part in address.path.lstrip("/").split("/")]
        if secret == "once" and len(rest) == 1 and self.server.use_up(rest[0]):
            self.send_response(HTTPStatus.SEE_OTHER)
            self.send_header("Location", f"/{self.server.token}/")
            self._send(b"", "text/plain")
            return
        options = {name: values[-1] for name, values in parse_qs(address.query).items()}
        page = self.server.source.page(tuple(rest), options) if _same(secret, self.server.token) and rest else None
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(page.status)
        self._send(page.text.encode("utf-8", "replace"), page.kind)

    def end_headers(self) -> None:
        """Adds the headers of every answer."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """The terminal is the user's."""

    def _send(self, data: bytes, kind: str) -> None:
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: HTTPStatus) -> bool:
        self.close_connection = True
        self.send_error(status)
        return False


def _same(one: str, other: str) -> bool:
    """True if two secrets are the same; takes as long wherever they differ."""
    return secrets.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
