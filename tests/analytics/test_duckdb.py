"""DuckDB over the files of the lake: broken files, and queries that take too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.lake_rows import add_prices, aged_product
from analytics.site_rows import add_job, settle
from forager.analytics.answers import answer
from forager.analytics.engine import query_files
from forager.analytics.lake import lake_folder
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings


@pytest.fixture
async def folder(database: Database, settings: Settings) -> Path:
    await add_prices(database, await aged_product(database, 1), 10)
    await settle(database, await add_job(database), 1, 5)
    await sync(database, settings)
    return lake_folder(settings)


async def test_a_broken_file_is_an_error_and_not_an_answer(
    folder: Path, settings: Settings
) -> None:
    for path in folder.glob("pages/*.parquet"):
        path.write_bytes(b"PAR1 not quite")
    with pytest.raises(ForagerError, match="cannot be read"):
        await answer(settings, "crawl-cost")


async def test_what_takes_too_long_is_stopped(folder: Path) -> None:
    with pytest.raises(NotAllowed, match="longer"):
        await query_files(
            "SELECT sum(n * n) FROM range(1_000_000_000_000) AS t(n)", folder, longest=1
        )
