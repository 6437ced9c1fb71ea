"""Sends one request to a server over HTTP, with bounded time, bounded answers and no redirects.

- ``Address``: the URL, apart from the credentials in it.
- ``read_headers``: headers from the environment, ``NAME=VALUE,NAME=VALUE``, percent-encoded, as in OpenTelemetry's
  variables.
- Failures of a URL or a push are one line, in which secrets are masked.
"""

from __future__ import annotations

import base64
import http.client
import math
import random
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import IO
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tachograph.format import FormatError

from ...recording.text import printable

_PLAIN = ("name", "from", "until", "format", "spyName", "sampleRate", "units", "aggregationType")
"""Values of a query that are no secrets: the parameters of Pyroscope's."""


class PushError(FormatError):
    """A push that did not succeed, in one line without credentials."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to send something. ``authorization`` and ``query`` may hold secrets: neither is shown."""

    scheme: str
    host: str
    """With the port, where one was given."""
    path: str
    query: tuple[tuple[str, str], ...]
    authorization: str | None
    secrets: tuple[str, ...]

    @property
    def url(self) -> str:
        """The URL of requests, without user and password."""
        return urlunsplit((self.scheme, self.host, self.path, urlencode(self.query), ""))

    @property
    def shown(self) -> str:
        """The URL for messages."""
        return printable(f"{self.scheme}://{self.host}{self.path}", 300)

    def at(self, path: str) -> Address:
        """The same server, at another path."""
        return replace(self, path=path)

    def asking(self, **values: str) -> Address:
        """With these values of the query where the URL has none of that name."""
        present = dict(self.query)
        return replace(
            self, query=(*self.query, *((key, value) for key, value in values.items() if key not in present))
        )


def parse_address(url: str) -> Address:
    """Takes a URL apart.

    Errors:
        PushError: it is not one of http or https.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _useless() from None
    if parts.scheme not in ("http", "https") or not host or any(not 32 < ord(letter) < 127 for letter in url):
        raise _useless()
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    secrets = [value for key, value in query if key not in _PLAIN]
    authorization = None
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        code = base64.b64encode(f"{user}:{password}".encode()).decode()
        authorization = f"Basic {code}"
        secrets += [password, code] if password else [user, code]
    shown = f"[{host}]" if ":" in host else host
    return Address(
        parts.scheme,
        shown if port is None else f"{shown}:{port}",
        parts.path,
        query,
        authorization,
        tuple(secrets),
    )


def _useless() -> PushError:
    # The URL itself is not shown: it may hold a password.
    return PushError("--push wants a URL such as http://localhost:4318, with http or https and a host")


TIMEOUT_S = 10.0
"""For the connection, for each part that is sent, and for the whole answer."""

ATTEMPTS = 3
RETRYABLE = frozenset({429, 502, 503, 504})
LONGEST_WAIT_S = 30.0
"""Longest pause: if a server asks for more, there is no further attempt."""

MAX_ANSWER = 4 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a server."""

    status: int
    content_type: str
    body: bytes
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a server. ``secrets`` are masked in the server's answer; ``shown`` is the URL for messages."""

    url: str
    shown: str
    headers: Mapping[str, str]
    body: bytes
    explain: Callable[[Answer], str] = field(repr=False)
    """The server's own words, of an answer that refuses."""
    remarks: Callable[[Answer], list[str]] = field(repr=False)
    """Remarks from an answer that accepts the request."""
    secrets: tuple[str, ...] = field(default=(), repr=False)


def send(request: Request, timeout_s: float = TIMEOUT_S, sleep: Callable[[float], None] = time.sleep) -> Answer:
    """Posts a request; one that is refused for a while is sent again.

    Errors:
        PushError: the server cannot be reached, or does not take it.
    """
    for attempt in range(1, ATTEMPTS + 1):
        answer = _post(request, timeout_s)
        if 200 <= answer.status < 300:
            return answer
        wait = _wait_s(answer, attempt)
        if answer.status not in RETRYABLE or attempt == ATTEMPTS or wait > LONGEST_WAIT_S:
            break
        sleep(wait)
    raise PushError(_refusal(request, answer, attempt))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Takes a redirect as an answer: the request, and its credentials, are for one server only."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> None:
        return None


def _post(request: Request, timeout_s: float) -> Answer:
    opener = urllib.request.build_opener(_NoRedirect)
    http_request = urllib.request.Request(request.url, request.body, dict(request.headers), method="POST")
    try:
        with opener.open(http_request, timeout=timeout_s) as response:
            return _read(response, response.status, timeout_s, request)
    except urllib.error.HTTPError as error:
        with error:
            return _read(error, error.code, timeout_s, request)
    except urllib.error.URLError as error:
        raise _unreachable(request, error.reason, timeout_s) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unreachable(request, error, timeout_s) from None


def _read(
    response: http.client.HTTPResponse | urllib.error.HTTPError, status: int, timeout_s: float, request: Request
) -> Answer:
    """The answer, in as much time as a server has that answers at all."""
    parts, length, deadline = [], 0, time.monotonic() + timeout_s
    while part := response.read1(1 << 16):
        parts.append(part)
        length += len(part)
        if length > MAX_ANSWER:
            raise PushError(f"{request.shown} answered {status} and more than {MAX_ANSWER >> 20} MiB")
        if time.monotonic() > deadline:
            raise TimeoutError
    headers = response.headers
    return Answer(status, headers.get("Content-Type", ""), b"".join(parts), headers.get("Retry-After"))


def _unreachable(request: Request, reason: object, timeout_s: float) -> PushError:
    if isinstance(reason, TimeoutError):
        why = f"no answer within {timeout_s:g} s"
    elif isinstance(reason, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted: {reason.verify_message}"
    elif isinstance(reason, ssl.SSLError):
        why = "it does not speak TLS as we do"
    elif isinstance(reason, OSError) and reason.strerror:
        why = reason.strerror
    else:
        why = "it does not speak HTTP"
    return PushError(f"cannot push to {request.shown}: {masked(request, why)}")


def _refusal(request: Request, answer: Answer, attempts: int) -> str:
    try:
        phrase = f" {HTTPStatus(answer.status).phrase}"
    except ValueError:
        phrase = ""
    times = f", {attempts} times" if attempts > 1 else ""
    words = masked(request, request.explain(answer))
    if 300 <= answer.status < 400:
        words = "name the URL that it redirects to"
    elif answer.status in (401, 403) and not words:
        words = "credentials are missing or wrong"
    return f"{request.shown} answered {answer.status}{phrase}{times}" + (f": {words}" if words else "")


def masked(request: Request, text: str) -> str:
    """A server's message in one line, with secrets masked."""
    for secret in sorted(request.secrets, key=len, reverse=True):
        if secret:
            text = text.replace(secret, "***")
    return printable(" ".join(text.split()), 300)


def _wait_s(answer: Answer, attempt: int) -> float:
    """Seconds until the next attempt: as the server asks for, or twice as long each time."""
    retry_after = answer.retry_after or ""
    if retry_after.strip().isdecimal():
        return float(retry_after) if len(retry_after) < 10 else math.inf
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return float(2 ** (attempt - 1)) * random.uniform(0.75, 1.25)


OURS = "TACHOGRAPH_PUSH_HEADERS"
OTLP = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROFILES_HEADERS")
"""For OTLP only; the latter counts where both have a name."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\xff]*")


def read_headers(environment: Mapping[str, str], variables: Iterable[str]) -> dict[str, str]:
    """The headers of some variables, by names in small letters; later ones count.

    Errors:
        PushError: one is not of that form; values are in no message.
    """
    headers: dict[str, str] = {}
    for variable in variables:
        for number, entry in enumerate(environment.get(variable, "").split(","), 1):
            if not entry.strip():
                continue
            name, equals, value = entry.partition("=")
            name, value = unquote(name.strip()), unquote(value.strip(), "latin-1")
            if not (equals and _NAME.fullmatch(name) and _VALUE.fullmatch(value)):
                raise PushError(f"entry {number} of {variable} is not NAME=VALUE of a header")
            headers[name.lower()] = value
    return headers
