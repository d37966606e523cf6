"""A typed Python client, generated from openapi.json by openapi-python-client, calls the server."""

from __future__ import annotations

import asyncio
import subprocess
import venv
from pathlib import Path

import requests

from api.server_process import api_process
from forager.access.caller import Scope
from forager.access.keys import create_key
from forager.db.database import open_database
from forager.settings import Settings

PACKAGES = ("openapi-python-client==0.29.1", "ruff", "mypy", "types-python-dateutil")
CACHE = Path.home() / ".cache" / "forager-services" / "openapi-python-client-0.29.1"
PROGRAM = """
import sys
from uuid import UUID
from forager_client import AuthenticatedClient
from forager_client.api.crawls import crawls_progress, crawls_start
from forager_client.api.jobs import jobs_list_jobs, jobs_show
from forager_client.api.tasks import tasks_track
from forager_client.models import CrawlOrder, CrawlProgress, CrawlStarted, ListedJobs, Problem
from forager_client.models import Status, TrackOrder, TrackResult

address, key = sys.argv[1:]
with AuthenticatedClient(base_url=address, token=key) as client:
    order = CrawlOrder(urls=["https://docs.example.org/"], max_pages=5, priority=7)
    started = crawls_start.sync(client=client, body=order)
    assert isinstance(started, CrawlStarted), started
    progress = crawls_progress.sync(started.job_id, client=client)
    assert isinstance(progress, CrawlProgress), progress
    jobs = jobs_list_jobs.sync(client=client, status=[Status.PENDING])
    assert isinstance(jobs, ListedJobs) and [job.priority for job in jobs.items] == [7], jobs
    tracked = tasks_track.sync(
        client=client, body=TrackOrder(items=["https://shop.example/lamp"], every="6h")
    )
    assert isinstance(tracked, TrackResult) and tracked.added == 1, tracked
    missing = jobs_show.sync(UUID(int=1), client=client)
    assert isinstance(missing, Problem) and missing.status == 404, missing
"""


def test_a_generated_client_calls_the_server(
    settings: Settings, database_url: str, tmp_path: Path
) -> None:
    tools = installed_tools()
    key = asyncio.run(_key(settings))
    (tmp_path / "program.py").write_text(PROGRAM)
    with api_process(tmp_path, FORAGER_DATABASE_URL=database_url) as address:
        document = requests.get(f"{address}/api/openapi.json", timeout=60)
        (tmp_path / "openapi.json").write_bytes(document.content)
        run(
            tools / "openapi-python-client",
            *("generate", "--path", "openapi.json", "--meta", "none"),
            *("--output-path", "forager_client"),
            folder=tmp_path,
        )
        run(tools / "python", "program.py", address, key, folder=tmp_path)
    run(tools / "mypy", "--strict", "--follow-imports=silent", "program.py", folder=tmp_path)


def installed_tools() -> Path:
    """The folder of the generator's programs; they are installed once for a user."""
    if not (CACHE / ".ready").exists():
        venv.create(CACHE, clear=True, with_pip=True)
        run(CACHE / "bin" / "python", "-m", "pip", "install", "--quiet", *PACKAGES)
        (CACHE / ".ready").touch()
    return CACHE / "bin"


def run(*command: str | Path, folder: Path | None = None) -> None:
    path = f"{CACHE / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(
        command, cwd=folder, env={"PATH": path}, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


async def _key(settings: Settings) -> str:
    async with open_database(settings) as database:
        return (await create_key(database, "client", scope=Scope.ADMIN)).text
