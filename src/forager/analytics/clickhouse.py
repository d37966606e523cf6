"""A ClickHouse server: statements, queries and files, over its HTTP interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
from pydantic import SecretStr

from forager.errors import ForagerError, InvalidInput, NotAllowed, error_text
from forager.hints import Hint, action

CONNECT = 10.0
LONGEST = 60.0
# for the server to store one file
LONGEST_INSERT = 600.0
# the limits of a query on the server, which may have lower ones
LIMITS = f"max_execution_time = {LONGEST:g}, max_memory_usage = 8000000000, cast_keep_nullable = 1"


class ClickHouseUnavailable(ForagerError):
    """The ClickHouse server is unreachable, or fails."""


class ClickHouse:
    """One connection. Its errors are explained, without the password."""

    def __init__(self, client: Any, driver: Any, place: str) -> None:
        self._client = client
        self._driver = driver
        self._place = place

    async def run(self, statement: str, values: dict[str, Any] | None = None) -> None:
        """Run a statement without a result; raises an error with the place of the server."""
        with explained_failures(self._driver, self._place):
            async with asyncio.timeout(LONGEST):
                await self._client.command(statement, parameters=values)

    async def query(
        self, sql: str, values: dict[str, Any] | None = None, *, longest: float = LONGEST
    ) -> dict[str, Any]:
        """The answer as ClickHouse's JSONCompact: `meta` and `data`."""
        with explained_failures(self._driver, self._place):
            async with asyncio.timeout(longest):
                output = await self._client.raw_query(
                    f"{sql}\nSETTINGS {LIMITS}", parameters=values, fmt="JSONCompact"
                )
            return _answer_in(output)

    async def insert(self, table: str, columns: Sequence[str], content: bytes) -> None:
        """All rows of a Parquet file. In one piece: a stream could not be sent a second time."""
        with explained_failures(self._driver, self._place):
            async with asyncio.timeout(LONGEST_INSERT):
                await self._client.raw_insert(table, columns, content, fmt="Parquet")


def _answer_in(output: bytes) -> dict[str, Any]:
    """The answer, checked: another server may have answered, or this one failed halfway."""
    try:
        answer = orjson.loads(output)
    except orjson.JSONDecodeError:
        answer = None
    if not isinstance(answer, dict) or not answer.keys() >= {"meta", "data"}:
        raise ValueError(f"it answers {output[-200:].decode(errors='replace')!r}")
    return answer


@asynccontextmanager
async def connected(url: SecretStr) -> AsyncIterator[ClickHouse]:
    """A connection to the server."""
    driver = load_driver()
    parts = urlsplit(url.get_secret_value())
    place = f"ClickHouse at {parts.hostname}"
    with explained_failures(driver, place):
        async with asyncio.timeout(CONNECT * 3):
            client = await driver.create_async_client(
                host=parts.hostname,
                port=parts.port,
                username=unquote(parts.username or "default"),
                password=unquote(parts.password or ""),
                database=unquote(parts.path.strip("/")) or None,
                interface="https" if parts.scheme == "clickhouses" else "http",
                connect_timeout=CONNECT,
                send_receive_timeout=LONGEST_INSERT,
                # sessions run one query at a time, and are left behind
                autogenerate_session_id=False,
            )
    try:
        yield ClickHouse(client, driver, place)
    finally:
        await client.close()


def load_driver() -> Any:
    try:
        return import_module("clickhouse_connect.driver")
    except ImportError:
        raise InvalidInput(
            "a ClickHouse server needs clickhouse-connect, which is not installed",
            hint="Install it with: pip install 'forager-crawler[clickhouse]'",
        ) from None


@contextmanager
def explained_failures(driver: Any, place: str) -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise NotAllowed(
            f"{place} took too long", hint="Ask for fewer days, or look at what the server does."
        ) from None
    except (driver.exceptions.ClickHouseError, OSError, ValueError) as error:
        raise ClickHouseUnavailable(
            f"{place} cannot be used: {error_text(error)[:500]}",
            hint=Hint(
                "Check FORAGER_CLICKHOUSE_URL and the server. {} loads missing rows.",
                action("analytics sync"),
            ),
        ) from None
