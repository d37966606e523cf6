"""Clients that open connections and keep the server waiting."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from api.client import Api
from api.server_process import FORAGER, server_process
from api.test_faults import CRAWL, ORDER, locked_jobs
from forager.api import connections
from forager.db.database import Database
from forager.logs import Throttle
from forager.settings import Settings

HALF_OPEN = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
MANY = 1100


@pytest.fixture
def enough_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * MANY)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def connect(address: str, sent: bytes = HALF_OPEN) -> socket.socket:
    parts = urlsplit(address)
    line = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)
    with contextlib.suppress(OSError):  # closed by the server at once
        line.sendall(sent)
    return line


async def closed(line: socket.socket) -> None:
    """Return when the server has closed the connection."""
    poll = select.poll()
    poll.register(line, select.POLLRDHUP)
    found = await asyncio.to_thread(poll.poll, 30_000)
    assert found, "the server has not closed the connection"


class TestDeadlines:
    @pytest.fixture
    def api_settings(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
        for name in ("HEAD_SECONDS", "BODY_SECONDS", "STALLED_SECONDS"):
            monkeypatch.setattr(connections, name, 0.2)
        return settings.model_copy(update={"api_port": 0, "api_max_body_mb": 0.01})

    @pytest.mark.parametrize(
        "sent",
        [
            b"",
            HALF_OPEN,
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{" % CRAWL.encode(),
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + HALF_OPEN,
        ],
        ids=["silent", "half a head", "half a body", "half a second head"],
    )
    async def test_a_request_must_arrive_in_time(self, address: str, sent: bytes) -> None:
        with connect(address, sent) as line:
            await closed(line)

    async def test_a_client_that_reads_nothing_is_disconnected(
        self, address: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lost = asyncio.Event()

        lose = connections.LimitedConnection.connection_lost

        def lose_seen(connection: connections.LimitedConnection, why: Exception | None) -> None:
            lose(connection, why)
            lost.set()

        monkeypatch.setattr(connections.LimitedConnection, "connection_lost", lose_seen)
        asked = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100
        with connect(address, asked):
            async with asyncio.timeout(60):
                await lost.wait()


class TestAtTheLimit:
    @pytest.fixture
    def api_settings(self, settings: Settings) -> Settings:
        limits = {"api_port": 0, "api_max_connections": 10, "api_max_requests": 2}
        return settings.model_copy(update=limits)

    async def test_the_longest_waiting_connection_makes_room(self, address: str) -> None:
        with contextlib.ExitStack() as stack:
            lines = [stack.enter_context(connect(address)) for _ in range(30)]
            async with Api(address) as api:
                assert (await api.get("/healthz")).status == 200
            for line in lines[:20]:
                await closed(line)

    async def test_more_requests_than_can_be_answered_get_503(
        self, address: str, database: Database
    ) -> None:
        async with Api(address) as api:
            async with locked_jobs(database):
                asked = {asyncio.create_task(api.post(CRAWL, ORDER)) for _ in range(3)}
                first, others = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
                alive = await api.get("/healthz")
            accepted = await asyncio.gather(*others)
        refused = first.pop().result()
        assert (refused.status, refused.is_problem) == (503, True)
        assert int(refused.headers["Retry-After"]) > 0
        assert [alive.status, *(answer.status for answer in accepted)] == [200, 202, 202]


async def test_a_long_head_is_refused_before_it_ends(address: str) -> None:
    with connect(address, HALF_OPEN + b"x" * 70_000) as line:
        assert b"400 Bad Request" in await asyncio.to_thread(line.recv, 1000)


@pytest.mark.usefixtures("enough_files")
def test_half_open_requests_neither_stop_the_server_nor_fill_the_log(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    few_files = ["prlimit", "--nofile=256", str(FORAGER), "api", "--port", "0"]
    with (
        server_process(few_files, tmp_path, {"FORAGER_DATABASE_URL": database_url}) as address,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(MANY):
            stack.enter_context(connect(address))
        with connect(address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") as line:
            assert b"200 OK" in line.recv(1000)
    log = (tmp_path / "api.log").read_text()
    assert "too many connections" in log
    assert len(log) < 20_000, log[:5000]


def test_the_soft_limit_of_open_files_is_raised() -> None:
    program = (
        "import resource; from forager.processes.files import raise_file_limit;"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 900));"
        "print(raise_file_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert said.stdout.split() == [b"900", b"900", b"900"]


def test_a_throttle_counts_what_it_holds_back() -> None:
    now = 0.0
    throttle = Throttle(10, clock=lambda: now)
    assert [throttle.passes("a") for _ in range(4)] == [0, None, None, None]
    assert throttle.passes("b") == 0
    now = 10.0
    assert throttle.passes("a") == 3
