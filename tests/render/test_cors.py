"""A rendered page reads other origins only as far as a browser would let it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest
import pytest_asyncio
from aiohttp import web

from forager.errors import GiveUp
from forager.fetch.client import Client, ClientOptions
from forager.fetch.guard import GuardPolicy, is_private
from forager.fetch.response import Request
from forager.render.renderer import RenderedPage, Renderer
from forager.render.resources import ResourceLoader
from render.conftest import AGENT, LIMITS, allow
from render.pages import WORDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "internal-secret"


@dataclass
class Origin:
    """A server with answers by path; `log` has the method, path and headers of each request."""

    answers: dict[str, web.Response] = field(default_factory=dict)
    log: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        key = f"{request.method} {request.path}"
        self.log.append((request.method, request.path, dict(request.headers)))
        found = self.answers.get(key) or web.Response(status=404)
        # a response object can be sent once
        return web.Response(status=found.status, headers=found.headers, body=found.body)

    def sent(self, path: str) -> list[str]:
        return [method for method, asked, _ in self.log if asked == path]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def origins() -> AsyncIterator[tuple[Origin, Origin]]:
    """The origin of the page, and another one: loopback addresses with different ports."""
    both = (Origin(), Origin())
    runners = []
    for origin in both:
        runner = web.ServerRunner(web.Server(origin.answer))
        await runner.setup()
        place = web.TCPSite(runner, "127.0.0.1", 0)
        await place.start()
        host, port = runner.addresses[0][:2]
        origin.url = f"http://{host}:{port}"
        runners.append(runner)
    yield both
    for runner in runners:
        await runner.cleanup()


@dataclass
class Browsing:
    page: Origin
    other: Origin
    client: Client
    renderer: Renderer

    async def run(self, script: str, **document: str) -> RenderedPage:
        """Render a page whose script shows what its promise `result` becomes."""
        text = f"""<!DOCTYPE html><html><body><p>{WORDS}</p><div id="app"></div><script>
            const other = "{self.other.url}";
            const result = (async () => {{ {script} }})();
            result.then((r) => "read:" + r, (e) => "refused:" + e.name).then((shown) => {{
              const done = Object.assign(document.createElement("p"), {{id: "done"}});
              done.textContent = shown; document.body.append(done); }});
            </script></body></html>"""
        self.page.answers["GET /page"] = web.Response(text=text, content_type="text/html")
        self.other.log.clear()
        fetched = await self.client.fetch(Request(f"{self.page.url}/page"))
        loader = ResourceLoader.of(self.client, allow, LIMITS, user_agent=AGENT)
        return await self.renderer.render(
            replace(fetched, **document),  # type: ignore[arg-type]
            loader,
            wait_for="#done",
        )

    async def shows(self, script: str, **document: str) -> str:
        html = (await self.run(script, **document)).html.decode()
        return html.partition('id="done">')[2].partition("</p>")[0]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browsing(browser_path: str, origins: tuple[Origin, Origin]) -> AsyncIterator[Browsing]:
    guard = GuardPolicy(allow_private=True)
    async with (
        Client(
            ClientOptions(user_agent=AGENT, guard=guard, headers={"Authorization": "Bearer mine"})
        ) as client,
        Renderer(browser_path, LIMITS) as renderer,
    ):
        yield Browsing(*origins, client, renderer)


def secret(**headers: str) -> web.Response:
    return web.Response(text=SECRET, headers={k.replace("_", "-"): v for k, v in headers.items()})


READ = 'return (await fetch(other + "/data")).text()'


async def test_a_response_without_permission_is_not_read(browsing: Browsing) -> None:
    browsing.other.answers["GET /data"] = secret()
    page = await browsing.run(READ)
    assert SECRET not in page.html.decode()
    assert "refused:TypeError" in page.html.decode()
    [refused] = [each for each in page.resources if each.refused]
    assert "CORS" in (refused.refused or "")


async def test_a_response_with_permission_is_read(browsing: Browsing) -> None:
    for allowed in ("*", browsing.page.url):
        browsing.other.answers["GET /data"] = secret(Access_Control_Allow_Origin=allowed)
        assert await browsing.shows(READ) == f"read:{SECRET}"
    browsing.other.answers["GET /data"] = secret(Access_Control_Allow_Origin="https://a.example")
    assert await browsing.shows(READ) == "refused:TypeError"


async def test_a_cross_origin_request_has_no_credentials(browsing: Browsing) -> None:
    browsing.other.answers["GET /data"] = secret(Access_Control_Allow_Origin="*")
    await browsing.shows(READ)
    [(_, _, headers)] = browsing.other.log
    assert "Authorization" not in headers
    assert headers["Origin"] == browsing.page.url


async def test_a_wildcard_does_not_allow_credentials(browsing: Browsing) -> None:
    script = 'return (await fetch(other + "/data", {credentials: "include"})).text()'
    browsing.other.answers["GET /data"] = secret(Access_Control_Allow_Origin="*")
    assert await browsing.shows(script) == "refused:TypeError"
    browsing.other.answers["GET /data"] = secret(
        Access_Control_Allow_Origin=browsing.page.url, Access_Control_Allow_Credentials="true"
    )
    assert await browsing.shows(script) == f"read:{SECRET}"


async def test_without_cors_the_response_stays_opaque(browsing: Browsing) -> None:
    browsing.other.answers["GET /data"] = secret()
    script = """const got = await fetch(other + "/data", {mode: "no-cors"});
        return got.type + "," + (await got.text())"""
    assert await browsing.shows(script) == "read:opaque,"


POST = """return (await fetch(other + "/post", {method: "POST", body: "{}",
    headers: {"Content-Type": "application/json", "X-Token": "1"}})).text()"""


async def test_a_preflight_is_a_real_request(browsing: Browsing) -> None:
    browsing.other.answers["POST /post"] = secret(Access_Control_Allow_Origin="*")
    browsing.other.answers["OPTIONS /post"] = secret(
        Access_Control_Allow_Origin="*", Access_Control_Allow_Headers="content-type, X-Token"
    )
    assert await browsing.shows(POST) == f"read:{SECRET}"
    assert browsing.other.sent("/post") == ["OPTIONS", "POST"]
    _, _, asked = browsing.other.log[0]
    assert asked["Access-Control-Request-Method"] == "POST"
    assert asked["Access-Control-Request-Headers"] == "content-type,x-token"
    assert asked["Origin"] == browsing.page.url


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=404),
        web.Response(headers={"Access-Control-Allow-Origin": "*"}),
        web.Response(
            headers={
                "Access-Control-Allow-Origin": "*",
                "Access-Control-Allow-Headers": "content-type",
            }
        ),
        web.Response(headers={"Access-Control-Allow-Headers": "*"}),
    ],
    ids=["missing", "no headers", "another header", "no origin"],
)
async def test_a_refused_preflight_sends_nothing_else(
    browsing: Browsing, answer: web.Response
) -> None:
    browsing.other.answers["POST /post"] = secret(Access_Control_Allow_Origin="*")
    browsing.other.answers["OPTIONS /post"] = answer
    assert await browsing.shows(POST) == "refused:TypeError"
    assert browsing.other.sent("/post") == ["OPTIONS"]


async def test_a_redirect_does_not_hide_another_origin(browsing: Browsing) -> None:
    to_other = web.Response(status=302, headers={"Location": f"{browsing.other.url}/data"})
    browsing.page.answers["GET /away"] = to_other
    script = 'return (await fetch("/away")).text()'
    browsing.other.answers["GET /data"] = secret()
    assert await browsing.shows(script) == "refused:TypeError"
    browsing.other.answers["GET /data"] = secret(Access_Control_Allow_Origin="*")
    assert await browsing.shows(script) == f"read:{SECRET}"


async def test_a_request_with_a_preflight_is_not_redirected_elsewhere(browsing: Browsing) -> None:
    allowed = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
    browsing.other.answers["OPTIONS /post"] = web.Response(headers=allowed)
    browsing.page.answers["POST /target"] = secret(Access_Control_Allow_Origin="*")
    browsing.other.answers["POST /post"] = web.Response(
        status=307, headers={**allowed, "Location": f"{browsing.page.url}/target"}
    )
    browsing.page.log.clear()
    assert await browsing.shows(POST) == "refused:TypeError"
    assert browsing.page.sent("/target") == []


async def test_a_public_page_reaches_no_private_address(browsing: Browsing) -> None:
    browsing.other.answers["GET /data"] = secret(Access_Control_Allow_Origin="*")
    assert await browsing.shows(READ, peer="93.184.215.14") == "refused:TypeError"
    assert browsing.other.log == []
    assert await browsing.shows(READ) == f"read:{SECRET}"


async def test_a_public_request_refuses_names_of_private_addresses(browsing: Browsing) -> None:
    url = browsing.other.url.replace("127.0.0.1", "localhost")
    with pytest.raises(GiveUp, match="loopback"):
        await browsing.client.fetch(Request(f"{url}/data", is_public=True))


async def test_private_addresses_are_known() -> None:
    assert is_private("127.0.0.1")
    assert is_private("fd00::1")
    assert not is_private("93.184.215.14")
    assert not is_private("")
