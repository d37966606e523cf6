"""Crawls that learn what the pages of a source have in common."""

from __future__ import annotations

import asyncio

import pytest

from crawl.crawling import Crawled, Crawls
from forager.archive.options import archive_options
from forager.crawl.extraction import rereading
from forager.crawl.extraction.pool import PageExtractor
from forager.crawl.extraction.rereading import LEARNING, BoilerplateLearner
from forager.documents import archived
from forager.documents.archived import explain_content
from forager.documents.diff import diff_generations
from forager.documents.reader import list_documents, read_page
from forager.documents.writer import GenerationWriter
from forager.extract.content.repeated import Block
from forager.extract.document import EXTRACTOR_VERSION
from forager.extract.keys import url_key
from forager.fetch.response import Response
from forager.jobs.summary import JobActivity, summarize_jobs
from forager.processes.sandbox import SandboxLimits
from servers.site import Page, Site, html
from support.waiting import eventually

SOURCE = "docs"
PAGES = 30


@pytest.fixture(autouse=True)
def small_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "SAMPLE_PAGES", 12)


def build(site: Site, *, pages: int = PAGES, edited: str = "") -> None:
    """Pages below the same menu and notice; nothing but their repetition shows what they are."""
    paths = [f"/p{number}" for number in range(pages)]
    entries = "".join(f'<li><a href="{path}">Chapter of {path}</a></li>' for path in paths)
    notice = "<p>This manual describes a version that has not been released yet.</p>"
    body = f'<div id="left"><ul>{entries}</ul></div><div id="below">{notice}</div>'
    site.pages = {"/": html("Home", body=body)}
    site.pages |= {path: html(f"Text of {path}{edited}", body=body) for path in paths}


async def crawl(crawls: Crawls, site: Site) -> Crawled:
    return await crawls.run(f"{site.url}/", source=SOURCE)


async def markdown_of_all(crawls: Crawls) -> dict[str, str]:
    listed = await list_documents(crawls.database, SOURCE, limit=1000)
    return {
        page.url: (await read_page(crawls.database, page.url)).markdown for page in listed.items
    }


async def stored_versions(crawls: Crawls) -> list[tuple[str, int]]:
    return await crawls.sql(
        "SELECT extractor_version, count(*)::int FROM documents GROUP BY 1 ORDER BY 1"
    )


async def test_no_page_keeps_what_all_have_and_a_refresh_changes_nothing(
    crawls: Crawls, site: Site
) -> None:
    build(site)
    await crawl(crawls, site)
    texts = await markdown_of_all(crawls)
    assert len(texts) == PAGES + 1
    assert not [url for url, text in texts.items() if "Chapter of" in text or "released" in text]
    # pages that were read before anything was learned are replaced, not kept beside
    [(version, count)] = await stored_versions(crawls)
    assert (version.partition("-")[:2], count) == ((str(EXTRACTOR_VERSION), "-"), PAGES + 1)
    storage = archive_options(crawls.settings).open()
    content = await explain_content(crawls.database, storage, url_key(f"{site.url}/p3"))
    assert content is not None
    assert {block.reason.partition(" of ")[2] for block in content.removed} == {
        "12 pages of its source"
    }

    second = await crawl(crawls, site)
    assert second.ledger["unchanged"] == PAGES + 1
    diff = await diff_generations(crawls.database, SOURCE)
    assert [*diff.added, *diff.removed, *diff.changed] == []
    assert await stored_versions(crawls) == [(version, PAGES + 1)]


async def test_a_page_is_explained_in_another_process_with_limits(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API explains pages; a hostile one must not stop it."""
    long = "<p>A paragraph of some words that takes a while to be read.</p>" * 50_000
    site.pages = {"/": html("Home", body="<nav><a href=/a>Menu</a></nav>" * 3 + long)}
    await crawl(crawls, site)
    key, storage = url_key(f"{site.url}/"), archive_options(crawls.settings).open()
    monkeypatch.delattr(archived, "extract_reading")
    content = await explain_content(crawls.database, storage, key)
    assert content is not None
    assert "Menu" in "".join(block.text for block in content.removed)
    monkeypatch.setattr(archived, "LIMITS", SandboxLimits(seconds=0.05))
    assert await explain_content(crawls.database, storage, key) is None


async def test_a_crawl_that_is_killed_while_it_learns_learns_again(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(site)
    store_repeated = GenerationWriter.store_repeated

    async def killed(self: GenerationWriter, *given: object) -> None:
        await store_repeated(self, *given)  # type: ignore[arg-type]
        monkeypatch.setattr(GenerationWriter, "store_repeated", store_repeated)
        raise ConnectionError("killed before the commit")

    monkeypatch.setattr(GenerationWriter, "store_repeated", killed)
    failed = await crawl(crawls, site)
    before = await stored_versions(crawls)
    await crawls.sql("UPDATE crawl_jobs SET run_after = now()")
    await crawls.go_on(failed.job.id)
    assert before == [(str(EXTRACTOR_VERSION), before[0][1])]
    assert not any("Chapter of" in text for text in (await markdown_of_all(crawls)).values())
    assert [count for _, count in await stored_versions(crawls)] == [PAGES + 1]


async def test_copies_of_pages_that_were_read_again_stay_copies(crawls: Crawls, site: Site) -> None:
    build(site)
    home = site.pages["/"]
    assert isinstance(home, Page)
    site.pages["/"] = html("Home", links=["/copy", "/p0"], body=home.body.decode())
    copied = site.pages["/p0"]
    assert isinstance(copied, Page)
    site.pages["/copy"] = copied
    crawled = await crawl(crawls, site)
    outcomes = crawled.outcomes(site.url)
    assert sorted([outcomes["/copy"], outcomes["/p0"]]) == ["duplicate:content", "fetched"]
    refreshed = (await crawl(crawls, site)).outcomes(site.url)
    assert {path: refreshed[path] for path in ("/copy", "/p0")} == {
        path: outcome.replace("fetched", "unchanged:same_content")
        for path, outcome in outcomes.items()
        if path in ("/copy", "/p0")
    }


async def test_a_small_site_learns_at_its_end_and_a_tiny_one_never(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rereading, "SAMPLE_PAGES", 64)
    build(site, pages=5)
    await crawl(crawls, site)
    assert await stored_versions(crawls) == [(str(EXTRACTOR_VERSION), 6)]
    build(site, pages=PAGES)
    await crawl(crawls, site)
    assert not any("Chapter of" in text for text in (await markdown_of_all(crawls)).values())


async def test_a_redesigned_site_is_learned_again(crawls: Crawls, site: Site) -> None:
    build(site)
    await crawl(crawls, site)
    build(site, edited=", redesigned")
    site.pages = {
        path: Page(page.body.replace(b'id="left"', b'id="right"'), headers=page.headers)
        for path, page in site.pages.items()
        if isinstance(page, Page)
    }
    await crawl(crawls, site)
    assert any("Chapter of" in text for text in (await markdown_of_all(crawls)).values())
    await crawl(crawls, site)
    assert not any("Chapter of" in text for text in (await markdown_of_all(crawls)).values())


async def test_blocks_that_were_kept_teach_the_same_as_archived_pages(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(site)
    read: list[object] = []
    blocks_of = PageExtractor.blocks_of

    async def noted(self: PageExtractor, response: Response) -> list[Block]:
        read.append(response.url)
        return await blocks_of(self, response)

    monkeypatch.setattr(PageExtractor, "blocks_of", noted)
    await crawls.run(f"{site.url}/", source="kept")
    assert not read
    monkeypatch.setattr(PageExtractor, "kept_blocks", lambda *_: None)
    await crawls.run(f"{site.url}/", source="archived")
    assert len(read) == 12
    learned = await crawls.sql("SELECT repeated_blocks - 'generation' FROM sources ORDER BY id")
    assert len(learned) == 2
    assert learned[0] == learned[1]


async def test_pages_are_fetched_and_the_activity_says_so_while_a_crawl_learns(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(site)
    go_on = asyncio.Event()
    learn = BoilerplateLearner.learn

    async def learn_later(self: BoilerplateLearner, *, at_least: int = 0) -> list[bytes]:
        await go_on.wait()
        return await learn(self, at_least=at_least)

    monkeypatch.setattr(BoilerplateLearner, "learn", learn_later)
    job_id = await crawls.ask(f"{site.url}/", source=SOURCE)
    running = asyncio.create_task(crawls.go_on(job_id))

    async def says_so() -> bool:
        rows = await crawls.sql("SELECT waits_for FROM crawl_states")
        return rows == [(LEARNING,)]

    await eventually(lambda: len(site.log) > PAGES)
    await eventually(says_so)
    summary = await summarize_jobs(crawls.database)
    [(listed,)] = await crawls.sql("SELECT count(*)::int FROM generation_documents")
    go_on.set()
    await running
    assert summary.activities[JobActivity.RUNNING] == 1
    assert listed == 12
    assert [count for _, count in await stored_versions(crawls)] == [PAGES + 1]
