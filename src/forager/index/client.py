"""The REST API of the engine, limited to calls that OpenSearch and Elasticsearch share.

A handful of calls over aiohttp. The official clients are large, and each refuses the servers of the
others.
"""

from __future__ import annotations

from typing import Any, Self
from urllib.parse import quote

import aiohttp
import orjson
from yarl import URL

from forager.errors import InvalidInput, error_text
from forager.hints import Hint, action
from forager.index.kind import EngineBusy, EngineRefused, EngineUnavailable, IndexMissing
from forager.settings import Settings

JSON = "application/json"
LINES = "application/x-ndjson"
CONNECT_LIMIT = 2.0
ANSWER_LIMIT = 60.0
MAX_ANSWER = 64 * 1024 * 1024
CHUNK = 64 * 1024
TOO_MANY = 429
NOT_FOUND = 404
# not caused by the request: access denied, a block that is lifted again, a timeout
TEMPORARY = frozenset({401, 403, 408})
SHOWN = 300
MISSING = ("index_not_found_exception", "aliases_not_found_exception")


class EngineClient:
    """One engine. The password appears in no error and in no log line."""

    def __init__(self, url: str) -> None:
        parsed = _checked(url)
        self._base = parsed.with_user(None).with_password(None)
        self._session: aiohttp.ClientSession | None = None
        self._headers = (
            {"authorization": aiohttp.encode_basic_auth(parsed.user, parsed.password or "")}
            if parsed.user
            else {}
        )

    @classmethod
    def of(cls, settings: Settings) -> Self:
        assert settings.opensearch_url is not None
        return cls(settings.opensearch_url.get_secret_value())

    @property
    def address(self) -> str:
        """The URL of the engine, without the password."""
        return str(self._base)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        # a client whose closing is canceled must not keep the closed session
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        limit: float = ANSWER_LIMIT,
        **parameters: str,
    ) -> dict[str, Any]:
        """One call; `body` is JSON, or lines of it as bytes."""
        lines = isinstance(body, bytes)
        data = body if lines or body is None else orjson.dumps(body)
        headers = {} if data is None else {"content-type": LINES if lines else JSON}
        try:
            async with self._opened().request(
                method,
                self._base.joinpath(*path.split("/")).with_query(parameters),
                data=data,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=limit, connect=CONNECT_LIMIT),
            ) as response:
                return _parsed(response.status, await _read(response), self.address)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise _unavailable(self.address, error_text(error)) from error

    def _opened(self) -> aiohttp.ClientSession:
        # opened by the first call: an unused engine costs nothing
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        return self._session

    # --- indexes -------------------------------------------------------------------------------

    async def uuid_of(self, name: str) -> str | None:
        """The UUID of an index; an index that was deleted and created again has another one."""
        try:
            response = await self.request("GET", f"{quote(name)}/_settings")
        except IndexMissing:
            return None
        try:
            found = {key: str(it["settings"]["index"]["uuid"]) for key, it in response.items()}
        except (KeyError, TypeError) as error:
            raise _unavailable(self.address, f"it answers strangely: {error_text(error)}") from None
        if not found:
            raise _unavailable(self.address, "its response names no index")
        # another index may have this one's name as an alias
        return found.get(name)

    async def create(self, name: str) -> str:
        """Create an index from its template, with an alias for writing; return its UUID."""
        await self.request("PUT", name, {"aliases": {writing_alias(name): {}}})
        uuid = await self.uuid_of(name)
        if uuid is None:
            raise IndexMissing(f"{self.address} has not made the index {name}")
        return uuid

    async def delete(self, name: str) -> None:
        """Delete an index that may be gone already."""
        await self.request("DELETE", name, ignore_unavailable="true")

    async def refresh(self, name: str) -> None:
        """Make written entries visible to searches."""
        await self.request("POST", f"{name}/_refresh")

    async def point(self, alias: str, name: str) -> None:
        """Point an alias at this index and no other, in one step."""
        try:
            meant = list(await self.request("GET", f"_alias/{alias}"))
        except IndexMissing:
            meant = []
        if meant == [name]:
            return
        actions = [{"remove": {"index": each, "alias": alias}} for each in meant if each != name]
        await self.request(
            "POST", "_aliases", {"actions": [*actions, {"add": {"index": name, "alias": alias}}]}
        )


def writing_alias(name: str) -> str:
    """The alias for writing: an engine creates an index for any other unknown name."""
    return f"{name}-writing"


def _checked(url: str) -> URL:
    # the URL may hold a password, so it is not repeated
    try:
        parsed = URL(url)
    except ValueError:
        parsed = URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InvalidInput(
            "FORAGER_OPENSEARCH_URL is not the URL of a search engine",
            hint="Expected: https://user:password@host:9200",
        )
    return parsed


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for part in response.content.iter_chunked(CHUNK):
        body += part
        if len(body) > MAX_ANSWER:
            raise EngineUnavailable("the answer of the search engine is too long")
    return bytes(body)


def _parsed(status: int, body: bytes, address: str) -> dict[str, Any]:
    try:
        response = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _unavailable(address, f"it answers {status}, and not in JSON") from None
    if not isinstance(response, dict):
        raise _unavailable(address, f"it answers {status} with something else than an object")
    if status < 300:
        return response
    error = response.get("error")
    reason = _reason(error)
    if status == NOT_FOUND and _is_index_error(error):
        raise IndexMissing(f"the search engine at {address} does not have that: {reason}")
    if status == TOO_MANY:
        raise EngineBusy(f"the search engine at {address} is busy: {reason}")
    if is_refusal(status):
        raise EngineRefused(f"the search engine at {address} refuses: {reason}")
    raise _unavailable(address, f"{status} {reason}")


def is_refusal(status: int) -> bool:
    """Whether the request itself is at fault, and would be refused again."""
    return 400 <= status < 500 and status != NOT_FOUND and status not in TEMPORARY


def _is_index_error(error: Any) -> bool:
    """Whether the engine reports a missing index, rather than a gateway a missing page."""
    if isinstance(error, dict):
        return error.get("type") in MISSING
    return isinstance(error, str) and error.startswith("alias [")


def _reason(error: Any) -> str:
    text = error.get("reason") or error.get("type") if isinstance(error, dict) else error
    return str(text or "no reason given")[:SHOWN]


def _unavailable(address: str, reason: str) -> EngineUnavailable:
    return EngineUnavailable(
        f"the search engine at {address} does not answer: {reason}",
        hint=Hint("Check FORAGER_OPENSEARCH_URL, or run {}.", action("doctor")),
    )
