"""Sealed cookies: the session of a browser; a notice and a secret for the next page.

The session holds the id of a key and never its secret. The key is checked with every request, so a
revoked key ends its sessions at once. On this machine, where no key exists, a session has no key
and only protects forms. `api/authentication.py` checks where a request comes from.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import orjson
from starlette.requests import Request
from starlette.responses import Response

from forager.access.caller import Forbidden
from forager.secrets import SecretsUnavailable, Vault
from forager.web.forms import Form

SESSION_COOKIE = "forager_session"
NOTICE_COOKIE = "forager_notice"
SECRET_COOKIE = "forager_secret"  # noqa: S105 - the name of a cookie
FLOW_COOKIE = "forager_flow"
LIFETIME = 12 * 3600
NEXT_PAGE_SECONDS = 30
FLOW_SECONDS = 600
MAX_COOKIE = 2000
MAX_NOTICE = 500
CSRF_HEADER = "X-CSRF-Token"
CSRF_FIELD = "csrf"
# the purpose for which a cookie is sealed: one is not accepted as the other
_CONTEXTS = {
    SESSION_COOKIE: "dashboard session",
    NOTICE_COOKIE: "dashboard notice",
    SECRET_COOKIE: "dashboard secret",
    FLOW_COOKIE: "dashboard sign-in at an issuer",
}


class SignedIn(NamedTuple):
    """A person whom the issuer has signed in: owner, scope and name."""

    user_id: str
    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class WebSession:
    """`csrf` is the token that forms must carry; other sites cannot know it."""

    key_id: str | None
    csrf: str = field(repr=False)
    expires_at: float
    signed_in: SignedIn | None = None


def new_session(key_id: str | None = None, *, signed_in: SignedIn | None = None) -> WebSession:
    return WebSession(key_id, secrets.token_urlsafe(24), time.time() + LIFETIME, signed_in)


def read_session(request: Request, vault: Vault) -> WebSession | None:
    """The session of a request, unless it has expired or is not ours."""
    found = _read(request, SESSION_COOKIE, vault)
    if found is None:
        return None
    key_id, csrf, expires_at, *signed_in = found
    session = WebSession(
        key_id, csrf, expires_at, *(each and SignedIn(*each) for each in signed_in)
    )
    return session if session.expires_at > time.time() else None


def write_session(response: Response, session: WebSession, vault: Vault) -> None:
    values = [
        session.key_id,
        session.csrf,
        session.expires_at,
        list(session.signed_in or ()) or None,
    ]
    _write(response, SESSION_COOKIE, values, LIFETIME, vault)


def check_token(request: Request, form: Form, session: WebSession) -> None:
    """Raise unless the request has the session's token, in its header or its form."""
    given = request.headers.get(CSRF_HEADER) or form.text(CSRF_FIELD)
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise Forbidden(
            "this form is not from a page of this session", hint="Reload the page and try again."
        )


@dataclass(frozen=True, slots=True)
class Notice:
    """One line about an action, for the next page."""

    text: str
    kind: Literal["done", "error"] = "done"

    def as_trigger(self) -> str:
        """The header `HX-Trigger`, for the script on the page."""
        return json.dumps({"notice": {"text": self.text[:MAX_NOTICE], "kind": self.kind}})


def write_notice(response: Response, notice: Notice, vault: Vault) -> None:
    values = [notice.text[:MAX_NOTICE], notice.kind]
    _write(response, NOTICE_COOKIE, values, NEXT_PAGE_SECONDS, vault)


def read_notice(request: Request, vault: Vault) -> Notice | None:
    found = _read(request, NOTICE_COOKIE, vault)
    return None if found is None else Notice(*found)


def write_secret(response: Response, secret: str, path: str, vault: Vault) -> None:
    """Hand a new secret to the page at `path`, which shows it once."""
    _write(response, SECRET_COOKIE, [secret, path], NEXT_PAGE_SECONDS, vault)


def read_secret(request: Request, vault: Vault) -> str | None:
    """The secret that this page shows; None if it was shown before."""
    secret, path = _read(request, SECRET_COOKIE, vault) or (None, None)
    return secret if path == request.url.path else None


def write_flow(response: Response, values: list[str], vault: Vault) -> None:
    """Remember a sign-in while the browser is at the issuer, whose answer is a link from there."""
    encrypted = vault.encrypt(orjson.dumps(values).decode(), _CONTEXTS[FLOW_COOKIE])
    response.set_cookie(
        FLOW_COOKIE,
        urlsafe_b64encode(encrypted).decode(),
        max_age=FLOW_SECONDS,
        path="/sign-in",
        secure=True,
        httponly=True,
        samesite="lax",
    )


def read_flow(request: Request, vault: Vault) -> list[str] | None:
    return _read(request, FLOW_COOKIE, vault)


def delete_cookie(response: Response, name: str) -> None:
    response.delete_cookie(name, secure=True, httponly=True, samesite="strict")


def set_cookie(response: Response, name: str, value: str, seconds: int) -> None:
    """Set a cookie that other sites, scripts and plain HTTP never see."""
    # browsers take `Secure` on http://localhost and http://127.0.0.1 too
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="strict"
    )


def _read(request: Request, name: str, vault: Vault) -> list[Any] | None:
    cookie = request.cookies.get(name, "")
    if not 0 < len(cookie) <= MAX_COOKIE:
        return None
    try:
        values: list[Any] = orjson.loads(vault.decrypt(urlsafe_b64decode(cookie), _CONTEXTS[name]))
    except (SecretsUnavailable, ValueError):
        return None
    return values


def _write(response: Response, name: str, values: list[Any], seconds: int, vault: Vault) -> None:
    encrypted = vault.encrypt(orjson.dumps(values).decode(), _CONTEXTS[name])
    set_cookie(response, name, urlsafe_b64encode(encrypted).decode(), seconds)
