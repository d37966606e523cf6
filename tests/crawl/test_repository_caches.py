"""The folders that repositories are fetched to are deleted when nothing needs them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawl.crawling import Crawls
from crawl.file_sources import crawl_files
from crawl.git_origin import Origin, opened
from crawl.refreshing import SOURCE
from forager.crawl.clean_up import clean_up_crawls, delete_unused_caches
from forager.crawl.options import crawl_options
from forager.crawl.preview import preview_crawl
from forager.db.database import Database
from forager.fetch.files import repository
from forager.fetch.files.caches import delete_caches, old_caches, open_cache, temporary_cache
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue
from forager.settings import Settings


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


def make_old(cache: Path) -> Path:
    os.utime(cache, (0, 0))
    return cache


async def test_a_preview_leaves_no_cache(crawls: Crawls, origin: Origin) -> None:
    options = crawl_options({"repository": origin.url})
    found = await preview_crawl(crawls.database, crawls.settings, options)
    assert len(found.urls) == 3
    assert list((crawls.settings.home / "repositories").iterdir()) == []


async def test_caches_of_sources_and_active_jobs_are_kept(crawls: Crawls, origin: Origin) -> None:
    home = crawls.settings.home
    await crawl_files(crawls, repository=origin.url)
    [of_source] = (home / "repositories").iterdir()
    queue = Queue(crawls.database, crawls.settings)
    waiting = (await queue.enqueue(NewJob(kind="selftest"))).job.id
    starting = (await queue.enqueue(NewJob(kind="selftest", source_id="new"))).job.source_id
    kept = {of_source, open_cache(home, str(waiting)), open_cache(home, starting or "")}
    with temporary_cache(home) as killed:
        unused = {open_cache(home, "gone"), open_cache(home, str(waiting)[:-1] + "x"), killed}
        for cache in kept | unused:
            make_old(cache)
        fresh = open_cache(home, "opened just now")
        assert await delete_unused_caches(crawls.database, crawls.settings) == 3
        assert set((home / "repositories").iterdir()) == kept | {fresh}
        assert await delete_unused_caches(crawls.database, crawls.settings) == 0
    assert of_source == open_cache(home, SOURCE)


def test_a_cache_that_is_opened_meanwhile_is_kept(tmp_path: Path) -> None:
    cache = make_old(open_cache(tmp_path, "a"))
    found = old_caches(tmp_path)
    assert found == {cache: "a"}
    open_cache(tmp_path, "a")
    assert delete_caches(found, used=()) == 0
    assert cache.exists()


def test_a_deletion_that_was_killed_is_finished(tmp_path: Path) -> None:
    cache = make_old(open_cache(tmp_path, "a"))
    left = cache.rename(cache.with_name(f"deleted-{cache.name}"))
    assert delete_caches(old_caches(tmp_path), used={"a"}) == 1
    assert not left.exists()


async def test_the_cleanup_of_crawls_deletes_caches(database: Database, settings: Settings) -> None:
    cache = make_old(open_cache(settings.home, "gone"))
    await clean_up_crawls(database, settings)
    assert not cache.exists()


async def test_a_cache_of_many_packs_is_made_again(
    origin: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "MAX_PACKS", 3)
    first = await opened(origin.url, tmp_path, job="a")
    [cache] = (tmp_path / "cache").glob("*.git")
    for number in range(4):
        (cache / f"objects/pack/pack-{number:040x}.pack").touch()
    origin.git("commit", "--quiet", "--allow-empty", "--message", "Second")
    # a job that continues needs its commit
    assert (await opened(origin.url, tmp_path, job="a")).commit == first.commit
    assert len(list(cache.glob("objects/pack/*.pack"))) > 4
    assert (await opened(origin.url, tmp_path, job="b")).commit != first.commit
    assert len(list(cache.glob("objects/pack/*.pack"))) <= 2
