"""Signing in and out, themes, and API keys."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from forager.access import keys
from forager.access.caller import Scope, Unauthorised
from forager.access.keys import authenticate
from forager.api.services import Here
from forager.errors import InvalidInput
from forager.web.formats import sentence
from forager.web.forms import Form, Submitted
from forager.web.page import Done, Page, action, new_router, page
from forager.web.rendering import bare_page
from forager.web.sessions import (
    LIFETIME,
    SESSION_COOKIE,
    check_token,
    delete_cookie,
    new_session,
    read_session,
    set_cookie,
    write_session,
)
from forager.web.visit import Administers, Reads

router = new_router()

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "forager_theme"
A_YEAR = 365 * 86400
_NOT_KEPT = (
    "The browser did not keep the session. It does so over HTTPS, or at localhost:"
    " put a TLS proxy before this server, or use an SSH tunnel."
)


@router.get("/sign-in", response_model=None)
async def show(request: Request, here: Here) -> Response:
    wanted = request.query_params.get("next", "/")
    if "signed" not in request.query_params:
        return _form(request, wanted, "")
    if read_session(request, here.vault) is None:
        return _form(request, wanted, _NOT_KEPT)
    return RedirectResponse(_inside(wanted), 303)


@router.post("/sign-in", response_model=None)
async def sign_in(request: Request, here: Here, form: Submitted) -> Response:
    """Sign in with a key. No CSRF token is needed: the key is the proof, the origin was checked."""
    wanted = form.text("next")
    try:
        caller = await authenticate(here.database, form.text("key"))
    except Unauthorised as refused:
        return _form(request, wanted, f"{sentence(refused.message)}.", 401)
    response = RedirectResponse(f"/sign-in?signed&next={quote(_inside(wanted))}", 303)
    write_session(response, new_session(caller.key_id), here.vault)
    return response


@router.post("/sign-out", response_model=None)
async def sign_out(visit: Reads, form: Submitted) -> Response:
    check_token(visit.request, form, visit.session)
    response = RedirectResponse("/sign-in", 303)
    delete_cookie(response, SESSION_COOKIE)
    return response


@router.post("/theme", response_model=None)
async def theme(visit: Reads, form: Submitted) -> Response:
    check_token(visit.request, form, visit.session)
    chosen = form.text("theme")
    response = RedirectResponse(_inside(form.text("to")), 303)
    if chosen in THEMES:
        set_cookie(response, THEME_COOKIE, chosen, A_YEAR)
    return response


def _form(request: Request, wanted: str, message: str, status: int = 200) -> Response:
    values = {"next": _inside(wanted), "message": message, "hours": LIFETIME // 3600}
    return bare_page(request, "sign_in.html", values, status=status)


def _inside(path: str) -> str:
    """A path of this server; anything that leads elsewhere is the overview."""
    # browsers read a backslash as a slash, and two slashes as another server
    safe = path.startswith("/") and path.isprintable() and "\\" not in path
    return path[:2000] if safe and not path.startswith("//") else "/"


MAX_DAYS = 3650


@page(router, "/keys")
async def list_keys(visit: Administers) -> Page:
    found = await keys.list_keys(visit.database, **visit.paging)
    return Page("keys.html", keys=found, scopes=list(Scope))


@action(router, "/keys")
async def create_key(visit: Administers, form: Submitted) -> Page:
    """Respond with the key itself, so that it is in no URL and no cookie."""
    days = form.number("days", least=1, most=MAX_DAYS)
    made = await keys.create_key(
        visit.database,
        form.text("name"),
        scope=_scope(form),
        expires_in=None if days is None else days * 86400.0,
    )
    return Page("key_made.html", made=made, was_open=visit.is_open)


@action(router, "/keys/{key_id}/revoke")
async def revoke_key(visit: Administers, form: Submitted, key_id: str) -> Done:
    key = await keys.revoke_key(visit.database, key_id)
    return Done(f"Key {key.name} revoked.", to="/keys")


def _scope(form: Form) -> Scope:
    try:
        return Scope(form.text("scope"))
    except ValueError:
        raise InvalidInput(f"a scope is one of {', '.join(Scope)}") from None
