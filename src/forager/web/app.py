"""The dashboard, added to the API's application: pages at /, the API stays at /api."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from forager.api.problems import problem_response
from forager.operations.slots import Slots
from forager.web.errors import error_page
from forager.web.page import MAX_STREAMS
from forager.web.rendering import STATIC
from forager.web.routes import (
    alerts,
    analytics,
    domains,
    errors,
    items,
    jobs,
    new_crawl,
    oidc,
    overview,
    palette,
    parsers,
    prices,
    products,
    proxies,
    search,
    sign_in,
    sources,
    tasks,
    webhooks,
)
from forager.web.routes.new_crawl import DemoSite

FOR_EVER = "public, max-age=31536000, immutable"

ROUTERS: tuple[APIRouter, ...] = (
    sign_in.router,
    oidc.router,
    overview.router,
    palette.router,
    new_crawl.router,
    jobs.router,
    sources.router,
    search.router,
    items.router,
    prices.router,
    products.router,
    alerts.router,
    tasks.router,
    errors.router,
    domains.router,
    proxies.router,
    parsers.router,
    analytics.router,
    webhooks.router,
)


@contextmanager
def dashboard(app: FastAPI) -> Iterator[None]:
    """Add the pages to the application of the API while it runs."""
    app.state.streams = Slots(MAX_STREAMS, "the live update of other pages")
    app.state.demo = DemoSite()
    app.router.routes.extend(_routes())
    app.mount("/static", Assets(directory=STATIC), name="static")
    app.add_middleware(SecurityHeaders)
    app.add_exception_handler(HTTPException, _not_there)
    try:
        yield
    finally:
        app.state.demo.close()


@cache
def _routes() -> list[BaseRoute]:
    """All pages; their parameters are analyzed once for all applications of a process."""
    root = APIRouter()
    for router in ROUTERS:
        root.include_router(router, include_in_schema=False)
    return root.routes


class Assets(StaticFiles):
    """Static files; each URL has a hash of the content, so it can be cached forever."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        response = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        if isinstance(response, FileResponse) and Path(response.path).is_relative_to(STATIC):
            response.headers["Cache-Control"] = FOR_EVER
        return response


async def _not_there(request: Request, error: Exception) -> Response:
    """An unknown path: a page for browsers, a problem document for API clients."""
    if request.url.path.startswith("/api") or "text/html" not in request.headers.get("accept", ""):
        return problem_response(error)
    return error_page(request, error)


POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # with `no-referrer` browsers would also hide the origin of our own forms
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
# pages show the current state, to the user who is signed in
NOT_KEPT = "no-store"


class SecurityHeaders:
    """Adds the headers to every response that does not set them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith("/api"):
                    headers.setdefault("Cache-Control", NOT_KEPT)
            await send(message)

        await self._app(scope, receive, send_guarded)
