"""Markdown first: pages are read from the markdown that their site offers beside the HTML."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from crawl.crawling import Crawls
from crawl.file_sources import ask_agent, changed_pages
from crawl.markdown_site import (
    GENERATOR,
    PAGES,
    STORY,
    accepts_markdown,
    by_accept,
    complete,
    html,
    listed,
    markdown,
    named,
    named_in_header,
    negotiated,
    negotiated_elsewhere,
    similar,
)
from crawl.refreshing import SOURCE, crawl, generations
from crawl.test_kills import working
from crawl.test_pausing import left
from forager.archive.options import archive_options
from forager.checks import Topic, checks_in, run_checks
from forager.crawl.explain.explanation import explain
from forager.crawl.visit import markdown as markdown_first
from forager.documents import checks
from forager.documents.reader import read_page
from forager.jobs.lifecycle import Status
from forager.settings import Settings
from forager.settings.crawling import MarkdownMode
from servers.site import Page, Site, moved, tagged, text
from support.sql import execute
from support.waiting import eventually


@pytest.fixture
def crawls(crawls: Crawls) -> Crawls:
    crawls.settings = Settings(**(crawls.settings.model_dump() | {"markdown": MarkdownMode.AUTO}))
    return crawls


async def content_of(crawls: Crawls, url: str) -> str:
    return (await read_page(crawls.database, url)).markdown


@pytest.mark.parametrize(
    ("offer", "way"),
    [
        (named, "link"),
        (named_in_header, "link"),
        (negotiated, "accept"),
        (negotiated_elsewhere, "accept"),
        (similar, "address"),
        (listed, "llms.txt"),
        (complete, "llms-full.txt"),
    ],
)
async def test_markdown_is_read_instead_of_html(
    crawls: Crawls, site: Site, offer: Callable[[Site], None], way: str
) -> None:
    offer(site)
    done = await crawl(crawls, site)
    # links are followed as they stand in the HTML, and pages keep their addresses
    assert done.pages(site.url) == set(PAGES)
    for path, title in PAGES.items():
        page = await read_page(crawls.database, f"{site.url}{path}")
        assert f"Only in markdown: {title}." in page.markdown
        anchors = [section.anchor for section in page.sections if section.heading != title]
        assert anchors == ["start-it", "no-slug"]
    rows = await execute(crawls.database, "SELECT markdown_way FROM sources WHERE id = %s", SOURCE)
    assert rows == [(way,)]
    explained = await explain(crawls.database, crawls.queue, f"{site.url}/guide/")
    assert explained.message.startswith("read as markdown from ")
    # it is known in the next crawl: no other way is tried
    site.log.clear()
    again = await crawl(crawls, site)
    assert set(again.outcomes(site.url).values()) == {"unchanged:same_content"}
    assert (await generations(crawls))[-1].unchanged == len(PAGES)
    if way != "llms.txt":
        assert "/llms.txt" not in site.hits


async def test_links_lead_to_pages_instead_of_their_markdown(crawls: Crawls, site: Site) -> None:
    similar(site)
    site.pages["/api/pump.html"] = html("Pump")
    site.pages["/api/pump.md"] = markdown("Pump", link="valve.md?x=1")
    site.pages["/guide/"] = html("Guide", link="/guide.md")
    await crawl(crawls, site)
    assert f"({site.url}/api/pump.md" not in await content_of(crawls, f"{site.url}/guide/")
    # markdown that the page itself links to is no page of its own
    done = await crawl(crawls, site)
    assert done.outcomes(site.url).get("/guide.md") == "duplicate:markdown"


@pytest.mark.parametrize(
    "twin",
    [
        text("# Guide\n\nSee the page.\n", "text/markdown"),
        text(f"# Guide\n\n{'Welcome to our shop for garden furniture and lamps. ' * 20}"),
        text("<!doctype html><title>Not here</title>" + STORY, "text/markdown"),
        text(f"# Guide\n\n{STORY} Guide. Press the green button and wait. See the reference."),
        Page(b"\x00\x01\x02", headers={"Content-Type": "text/markdown"}),
        Page(b"", "404 Not Found"),
        Page(b"", "204 No Content"),
        moved("http://127.0.0.1:1/guide.md"),
    ],
    ids=["short", "other", "html", "no headings", "binary", "404", "empty", "elsewhere"],
)
async def test_markdown_that_is_not_the_page_is_not_used(
    crawls: Crawls, site: Site, twin: Page
) -> None:
    similar(site)
    site.pages["/guide.md"] = twin
    done = await crawl(crawls, site)
    assert done.pages(site.url) == set(PAGES)
    assert "Only in markdown" in await content_of(crawls, f"{site.url}/api/pump.html")
    page = await read_page(crawls.database, f"{site.url}/guide/")
    assert "Only in markdown" not in page.markdown
    assert [each.anchor for each in page.sections] == ["top", "start-it", "no-slug"]


async def test_never(crawls: Crawls, site: Site) -> None:
    similar(site)
    site.pages["/guide/"] = tagged(html("Guide"))
    await crawl(crawls, site)
    assert "Only in markdown" in await content_of(crawls, f"{site.url}/guide/")
    site.log.clear()
    # pages that were read as markdown are read again, also where the server has no news
    done = await crawl(crawls, site, markdown="never")
    assert done.pages(site.url) == set(PAGES)
    assert "Only in markdown" not in await content_of(crawls, f"{site.url}/guide/")
    assert not {target for target in site.hits if target.endswith((".md", "llms.txt"))}


async def test_unchanged_pages_stay_markdown(crawls: Crawls, site: Site) -> None:
    similar(site)
    site.pages = {path: tagged(page) for path, page in site.pages.items() if isinstance(page, Page)}
    await crawl(crawls, site)
    site.log.clear()
    done = await crawl(crawls, site)
    assert set(done.outcomes(site.url).values()) == {"unchanged:not_modified"}
    assert set(site.hits) == set(PAGES)
    assert "Only in markdown" in await content_of(crawls, f"{site.url}/guide/")
    explained = await explain(crawls.database, crawls.queue, f"{site.url}/guide/")
    assert explained.message == "not modified; its version was read as markdown"


async def test_linked_markdown_of_unchanged_pages_stays_a_duplicate(
    crawls: Crawls, site: Site
) -> None:
    similar(site)
    site.pages["/guide/"] = html("Guide", link="/guide.md")
    site.pages = {path: tagged(page) for path, page in site.pages.items() if isinstance(page, Page)}
    await crawl(crawls, site)
    done = await crawl(crawls, site)
    assert done.outcomes(site.url) == {
        "/": "unchanged:not_modified",
        "/guide/": "unchanged:not_modified",
        "/guide.md": "duplicate:markdown",
        "/api/pump.html": "unchanged:not_modified",
    }


async def test_markdown_that_was_read_before_an_interruption_stays_a_duplicate(
    crawls: Crawls, site: Site
) -> None:
    similar(site)
    site.pages["/"] = html("Home", link="/late/")
    site.pages["/late/"] = Page(html("Late", link="/guide.md").body, hangs=True)
    with working(crawls.settings):
        job_id = await crawls.ask(f"{site.url}/", source=SOURCE)

        async def waits_for_the_last_page() -> bool:
            return site.hanging == 1 and len((await crawls.look(job_id)).pages()) == len(PAGES)

        await eventually(waits_for_the_last_page)
        await crawls.queue.pause(job_id)
        await left(crawls, job_id, Status.PAUSED)
        site.release()
        await crawls.queue.resume(job_id)
        await left(crawls, job_id, Status.COMPLETED)
    assert (await crawls.look(job_id)).outcomes(site.url)["/guide.md"] == "duplicate:markdown"


def without_markdown(site: Site, *, head: str) -> None:
    for number in range(8):
        site.pages[f"/p{number}"] = html(f"Page {number}", head=head)
    site.pages["/"] = html("Home", head=head, link="/p0")
    site.pages["/api/pump.html"] = html("Pump", head=head, link="/p1")
    site.pages["/guide/"] = html("Guide", head=head, link="/p2")


async def way_of(crawls: Crawls) -> str | None:
    rows = await execute(crawls.database, "SELECT markdown_way FROM sources WHERE id = %s", SOURCE)
    return str(rows[0][0]) if rows[0][0] else None


async def test_a_site_without_markdown_is_asked_once(crawls: Crawls, site: Site) -> None:
    without_markdown(site, head=GENERATOR)
    done = await crawl(crawls, site, include=["/", "/p*", "/guide/", "/api/*"])
    assert len(done.pages()) == 6
    asked = [target for target in site.hits if target.endswith((".md", ".txt"))]
    assert "/llms.txt" in asked
    assert len(asked) <= 4  # with robots.txt
    assert site.hits.total() == len(done.pages()) + len(asked)
    assert await way_of(crawls) == "none"
    site.log.clear()
    await crawl(crawls, site)
    assert not [target for target in site.hits if target.endswith((".md", "llms.txt"))]


async def test_a_small_site_without_a_sign_of_markdown_costs_no_request(
    crawls: Crawls, site: Site
) -> None:
    without_markdown(site, head="")
    done = await crawl(crawls, site)
    assert set(site.hits) == {*done.pages(site.url), "/robots.txt"}
    assert site.hits.total() == len(done.pages()) + 1
    # another crawl asks as well: it costs nothing
    assert await way_of(crawls) is None


async def test_a_large_site_is_asked_without_a_sign(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown_first, "LARGE_CRAWL", 3)
    without_markdown(site, head="")
    site.pages["/llms.txt"] = text("- [Pump](/raw/pump.md)\n- [Guide](/raw/guide.md)")
    site.pages["/raw/guide.md"] = markdown("Guide")
    site.pages["/raw/pump.md"] = markdown("Pump")
    await crawl(crawls, site)
    assert await way_of(crawls) == "llms.txt"


@pytest.mark.parametrize(
    "head",
    [
        '<link rel="help" href="/llms.txt">',
        '<link rel="edit" href="https://git.example/docs/guide.md">',
        '<meta name="generator" content="VitePress">',
    ],
)
async def test_signs_of_markdown(crawls: Crawls, site: Site, head: str) -> None:
    without_markdown(site, head=head)
    await crawl(crawls, site)
    assert "/llms.txt" in site.hits


@pytest.mark.parametrize("header", ["X-Llms-Txt", "Link"])
async def test_headers_that_are_signs_of_markdown(crawls: Crawls, site: Site, header: str) -> None:
    value = '</llms.txt>; rel="llms-txt"'
    site.pages["/"] = Page(html("Home", head="").body, headers={header: value})
    await crawl(crawls, site)
    assert "/llms.txt" in site.hits


async def test_markdown_by_accept_costs_one_request_a_page(crawls: Crawls, site: Site) -> None:
    negotiated(site)
    await crawl(crawls, site)
    assert site.hits == {"/robots.txt": 1} | dict.fromkeys(PAGES, 2)


@pytest.mark.parametrize(
    "answer",
    [
        Page(b"No", "406 Not Acceptable"),
        Page(b"No", "404 Not Found"),
        Page(b"No", "500 Internal Server Error"),
        text(f"# Home\n\n{STORY}"),
    ],
    ids=["refused", "not found", "failed", "text"],
)
async def test_a_server_that_cannot_negotiate_is_asked_for_html(
    crawls: Crawls, site: Site, answer: Page
) -> None:
    for path, title in PAGES.items():
        site.pages[path] = by_accept(site, path, html(title, head=""), answer)
    assert (await crawl(crawls, site)).pages(site.url) == set(PAGES)
    assert "Press the green button" in await content_of(crawls, f"{site.url}/")


async def test_an_accept_header_of_the_crawl_is_kept(crawls: Crawls, site: Site) -> None:
    without_markdown(site, head="")
    done = await crawl(crawls, site, headers={"accept": "text/html"})
    assert done.pages()
    assert not [path for path in done.pages(site.url) if accepts_markdown(site, path)]


@pytest.mark.parametrize(
    "content",
    [
        "# The site\n\nPages in a form that is not known.",
        "#" + " " * 500_000 + "\nx",
        f"Source: https://a.example{'/index' * 300_000}\n\nIt.",
        f"Source: https://a.example{'/index' * 300}\n\nIt.",
    ],
)
async def test_a_listing_that_cannot_be_used_stops_no_crawl(
    crawls: Crawls, site: Site, content: str
) -> None:
    site.pages = {path: html(title) for path, title in PAGES.items()}
    site.pages |= {"/llms.txt": text(content), "/llms-full.txt": text(content)}
    assert len((await crawl(crawls, site)).pages()) == len(PAGES)


async def test_listings_beyond_the_limit_of_memory_are_not_used(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete(site)
    monkeypatch.setattr(markdown_first, "MAX_LISTINGS", 100)
    assert (await crawl(crawls, site)).pages(site.url) == set(PAGES)
    assert "Only in markdown" not in await content_of(crawls, f"{site.url}/guide/")


async def test_robots_txt_applies_to_markdown(crawls: Crawls, site: Site) -> None:
    similar(site)
    site.pages["/robots.txt"] = text("User-agent: *\nDisallow: /*.md\nDisallow: /llms\n")
    done = await crawl(crawls, site)
    assert done.pages(site.url) == set(PAGES)
    assert not [target for target in site.hits if target.endswith((".md", "llms.txt"))]


async def test_markdown_that_fails_for_a_while_is_tried_again(crawls: Crawls, site: Site) -> None:
    similar(site)
    twin = site.pages["/guide.md"]
    assert isinstance(twin, Page)
    site.pages["/guide.md"] = lambda hits: Page(b"", "500 Oops") if hits == 1 else twin
    await crawl(crawls, site)
    assert "Only in markdown" in await content_of(crawls, f"{site.url}/guide/")
    site.pages["/guide.md"] = Page(b"", "500 Oops")
    done = await crawl(crawls, site)
    # the HTML is better than no page
    assert done.outcomes(site.url)["/guide/"] == "fetched"
    assert "Only in markdown" not in await content_of(crawls, f"{site.url}/guide/")


async def test_an_agent_gets_the_markdown_with_the_address_of_the_page(
    crawls: Crawls, site: Site
) -> None:
    similar(site)
    await crawl(crawls, site)
    answer = await ask_agent(crawls, "Stopping it: only in markdown, Pump")
    assert f"{site.url}/api/pump.html#no-slug" in answer
    assert "Only in markdown: Pump." in answer
    assert ".md" not in answer
    changed = markdown("Pump").body.decode().replace("green button", "red button")
    site.pages["/api/pump.md"] = text(changed, "text/markdown")
    await crawl(crawls, site)
    assert await changed_pages(crawls) == {"added": [], "removed": [], "changed": ["pump.html"]}


async def test_a_source_with_markdown_loses_nothing(crawls: Crawls, site: Site) -> None:
    similar(site)
    await crawl(crawls, site)
    storage = archive_options(crawls.settings).open()
    pages = await checks.read_source(crawls.database, storage, SOURCE)
    report = await run_checks(checks_in(checks, topic=Topic.SOURCES), pages)
    assert report.ok
    assert not report.problems
