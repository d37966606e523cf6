"""Who is at the browser: a key that was shown once, remembered in a sealed cookie.

The cookie holds the id of the key and never its secret. Whether the key still works is asked with
every request, so a revoked key ends its sessions at once. On this machine, where no key exists,
a session has no key and only protects forms.
"""

from __future__ import annotations

import binascii
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field

import orjson
from starlette.requests import Request
from starlette.responses import Response

from forager.secrets import SecretsUnavailable, Vault

COOKIE = "forager_session"
LIFETIME = 12 * 3600
MAX_COOKIE = 2000
_CONTEXT = "dashboard session"


@dataclass(frozen=True, slots=True)
class Session:
    """`csrf` is what forms must carry; a page elsewhere cannot know it."""

    key_id: str | None
    csrf: str = field(repr=False)
    expires_at: float


def new_session(key_id: str | None = None) -> Session:
    return Session(key_id, secrets.token_urlsafe(24), time.time() + LIFETIME)


def read_session(request: Request, vault: Vault) -> Session | None:
    """The session of a request; None if it has none, or one that ended or is not ours."""
    cookie = request.cookies.get(COOKIE, "")
    if not 0 < len(cookie) <= MAX_COOKIE:
        return None
    try:
        key_id, csrf, expires_at = orjson.loads(vault.open(urlsafe_b64decode(cookie), _CONTEXT))
    except (SecretsUnavailable, binascii.Error, ValueError):
        return None
    return Session(key_id, csrf, expires_at) if expires_at > time.time() else None


def write_session(response: Response, session: Session, vault: Vault) -> None:
    text = orjson.dumps([session.key_id, session.csrf, session.expires_at]).decode()
    set_cookie(response, COOKIE, urlsafe_b64encode(vault.seal(text, _CONTEXT)).decode(), LIFETIME)


def end_session(response: Response) -> None:
    response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="strict")


def set_cookie(response: Response, name: str, value: str, seconds: int) -> None:
    """Never sent by pages of other sites, never read by scripts, never over an open line."""
    # browsers take `Secure` on http://localhost and http://127.0.0.1 too
    response.set_cookie(
        name, value, max_age=seconds, path="/", secure=True, httponly=True, samesite="strict"
    )
