"""Signing in with a key, signing out, and the colours of the pages."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from forager.access.errors import Unauthorised
from forager.access.keys import authenticate
from forager.api.services import Here
from forager.web.csrf import check_token
from forager.web.forms import Submitted
from forager.web.page import new_router
from forager.web.rendering import bare_page
from forager.web.sessions import LIFETIME, end_session, new_session, read_session, write_session
from forager.web.visit import Reads

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
    """No token is asked for: whoever knows a key may sign in, and the origin was checked."""
    wanted = form.text("next")
    try:
        caller = await authenticate(here.database, form.text("key"))
    except Unauthorised as refused:
        return _form(request, wanted, f"{refused.message[:1].upper()}{refused.message[1:]}.", 401)
    response = RedirectResponse(f"/sign-in?signed&next={quote(_inside(wanted))}", 303)
    write_session(response, new_session(caller.key_id), here.vault)
    return response


@router.post("/sign-out", response_model=None)
async def sign_out(visit: Reads, form: Submitted) -> Response:
    check_token(visit.request, form, visit.session)
    response = RedirectResponse("/sign-in", 303)
    end_session(response)
    return response


@router.post("/theme", response_model=None)
async def theme(visit: Reads, form: Submitted) -> Response:
    check_token(visit.request, form, visit.session)
    chosen = form.text("theme")
    response = RedirectResponse(_inside(form.text("to")), 303)
    if chosen in THEMES:
        response.set_cookie(
            THEME_COOKIE, chosen, max_age=A_YEAR, secure=True, httponly=True, samesite="strict"
        )
    return response


def _form(request: Request, wanted: str, message: str, status: int = 200) -> Response:
    values = {"next": _inside(wanted), "message": message, "hours": LIFETIME // 3600}
    return bare_page(request, "sign_in.html", values, status=status)


def _inside(path: str) -> str:
    """A path of this server; anything that leads elsewhere is the overview."""
    # browsers read a backslash as a slash, and two slashes as another server
    safe = path.startswith("/") and path.isprintable() and "\\" not in path
    return path[:2000] if safe and not path.startswith("//") else "/"
