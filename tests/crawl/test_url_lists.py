"""Lists of a job's URLs: filtered, sorted, and complete however they are cut into pages."""

from __future__ import annotations

from uuid import UUID

import pytest

from forager.crawl.results import url_lists
from forager.crawl.results.url_lists import UrlFilter, list_pending, list_settled
from forager.crawl.settlement import Outcome, SettledUrl, UrlSort
from forager.db.database import Database
from forager.errors import InvalidInput, NotAllowed
from forager.jobs.job import NewJob
from forager.jobs.queue import Queue

ROWS = 40


@pytest.fixture
async def job_id(database: Database, queue: Queue) -> UUID:
    """A job whose every fifth URL failed; sizes fall while URLs rise."""
    job = (await queue.enqueue(NewJob(kind="crawl", payload={"urls": ["https://a.example/"]}))).job
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_visited
                (job_id, url_hash, url, outcome, reason, http_status, depth, via, size, settled_at)
            SELECT %s, decode(md5(n::text), 'hex'), format('https://a.example/p/%%s', 1000 + n),
                   CASE WHEN n %% 5 = 0 THEN 'failed' ELSE 'fetched' END,
                   CASE WHEN n %% 5 = 0 THEN 'http_500' END,
                   CASE WHEN n %% 5 = 0 THEN 500 ELSE 200 END, n %% 3, 'link', 10000 - n / 2,
                   now() - n * interval '1 minute'
              FROM generate_series(1, %s) AS n
            """,
            (job.id, ROWS),
        )
        await connection.execute(
            "INSERT INTO crawl_states (job_id, discovered, fetched, failed, total_pending)"
            " VALUES (%s, 43, 32, 8, 3)",
            (job.id,),
        )
        await connection.execute(
            """
            INSERT INTO crawl_frontier (job_id, depth, seq, url_hash, url, via)
            SELECT %s, n, n, decode(md5(n::text), 'hex'), format('https://a.example/next/%%s', n),
                   'link'
              FROM generate_series(1, 3) AS n
            """,
            (job.id,),
        )
    return job.id


@pytest.mark.parametrize("sort", [None, *UrlSort])
@pytest.mark.parametrize("descending", [False, True])
async def test_pages_of_a_list_hold_every_url_once(
    database: Database, job_id: UUID, sort: UrlSort | None, descending: bool
) -> None:
    found, cursor = [], None
    while True:
        page = await list_settled(
            database, job_id, sort=sort, descending=descending, cursor=cursor, limit=7
        )
        found += page.items
        if (cursor := page.next_cursor) is None:
            break
    assert len({url.url for url in found}) == len(found) == ROWS
    if sort is UrlSort.SIZE:
        sizes = [url.size or 0 for url in found]
        assert sizes == sorted(sizes, reverse=descending)


async def test_a_filter_is_searched_in_batches(
    database: Database, job_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url_lists, "MAX_SCANNED", 10)
    found: list[SettledUrl] = []
    cursor, pages = None, 0
    while True:
        page = await list_settled(database, job_id, UrlFilter(text="P/1017"), cursor=cursor)
        found, pages = found + page.items, pages + 1
        if (cursor := page.next_cursor) is None:
            break
    assert [url.url for url in found] == ["https://a.example/p/1017"]
    assert pages == ROWS // 10 + 1


async def test_only_lists_of_a_bounded_length_are_sorted(
    database: Database, job_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(url_lists, "MAX_SORTED", 20)
    with pytest.raises(NotAllowed, match="up to 20 URLs"):
        await list_settled(database, job_id, sort=UrlSort.SIZE)
    failed = UrlFilter(outcomes=[Outcome.FAILED], reason="http_500", http_status=500)
    page = await list_settled(database, job_id, failed, sort=UrlSort.TIME, limit=3)
    assert [url.url[-4:] for url in page.items] == ["1040", "1035", "1030"]
    with pytest.raises(InvalidInput, match="cursor"):
        await list_settled(
            database, job_id, failed, sort=UrlSort.SIZE, cursor=page.next_cursor, limit=3
        )


async def test_pending_urls_are_listed_in_their_order(database: Database, job_id: UUID) -> None:
    first = await list_pending(database, job_id, limit=2)
    rest = await list_pending(database, job_id, cursor=first.next_cursor, limit=2)
    assert [url.depth for url in [*first.items, *rest.items]] == [1, 2, 3]
    with pytest.raises(InvalidInput, match="cursor"):
        await list_pending(database, job_id, cursor="-5-x")
