"""Whether a page is published, since when, and why not, as every adapter says it."""

from __future__ import annotations

import pytest

from crawl.crawling import Crawls
from crawl.refreshing import SOURCE, crawl, generations, numbered, site_of, source
from forager.crawl.explain.explanation import explain
from forager.documents.generation import State
from forager.documents.publication import publish, roll_back
from forager.documents.reader import read_page
from forager.documents.search import SearchRequest, search
from forager.documents.visibility import PageVisibility
from forager.errors import NotAllowed, NotFound
from servers.site import Page, Site

SHRUNK = "pages fell from 20 to 11"


async def visibility(crawls: Crawls, url: str) -> PageVisibility:
    return (await explain(crawls.database, crawls.queue, url)).publication


@pytest.fixture
async def held_back(crawls: Crawls, site: Site) -> Site:
    """Generation 1 is published, generation 2 has lost half of its pages and is held back."""
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    site.pages = site_of(numbered(9, "changed") | {"/new": "new"})
    await crawl(crawls, site)
    return site


async def test_a_page_of_a_generation_that_is_held_back_says_so(
    crawls: Crawls, held_back: Site
) -> None:
    found = await visibility(crawls, held_back.url + "/new")
    assert (found.state, found.generation, found.since) == (State.HELD_BACK, 2, None)
    assert found.message == f"not published: generation 2 is held back: {SHRUNK}"
    assert f"forager sources publish {SOURCE} --force" in str(found.hint)
    with pytest.raises(NotFound, match="is held back: pages fell"):
        await read_page(crawls.database, held_back.url + "/new")


async def test_a_published_page_says_since_when_and_that_a_newer_version_is_held_back(
    crawls: Crawls, held_back: Site
) -> None:
    first, _ = await generations(crawls)
    found = await visibility(crawls, held_back.url + "/p0")
    assert (found.state, found.generation, found.held_back) == (State.PUBLISHED, 1, 2)
    assert found.since == first.published_at
    assert found.message.endswith(f"the version in generation 2 is held back: {SHRUNK}")
    kept = await visibility(crawls, held_back.url + "/p18")
    assert (kept.state, kept.held_back, kept.hint) == (State.PUBLISHED, None, None)


async def test_a_version_is_published_since_the_first_generation_that_has_it(
    crawls: Crawls, site: Site
) -> None:
    for text in ("first", "second", "second"):
        site.pages = site_of({"/p": text, "/same": "same"})
        await crawl(crawls, site)
    first, second, _ = await generations(crawls)
    assert (await visibility(crawls, site.url + "/same")).since == first.published_at
    found = await visibility(crawls, site.url + "/p")
    assert (found.generation, found.since) == (3, second.published_at)


async def test_explain_finds_the_source_of_a_url_whatever_else_ran(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of({"/a": "a"})
    await crawl(crawls, site)
    async with crawls.database.connection() as connection:
        await connection.execute(
            """
            INSERT INTO crawl_jobs (id, kind, source_id, payload, status, created_at)
            SELECT gen_random_uuid(), 'crawl', 'other-' || n,
                   '{"seeds": ["https://other.example/"]}', 'completed', now() + interval '1 hour'
              FROM generate_series(1, 60) n
            """
        )
    found = await explain(crawls.database, crawls.queue, site.url + "/a")
    assert (found.verdict, found.publication.state) == ("fetched", State.PUBLISHED)
    unknown = await explain(crawls.database, crawls.queue, site.url + "/unknown")
    assert (unknown.verdict, unknown.job_id) == ("never seen", found.job_id)
    assert unknown.message == "no page that the crawl has read leads to it"


async def test_pages_that_are_removed_failed_or_excluded_say_why(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of({"/a": "a", "/b": "b", "/c": "c"})
    await crawl(crawls, site)
    site.pages = site_of({"/a": "a", "/b": "b"}) | {"/b": Page(b"no", "404 Gone")}
    await crawl(crawls, site, retries=0, exclude=["/a"])
    await publish(crawls.database, SOURCE, force=True)
    messages = {
        path: (await visibility(crawls, site.url + path)).message for path in ("/a", "/b", "/c")
    }
    assert messages["/a"].startswith("not published: excluded (")
    assert messages["/b"] == "not published: failed (http_404)"
    assert messages["/c"] == "removed: generation 1 had it, and the published one does not"
    assert (await visibility(crawls, site.url + "/z")).message == (
        "not published: no crawl has found it"
    )


async def test_nothing_earlier_can_be_rolled_back_to(crawls: Crawls, held_back: Site) -> None:
    about = await source(crawls)
    assert (about.state, about.held_back_number, about.earlier_number) == (
        State.HELD_BACK, 2, None
    )  # fmt: skip
    with pytest.raises(NotAllowed, match="held back"):
        await roll_back(crawls.database, SOURCE, 2)
    await publish(crawls.database, SOURCE, force=True)
    about = await source(crawls)
    assert (about.state, about.held_back_number, about.earlier_number) == (
        State.PUBLISHED, None, 1
    )  # fmt: skip
    assert [each.state for each in await generations(crawls)] == [
        State.SUPERSEDED, State.PUBLISHED
    ]  # fmt: skip


async def test_a_search_without_results_says_that_nothing_is_published_and_why(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of(numbered(9))
    site.pages |= {f"/p{number}": Page(b"no", "500 Oops") for number in range(9)}
    await crawl(crawls, site, retries=0)
    for request in (SearchRequest(query="page"), SearchRequest(query="page", source=SOURCE)):
        found = await search(crawls.database, request)
        assert found.note is not None
        assert "held back: 9 of 10 URLs failed (9 × http_500)" in found.note
        assert f"forager sources publish {SOURCE} --force" in found.note


async def test_a_page_that_is_carried_over_is_published(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    site.pages |= {"/p1": Page(b"no", "500 Oops")}
    await crawl(crawls, site, retries=0)
    found = await visibility(crawls, site.url + "/p1")
    assert (found.state, found.generation) == (State.PUBLISHED, 2)
    assert "carried over from an earlier one because fetching fails (http_500)" in found.message
