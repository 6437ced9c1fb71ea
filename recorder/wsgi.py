"""A middleware for WSGI applications (Flask, Django, any other): each request is a span by its route.

``app.wsgi_app = SpanMiddleware(app.wsgi_app)``, or ``application = SpanMiddleware(application)``. Where the program is
not recorded it only calls the application. Imported in the profiled process: it imports next to nothing itself.
"""

from __future__ import annotations

from tachograph.recorder.inprocess.named_spans import Span, is_recorded, route_of_path, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    Environment = dict[str, Any]
    Application = Callable[[Environment, Callable[..., Any]], Iterable[bytes]]


class SpanMiddleware:
    """Calls an application, each request within a span such as ``GET /users/{id}``, to the end of its body."""

    def __init__(self, app: Application) -> None:
        self.app = app

    def __call__(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve one request."""
        method = environ.get("REQUEST_METHOD", "")
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        request = span(f"{method} {route_of_path(path)}")
        if not is_recorded(request):
            return self.app(environ, start_response)
        request.__enter__()

        def start(*args: object, **kwargs: object) -> object:
            # Werkzeug leaves its request here, and Flask the rule that it has found, until the application returns.
            rule = getattr(getattr(environ.get("werkzeug.request"), "url_rule", None), "rule", None)
            if isinstance(rule, str):
                request.rename(f"{method} {rule}")
            return start_response(*args, **kwargs)

        body: Iterable[bytes] | None = None
        try:
            body = self.app(environ, start)
        finally:
            # Servers look at what these are: they must stay so.
            whole = isinstance(body, list | tuple) or type(body) is environ.get("wsgi.file_wrapper")
            if body is None or whole:
                request.__exit__(None, None, None)
        return body if whole else _Body(body, request)


class _Body:
    """The body of a response, at whose end its request's span ends."""

    def __init__(self, parts: Iterable[bytes], request: Span) -> None:
        self._parts, self._request = parts, request
        self._iterator: Iterator[bytes] | None = None

    def __iter__(self) -> _Body:
        return self

    def __next__(self) -> bytes:
        if self._iterator is None:
            self._iterator = iter(self._parts)
        return next(self._iterator)

    def close(self) -> None:
        """The server is done with it."""
        try:
            close = getattr(self._parts, "close", None)
            if close is not None:
                close()
        finally:
            self._request.__exit__(None, None, None)
