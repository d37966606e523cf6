"""The MCP Inspector's command line, a client that is not ours, over both transports."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from forager.db.database import Database
from forager.mcp.transports import mcp_endpoint
from forager.settings import Settings
from search_corpus import Corpus
from support.api_server import api_server
from support.cli import FORAGER

PACKAGE = "@modelcontextprotocol/inspector@0.15.0"


@pytest.fixture(scope="module")
def inspector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is missing: the MCP Inspector cannot be installed")
    folder = tmp_path_factory.mktemp("inspector")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
    done = subprocess.run([*install, PACKAGE], capture_output=True, text=True, timeout=500)
    if done.returncode:
        pytest.skip(f"{PACKAGE} cannot be installed: {done.stderr[-500:]}")
    return folder / "node_modules" / ".bin" / "mcp-inspector"


async def inspected(inspector: Path, *arguments: object, **environment: str) -> Any:
    """What one request of the Inspector gets."""
    process = await asyncio.create_subprocess_exec(
        inspector,
        "--cli",
        *map(str, arguments),
        env=os.environ | environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def test_the_inspector_lists_and_calls(
    inspector: Path, settings: Settings, database: Database, database_url: str
) -> None:
    await Corpus(database).publish("manual.example", {"/locks": [("Row locks", "Rows lock.")]})
    call = ["--method", "tools/call", "--tool-name", "search_docs", "--tool-arg", "query=locks"]
    async with api_server(settings, database, beside=mcp_endpoint) as address:
        over_http = (f"{address}/mcp", "--transport", "http")
        listed = await inspected(inspector, *over_http, "--method", "tools/list")
        answer = await inspected(inspector, *over_http, *call)
    assert len(listed["tools"]) == 10
    assert "https://manual.example/locks#part-0" in answer["content"][0]["text"]

    over_stdio = (FORAGER, "mcp")
    environment = {"FORAGER_DATABASE_URL": database_url}
    assert await inspected(
        inspector, *over_stdio, "--method", "tools/list", **environment
    ) == listed  # fmt: skip
    resources = await inspected(inspector, *over_stdio, "--method", "resources/list", **environment)
    assert resources["resources"][0]["uri"] == "forager://manual.example/"
    prompts = await inspected(inspector, *over_stdio, "--method", "prompts/list", **environment)
    assert prompts["prompts"][0]["name"] == "answer_with_citations"
