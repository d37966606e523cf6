"""A ClickHouse server with invalid answers is reported as unavailable; nothing else fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import SecretStr

from forager.analytics.clickhouse import ClickHouseUnavailable, connected

# the first two are what the driver wants to know of a server
GREETINGS = {"version()": b"24.8.1.1\tUTC\n", "system.settings": b"\x00\x00"}
UNREADABLE = [
    "<html>sign in</html>",
    '{"meta":[],"data":[[1],\nCode: 159. DB::Exception: Timeout exceeded',
    "[]",
    "{}",
    "",
]


@asynccontextmanager
async def answering(text: str, asked: list[str] | None = None) -> AsyncIterator[SecretStr]:
    """A server that says this to every question; its URL. What it was `asked` is noted."""

    async def answer(request: web.Request) -> web.Response:
        question = request.query.get("query", "") + (await request.read()).decode()
        if asked is not None:
            asked.append(question)
        for part, greeting in GREETINGS.items():
            if part in question:
                return web.Response(body=greeting)
        return web.Response(text=text)

    app = web.Application()
    app.router.add_route("*", "/{any:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield SecretStr(f"clickhouse://forager:hush@127.0.0.1:{runner.addresses[0][1]}/db")
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("text", UNREADABLE)
async def test_what_cannot_be_read_is_told(text: str) -> None:
    async with answering(text) as url, connected(url) as server:
        with pytest.raises(ClickHouseUnavailable, match="cannot be used: it answers") as raised:
            await server.query("SELECT 1")
    assert "hush" not in str(raised.value)
