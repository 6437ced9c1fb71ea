"""A middleware for ASGI applications (Starlette, FastAPI, Django): each request is a span by its route.

``app = SpanMiddleware(app)``, or ``app.add_middleware(SpanMiddleware)``. Where the program is not recorded it only
calls the application. Imported in the profiled process: it imports next to nothing itself.
"""

from __future__ import annotations

from tachograph.recorder.inprocess.named_spans import route_of_path, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any

    Scope = MutableMapping[str, Any]
    Application = Callable[..., Awaitable[None]]


class SpanMiddleware:
    """Calls an application, each request and each websocket within a span such as ``GET /users/{id}``."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        """Serve one connection."""
        if scope.get("type") not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        method, root = scope.get("method", "WEBSOCKET"), scope.get("root_path", "")
        with span(f"{method} {route_of_path(scope.get('path', ''))}") as request:
            try:
                await self.app(scope, receive, send)
            finally:
                # Starlette and FastAPI leave it here when they have found it; below a mount, what is behind that.
                route = getattr(scope.get("route"), "path", None)
                if isinstance(route, str):
                    request.rename(f"{method} {scope.get('root_path', '').removeprefix(root)}{route}")
