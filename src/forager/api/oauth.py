"""Where clients learn which issuer gives tokens for this server (RFC 9728)."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from forager.access.caller import Scope as AccessScope
from forager.access.oidc import SCOPE_PREFIX
from forager.api.services import SharedServices
from forager.errors import NotFound
from forager.settings import Settings

PLACE = "/.well-known/oauth-protected-resource"

router = APIRouter(include_in_schema=False)


@router.get(PLACE)
@router.get(PLACE + "/{path:path}")
async def protected_resource(
    request: Request, services: SharedServices, path: str = ""
) -> dict[str, Any]:
    """The metadata of the API, or of the resource at a path such as /mcp."""
    settings = services.settings
    if settings.oidc_issuer is None:
        raise NotFound("no issuer of tokens is configured")
    return {
        "resource": f"{base_url(settings, str(request.base_url))}{'/' + path if path else ''}",
        "authorization_servers": [settings.oidc_issuer],
        "scopes_supported": [f"{SCOPE_PREFIX}{scope}" for scope in AccessScope],
        "bearer_methods_supported": ["header"],
        "resource_name": "Forager",
    }


def base_url(settings: Settings, requested: str) -> str:
    """The address by which people reach this server, without a slash at its end."""
    return (settings.public_url or requested).rstrip("/")
