"""A small OpenID Connect issuer: metadata, keys, sign-in without questions, and tokens."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from types import TracebackType
from typing import Any, Self

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

AUDIENCE = "forager"
CLIENT = "dashboard"
CLIENT_SECRET = "of the client"


class Issuer:
    """Signs tokens for `person`; `requests` counts what was asked for."""

    def __init__(self) -> None:
        self.person: dict[str, Any] = {"sub": "ada", "scope": "openid forager:operate"}
        self.requests: list[str] = []
        # of the metadata, in bytes
        self.padding = 0
        self._codes: dict[str, dict[str, str]] = {}
        self.rotate()

    def rotate(self) -> None:
        """Sign with another key from now on, and publish only that."""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.key_id = secrets.token_hex(4)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/realm"

    def token(self, **claims: Any) -> str:
        """An access token of the person, with other claims where they are given."""
        now = int(time.time())
        known = {"iss": self.url, "aud": AUDIENCE, "iat": now, "exp": now + 300, **self.person}
        return jwt.encode(
            {**known, **claims}, self.key, algorithm="RS256", headers={"kid": self.key_id}
        )

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/realm/.well-known/openid-configuration", self._metadata)
        app.router.add_get("/realm/keys", self._keys)
        app.router.add_get("/realm/authorize", self._authorize)
        app.router.add_post("/realm/token", self._token)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _metadata(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        places = {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "padding": "x" * self.padding,
        }
        return web.json_response(places)

    async def _keys(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        key = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        unknown = {"kty": "new", "kid": "of a later kind"}
        return web.json_response({"keys": [unknown, {**key, "kid": self.key_id, "use": "sig"}]})

    async def _authorize(self, request: web.Request) -> web.Response:
        given = dict(request.query)
        code = secrets.token_hex(8)
        self._codes[code] = given
        raise web.HTTPFound(f"{given['redirect_uri']}?code={code}&state={given['state']}")

    async def _token(self, request: web.Request) -> web.Response:
        given = await request.post()
        asked = self._codes.pop(str(given["code"]))
        digest = hashlib.sha256(str(given["code_verifier"]).encode()).digest()
        proof = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if proof != asked["code_challenge"] or given["client_secret"] != CLIENT_SECRET:
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = self.token(aud=asked["client_id"], nonce=asked["nonce"])
        return web.json_response({"id_token": token, "token_type": "Bearer"})
