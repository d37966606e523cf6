"""`forager mcp` as clients start it, and the way of a change: crawled, found, cited."""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import as_file, files
from json import loads
from pathlib import Path

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from forager.library import open_async
from mcp_server.conftest import text_of
from support.cli import FORAGER, forager


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A copy of the demo site, to be changed."""
    with as_file(files("forager.demo") / "site") as folder:
        return Path(shutil.copytree(folder, tmp_path / "site"))


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/index.html"
        server.shutdown()


def server(database_url: str, home: Path) -> StdioServerParameters:
    environment = {
        "FORAGER_DATABASE_URL": database_url,
        "FORAGER_HOME": str(home),
        "FORAGER_POLL_INTERVAL": "0.1",
    }
    return StdioServerParameters(command=str(FORAGER), args=["mcp"], env=environment)


async def test_a_change_is_found_and_cited(
    database_url: str, tmp_path: Path, site: Path, url: str
) -> None:
    home = tmp_path / "home"
    async with open_async(home=home, database_url=database_url, poll_interval=0.1) as store:
        crawled = await store.crawl(url, source="demo@1", allow_private=True)
    assert crawled.generation is not None
    page = site / "guide" / "polite.html"
    page.write_text(page.read_text().replace("</main>", _SECTION + "</main>"))
    messages: list[str] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        messages.append(message or "")

    async with Client(server(database_url, home)) as client:
        assert "demo@1" in text_of(await client.call_tool("list_sources", {}))
        refreshed = text_of(
            await client.call_tool(
                "crawl_site",
                {"source": "demo", "version": "1", "wait_seconds": 50},
                progress_callback=on_progress,
            )
        )
        assert refreshed.startswith("Started. Job ")
        assert "Generation 2 (published)" in refreshed
        assert "1 changed" in refreshed
        assert messages

        changes = text_of(await client.call_tool("source_changes", {"source": "demo@1"}))
        assert "demo@1, generation 1 to 2: 0 added, 1 changed" in changes
        [found] = re.findall(r"section \(added\) Night hours: (\S+)", changes)
        cited = text_of(await client.call_tool("read_section", {"url": found}))
        assert f"URL: {found.partition('#')[0]}" in cited
        assert "Source: demo@1, generation 2" in cited
        assert "Between two and four" in cited

        answers = await asyncio.gather(
            client.call_tool("search_docs", {"query": "night hours", "source": "demo"}),
            client.call_tool("explain_url", {"url": found}),
            client.call_tool("search_products", {"query": "lamp"}),
            client.call_tool("product_history", {"product": "1"}),
        )
        assert found in text_of(answers[0])
        assert "fetched" in text_of(answers[1])
        assert text_of(answers[2]) == "No products found."
        assert answers[3].is_error
        with pytest.raises(MCPError):
            await client.call_tool("drop_everything", {})


_SECTION = """
<h2 id="night-hours">Night hours</h2>
<p>Between two and four at night the site is slow, and a crawl should wait.</p>
"""


async def test_a_crawl_of_a_session_that_ends_stays_in_the_queue(
    database_url: str, tmp_path: Path, url: str
) -> None:
    home = tmp_path / "home"
    async with open_async(home=home, database_url=database_url, poll_interval=0.1) as store:
        first = await store.crawl(url, source="demo", allow_private=True, delay=0.5, max_pages=1)
        async with Client(server(database_url, home)) as client:
            begun = text_of(await client.call_tool("crawl_site", {"source": "demo"}))
        [job] = re.findall(r"Job (\S+) of demo", begun)
        assert job != str(first.job.id)
        found = await store.explain(url)
        report = await store.wait(found.job_id) if found.job_id else None
    assert report is not None
    assert report.job.shown_status == "completed"


# --- setting a client up -----------------------------------------------------------------------


def test_the_configuration_of_each_client(tmp_path: Path) -> None:
    def printed(client: str) -> str:
        return forager("--home", tmp_path, "mcp", "--print-config", client).out

    arguments = ["--home", str(tmp_path), "mcp"]
    for client, key in (
        ("claude-desktop", "mcpServers"),
        ("cursor", "mcpServers"),
        ("vscode", "servers"),
        ("zed", "context_servers"),
    ):
        assert loads(printed(client))[key]["forager"]["args"] == arguments
    assert tomllib.loads(printed("codex"))["mcp_servers"]["forager"]["args"] == arguments
    command = printed("claude-code")
    assert command.startswith("claude mcp add forager ")
    assert command.endswith(f"forager --home {tmp_path} mcp\n")
