"""Tokens of an OpenID Connect issuer, beside keys: the API, `/mcp` and signing in."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import SecretStr
from yarl import URL

from api.client import Answer, Api
from forager.access import oidc
from forager.access.caller import Scope
from forager.access.keys import find_owner
from forager.db.database import Database
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.mcp.transports import mcp_endpoint
from forager.settings import Settings
from forager.web.app import dashboard
from mcp_server.conftest import connect as connect_fixture
from servers.issuer import AUDIENCE, CLIENT, CLIENT_SECRET, Issuer
from support.api_server import api_server
from support.keys import make_key
from web.browser import open_browser

connect = connect_fixture
Ask = Callable[..., Any]


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with Issuer() as running:
        yield running


@pytest.fixture
async def address(settings: Settings, database: Database, issuer: Issuer) -> AsyncIterator[str]:
    changes = {
        "oidc_issuer": issuer.url,
        "oidc_audience": AUDIENCE,
        "oidc_client_id": CLIENT,
        "oidc_client_secret": SecretStr(CLIENT_SECRET),
    }
    trusting = settings.model_copy(update=changes)
    async with api_server(trusting, database, beside=mcp_endpoint, extend=dashboard) as served:
        yield served


async def ask(address: str, token: str | None, path: str = "/api/v1/jobs") -> Answer:
    async with Api(address, key=token) as api:
        return await api.get(path)


async def test_a_token_stands_for_its_owner_with_its_scope(
    address: str, issuer: Issuer, database: Database, queue: Queue
) -> None:
    assert (await ask(address, issuer.token())).json["items"] == []
    ada = await find_owner(database, "ada")
    await queue.enqueue(NewJob(kind="selftest", source_id="a.example", user_id=ada))
    await queue.enqueue(NewJob(kind="selftest", source_id="b.example"))
    [job] = (await ask(address, issuer.token())).json["items"]
    assert job["source"] == "a.example"
    assert (await ask(address, issuer.token(sub="bob"))).json["items"] == []
    admin = issuer.token(scope=["forager:admin", "other"])
    assert len((await ask(address, admin)).json["items"]) == 2
    assert (await ask(address, issuer.token(), "/api/v1/keys")).status == 403


@pytest.mark.parametrize(
    "wrong",
    [
        {"aud": "another service"},
        {"iss": "https://elsewhere.example"},
        {"exp": int(time.time()) - 3600},
        {"nbf": int(time.time()) + 3600},
        {"exp": None},
        {"sub": None},
        {"sub": ""},
    ],
)
async def test_a_token_for_others_is_refused(
    address: str, issuer: Issuer, wrong: dict[str, Any]
) -> None:
    answer = await ask(address, issuer.token(**wrong))
    assert answer.status == 401
    place = f"{address}/.well-known/oauth-protected-resource"
    assert answer.headers["WWW-Authenticate"].endswith(f'resource_metadata="{place}"')


@pytest.mark.parametrize("scope", ["", "admin", "openid", ["operate"], 7, {"forager:admin": True}])
async def test_only_scopes_of_forager_count(address: str, issuer: Issuer, scope: Any) -> None:
    assert (await ask(address, issuer.token(scope=scope))).status == 403


async def test_forged_signatures_are_refused(address: str, issuer: Issuer) -> None:
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    public = issuer.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    header, body, signature = issuer.token().split(".")
    other = Issuer()
    other.port = issuer.port
    forged = [
        jwt.encode(claims, "", algorithm="none", headers={"kid": issuer.key_id}),
        # the public key as the secret of a symmetric signature
        _with_secret(claims, public, issuer.key_id),
        f"{header}.{body}.{signature[:-4]}AAAA",
        # another algorithm than that of the key
        jwt.encode(
            claims,
            ec.generate_private_key(ec.SECP256R1()),
            algorithm="ES256",
            headers={"kid": issuer.key_id},
        ),
        f"{header}.{body}x.{signature}",
        other.token(),
        "a.b.c",
        f"{header}.{body}." + "x" * 20_000,
    ]
    for token in forged:
        assert (await ask(address, token)).status == 401


def _with_secret(claims: dict[str, Any], secret: bytes, key_id: str) -> str:
    """Signed by HMAC; the library refuses a public key, but others do not."""
    import hmac
    import json
    from hashlib import sha256

    from jwt.utils import base64url_encode

    head = json.dumps({"alg": "HS256", "kid": key_id}).encode()
    signed = b".".join((base64url_encode(head), base64url_encode(json.dumps(claims).encode())))
    return (signed + b"." + base64url_encode(hmac.digest(secret, signed, sha256))).decode()


async def test_keys_keep_working_and_requests_without_either_are_refused(
    address: str, issuer: Issuer, database: Database
) -> None:
    key = (await make_key(database, scope=Scope.ADMIN)).text
    assert (await ask(address, key)).status == 200
    assert (await ask(address, None)).status == 401
    assert issuer.requests == []


async def test_the_first_request_without_a_key_is_refused_although_no_key_exists(
    address: str,
) -> None:
    assert (await ask(address, None)).status == 401


async def test_a_new_key_of_the_issuer_is_fetched(
    address: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await ask(address, issuer.token())).status == 200
    assert (await ask(address, issuer.token())).status == 200
    assert len(issuer.requests) == 2  # metadata and keys, once
    issuer.rotate()
    assert (await ask(address, issuer.token())).status == 401  # not asked again so soon
    monkeypatch.setattr(oidc, "FETCH_AGAIN_AFTER", 0.0)
    assert (await ask(address, issuer.token())).status == 200


async def test_clients_learn_where_tokens_come_from(address: str, issuer: Issuer) -> None:
    found = await ask(address, None, "/.well-known/oauth-protected-resource/mcp")
    assert found.json["resource"] == f"{address}/mcp"
    assert found.json["authorization_servers"] == [issuer.url]
    async with Api(address) as api:
        refused = await api.post("/mcp", {})
    place = f"{address}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{place}"' in refused.headers["WWW-Authenticate"]


@pytest.mark.parametrize("path", ["/mcp%0d%0aX:y", "/mcp%E2%82%AC", "/mcp%22", "/mcp?q=1"])
async def test_odd_paths_are_not_repeated_in_headers(address: str, path: str) -> None:
    url = URL(f"{address}{path}", encoded=True)
    async with aiohttp.ClientSession() as session, session.post(url) as refused:
        assert refused.status == 401
        place = f"{address}/.well-known/oauth-protected-resource/mcp"
        assert f'resource_metadata="{place}"' in refused.headers["WWW-Authenticate"]


async def test_known_keys_are_used_while_the_issuer_fails(
    address: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await ask(address, issuer.token())).status == 200
    monkeypatch.setattr(oidc, "KEPT_FOR", 0.0)
    monkeypatch.setattr(oidc, "FETCH_AGAIN_AFTER", 0.0)
    token = issuer.token()
    await issuer.__aexit__(None, None, None)
    assert (await ask(address, token)).status == 200


async def test_metadata_may_arrive_in_parts(address: str, issuer: Issuer) -> None:
    issuer.padding = 200_000
    assert (await ask(address, issuer.token())).status == 200


async def test_an_mcp_client_connects_with_a_token(connect: Ask, issuer: Issuer) -> None:
    async with connect(issuer.token()) as client:
        assert (await client.list_tools()).tools


async def test_an_issuer_that_fails_is_an_error_of_the_server(address: str, issuer: Issuer) -> None:
    token = issuer.token()
    await issuer.__aexit__(None, None, None)
    answer = await ask(address, token)
    assert answer.status == 502
    assert "issuer failed" in answer.json["detail"]


async def test_people_sign_in_to_the_dashboard_at_the_issuer(
    address: str, issuer: Issuer, database: Database
) -> None:
    async with open_browser() as browser:
        page = await browser.new_page()
        await page.goto(f"{address}/sources")
        await page.get_by_role("link", name="Sign in at").click()
        await page.wait_for_url(f"{address}/sources")
        assert "Sources" in await page.title()
        await page.goto(f"{address}/keys")
        assert "scope" in await page.inner_text("main")  # an operator may not see keys
        await page.context.clear_cookies()
        issuer.person["scope"] = "openid"
        await page.goto(f"{address}/sign-in/oidc?next=https://elsewhere.example/")
        assert "no scope of Forager" in await page.inner_text("main")


async def test_an_answer_without_a_begun_sign_in_is_refused(address: str) -> None:
    answer = await ask(address, None, "/sign-in/oidc/callback?code=x&state=y")
    assert answer.status == 400
