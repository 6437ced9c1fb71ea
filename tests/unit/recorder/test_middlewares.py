"""Middlewares: requests are spans by their routes, and applications are as they would be without."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tachograph.recorder import asgi, wsgi
from tachograph.recorder.inprocess.named_spans import route_of_path
from tachograph.recorder.inprocess.open_spans import RecordedSpan

Written = list[tuple[str, str, int, int, int, int]]
Scope = MutableMapping[str, Any]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Spans as in a recorded program."""
    made: Written = []

    def span(name: str) -> RecordedSpan:
        return RecordedSpan(lambda *row: made.append(row), name, {})

    monkeypatch.setattr(asgi, "span", span)
    monkeypatch.setattr(wsgi, "span", span)
    return made


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", "/"),
        ("/users", "/users"),
        ("/users/17/orders/b2c3", "/users/{}/orders/{}"),
        ("", ""),
        (None, ""),
    ],
)
def test_parts_of_a_path_with_digits_are_ids(path: object, route: str) -> None:
    assert route_of_path(path) == route


class Route:
    path = "/users/{id}"


def serve(app: Callable[..., Any], scope: Scope, send: Callable[..., Any] | None = None) -> None:
    """Serve one connection, in a thread: tests with a browser leave an event loop running in this one."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, app(scope, None, send)).result()


def test_asgi_requests_are_spans_by_route(written: Written) -> None:
    async def app(scope: Scope, receive: object, send: object) -> None:
        if scope["path"] == "/api/users/3":
            scope["root_path"], scope["route"] = "/api", Route()
        if scope["path"] == "/fails":
            raise KeyError

    wrapped = asgi.SpanMiddleware(app)
    serve(wrapped, {"type": "http", "method": "GET", "path": "/api/users/3"})
    serve(wrapped, {"type": "http", "method": "POST", "path": "/raw/3"})
    serve(wrapped, {"type": "websocket", "path": "/live"})
    with pytest.raises(KeyError):
        serve(wrapped, {"type": "http", "method": "GET", "path": "/fails"})
    serve(wrapped, {"type": "lifespan", "path": "/"})
    assert [name for name, *_ in written] == ["GET /api/users/{id}", "POST /raw/{}", "WEBSOCKET /live", "GET /fails"]


class Body:
    """A body that wants to be closed."""

    closed = 0

    def __iter__(self) -> Iterator[bytes]:
        yield b"one"
        yield b"two"

    def close(self) -> None:
        self.closed += 1


def test_wsgi_bodies_stay_as_they_are_and_are_in_the_span(written: Written) -> None:
    streamed, listed = Body(), [b"all"]
    bodies: dict[str, Iterable[bytes]] = {"/streamed": streamed, "/listed": listed}

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("200 OK", [])
        return bodies[environ["PATH_INFO"]]

    wrapped = wsgi.SpanMiddleware(app)
    started: list[tuple[object, ...]] = []
    body = wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/streamed"}, lambda *args: started.append(args))
    assert started == [("200 OK", [])]
    assert not written
    assert list(body) == [b"one", b"two"]
    body.close()  # type: ignore[attr-defined]
    assert streamed.closed == 1
    assert [name for name, *_ in written] == ["GET /streamed"]
    assert wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/listed"}, lambda *args: None) is listed
    with pytest.raises(KeyError):
        wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/4"}, lambda *args: None)
    assert [name for name, *_ in written] == ["GET /streamed", "GET /listed", "GET /{}"]


def test_flask_tells_its_rule(written: Written) -> None:
    flask = pytest.importorskip("flask")
    app = flask.Flask("service")
    app.route("/users/<int:number>")(lambda number: f"user {number}")
    app.wsgi_app = wsgi.SpanMiddleware(app.wsgi_app)
    with app.test_client().get("/users/17") as response:
        assert response.data == b"user 17"
    assert [name for name, *_ in written] == ["GET /users/<int:number>"]


def test_starlette_tells_its_route(written: Written) -> None:
    pytest.importorskip("starlette")
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    async def user(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"user {request.path_params['number']}")

    app = Starlette(routes=[Mount("/api", routes=[Route("/users/{number}", user)])])
    app.add_middleware(asgi.SpanMiddleware)
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/api/users/17", "headers": [], "query_string": b""}
    serve(app, scope, send)
    assert sent[1]["body"] == b"user 17"
    assert [name for name, *_ in written] == ["GET /api/users/{number}"]


def test_without_a_recording_the_application_is_called_as_it_is() -> None:
    given: list[object] = []

    def app(environ: object, start: object) -> list[bytes]:
        given.append(start)
        return []

    wrapped = wsgi.SpanMiddleware(app)

    def start_response(*args: object) -> None:
        pass

    assert wrapped({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, start_response) == []
    assert given == [start_response]
