"""Templates to pages. Everything is escaped: what was crawled is text, whatever it looks like."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from forager import __version__
from forager.web import charts, formats
from forager.web.markdown import to_html
from forager.web.navigation import NAVIGATION
from forager.web.sessions import NOTICE_COOKIE, delete_cookie, read_notice, write_session
from forager.web.visit import Visit
from forager.web.word_diff import marked_lines, paired_lines

STATIC = Path(__file__).parent / "static"
# blocks of a template that are kept up to date are called so, and so is the element around each
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
    made.filters.update(
        formats.FILTERS, rendered=to_html, marked_lines=marked_lines, paired_lines=paired_lines
    )
    made.globals.update(asset=asset, navigation=NAVIGATION, version=__version__, **charts.DRAWINGS)
    return made


@cache
def asset(name: str) -> str:
    """The address of a file of ours; another content has another address."""
    digest = blake2b((STATIC / name).read_bytes(), digest_size=6).hexdigest()
    return f"/static/{name}?v={digest}"


def full_page(
    visit: Visit, template: str, values: Mapping[str, object], *, status: int = 200
) -> Response:
    """A whole page, with the cookie of a session that begins with it."""
    found = environment().get_template(template)
    context = page_values(visit, values)
    context["live"] = any(name.startswith(LIVE) for name in found.blocks)
    response = HTMLResponse(found.render(context), status)
    if visit.is_new:
        write_session(response, visit.session, visit.here.vault)
    if NOTICE_COOKIE in visit.request.cookies:
        delete_cookie(response, NOTICE_COOKIE)
    return response


def live_blocks(visit: Visit, template: str, values: Mapping[str, object]) -> dict[str, str]:
    """The parts of a page that are kept up to date, each as it is now."""
    found = environment().get_template(template)
    context = found.new_context(page_values(visit, values))
    return {
        name: "".join(block(context))
        for name, block in found.blocks.items()
        if name.startswith(LIVE)
    }


def bare_page(
    request: Request, template: str, values: Mapping[str, object], *, status: int = 200
) -> Response:
    """A page for somebody of whom nothing is known."""
    return HTMLResponse(
        environment().get_template(template).render(values, request=request), status
    )


def page_values(visit: Visit, values: Mapping[str, object]) -> dict[str, Any]:
    """What every template sees, and what this one is given; `ui` are the components."""
    known = {
        "visit": visit,
        "csrf": visit.session.csrf,
        "path": visit.request.url.path,
        "notice": read_notice(visit.request, visit.here.vault),
    }
    return {**known, "ui": _components().make_module(known), **values}


def _components() -> Template:
    return environment().get_template("ui.html")
