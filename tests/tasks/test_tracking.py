"""URLs become tasks: their domain, interval and priority."""

from __future__ import annotations

import asyncio
import io
from datetime import timedelta

import pytest

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.fetch.domains.store import allow_private
from forager.settings import Settings
from forager.tasks.imports import read_requests
from forager.tasks.service import Tasks
from forager.tasks.tracking import FoundProduct, Tracked, track_found
from forager.tasks.tracking_request import BadLine, RequestedTerms
from support.sql import execute, fetch_value
from support.waiting import lock_waited_for
from tasks.request_files import HOUR, bad, good
from tasks.tasks_at_hand import make_domain


@pytest.fixture
def tasks(database: Database, settings: Settings) -> Tasks:
    return Tasks(database, settings)


async def row(database: Database, column: str, url: str) -> object:
    return await fetch_value(database, f"SELECT {column} FROM crawl_tasks WHERE url = %s", url)


async def test_new_urls_become_tasks_under_their_one_spelling(
    database: Database, tasks: Tasks
) -> None:
    tracked = await tasks.track(
        ["HTTPS://Shop.example/a?utm_source=x#top", "https://shop.example/a", "https://b.example"],
        every=6 * HOUR,
        priority=8,
    )
    assert (tracked.added, tracked.known, tracked.bad) == (2, 1, 0)
    assert await row(database, "crawl_frequency", "https://shop.example/a") == 6 * HOUR
    assert await row(database, "priority", "https://b.example/") == 2
    assert await row(database, "status", "https://b.example/") == "pending"
    assert await row(database, "scheduled_at <= now()", "https://b.example/")
    assert await fetch_value(database, "SELECT count(*) FROM domains") == 2


async def test_a_higher_priority_is_stored_as_a_lower_number(
    database: Database, tasks: Tasks
) -> None:
    for priority, stored in ((9, 1), (5, 5), (0, 10)):
        url = f"https://shop.example/{priority}"
        await tasks.track([url], priority=priority)
        assert await row(database, "priority", url) == stored
        assert (await tasks.get(url)).priority == priority


async def test_tracking_again_changes_only_what_is_given(database: Database, tasks: Tasks) -> None:
    url = "https://shop.example/a"
    await tasks.track([url], every=HOUR, priority=2, popularity=7)
    again = await tasks.track([url])
    assert (again.added, again.known, again.updated) == (0, 1, 0)
    assert (await tasks.track([url], priority=3)).updated == 1
    assert await row(database, "(priority, crawl_frequency, popularity)::text", url) == (
        "(7,01:00:00,7)"
    )


async def test_a_url_that_is_named_twice_keeps_what_either_says(
    database: Database, tasks: Tasks
) -> None:
    content = (
        b"url,priority,every\n"
        b"https://shop.example/p,1,6h\n"
        b"https://shop.example/p,8,\n"
        b"https://shop.example/p,,\n"
    )
    tracked = await tasks.track_requests(
        read_requests(io.BytesIO(content), "twice.csv"), terms=RequestedTerms(priority=7)
    )
    assert (tracked.added, tracked.known) == (1, 2)
    assert await fetch_value(database, "SELECT priority FROM crawl_tasks") == 2
    assert await fetch_value(database, "SELECT crawl_frequency FROM crawl_tasks") == 6 * HOUR


async def test_a_new_interval_counts_from_the_last_visit(database: Database, tasks: Tasks) -> None:
    url = "https://shop.example/a"
    await tasks.track([url])
    await execute(
        database,
        """
        UPDATE crawl_tasks
           SET status = 'completed', completed_at = now(), next_crawl_at = now() + interval '1 day',
               adapted_frequency = interval '1 day'
        """,
    )
    await tasks.track([url], every=HOUR)
    assert await row(database, "next_crawl_at - completed_at", url) == HOUR
    assert await row(database, "adapted_frequency", url) is None


async def test_the_nearest_domain_covers_a_host(database: Database, tasks: Tasks) -> None:
    own = await make_domain(database, "eu.shop.example")
    await tasks.track(
        [
            "https://www.shop.example/1",
            "https://shop.example/2",
            "https://eu.shop.example/3",
            "https://a.eu.shop.example/4",
        ]
    )
    assert await fetch_value(database, "SELECT array_agg(domain_name ORDER BY 1) FROM domains") == [
        "eu.shop.example",
        "shop.example",
    ]
    assert await row(database, "domain_id", "https://a.eu.shop.example/4") == own
    assert await row(database, "domain_id", "https://www.shop.example/1") == await row(
        database, "domain_id", "https://shop.example/2"
    )


async def test_private_hosts_must_be_allowed_explicitly(database: Database, tasks: Tasks) -> None:
    private = ["http://localhost:8000/a", "http://10.1.2.3/", "http://[::1]/", "http://x.internal/"]
    refused = await tasks.track([*private, "https://shop.example/"])
    assert (refused.added, refused.bad) == (1, 4)
    assert all("--allow-private" in str(one.reason) for one in refused.first_bad)
    assert await fetch_value(database, "SELECT count(*) FROM domains") == 1
    allowed = await tasks.track(private, allow_private=True)
    assert allowed.added == 4
    assert await fetch_value(database, "SELECT count(*) FROM domains WHERE allow_private") == 4
    # a host that was allowed stays so
    assert (await tasks.track(["http://localhost:8000/b"])).added == 1
    metadata = await tasks.track(["http://169.254.169.254/"], allow_private=True)
    assert metadata.bad == 1


async def test_private_hosts_are_allowed_in_the_order_of_their_rows(database: Database) -> None:
    first, second = [await make_domain(database, f"{name}.internal") for name in ("a", "b")]
    # behind the other in the table
    await execute(database, "UPDATE domains SET updated_at = now() WHERE id = %s", first)
    async with database.transaction() as holding:
        await holding.execute("SELECT FROM domains WHERE id = %s FOR UPDATE", (first,))

        async def allow() -> None:
            async with database.transaction() as connection:
                # as a plan may be: in the order of the table
                await connection.execute("SET LOCAL enable_indexscan = off")
                await connection.execute("SET LOCAL enable_bitmapscan = off")
                await allow_private(connection, [second, first])

        allowing = asyncio.ensure_future(allow())
        await lock_waited_for(database)
        # a transaction that waits for the first row holds no later one
        await execute(database, "SELECT FROM domains WHERE id = %s FOR UPDATE NOWAIT", second)
    await allowing
    assert await fetch_value(database, "SELECT count(*) FROM domains WHERE allow_private") == 2


async def test_a_file_keeps_what_is_good(database: Database, tasks: Tasks) -> None:
    lines = [b"url,priority"]
    lines += [b"https://shop%d.example/%d,%d" % (n % 40, n, n % 10) for n in range(12_000)]
    lines[500] = b"ftp://shop.example/x,5"
    lines[11_000] = b"not a url,5"
    seen: list[BadLine] = []
    tracked: Tracked = await tasks.track_requests(
        read_requests(io.BytesIO(b"\n".join(lines)), "a.csv"),
        terms=RequestedTerms(),
        on_bad=seen.append,
    )
    assert (tracked.added, tracked.known, tracked.bad) == (11_998, 0, 2)
    assert [one.line for one in tracked.first_bad] == [501, 11_001]
    assert [one.line for one in seen] == [501, 11_001]
    assert await fetch_value(database, "SELECT count(*) FROM crawl_tasks") == 11_998
    # one time for all, so that popularity decides between them
    assert await fetch_value(database, "SELECT count(DISTINCT scheduled_at) FROM crawl_tasks") == 1


async def test_pages_that_a_crawl_found(database: Database, tasks: Tasks) -> None:
    await tasks.track(["https://shop.example/1"], priority=9)
    found = [
        FoundProduct("https://shop.example/1"),
        FoundProduct("https://shop.example/2#reviews"),
        FoundProduct("https://shop.example/2"),
        FoundProduct("http://127.0.0.1:8000/3"),
        FoundProduct("http://127.0.0.1:8001/4", allow_private=True),
        FoundProduct("mailto:x@y.example"),
    ]
    async with database.transaction() as connection:
        assert await track_found(connection, found, "crawl of shop.example") == 2
    async with database.transaction() as connection:
        assert await track_found(connection, found, "crawl of shop.example") == 0
        assert await track_found(connection, [], "nothing") == 0
    assert await row(database, "priority", "https://shop.example/1") == 1
    assert await row(database, "found_by", "https://shop.example/2") == "crawl of shop.example"
    assert await row(database, "priority", "http://127.0.0.1:8001/4") == 5


@pytest.mark.parametrize(
    "terms",
    [{"priority": -1}, {"priority": 10}, {"every": timedelta(0)}, {"popularity": float("inf")}],
)
async def test_terms_that_cannot_be(tasks: Tasks, terms: dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        await tasks.track(["https://shop.example/"], **terms)  # type: ignore[arg-type]


async def test_a_visit_is_scheduled_for_a_time_with_its_own_retries(
    tasks: Tasks, database: Database
) -> None:
    [(url, terms)] = good(
        b"url,priority,every,popularity,at,max_retries\n"
        b"https://a.example/1,,,,2030-01-02T03:04:00+00:00,7\n",
        "a.csv",
    )
    await tasks.track([url], at=terms.at, max_retries=terms.max_retries)
    row = "scheduled_at = '2030-01-02 03:04+00' AND max_retries = 7"
    assert await fetch_value(database, f"SELECT {row} FROM crawl_tasks")
    # tracked again: only what is given changes
    assert terms.at is not None
    await tasks.track([url], at=terms.at + HOUR)
    row = "scheduled_at = '2030-01-02 04:04+00' AND max_retries = 7"
    assert await fetch_value(database, f"SELECT {row} FROM crawl_tasks")
    assert bad(b'{"url": "https://a.example/1", "at": "soon"}', "a.jsonl") == [
        (1, "'soon' is not a time")
    ]
