"""Two owners: no list of the API, the dashboard or MCP shows one the rows of the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest
from fastapi.routing import APIRoute
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from api.furnished import SLOW, operations, parameters
from forager.access.caller import Scope, Visibility
from forager.api.app import create_app
from forager.db.database import Database
from forager.db.ids import new_id
from forager.errors import ErrorKind
from forager.failures.cause import Cause
from forager.failures.store import insert_job_error
from forager.jobs.job import Lease, NewJob
from forager.jobs.queue import Queue
from forager.jobs.workers import register
from forager.mcp.server import TOOLS
from forager.mcp.transports import mcp_endpoint
from forager.settings import Settings
from forager.web.app import ROUTERS, dashboard
from search_corpus import Corpus
from support.api_server import api_server
from support.keys import make_key
from support.sql import execute
from web.visitor import Visitor

NAMES = ("alder", "birch")
# fields of the pages and lists that need one
QUERY = {"q": "zebra", "url": "https://{}.example/a", "name": "backlog", "source": "{}.example"}
MCP_ARGUMENTS: dict[str, dict[str, Any]] = {
    "search_docs": {"query": "zebra"},
    "read_page": {"url": "https://{}.example/a"},
    "read_section": {"url": "https://{}.example/a", "section": "part-0"},
    "list_sources": {},
    "source_changes": {"source": "{}.example"},
    "explain_url": {"url": "https://{}.example/a"},
    "crawl_site": {"source": "{}.example"},
    "job_status": {"job_id": "{}"},
    "search_products": {"query": "zebra"},
    "product_history": {"product": "https://{}.example/a"},
}


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner, whose rows all contain its name, and the texts of its keys."""

    name: str
    keys: list[str]
    job_id: UUID
    error_id: int


@pytest.fixture
async def address(web_settings: Settings, database: Database) -> AsyncIterator[str]:
    async with api_server(web_settings, database, extend=dashboard, beside=mcp_endpoint) as served:
        yield served


@pytest.fixture
async def owners(database: Database, web_settings: Settings) -> tuple[Owner, Owner]:
    first, second = [await _owner(database, web_settings, name) for name in NAMES]
    return first, second


async def _owner(database: Database, settings: Settings, name: str) -> Owner:
    """A published source, a failed job with its error, and a running job."""
    made = [
        await make_key(database, name, scope=scope, owner=name)
        for scope in (Scope.READ, Scope.OPERATE)
    ]
    user_id, source = made[0].key.user_id, f"{name}.example"
    pages = {"/a": [(f"Of {name}", f"A zebra of {name}.")]}
    await Corpus(database).publish(source, pages, owner=user_id)
    failed = await _run(database, settings, source, user_id)
    await Queue(database, settings).fail(failed, f"{name} is broken", permanent=True)
    async with database.connection() as connection:
        cause = Cause(ErrorKind.PARSE, f"{name} is broken")
        await insert_job_error(connection, failed.job_id, cause, f"https://{source}/a")
    [(error_id,)] = await execute(database, "SELECT max(id) FROM error_logs")
    await _run(database, settings, source, user_id)
    return Owner(name, [each.text for each in made], failed.job_id, error_id)


async def _run(database: Database, settings: Settings, source: str, user_id: UUID) -> Lease:
    """A job that a worker runs."""
    queue, worker = Queue(database, settings), new_id()
    payload = {"urls": [f"https://{source}/a"]}
    await queue.enqueue(NewJob(kind="crawl", payload=payload, source_id=source, user_id=user_id))
    values = {"id": worker, "host": "host", "pid": 1, "process": None, "version": "1",
              "capacity": 1, "role": "worker", "region": None, "renders": False,
              "parsers": None, "brake": None}  # fmt: skip
    await database.run(register, values, state="running", note=None)
    [job] = await queue.claim(worker, kinds=["crawl"])
    return Lease(job.id, job.lease, worker)


def _api_lists(settings: Settings) -> list[tuple[str, dict[str, str]]]:
    """Every GET of the API without a parameter in its path, with the query that it needs."""
    unused: Any = object()
    return [
        (path, {name: QUERY[name] for name in parameters(operation, "query") if name in QUERY})
        for method, path, operation in operations(create_app(settings, unused).openapi())
        if method == "GET" and "{" not in path and path not in SLOW
    ]


def _pages() -> list[tuple[str, dict[str, str]]]:
    """Every page of the dashboard without a parameter in its path."""
    return [
        (route.path, query)
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and "{" not in route.path
        for query in ({}, QUERY)
    ]


def _of(query: dict[str, str], name: str) -> dict[str, str]:
    return {field: value.format(name) for field, value in query.items()}


async def test_no_list_shows_rows_of_another_owner(
    address: str, owners: tuple[Owner, Owner], web_settings: Settings
) -> None:
    leaks, own = [], set()
    lists, pages = _api_lists(web_settings), _pages()
    assert len(lists) > 30
    assert len(pages) > 40
    for mine, other in (owners, owners[::-1]):
        for key in mine.keys:
            async with Visitor(address) as visitor:
                headers = {"Authorization": f"Bearer {key}"}
                await visitor.sign_in(key)
                for path, query in [*lists, *pages]:
                    # what was asked for is repeated by some pages
                    wanted = _of(query, mine.name)
                    answer = await visitor.get(path, params=wanted, headers=headers)
                    assert answer.status < 500, path
                    if other.name in answer.text:
                        leaks.append(path)
                    if mine.name in answer.text and answer.status == 200:
                        own.add(path)
    assert leaks == []
    assert {
        "/api/v1/jobs", "/api/v1/crawls", "/api/v1/sources", "/api/v1/search", "/api/v1/errors",
        "/api/v1/errors/groups", "/jobs", "/sources", "/search", "/errors", "/errors/list",
        "/events/jobs", "/workers", "/",
    } <= own  # fmt: skip


async def test_one_row_of_another_owner_is_not_found(
    address: str, owners: tuple[Owner, Owner]
) -> None:
    mine, other = owners
    for key in mine.keys:
        async with Visitor(address) as visitor:
            await visitor.sign_in(key)
            headers = {"Authorization": f"Bearer {key}"}
            for owner, status in ((mine, 200), (other, 404)):
                for path in (f"errors/{owner.error_id}", f"jobs/{owner.job_id}",
                             f"sources/{owner.name}.example"):  # fmt: skip
                    for place in (f"/{path}", f"/api/v1/{path}"):
                        answer = await visitor.get(place, headers=headers)
                        assert answer.status == status, place


async def test_no_tool_shows_rows_of_another_owner(
    address: str, owners: tuple[Owner, Owner]
) -> None:
    assert set(MCP_ARGUMENTS) == {tool.name for tool in TOOLS}
    mine, other = owners
    for key in mine.keys:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{address}/mcp", http_client=http)
            async with Client(transport) as client:
                for name, arguments in MCP_ARGUMENTS.items():
                    job_or = {"job_status": str(other.job_id)}.get(name, other.name)
                    wanted = {key: value.format(job_or) for key, value in arguments.items()}
                    answer = (await client.call_tool(name, wanted)).model_dump_json()
                    # the address that was asked for may be repeated
                    assert f"Of {other.name}" not in answer, name
                    assert f"zebra of {other.name}" not in answer, name
                    assert f"{other.name} is broken" not in answer, name
                resources = (await client.list_resources()).resources
                assert [each.name for each in resources] == [f"{mine.name}.example"]


async def test_a_key_that_sees_everything_sees_all_owners(
    address: str, owners: tuple[Owner, Owner], database: Database
) -> None:
    made = await make_key(database, "all", scope=Scope.READ, visibility=Visibility.EVERYTHING)
    async with Visitor(address) as visitor:
        await visitor.sign_in(made.text)
        headers = {"Authorization": f"Bearer {made.text}"}
        for place in ("/jobs", "/errors/list", "/sources", "/api/v1/jobs", "/api/v1/errors"):
            answer = await visitor.get(place, headers=headers)
            assert all(owner.name in answer.text for owner in owners), place
