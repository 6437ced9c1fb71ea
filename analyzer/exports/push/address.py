"""The URL of a server, apart from the credentials in it, and what is wrong with it or with a push."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
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
        """The URL to be asked for, without user and password."""
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
        known = dict(self.query)
        return replace(self, query=(*self.query, *((key, value) for key, value in values.items() if key not in known)))


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
