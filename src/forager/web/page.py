"""How a page and an action are declared.

A page is a function that loads the values of its template. A request for the same URL that accepts
`text/event-stream` gets the stream of the page: the function is called about once a second, and the
blocks of its template whose names begin with `live_` are sent when they have changed. A page in a
hidden tab has no stream: its script closes it, and opens another when the tab is visible again.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar
from urllib.parse import urlsplit

import orjson
import psycopg
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import RedirectResponse, Response, StreamingResponse

from forager.access.caller import Forbidden, Unauthorized
from forager.api.services import CachedAnswer
from forager.db.cursor import Page as Rows
from forager.errors import DatabaseUnavailable, ForagerError, InvalidInput, NotFound, error_text
from forager.logs import get_logger
from forager.web.errors import answer_error, wants_fragment
from forager.web.forms import Form
from forager.web.rendering import WebPage as WebPage
from forager.web.rendering import full_page, live_blocks
from forager.web.sessions import (
    Notice,
    WebSession,
    check_token,
    write_notice,
    write_secret,
    write_session,
)
from forager.web.visit import WebVisit

log = get_logger("web")


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of an action: the message, and the page to show next.

    A script stays on its page unless `leaves` is set; without scripts the next page is always `to`.
    `failed`: the action did not succeed, though the request was valid. `secret` is shown once by
    the page `to`, and `session` is the one to continue with.
    """

    text: str
    to: str
    leaves: bool = False
    failed: bool = False
    secret: str | None = field(default=None, repr=False)
    session: WebSession | None = None


class PageRoute(APIRoute):
    """Responds to errors with pages; the API responds with problem documents."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response: Response = await handle(request)
            except Exception as error:
                return answer_error(request, error)
            return response

        return answer


def new_router() -> APIRouter:
    return APIRouter(route_class=PageRoute)


Load = Callable[..., Awaitable[WebPage]]
Act = Callable[..., Awaitable[Done | WebPage]]


def page(router: APIRouter, path: str) -> Callable[[Load], Load]:
    """Declare a page; its function has a parameter `visit`."""

    def declare(load: Load) -> Load:
        @functools.wraps(load)
        async def endpoint(**parameters: Any) -> Response:
            visit: WebVisit = parameters["visit"]
            if visit.request.headers.get("accept", "").startswith("text/event-stream"):
                return _streamed(visit, functools.partial(load, **parameters))
            return await asyncio.to_thread(full_page, visit, await load(**parameters))

        router.get(path, response_model=None)(endpoint)
        return load

    return declare


def action(router: APIRouter, path: str) -> Callable[[Act], Act]:
    """Declare the action of a form; its function has the parameters `visit` and `form`."""

    def declare(act: Act) -> Act:
        @functools.wraps(act)
        async def endpoint(**parameters: Any) -> Response:
            visit: WebVisit = parameters["visit"]
            form: Form = parameters["form"]
            check_token(visit.request, form, visit.session)
            done = unasked(visit.request, form) or await act(**parameters)
            if isinstance(done, WebPage):
                return await asyncio.to_thread(full_page, visit, done)
            return _answered(visit, done)

        router.post(path, response_model=None)(endpoint)
        return act

    return declare


def _answered(visit: WebVisit, done: Done) -> Response:
    notice = Notice(done.text, "error" if done.failed else "done")
    if not wants_fragment(visit.request):
        response: Response = RedirectResponse(done.to, 303)
    elif done.leaves:
        response = Response(status_code=204, headers={"HX-Redirect": done.to})
    else:
        return Response(status_code=204, headers={"HX-Trigger": notice.as_trigger()})
    write_notice(response, notice, visit.vault)
    if done.secret is not None:
        write_secret(response, done.secret, done.to, visit.vault)
    if done.session is not None:
        write_session(response, done.session, visit.vault)
    return response


def _streamed(visit: WebVisit, load: Callable[[], Awaitable[WebPage]]) -> Response:
    visit.request.app.state.streams.check()
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(stream(visit, load), media_type="text/event-stream", headers=headers)


INTERVAL = 1.0
MAX_STREAMS = 200  # of one process
RETRY_MS = 2000


async def stream(visit: WebVisit, load: Callable[[], Awaitable[WebPage]]) -> AsyncIterator[bytes]:
    """Messages for the page's script: `part`, `look`, `unavailable` and `gone`."""
    state = visit.request.app.state
    sent: dict[str, bytes] = {}
    shown: str | None = None
    with state.streams.taken():
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not state.hub.closing:
            try:
                await visit.check()
                page = await load()
                if shown not in (None, page.template):  # another page altogether: load it
                    yield _message("gone", {})
                    return
                shown, parts = page.template, await asyncio.to_thread(live_blocks, visit, page)
            except (Unauthorized, Forbidden, NotFound):
                yield _message("gone", {})
                return
            except (DatabaseUnavailable, psycopg.Error) as error:
                log.warning("a page cannot be kept up to date", reason=error_text(error))
                yield _message("unavailable", {"text": "the database does not answer"})
            else:
                for name, html in _changed(parts, sent):
                    yield _message("part", {"id": name, "html": html})
                yield _message("look", {"at": time.time()})
            await asyncio.sleep(INTERVAL)


def _changed(parts: Mapping[str, str], sent: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """The parts that differ from those sent before, which are updated."""
    for name, html in parts.items():
        digest = blake2b(html.encode(), digest_size=16).digest()
        if sent.get(name) != digest:
            sent[name] = digest
            yield name, html


def _message(kind: str, data: Mapping[str, object]) -> bytes:
    # JSON has no raw line breaks, so one data line holds all of it
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(data))


LONGEST = 1000


def unasked(request: Request, form: Form) -> WebPage | None:
    """The confirmation page; None if no confirmation is needed."""
    question = form.text("ask") or request.query_params.get("ask", "")
    if not question or form.checked("sure") or wants_fragment(request):
        return None
    kept = {name: values for name, values in form.fields.items() if name not in ("ask", "csrf")}
    fields = [(name, value) for name, values in kept.items() for value in values]
    return WebPage("sure.html", question=question[:LONGEST], fields=fields, back=_back(request))


def _back(request: Request) -> str:
    """The page that the form was on, if it was one of ours."""
    came_from = urlsplit(request.headers.get("referer", ""))
    if came_from.netloc != request.url.netloc or not came_from.path.startswith("/"):
        return "/"
    # two slashes at the beginning would name another host
    path = "/" + came_from.path.lstrip("/")
    return f"{path}?{came_from.query}" if came_from.query else path


@dataclass(frozen=True, slots=True)
class ListOrder:
    """How a list is sorted: the field `sort` of the URL, with a minus for descending."""

    visit: WebVisit
    value: str
    # values that the list supports; without any, headers are plain text
    values: frozenset[str]

    @property
    def name(self) -> str:
        return self.value.removeprefix("-")

    @property
    def descending(self) -> bool:
        return self.value.startswith("-")

    @property
    def is_possible(self) -> bool:
        return bool(self.values)

    def url(self, name: str) -> str:
        """This page sorted by a column; the other way round if it is already sorted by it."""
        ways = [way for way in (name, f"-{name}") if way in self.values and way != self.value]
        return self.visit.with_query(sort=ways[0] if ways else name)


def order_of(visit: WebVisit, names: Iterable[str], *, is_possible: bool = True) -> ListOrder:
    """The order of the URL: by one of these columns, in either direction."""
    values = {value for name in names for value in (name, f"-{name}")} if is_possible else ()
    return fixed_order_of(visit, values)


def fixed_order_of(visit: WebVisit, values: Iterable[str]) -> ListOrder:
    """The order of the URL, if it is one of these values."""
    known = frozenset(values)
    text = visit.request.query_params.get("sort", "")
    return ListOrder(visit, text if text in known else "", known)


Row = TypeVar("Row")


async def attempt(
    load: Callable[[], Awaitable[Rows[Row]]],
) -> tuple[Rows[Row], ForagerError | None]:
    """A page of a list; or none and the error in the filters, which the page shows."""
    try:
        return await load(), None
    except InvalidInput as error:
        return Rows([], None), error


async def cached(
    visit: WebVisit, make: Callable[[], Awaitable[Any]], *stand: object
) -> CachedAnswer:
    """Cache the values of a page for callers that see the same; longer if they cost more.

    `stand` holds values that are cheap to read: the cached answer is valid while they are the same.
    """
    path, query = visit.request.url.path, str(visit.request.query_params)
    key = (path, query, visit.caller.sees_only, *stand)
    return await visit.cache.look(key, make)
