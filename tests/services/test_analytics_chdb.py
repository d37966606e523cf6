"""chdb over the lake's files: what it counts, and what it does with trouble."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.lake_rows import add_prices, aged_product
from analytics.site_rows import add_job, settle
from forager.analytics.answers import answer, query_chdb, sources_of
from forager.analytics.dataset import DATASETS
from forager.analytics.lake import lake_folder, read_manifest
from forager.analytics.sync import sync
from forager.db.database import Database
from forager.errors import ForagerError, NotAllowed
from forager.settings import Settings


@pytest.fixture
async def folder(database: Database, settings: Settings) -> Path:
    await add_prices(database, await aged_product(database, 1), 10)
    await settle(database, await add_job(database), 1, 5)
    await sync(database, settings, chunk=3)
    return lake_folder(settings)


async def test_every_dataset_has_as_many_rows_as_the_manifest_says(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest is not None
    sources = sources_of(manifest)
    for dataset in DATASETS:
        found = await query_chdb(f"SELECT toString(count()) FROM {sources[dataset.name]}", folder)
        assert found["data"] == [[str(sum(file.rows for file in manifest.of(dataset.name)))]]


async def test_a_broken_file_is_an_error_and_not_an_answer(
    folder: Path, settings: Settings
) -> None:
    for path in folder.glob("pages/*/*.parquet"):
        path.write_bytes(b"PAR1 not quite")
    with pytest.raises(ForagerError, match="cannot be read"):
        await answer(settings, "crawl-cost")


async def test_what_takes_too_long_is_stopped(folder: Path) -> None:
    with pytest.raises(NotAllowed, match="longer"):
        await query_chdb("SELECT sum(number) FROM numbers(1000000000000)", folder, longest=1)
