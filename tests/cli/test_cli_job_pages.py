"""`forager jobs pages|workers` and `forager products image`, in this process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from uuid import uuid4

import pytest

from archived_job import Settled, html, start_job
from forager.archive.options import archive_options
from forager.cli.main import run
from forager.db.database import Database, open_database
from forager.jobs.queue import Queue
from forager.settings import Settings
from images.stored_image import PIXEL, store_image
from products.product_shop import Shop, lamp

Capture = pytest.CaptureFixture[str]


pytestmark = pytest.mark.usefixtures("command_line")


def test_pages_of_a_job(settings: Settings, capsys: Capture) -> None:
    async def settle() -> str:
        async with open_database(settings) as database:
            storage = archive_options(settings).open()
            job = await start_job(database, storage, Queue(database, settings))
            lost = Settled("https://docs.example.org/x", "failed", more=(("reason", "timeout"),))
            await job.settle([html(0), html(1), lost])
            await job.writer.close()
            return str(job.id)

    job_id = asyncio.run(settle())
    assert run(["jobs", "pages", job_id[:30], "--outcome", "failed"]) == 0
    shown = capsys.readouterr().out
    assert "timeout" in shown
    assert "https://docs.example.org/0" not in shown
    assert run(["jobs", "pages", job_id, "--limit", "2", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert run(["jobs", "pages", job_id, "--cursor", first["next_cursor"], "--json"]) == 0
    rest = json.loads(capsys.readouterr().out)
    assert (len(first["items"]), len(rest["items"]), rest["next_cursor"]) == (2, 1, None)
    kept = [each for each in first["items"] + rest["items"] if each["archive"]]
    assert len(kept) == 2
    assert all(each["content_hash"] for each in kept)


def test_workers(settings: Settings, capsys: Capture) -> None:
    assert run(["workers", "list"]) == 0
    assert "forager worker" in capsys.readouterr().err

    async def appear() -> None:
        async with open_database(settings) as database, database.connection() as connection:
            await connection.execute(
                "INSERT INTO workers (id, host, pid, version, capacity)"
                " VALUES (%s, 'a', 7, '1', 1)",
                (uuid4(),),
            )

    asyncio.run(appear())
    assert run(["workers", "list", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["items"]
    assert (found["host"], found["pid"]) == ("a", 7)
    assert run(["workers", "list"]) == 0


def test_an_image(settings: Settings, database_url: str, tmp_path: Path, capsys: Capture) -> None:
    async def furnish() -> int:
        async with Database(database_url) as database:
            shop = await Shop(database, settings).open()
            written = await shop.visit("lamp", lamp())
            assert written.product_id is not None
            await store_image(database, settings, written.product_id)
            return written.product_id

    product = str(asyncio.run(furnish()))
    assert run(["products", "image", product, "0", "--output", "a.gif"]) == 0
    assert (tmp_path / "a.gif").read_bytes() == PIXEL
    assert run(["products", "image", product, "1", "--output", "b.gif"]) == 2
    assert "there is no stored image 1" in capsys.readouterr().err
    assert not (tmp_path / "b.gif").exists()
