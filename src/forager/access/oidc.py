"""Callers by tokens of an OpenID Connect issuer, beside API keys.

A token counts if the issuer has signed it for our audience and it has not expired. One claim names
the owner, another one lists scopes; of those, only `forager:read`, `forager:operate` and
`forager:admin` have a meaning.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import aiohttp
import orjson

from forager.access.caller import Caller, Forbidden, Scope, Unauthorized, Visibility
from forager.access.keys import owner_named
from forager.access.quotas import get_quota
from forager.db.database import Database
from forager.errors import WorkFailed, error_text
from forager.logs import get_logger
from forager.settings import Settings

if TYPE_CHECKING:
    import jwt

log = get_logger("access")

SCOPE_PREFIX = "forager:"
# only signatures by a private key that the issuer alone has
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
CLOCK_SKEW = 30.0
MAX_TOKEN = 16_384
MAX_ANSWER = 512 * 1024
TIMEOUT = aiohttp.ClientTimeout(total=10)
# the metadata and keys of the issuer are fetched again after this time, and a key that is not
# known lets them be fetched sooner
KEPT_FOR = 3600.0
FETCH_AGAIN_AFTER = 30.0
MAX_OWNERS = 10_000


class IssuerUnavailable(WorkFailed):
    """The issuer did not answer, or not as the standard says."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """What the issuer says of itself, and its keys by their IDs."""

    metadata: Mapping[str, Any]
    keys: Mapping[str | None, jwt.PyJWK]
    fetched_at: float


class TokenVerifier:
    """Verifies tokens of the issuer in the settings. One per process: it keeps the keys."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database = database
        self._settings = settings
        self._known: Issuer | None = None
        self._tried_at = -math.inf
        self._fetching = asyncio.Lock()
        self._owners: dict[str, UUID] = {}

    @property
    def is_configured(self) -> bool:
        return self._settings.oidc_issuer is not None

    @property
    def client_id(self) -> str | None:
        """The client with which people sign in to the dashboard."""
        return self._settings.oidc_client_id

    @property
    def requested_scopes(self) -> str:
        return " ".join(["openid", "profile", *(f"{SCOPE_PREFIX}{scope}" for scope in Scope)])

    async def caller(self, token: str) -> Caller:
        """The caller with an access token; Unauthorized if it is not valid for this server."""
        return await self.caller_with(await self.claims(token, self._settings.oidc_audience))

    async def caller_with(self, claims: Mapping[str, Any]) -> Caller:
        """The caller with these verified claims; Forbidden without a scope of Forager."""
        name = claims.get(self._settings.oidc_owner_claim)
        if not isinstance(name, str) or not name.strip():
            raise Unauthorized(f"the token has no claim {self._settings.oidc_owner_claim}")
        scope = scope_in(claims.get(self._settings.oidc_scope_claim))
        user_id = self._owners.get(name)
        if user_id is None:
            user_id = await owner_named(self._database, name)
            if len(self._owners) < MAX_OWNERS:
                self._owners[name] = user_id
        return await caller_by_token(self._database, user_id, scope, name.strip())

    async def claims(self, token: str, audience: str | None) -> dict[str, Any]:
        """The claims of a token whose signature, issuer, audience and time are valid."""
        import jwt  # only where an issuer is configured

        if len(token) > MAX_TOKEN:
            raise Unauthorized("the token is too long")
        try:
            header = jwt.get_unverified_header(token)
            if header.get("alg") not in ALGORITHMS:
                raise Unauthorized("the token is not signed in a way that is accepted")
            key = await self._key(header.get("kid"))
            if key.algorithm_name != header["alg"]:
                raise Unauthorized("the token is not signed as its key says")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[header["alg"]],
                audience=audience,
                issuer=self._settings.oidc_issuer,
                leeway=CLOCK_SKEW,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, TypeError, ValueError) as error:
            raise Unauthorized(f"the token is not valid: {error_text(error)}") from None
        return claims

    async def _key(self, key_id: str | None) -> jwt.PyJWK:
        issuer = await self.issuer()
        if key_id not in issuer.keys:
            issuer = await self.issuer(newer_than=issuer.fetched_at)
        if key_id is None and len(issuer.keys) == 1:
            return next(iter(issuer.keys.values()))
        if key_id not in issuer.keys:
            raise Unauthorized("the token is signed with a key that the issuer does not have")
        return issuer.keys[key_id]

    async def issuer(self, *, newer_than: float = 0.0) -> Issuer:
        """The metadata and keys of the issuer, fetched if they are old.

        Known ones are used for longer while the issuer fails, and it is not asked again so soon.
        """
        known, now = self._known, time.monotonic()
        if known is not None and known.fetched_at > max(newer_than, now - KEPT_FOR):
            return known
        async with self._fetching:
            if now < self._tried_at:  # while this request waited
                known = self._known
            elif self._tried_at + FETCH_AGAIN_AFTER < now:
                known = await self._refreshed()
        if known is None:
            raise IssuerUnavailable("the issuer could not be reached", hint="Try again later.")
        return known

    async def _refreshed(self) -> Issuer | None:
        self._tried_at = time.monotonic()
        try:
            self._known = await self._fetch()
        except IssuerUnavailable as error:
            if self._known is None:
                raise
            log.warning("the issuer of tokens is unavailable", reason=error.message)
        return self._known

    async def _fetch(self) -> Issuer:
        wanted = self._settings.oidc_issuer or ""
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            place = f"{wanted.rstrip('/')}/.well-known/openid-configuration"
            metadata = await fetch_json(session, "GET", place)
            if metadata.get("issuer") != wanted:
                raise IssuerUnavailable(f"{place} is about another issuer")
            keys = await fetch_json(session, "GET", str(metadata.get("jwks_uri")))
        return Issuer(metadata, _usable_keys(keys.get("keys")), time.monotonic())

    async def exchange(self, fields: Mapping[str, str]) -> dict[str, Any]:
        """Exchange an authorization code for tokens, as the client of the settings."""
        settings = self._settings
        secret = settings.oidc_client_secret
        metadata = (await self.issuer()).metadata
        client = {"client_id": settings.oidc_client_id or ""}
        if secret is not None:
            client["client_secret"] = secret.get_secret_value()
        async with aiohttp.ClientSession(timeout=TIMEOUT) as session:
            url = str(metadata.get("token_endpoint"))
            return await fetch_json(session, "POST", url, data={**fields, **client})


async def fetch_json(
    session: aiohttp.ClientSession, method: str, url: str, data: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A JSON object of the issuer; redirects are not followed."""
    try:
        async with session.request(method, url, data=data, allow_redirects=False) as response:
            body = await _whole_body(response, url)
            if response.status != 200:
                raise IssuerUnavailable(f"the issuer answered {response.status} at {url}")
            found = orjson.loads(body)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise IssuerUnavailable(f"the issuer failed at {url}: {error_text(error)}") from None
    if not isinstance(found, dict):
        raise IssuerUnavailable(f"the issuer did not answer with an object at {url}")
    return found


async def _whole_body(response: aiohttp.ClientResponse, url: str) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MAX_ANSWER:
            raise IssuerUnavailable(f"the issuer answered with too much at {url}")
    return b"".join(parts)


def _usable_keys(listed: object) -> dict[str | None, jwt.PyJWK]:
    """Keys for signatures; those of unknown kinds are passed over."""
    import jwt

    keys: dict[str | None, jwt.PyJWK] = {}
    for each in listed if isinstance(listed, list) else []:
        # a symmetric key cannot be published
        if (
            not isinstance(each, dict)
            or each.get("use", "sig") != "sig"
            or each.get("kty") == "oct"
        ):
            continue
        try:
            keys[each.get("kid")] = jwt.PyJWK(each)
        except jwt.PyJWTError:
            continue
    return keys


def scope_in(claim: object) -> Scope:
    """The widest scope of Forager in a claim: a list, or names between spaces."""
    names = claim.split() if isinstance(claim, str) else claim
    given = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    for scope in (Scope.ADMIN, Scope.OPERATE, Scope.READ):
        if f"{SCOPE_PREFIX}{scope}" in given:
            return scope
    raise Forbidden(
        "the token has no scope of Forager",
        hint="The issuer has to grant forager:read, forager:operate or forager:admin.",
    )


async def caller_by_token(database: Database, user_id: UUID, scope: Scope, name: str) -> Caller:
    """A caller without a key: an admin sees everything, others see what their owner has."""
    visibility = Visibility.EVERYTHING if scope is Scope.ADMIN else Visibility.OWN
    quota = await get_quota(database, user_id)
    return Caller(user_id, scope, quota=quota, visibility=visibility, name=name)
