"""One line to tell after an action, on the page that comes next."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Literal

import orjson
from starlette.requests import Request
from starlette.responses import Response

from forager.secrets import SecretsUnavailable, Vault
from forager.web.sessions import MAX_COOKIE, set_cookie

COOKIE = "forager_notice"
SECONDS = 30
MAX_TEXT = 500
_CONTEXT = "dashboard notice"


@dataclass(frozen=True, slots=True)
class Notice:
    text: str
    kind: Literal["done", "error"] = "done"

    def as_trigger(self) -> str:
        """As the header `HX-Trigger` tells it to the script on the page."""
        return json.dumps({"notice": {"text": self.text[:MAX_TEXT], "kind": self.kind}})


def write_notice(response: Response, notice: Notice, vault: Vault) -> None:
    # sealed, so that nobody else can put words on our pages
    text = orjson.dumps([notice.text[:MAX_TEXT], notice.kind]).decode()
    set_cookie(response, COOKIE, urlsafe_b64encode(vault.seal(text, _CONTEXT)).decode(), SECONDS)


def read_notice(request: Request, vault: Vault) -> Notice | None:
    cookie = request.cookies.get(COOKIE, "")
    if not 0 < len(cookie) <= MAX_COOKIE:
        return None
    try:
        return Notice(*orjson.loads(vault.open(urlsafe_b64decode(cookie), _CONTEXT)))
    except (SecretsUnavailable, ValueError):
        return None


def forget_notice(response: Response) -> None:
    response.delete_cookie(COOKIE, secure=True, httponly=True, samesite="strict")
