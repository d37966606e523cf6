"""Short names of sources: `flask` stands for its only version."""

from __future__ import annotations

import pytest

from built_site import Crawls
from forager.db.database import Database
from forager.db.ids import new_id
from forager.documents.sources import delete_source, get_source
from forager.errors import InvalidInput, NotFound
from forager.jobs.queue import Queue
from forager.settings import Settings


async def test_a_short_name_stands_for_the_only_version(
    database: Database, queue: Queue, settings: Settings
) -> None:
    await Crawls(database, queue, settings, source="flask@2.2").crawl({"a": "text"})
    assert (await get_source(database, "flask")).id == "flask@2.2"
    for unknown in ("flas", "flask@2", "flask%", ""):
        with pytest.raises(NotFound):
            await get_source(database, unknown)
    with pytest.raises(NotFound):
        await get_source(database, "flask", owner=new_id())
    with pytest.raises(NotFound):
        await delete_source(database, "flask")


async def test_a_short_name_of_several_versions_lists_them(
    database: Database, queue: Queue, settings: Settings
) -> None:
    for version in ("flask@2.2", "flask@3.0"):
        await Crawls(database, queue, settings, source=version).crawl({"a": "text"})
    with pytest.raises(InvalidInput, match=r"flask@2\.2, flask@3\.0"):
        await get_source(database, "flask")
    await Crawls(database, queue, settings, source="flask").crawl({"a": "text"})
    assert (await get_source(database, "flask")).id == "flask"
