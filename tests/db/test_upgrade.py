"""A database that the previous version filled is upgraded while workers start on it.

`filled_0001.sql.gz` is a dump made with the last version before schema 0002: a published source, a
crawl that was killed after a third of its pages, a tracked product, a key, and a webhook message
that its receiver had refused twice.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest

from forager.db.schema import SCHEMA_VERSION, current_version
from support.databases import administration, create_database, drop_database, with_database
from support.waiting import eventually

DUMP = Path(__file__).with_name("filled_0001.sql.gz")
# an address of loopback that no other test uses: the dump refers to it
SITE = ("127.0.77.1", 8725)
PAGES = 61
HALF = "01a1e3ab-d5b9-75b0-851d-5e9edfa97521"
KEY = "uom0VqBWMTdhRiMQL-cPWmZiU8IQS1FGsPiR5feK818="
KEPT = {
    "documents": "SELECT count(*) FROM documents",
    "sections": "SELECT count(*) FROM sections",
    "prices": "SELECT count(*) FROM price_history",
    "products": "SELECT count(*) FROM products",
    "keys": "SELECT count(*) FROM api_keys",
    "tasks": "SELECT count(*) FROM crawl_tasks",
    "published": "SELECT sum(published_generation) FROM sources",
    "events": "SELECT count(*) FROM catalog_events",
}


class Site(BaseHTTPRequestHandler):
    """The pages of tests/containers/site, as the previous version saw them, and the receiver."""

    visits: Counter[str]
    received: list[str]

    def do_GET(self) -> None:
        self.visits[self.path] += 1
        page = self.path.strip("/").removesuffix(".html")
        if page and not page.isdigit():
            self.send_error(404)
            return
        links = "".join(f'<a href="/{n}.html">Page {n}</a> ' for n in range(PAGES - 1))
        body = f"<title>Page {page}</title><main><h1>Page {page}</h1><p>Heron.</p>{links}</main>"
        self._answer(body.encode())

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self._answer(b"")

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def site() -> Iterator[type[Site]]:
    Site.visits, Site.received = Counter(), []
    server = ThreadingHTTPServer(SITE, Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Site
    server.shutdown()
    server.server_close()


@pytest.fixture
def previous(postgres: str) -> Iterator[str]:
    """The URL of a database as the previous version left it."""
    with administration(postgres) as server:
        name = create_database(server)
        url = with_database(postgres, name)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(gzip.decompress(DUMP.read_bytes()))
        yield url
        drop_database(server, name)


def value(url: str, query: Any) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
        return row and row[0]


@contextmanager
def worker(url: str, home: Path) -> Iterator[None]:
    process = subprocess.Popen(
        [Path(sys.executable).with_name("forager"), "worker"],
        env={
            **os.environ,
            "FORAGER_HOME": str(home),
            "FORAGER_DATABASE_URL": url,
            "FORAGER_SECRET_KEY": KEY,
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def test_workers_upgrade_a_filled_database_and_finish_its_work(
    previous: str, site: type[Site], tmp_path: Path
) -> None:
    assert current_version(previous) == "0001"
    kept = {name: value(previous, query) for name, query in KEPT.items()}
    committed = value(previous, f"SELECT array_agg(url) FROM crawl_visited WHERE job_id = '{HALF}'")
    assert 10 < len(committed) < PAGES
    with worker(previous, tmp_path), worker(previous, tmp_path):
        status = f"SELECT status FROM crawl_jobs WHERE id = '{HALF}'"
        await eventually(lambda: value(previous, status) == "completed", limit=100)
        await eventually(lambda: site.received)
    assert current_version(previous) == SCHEMA_VERSION
    # all or nothing, and everything is accounted for: no committed page is fetched again
    visited = f"SELECT count(DISTINCT url) FROM crawl_visited WHERE job_id = '{HALF}'"
    assert value(previous, visited) == PAGES
    paths = [url.removeprefix(f"http://{SITE[0]}:{SITE[1]}") for url in committed]
    assert not [path for path in paths if site.visits[path]]
    # no message is lost
    assert "product" in site.received[0]
    # nothing that was there is gone
    for name, query in KEPT.items():
        assert value(previous, query) >= kept[name], name
