"""Pages from templates. All values are escaped: crawled content is text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from forager import __version__
from forager.api.problems import problem_of
from forager.db.cursor import Page as Rows
from forager.errors import ForagerError
from forager.web import charts, formats
from forager.web.event_text import summary_of
from forager.web.navigation import NAVIGATION
from forager.web.sessions import (
    NOTICE_COOKIE,
    SECRET_COOKIE,
    delete_cookie,
    read_notice,
    write_session,
)
from forager.web.visit import WebVisit

STATIC = Path(__file__).parent / "static"
# prefix of the blocks of a template that are updated live, and of the IDs of their elements
LIVE = "live_"


@cache
def environment() -> Environment:
    made = Environment(
        loader=PackageLoader("forager.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(formats.FILTERS, summary=summary_of)
    made.globals.update(asset=asset, navigation=NAVIGATION, version=__version__, **charts.DRAWINGS)
    return made


@cache
def asset(name: str) -> str:
    """The URL of a static file; it changes with the content."""
    digest = blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


class WebPage:
    """A template and its values. A page of a list is shown as its rows, with a link to the next."""

    code = 200

    def __init__(self, template: str, /, **values: object) -> None:
        self.template = template
        self.values = values

    def after(self, error: ForagerError | None) -> WebPage:
        """The page as the answer to a form, which failed if there is an error."""
        if error is not None:
            self.code = problem_of(error).status
        return self


def full_page(visit: WebVisit, page: WebPage) -> Response:
    """A whole page, with the cookie of a session that begins with it."""
    found = environment().get_template(page.template)
    context = page_values(visit, page.values)
    context["live"] = any(name.startswith(LIVE) for name in found.blocks)
    response = HTMLResponse(found.render(context), page.code)
    if visit.is_new:
        write_session(response, visit.session, visit.vault)
    for name in (NOTICE_COOKIE, SECRET_COOKIE):
        if name in visit.request.cookies:
            delete_cookie(response, name)
    return response


def live_blocks(visit: WebVisit, page: WebPage) -> dict[str, str]:
    """The current content of the blocks of a page that are updated live."""
    found = environment().get_template(page.template)
    context = found.new_context(page_values(visit, page.values))
    return {
        name: "".join(block(context))
        for name, block in found.blocks.items()
        if name.startswith(LIVE)
    }


def bare_page(
    request: Request, template: str, values: Mapping[str, object], *, status: int = 200
) -> Response:
    """A page for a visitor without a session."""
    return HTMLResponse(
        environment().get_template(template).render(values, request=request), status
    )


def page_values(visit: WebVisit, values: Mapping[str, object]) -> dict[str, Any]:
    """Values of all templates and of this one; `ui` are the components."""
    known = {
        "visit": visit,
        "csrf": visit.session.csrf,
        "path": visit.request.url.path,
        "asked": visit.asked,
        "notice": read_notice(visit.request, visit.vault),
    }
    components = environment().get_template("ui.html").make_module(known)
    cursors = [each.next_cursor for each in values.values() if isinstance(each, Rows)]
    next_url = visit.following(cursors[0]) if cursors else None
    rows = {name: each.items for name, each in values.items() if isinstance(each, Rows)}
    return {**known, "ui": components, "next_url": next_url, **values, **rows}
