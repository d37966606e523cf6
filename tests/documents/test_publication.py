"""Publishing: all or nothing for readers, refused by the gate, undone by a rollback."""

from __future__ import annotations

import asyncio

import pytest

from built_site import SOURCE, Crawl, Crawls, active_site, page, pages
from forager.db.database import Database
from forager.documents.generation import NOT_PUBLISHED
from forager.documents.publication import publish, roll_back
from forager.documents.reader import list_documents, read_page
from forager.documents.sources import get_source, list_generations
from forager.errors import LeaseLost, NotAllowed, NotFound
from forager.jobs.lifecycle import Status
from support.sql import execute

SIZES = {"old": 23, "new": 31}


def version(name: str) -> dict[str, str | None]:
    """A site of which every page says which version it is of."""
    return {f"{name}/{number}": f"{name} {number}" for number in range(SIZES[name])}


async def states(database: Database) -> list[str]:
    return [row[0] for row in await execute(database, "SELECT state FROM generations ORDER BY 1")]


# --- readers -------------------------------------------------------------------------------------


class Reader:
    """Read the source in every possible way until stopped."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.looks = 0
        self.seen: set[str] = set()

    async def read_until(self, done: asyncio.Event) -> None:
        while not done.is_set():
            await self.look_through_the_view()
            await self.page_through_the_list()
            self.looks += 1

    async def look_through_the_view(self) -> None:
        self.judge(list((await active_site(self.database)).values()))

    async def page_through_the_list(self) -> None:
        titles: list[str] = []
        cursor = None
        while True:
            listed = await list_documents(self.database, SOURCE, cursor=cursor, limit=10)
            titles += [(item.title or "").removeprefix("Title of ") for item in listed.items]
            cursor = listed.next_cursor
            if cursor is None:
                return self.judge(titles)

    def judge(self, titles: list[str]) -> None:
        """The whole of one version, and nothing of the other."""
        [name] = {title.split()[0] for title in titles}
        assert sorted(titles) == sorted(str(text) for text in version(name).values())
        self.seen.add(name)


async def test_readers_see_one_whole_generation_through_fifty_publications(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl(version("old"))
    await execute(database, "UPDATE sources SET max_shrink = 1, keep_generations = 99 RETURNING 1")
    done = asyncio.Event()
    readers = [Reader(database) for _ in range(3)]
    reading = asyncio.gather(*(reader.read_until(done) for reader in readers))
    for turn in range(25):
        assert await crawls.crawl(version("new" if turn % 2 == 0 else "old")) is None
        if turn % 3 == 2:
            await publish(database, SOURCE, 1 + turn % 2)
        else:
            await roll_back(database, SOURCE)
        assert not reading.done()
    done.set()
    await reading
    assert all(reader.looks for reader in readers)
    assert set.union(*(reader.seen for reader in readers)) == {"old", "new"}


async def test_a_generation_is_invisible_until_its_job_completes(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "one"})
    crawl = await crawls.start()
    await crawl.write(pages({"a": "two", "b": "new"}))
    assert await active_site(database) == {"a": "one"}
    assert (await read_page(database, f"https://{SOURCE}/a")).document.title == "Title of one"
    await crawl.finish()
    assert await active_site(database) == {"a": "two", "b": "new"}


async def test_a_job_that_cannot_complete_publishes_nothing(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "one"})
    crawl = await crawls.start()
    await crawl.write(pages({"a": "two"}))
    await crawls.queue.cancel(crawl.context.job.id)
    with pytest.raises(LeaseLost):
        await crawl.finish()
    assert await active_site(database) == {"a": "one"}


# --- the gate ------------------------------------------------------------------------------------

TEN: dict[str, str | None] = {f"p{number}": f"text {number}" for number in range(10)}


def fewer(count: int) -> dict[str, str | None]:
    return dict(list(TEN.items())[:count])


async def refused(crawl: Crawl) -> str:
    """The job says that nothing was published, and its generation says why."""
    assert await crawl.finish() == NOT_PUBLISHED
    job = await crawl.crawls.queue.get(crawl.context.job.id)
    assert (job.status, job.stop_reason) == (Status.COMPLETED, NOT_PUBLISHED)
    [newest, *_] = (await list_generations(crawl.crawls.database, SOURCE)).items
    assert newest.note is not None
    return newest.note


async def test_a_fifth_fewer_pages_are_published_and_more_are_not(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl(TEN)
    assert await crawls.crawl(fewer(8)) is None
    crawl = await crawls.start()
    await crawl.write(pages(fewer(6)))
    assert await refused(crawl) == "pages fell from 8 to 6"
    assert len(await active_site(database)) == 8
    generations = (await list_generations(database, SOURCE)).items
    assert [(g.number, g.state.value, g.removed) for g in generations] == [
        (3, "held_back", 2), (2, "published", 2), (1, "superseded", 0)
    ]  # fmt: skip
    assert generations[0].note == "pages fell from 8 to 6"


@pytest.mark.parametrize(
    ("reasons", "published"),
    [
        ({"http_404": 40, "http_410": 20, "soft_404": 5}, True),
        ({"redirect_loop": 20, "too_many_redirects": 10, "http_400": 10}, True),
        ({"http_403": 20}, False),
        ({"timeout": 10}, True),
        ({"timeout": 6, "http_500": 5}, False),
        ({"http_404": 50, "http_500": 17}, False),
    ],
)
async def test_failures_that_are_not_the_sites_wish_count(
    crawls: Crawls, reasons: dict[str, int], published: bool
) -> None:
    await crawls.crawl(TEN)
    crawl = await crawls.start()
    await crawl.write(pages(TEN))
    failed = sum(reasons.values())
    await crawl.ledger(fetched=max(90, 100 - failed), reasons=reasons)
    if published:
        assert await crawl.finish() is None
    else:
        assert "URLs failed" in await refused(crawl)


async def test_the_numbers_of_the_gate_add_up_to_those_of_the_ledger(crawls: Crawls) -> None:
    await crawls.crawl(TEN)
    crawl = await crawls.start()
    await crawl.write(pages(TEN))
    await crawl.ledger(fetched=116, reasons={"http_500": 38, "http_404": 15})
    assert await refused(crawl) == (
        "38 of 169 URLs failed (38 × http_500); 15 more do not count (15 × http_404)"
    )


async def test_a_first_generation_is_published_with_a_warning(
    crawls: Crawls, database: Database
) -> None:
    crawl = await crawls.start()
    await crawl.write(pages(TEN))
    await crawl.ledger(fetched=4, reasons={"http_403": 1})
    assert await crawl.finish() is None
    [first] = (await list_generations(database, SOURCE)).items
    assert first.label == "published: 1 of 5 URLs failed (1 × http_403)"


async def test_a_first_generation_of_almost_nothing_is_held_back(crawls: Crawls) -> None:
    crawl = await crawls.start()
    await crawl.write(pages({"a": "the only page"}))
    await crawl.ledger(fetched=1, reasons={"http_403": 9})
    assert await refused(crawl) == "9 of 10 URLs failed (9 × http_403)"


async def test_a_source_sets_its_own_limits(crawls: Crawls, database: Database) -> None:
    await crawls.crawl(TEN)
    await execute(database, "UPDATE sources SET max_shrink = 0.9 RETURNING 1")
    assert await crawls.crawl(fewer(1)) is None


async def test_nothing_at_all_is_never_published(crawls: Crawls) -> None:
    crawl = await crawls.start()
    assert await refused(crawl) == "it has no pages"


async def test_what_was_refused_is_published_by_force_only(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl(TEN)
    assert await crawls.crawl(fewer(2)) is not None
    with pytest.raises(NotAllowed, match="pages fell from 10 to 2"):
        await publish(database, SOURCE, 2)
    forced = await publish(database, SOURCE, force=True)
    assert (forced.number, forced.state.value) == (2, "published")
    assert len(await active_site(database)) == 2
    assert await states(database) == ["published", "retired"]


async def test_a_refused_crawl_does_not_decide_how_refreshes_go(
    crawls: Crawls, database: Database
) -> None:
    crawls.payload = {"steps": 10}
    await crawls.crawl(TEN)
    crawls.payload = {"steps": 1}
    await crawls.crawl(fewer(1))
    assert (await get_source(database, SOURCE)).payload["steps"] == 10
    crawls.payload = {"steps": 9}
    await crawls.crawl(fewer(9))
    assert (await get_source(database, SOURCE)).payload["steps"] == 9


# --- rollback ------------------------------------------------------------------------------------


async def test_rollback_goes_back_step_by_step(crawls: Crawls, database: Database) -> None:
    for text in ("one", "two", "three"):
        await crawls.crawl({"a": text})
    assert (await roll_back(database, SOURCE)).number == 2
    assert await active_site(database) == {"a": "two"}
    assert (await roll_back(database, SOURCE)).number == 1
    with pytest.raises(NotAllowed, match="no earlier generation"):
        await roll_back(database, SOURCE)
    assert (await roll_back(database, SOURCE, 3)).number == 3
    assert await active_site(database) == {"a": "three"}


async def test_a_rollback_during_a_refresh_is_not_undone_by_it(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl({"a": "good"})
    await crawls.crawl({"a": "bad"})
    refreshing = await crawls.start()
    await refreshing.write(pages({"a": "worse"}))
    await roll_back(database, SOURCE)
    assert "has been replaced since" in await refused(refreshing)
    assert await active_site(database) == {"a": "good"}
    # the next one is built on what is published now
    assert await crawls.crawl({"a": "better"}) is None
    assert await active_site(database) == {"a": "better"}


async def test_a_rollback_skips_what_was_never_published(
    crawls: Crawls, database: Database
) -> None:
    await crawls.crawl(TEN)
    await crawls.crawl(fewer(1))
    await crawls.crawl(fewer(9))
    assert (await roll_back(database, SOURCE)).number == 1


async def test_what_is_being_built_cannot_be_published(crawls: Crawls, database: Database) -> None:
    crawl = await crawls.start()
    await crawl.write([page("a", "one")])
    with pytest.raises(NotAllowed, match="is building"):
        await publish(database, SOURCE, 1, force=True)
    with pytest.raises(NotFound, match="no complete generation"):
        await publish(database, SOURCE, force=True)
    with pytest.raises(NotFound, match="no generation 7"):
        await roll_back(database, SOURCE, 7)
    with pytest.raises(NotFound, match="no source"):
        await publish(database, "elsewhere")


async def test_publications_at_once_leave_one_published(crawls: Crawls, database: Database) -> None:
    for text in ("one", "two", "three", "four"):
        await crawls.crawl({"a": text})
    await asyncio.gather(*(publish(database, SOURCE, 1 + n % 4) for n in range(12)))
    assert sorted(await states(database)) == ["published", *["retired"] * 3]
    [(same,)] = await execute(
        database,
        "SELECT g.state = 'published' FROM sources s"
        " JOIN generations g ON g.id = s.published_generation",
    )
    assert same
