"""Signing in and out, themes, and API keys."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar
from urllib.parse import quote

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from forager.access import keys, quotas
from forager.access.caller import Scope, Unauthorized, Visibility
from forager.access.keys import authenticate
from forager.access.quota import Quota
from forager.api.services import Services, SharedServices
from forager.errors import InvalidInput
from forager.web.formats import sentence
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, new_router, page
from forager.web.rendering import bare_page
from forager.web.sessions import (
    LIFETIME,
    SESSION_COOKIE,
    check_token,
    delete_cookie,
    new_session,
    read_secret,
    read_session,
    set_cookie,
    write_session,
)
from forager.web.visit import AdminVisit, ReaderVisit

router = new_router()

THEMES = ("auto", "light", "dark")
THEME_COOKIE = "forager_theme"
A_YEAR = 365 * 86400
_NOT_KEPT = (
    "The browser did not keep the session. It does so over HTTPS, or at localhost:"
    " put a TLS proxy before this server, or use an SSH tunnel."
)


@router.get("/sign-in", response_model=None)
async def show(request: Request, services: SharedServices) -> Response:
    wanted = request.query_params.get("next", "/")
    if "signed" not in request.query_params:
        return sign_in_form(request, services, wanted, "")
    if read_session(request, services.vault) is None:
        return sign_in_form(request, services, wanted, _NOT_KEPT)
    return RedirectResponse(inside(wanted), 303)


@router.post("/sign-in", response_model=None)
async def sign_in(request: Request, services: SharedServices, form: Submitted) -> Response:
    """Sign in with a key. No CSRF token is needed: the key is the proof, the origin was checked."""
    wanted = form.text("next")
    try:
        caller = await authenticate(services.database, form.text("key"))
    except Unauthorized as refused:
        return sign_in_form(request, services, wanted, f"{sentence(refused.message)}.", 401)
    response = RedirectResponse(f"/sign-in?signed&next={quote(inside(wanted))}", 303)
    write_session(response, new_session(caller.key_id), services.vault)
    return response


@router.post("/sign-out", response_model=None)
async def sign_out(visit: ReaderVisit, form: Submitted) -> Response:
    check_token(visit.request, form, visit.session)
    response = RedirectResponse("/sign-in", 303)
    delete_cookie(response, SESSION_COOKIE)
    return response


@router.post("/theme", response_model=None)
async def theme(visit: ReaderVisit, form: Submitted) -> Response:
    check_token(visit.request, form, visit.session)
    chosen = form.text("theme")
    response = RedirectResponse(inside(form.text("to")), 303)
    if chosen in THEMES:
        set_cookie(response, THEME_COOKIE, chosen, A_YEAR)
    return response


def sign_in_form(
    request: Request, services: Services, wanted: str, message: str, status: int = 200
) -> Response:
    """The page with both ways to sign in, and what went wrong."""
    values = {
        "next": inside(wanted),
        "message": message,
        "hours": LIFETIME // 3600,
        "issuer": services.settings.oidc_issuer if services.settings.oidc_client_id else None,
    }
    return bare_page(request, "sign_in.html", values, status=status)


def inside(path: str) -> str:
    """A path of this server; anything that leads elsewhere is the overview."""
    # browsers read a backslash as a slash, and two slashes as another server
    safe = path.startswith("/") and path.isprintable() and "\\" not in path
    return path[:2000] if safe and not path.startswith("//") else "/"


MAX_DAYS = 3650
Value = TypeVar("Value", bound=StrEnum)


@page(router, "/keys")
async def list_keys(visit: AdminVisit) -> WebPage:
    found = await keys.list_keys(visit.database, **visit.paging)
    return WebPage("keys.html", keys=found, scopes=list(Scope))


@action(router, "/keys")
async def create_key(visit: AdminVisit, form: Submitted) -> Done:
    """Create a key, which the next page shows once. The first key signs its creator in."""
    days = form.number("days", least=1, most=MAX_DAYS)
    made = await keys.create_key(
        visit.database,
        form.text("name"),
        scope=_choice(form, "scope", Scope),
        visibility=_choice(form, "visibility", Visibility) if form.text("visibility") else None,
        owner=form.optional("owner"),
        expires_in=None if days is None else days * 86400.0,
    )
    return Done(
        f"Key {made.key.name} created.",
        to=f"/keys/{made.key.id}/secret",
        leaves=True,
        secret=made.text,
        session=new_session(made.key.id) if visit.is_open else None,
    )


@page(router, "/keys/{key_id}/secret")
async def show_secret(visit: AdminVisit, key_id: str) -> WebPage:
    key = await keys.get_key(visit.database, key_id)
    return WebPage("key_made.html", key=key, secret=read_secret(visit.request, visit.vault))


@action(router, "/keys/{key_id}/revoke")
async def revoke_key(visit: AdminVisit, form: Submitted, key_id: str) -> Done:
    key = await keys.revoke_key(visit.database, key_id)
    return Done(f"Key {key.name} revoked.", to="/keys")


LIMITS = (
    ("active_jobs", "Active jobs", 0),
    ("pages_per_job", "Pages per crawl", 1),
    ("pages_per_day", "Pages per day (UTC)", 0),
    ("requests_per_minute", "API requests per minute", 1),
)


@page(router, "/keys/{key_id}/quota")
async def show_quota(visit: AdminVisit, key_id: str) -> WebPage:
    """The limits of the owner of a key, and what is used of them."""
    key = await keys.get_key(visit.database, key_id)
    quota = await quotas.get_quota(visit.database, key.user_id)
    return WebPage(
        "quota.html",
        key=key,
        quota={name: getattr(quota, name) for name, _, _ in LIMITS},
        usage=await quotas.get_usage(visit.database, key.user_id),
        limits=LIMITS,
    )


@action(router, "/keys/{key_id}/quota")
async def set_quota(visit: AdminVisit, form: Submitted, key_id: str) -> Done:
    key = await keys.get_key(visit.database, key_id)
    limits = {name: form.number(name, least=least) for name, _, least in LIMITS}
    await quotas.set_quota(visit.database, key.user_id, Quota(**limits))
    return Done("Quota saved.", to=f"/keys/{key_id}/quota")


def _choice(form: Form, name: str, values: type[Value]) -> Value:
    try:
        return values(form.text(name))
    except ValueError:
        raise InvalidInput(f"{name} is one of {', '.join(values)}") from None
