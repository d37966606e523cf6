"""Signing in to the dashboard at an OpenID Connect issuer: authorization code with PKCE."""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64encode
from hashlib import sha256
from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from forager.access.caller import Forbidden, Unauthorized
from forager.access.oidc import TokenVerifier
from forager.api.oauth import base_url
from forager.api.services import Services, SharedServices
from forager.errors import ForagerError, NotFound
from forager.web.formats import sentence
from forager.web.page import new_router
from forager.web.rendering import bare_page
from forager.web.routes.sign_in import inside, sign_in_form
from forager.web.sessions import (
    FLOW_COOKIE,
    SignedIn,
    new_session,
    read_flow,
    write_flow,
    write_session,
)

router = new_router()

CALLBACK = "/sign-in/oidc/callback"
MAX_NEXT = 800


def _verifier(request: Request) -> TokenVerifier:
    verifier: TokenVerifier = request.app.state.verifier
    if not verifier.is_configured or verifier.client_id is None:
        raise NotFound("sign-in at an issuer is not configured")
    return verifier


@router.get("/sign-in/oidc", response_model=None)
async def begin(request: Request, services: SharedServices) -> Response:
    """Send the browser to the issuer."""
    verifier = _verifier(request)
    wanted = inside(request.query_params.get("next", "/"))
    if len(wanted) > MAX_NEXT:  # the cookie of the sign-in would be too long
        wanted = "/"
    try:
        issuer = await verifier.issuer()
    except ForagerError as error:
        return sign_in_form(request, services, wanted, sentence(error.message), 502)
    state, nonce, proof = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = urlsafe_b64encode(sha256(proof.encode()).digest()).rstrip(b"=").decode()
    fields = {
        "response_type": "code",
        "client_id": verifier.client_id,
        "redirect_uri": _callback(request, services),
        "scope": verifier.requested_scopes,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    target = str(issuer.metadata.get("authorization_endpoint"))
    mark = "&" if "?" in target else "?"
    response = RedirectResponse(f"{target}{mark}{urlencode(fields)}", 303)
    write_flow(response, [state, nonce, proof, wanted], services.vault)
    return response


@router.get(CALLBACK, response_model=None)
async def complete(request: Request, services: SharedServices) -> Response:
    """Exchange the code for tokens, and begin a session with their claims."""
    verifier = _verifier(request)
    flow = read_flow(request, services.vault)
    if flow is None:
        return sign_in_form(request, services, "/", "The sign-in took too long. Try again.", 400)
    state, nonce, proof, wanted = flow
    try:
        code = _code_of(request, state)
        tokens = await verifier.exchange(
            {
                "grant_type": "authorization_code",
                "code": code,
                "redirect_uri": _callback(request, services),
                "code_verifier": proof,
            }
        )
        claims = await verifier.claims(str(tokens.get("id_token")), verifier.client_id)
        if not hmac.compare_digest(str(claims.get("nonce")).encode(), nonce.encode()):
            raise Unauthorized("the token is not for this sign-in")
        caller = await verifier.caller_with(claims)
    except ForagerError as error:
        return sign_in_form(request, services, wanted, f"{sentence(error.message)}.", 401)
    # a page of ours leads on: a redirect that comes from the issuer would not carry strict cookies
    response = bare_page(request, "signed_in.html", {"next": wanted})
    signed_in = SignedIn(str(caller.user_id), caller.scope.value, caller.name)
    write_session(response, new_session(signed_in=signed_in), services.vault)
    response.delete_cookie(FLOW_COOKIE, path="/sign-in")
    return response


def _code_of(request: Request, state: str) -> str:
    query = request.query_params
    if not hmac.compare_digest(query.get("state", "").encode(), state.encode()):
        raise Forbidden("this answer is not for a sign-in of this browser")
    if "code" not in query:
        raise Unauthorized(f"the issuer refused: {query.get('error', 'no reason given')[:200]}")
    return query["code"]


def _callback(request: Request, services: Services) -> str:
    return f"{base_url(services.settings, str(request.base_url))}{CALLBACK}"
