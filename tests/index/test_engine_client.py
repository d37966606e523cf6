"""An engine that answers strangely, slowly, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.index import client as clients
from forager.index import writing
from forager.index.client import EngineClient
from forager.index.engine import (
    ANSWER_LIMIT,
    LOST,
    REFUSED,
    UNAVAILABLE,
    Found,
    IndexView,
    SearchEngine,
    note_of,
)
from forager.index.kind import EngineBusy, EngineRefused, EngineUnavailable, IndexMissing
from forager.index.writing import PART_BYTES, PART_ROWS, BulkAction, parts, payload_of, send
from forager.products.indexing import INDEXED_PRODUCTS

Answer = Callable[[str], Awaitable[bytes]]


def http(status: int, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status} Said\r\ncontent-length: {len(body)}\r\n{more}connection: close\r\n"
    return head.encode() + b"\r\n" + body


@asynccontextmanager
async def answering(*answers: bytes) -> AsyncIterator[tuple[EngineClient, list[str]]]:
    """A server that gives these answers, one after the other, and what it was asked."""
    asked: list[str] = []
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lengths = [line for line in head.lower().split("\r\n") if "content-length" in line]
            body = await reader.readexactly(int(lengths[0].split(":")[1])) if lengths else b""
            asked.append(head + body.decode())
            writer.write(left.pop(0))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, IndexError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, EngineClient(f"http://me:s%C3%A9cret@127.0.0.1:{port}/below") as client:
        yield client, asked


STRANGE = {
    "not JSON": http(200, b"<html>"),
    "no object": http(200, b"[1]"),
    "an error of the engine": http(503, b'{"error": {"reason": "no master"}}'),
    "too many": http(429, b'{"error": "slow down"}'),
    "no entry": http(401, b'{"error": "who are you"}'),
    "nothing there": http(404, b'{"message": "no Route matched with those values"}'),
    "nothing there, wrapped": http(404, b'{"error": "Not Found"}'),
    "a way elsewhere": http(302, b"{}", "location: http://127.0.0.1:1/\r\n"),
    "nothing": b"",
    "a half": b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE)
async def test_what_cannot_be_used_is_an_engine_that_is_away(answer: bytes) -> None:
    async with answering(answer) as (client, _):
        with pytest.raises(EngineUnavailable) as raised:
            await client.request("GET", "x/_search")
        assert "cret" not in str(raised.value)
        assert note_of(raised.value) == UNAVAILABLE


async def test_errors_are_told_apart() -> None:
    missing = http(404, b'{"error": {"type": "index_not_found_exception"}}')
    refused = http(400, b'{"error": {"reason": "not a query"}}')
    no_alias = http(404, b'{"error": "alias [x] missing", "status": 404}')
    async with answering(missing, refused, no_alias, http(200, b"{}")) as (client, asked):
        with pytest.raises(IndexMissing) as gone:
            await client.request("POST", "x/_search", {})
        assert note_of(gone.value) == LOST
        with pytest.raises(EngineRefused, match="not a query"):
            await client.request("POST", "x/_search", {})
        await client.point("x", "x-1")
    assert '"add":{"index":"x-1","alias":"x"}' in asked[3]


async def test_the_password_goes_in_a_header_and_the_path_stays() -> None:
    async with answering(http(200, b'{"ok": true}')) as (client, asked):
        assert await client.request("POST", "x/_bulk", b"{}\n", refresh="true") == {"ok": True}
    assert asked[0].startswith("POST /below/x/_bulk?refresh=true HTTP/1.1")
    assert "authorization: Basic bWU6c8OpY3JldA==" in asked[0].replace(
        "Authorization", "authorization"
    )
    assert "application/x-ndjson" in asked[0]


async def test_an_endless_answer_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_ANSWER", 1000)
    async with answering(http(200, b'"' + b"x" * 5000 + b'"')) as (client, _):
        with pytest.raises(EngineUnavailable, match="too long"):
            await client.request("GET", "x")


HITS = b'{"timed_out": false, "_shards": {"failed": 0}, "hits": {"hits": [{"sort": [1.5, 3, 1]}]}}'
PARTLY = [
    HITS.replace(b'"failed": 0', b'"failed": 1'),
    HITS.replace(b'"timed_out": false', b'"timed_out": true'),
    HITS.replace(b" 3,", b" [],"),
    HITS.replace(b" 3,", b' "x",'),
    HITS.replace(b" 3,", b" %d," % 2**63),
    HITS.replace(b" 3,", b' "1%s",' % (b"0" * 30)),
    HITS.replace(b" 3,", b" -1,"),
    HITS.replace(b"1.5", b'"NaN"'),
    HITS.replace(b"1.5", b"null"),
    b'{"took": 3}',
]


async def test_a_partial_answer_is_an_error() -> None:
    async with answering(*[http(200, body) for body in (HITS, *PARTLY)]) as (client, _):
        engine = SearchEngine(client)
        view = IndexView(engine, "x")
        fields = ("document_id", "position")
        assert await view.find({}, fields, size=10) == [Found(1.5, (3, 1))]
        assert engine.note is None
        for _ in PARTLY:
            with pytest.raises(EngineUnavailable):
                await view.find({}, fields, size=10)
        assert engine.note == UNAVAILABLE


async def test_only_an_unreachable_engine_is_bypassed() -> None:
    missing = http(404, b'{"error": {"type": "index_not_found_exception"}}')
    refused = http(400, b'{"error": {"reason": "too many clauses"}}')
    async with answering(missing, refused, http(503, b"{}")) as (client, _):
        engine = SearchEngine(client)
        for note, bypassed in ((LOST, None), (REFUSED, None), (UNAVAILABLE, UNAVAILABLE)):
            with pytest.raises(EngineUnavailable) as raised:
                await IndexView(engine, "x").find({}, ("id",), size=10)
            assert (note_of(raised.value), engine.note) == (note, bypassed)


async def test_all_requests_of_a_search_share_one_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float] = []

    class Slow(EngineClient):
        async def request(self, *_: Any, limit: float = 0.0, **__: Any) -> dict[str, Any]:
            limits.append(limit)
            now.append(now[-1] + 1.5)
            return {"timed_out": False, "_shards": {"failed": 0}}

    now = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now[-1])
    monkeypatch.setattr("forager.index.engine.time", clock)
    engine = SearchEngine(Slow("http://127.0.0.1:1"))
    view = IndexView(engine, "x")
    for _ in range(3):
        assert await view.find({}, ("id",), size=10) == []
    with pytest.raises(EngineUnavailable, match="too slow"):
        await view.find({}, ("id",), size=10)
    assert limits == [ANSWER_LIMIT, ANSWER_LIMIT - 1.5, ANSWER_LIMIT - 3.0]
    assert engine.note == UNAVAILABLE


async def test_bulk_answers_are_read_entry_by_entry() -> None:
    actions = [BulkAction("a", 1, 7, b"{}"), BulkAction("b", 2, 7), BulkAction("c", 3, 7, b"{}"),
               BulkAction("d", 4, 7, b"{}")]  # fmt: skip
    body = (
        b'{"errors": true, "items": [{"index": {"status": 201}}, {"delete": {"status": 404}},'
        b' {"index": {"status": 409}}, {"index": {"status": 400, "error": {"type": "strict"}}}]}'
    )
    busy = b'{"errors": true, "items": [{"index": {"status": 429, "error": {}}}]}'
    async with answering(http(200, body), http(200, busy), http(200, b"{}")) as (client, asked):
        outcome = await send(client, "x", actions, payload_of(actions))
        assert outcome.counts == {"written": 1, "deleted": 1, "known": 1, "refused": 1}
        assert [*outcome.refused] == [4]
        for _ in range(2):
            with pytest.raises(EngineUnavailable):
                await send(client, "x", actions[:1], payload_of(actions[:1]))
    assert '{"delete":{"_id":"b","version":7,"version_type":"external"}}\n{"index"' in asked[0]


BULK = [
    b"{}",
    b"null",
    b'{"index": null}',
    b'{"index": {}}',
    b'{"index": {"status": "x"}}',
    b'{"index": {"status": null}}',
    b"[1]",
    b"7",
    b'{"index": {"status": 200}, "x": 1}',
]
SETTINGS = [
    b"{}",
    b'{"x": null}',
    b'{"x": {"settings": []}}',
    b'{"x": {"settings": {"index": {}}}}',
]


async def test_strange_answers_to_feeders_are_an_engine_that_is_away() -> None:
    action = BulkAction("a", 1, 7, b"{}")
    bodies = [b'{"items": [' + item + b"]}" for item in BULK]
    async with answering(*[http(200, body) for body in (*bodies, *SETTINGS)]) as (client, _):
        for _ in BULK:
            with pytest.raises(EngineUnavailable):
                await send(client, "x", [action], payload_of([action]))
        for _ in SETTINGS:
            with pytest.raises(EngineUnavailable):
                await client.uuid_of("x")


@pytest.mark.parametrize("status", [401, 403, 408])
async def test_an_entry_that_cannot_be_taken_now_is_not_refused(status: int) -> None:
    action = BulkAction("a", 1, 7, b"{}")
    body = b'{"items": [{"index": {"status": %d, "error": {"type": "blocked"}}}]}' % status
    async with answering(http(200, body)) as (client, _):
        with pytest.raises(EngineUnavailable, match=r"now: .*blocked"):
            await send(client, "x", [action], payload_of([action]))


async def test_an_index_that_deleting_has_made_is_deleted() -> None:
    action = BulkAction("a", 1, 7)
    made = b'{"items": [{"delete": {"_index": "x", "status": 404, "result": "not_found"}}]}'
    async with answering(http(200, made), http(200, b"{}")) as (client, asked):
        with pytest.raises(IndexMissing):
            await send(client, "x", [action], payload_of([action]))
    assert asked[1].startswith("DELETE /below/x?")


async def test_a_busy_engine_is_asked_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "WAITS", (0.0, 0.0))
    full = http(429, b'{"error": {"reason": "Data too large"}}')
    busy = http(200, b'{"items": [{"delete": {"status": 429, "error": {}}}]}')
    done = http(200, b'{"items": [{"delete": {"status": 200}}]}')
    gone = [BulkAction("1", 1, 7)]
    async with answering(full, busy, done, full, full, full) as (client, asked):
        writer = writing.IndexWriter(database, client, INDEXED_PRODUCTS)
        assert (await writer.delete(["x"], gone)).counts == {"deleted": 1}
        with pytest.raises(EngineBusy, match="too large"):
            await writer.delete(["x"], gone)
    assert len(asked) == 6


def test_rows_go_in_parts_of_a_bearable_size() -> None:
    large = PART_BYTES // 2 + 1
    assert list(parts({1: large, 2: large, 3: 10, 4: 3 * PART_BYTES, 5: 1})) == [
        [1],
        [2, 3],
        [4],
        [5],
    ]
    assert [len(part) for part in parts(dict.fromkeys(range(PART_ROWS + 1), 1))] == [PART_ROWS, 1]
    assert list(parts({})) == []


@pytest.mark.parametrize("url", ["", "127.0.0.1:9200", "ftp://u:pass@x", "http://", "http://[::1"])
def test_what_is_no_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        EngineClient(url)
    assert "pass@" not in str(raised.value)
