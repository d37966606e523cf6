"""Crawls that render: which pages, what is stored of them, and what a refresh makes of them."""

from __future__ import annotations

from typing import cast
from uuid import UUID

import psutil
import pytest

from crawl.crawling import Crawls
from crawl.test_kills import working
from forager.archive.options import archive_options
from forager.archive.reader import SegmentScan, read_response
from forager.archive.segment import ArchiveRef
from forager.crawl.explain.explanation import explain
from forager.crawl.reports.report import CrawlWait, crawl_report
from forager.db.ids import new_id
from forager.fetch.domains.service import DomainChanges, Domains
from forager.jobs.lifecycle import FINISHED, Status
from forager.jobs.workers import Registration
from forager.settings import Settings
from forager.settings.crawling import RenderMode
from render.conftest import require_browser
from render.pages import SHOW, SITE, WORDS, shell, shown
from servers.site import Page, Site, html, tagged, text
from support.waiting import eventually

APP = {
    "/": html("Home", ["/app/1", "/app/2", "/doc", "/moves", "/empty/1"]),
    "/doc": html("Doc"),
    "/app/1": shown("One", "history.pushState({}, '', '/app/3')"),
    "/app/2": shell(
        'fetch("/data/2").then((r) => r.text()).then((t) =>'
        ' document.getElementById("app").innerHTML = t)'
    ),
    "/data/2": text(f"<h1>Two</h1><p>{WORDS} Second.</p><a href=/app/4>4</a>"),
    "/app/3": shown("Three", first="document.title = 'Third'"),
    "/app/4": shown("Four"),
    "/moves": shell("location.href = '/app/4'"),
    "/empty/1": shell(""),
    "/robots.txt": text("User-agent: *\nAllow: /"),
}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"browser": require_browser(), "render_pages": 2})


@pytest.fixture
def site(site: Site) -> Site:
    site.pages = {**SITE, **APP}
    return site


async def test_auto_renders_what_needs_it(crawls: Crawls, site: Site, settings: Settings) -> None:
    crawled = await crawls.run(site.url, source="app")
    assert crawled.job.error_message is None
    assert crawled.outcomes(site.url) == {
        "/": "fetched",
        "/doc": "fetched",
        "/app/1": "fetched",
        "/app/2": "fetched",
        "/app/3": "fetched",
        "/app/4": "fetched",
        "/moves": "duplicate:redirect",
        "/empty/1": "fetched",
    }
    assert crawled.ledger["rendered_by_reason"] == {"no_content": 6}
    assert site.hits["/app/2"] == site.hits["/data/2"] == 1
    words = await _renderings(crawls, crawled.job.id, site)
    assert words["/doc"] is None
    assert (words["/app/2"] or "").startswith("rendered (no_content): 1 requests, ")
    assert (words["/empty/1"] or "").endswith("shows no more than the static response")
    found = await explain(crawls.database, crawls.queue, f"{site.url}/doc")
    assert found.rendering == "not rendered: its static response has the content"
    found = await explain(crawls.database, crawls.queue, f"{site.url}/app/2")
    assert found.rendering == words["/app/2"]
    lessons = await crawls.sql("SELECT shape, streak FROM render_lessons WHERE source_id = 'app'")
    host = site.url.removeprefix("http://")
    assert dict(lessons)[f"{host}/app/*"] == 4
    assert dict(lessons)[f"{host}/empty/*"] == -1
    assert "Second." in await _content(crawls, site.url + "/app/2")
    await _check_archive(crawls, settings, site.url + "/app/2")


def served(body: str) -> Page:
    return Page(body.encode(), headers={"Content-Type": "text/html"})


async def test_menus_that_scripts_add_are_no_gain(crawls: Crawls, site: Site) -> None:
    """Every page looks empty, and rendering adds the same links and labels outside its content."""
    menu = "".join(f'<a href="/p/{n}">A label of the menu number {n}</a>' for n in range(8))
    script = f"document.getElementById('menu').innerHTML = '{menu}'"
    page = f"<nav id=menu></nav><main><h1>%s</h1></main><script>{script}</script>"
    names = [f"/p/{n}" for n in range(8)]
    links = "".join(f"<a href={name}>{name}</a>" for name in names)
    site.pages = {name: served(page % name) for name in names}
    site.pages["/"] = served(f"<h1>Home</h1><p>{WORDS}</p>{links}")
    crawled = await crawls.run(site.url, source="menus")
    assert crawled.ledger["fetched"] == 9
    assert crawled.ledger["rendered_by_reason"]["no_content"] <= 5
    lessons = dict(await crawls.sql("SELECT shape, streak FROM render_lessons"))
    assert min(lessons.values()) <= -2


async def test_a_refresh_goes_by_the_rendered_content(crawls: Crawls, site: Site) -> None:
    """The static response stays the same, and says so by its ETag."""
    page = f"{site.url}/app/2"
    site.pages["/"] = html("Home", ["/app/2"])
    site.pages["/app/2"] = tagged(cast(Page, site.pages["/app/2"]))
    site.pages["/data/2"] = text(f"<h1>Two</h1><p>{WORDS} Second.</p>")
    await crawls.run(site.url, source="app")
    site.pages["/data/2"] = text(f"<h1>Two</h1><p>{WORDS} Changed.</p>")
    changed = await crawls.run(site.url, source="app")
    assert changed.visited[page].outcome == "fetched"
    assert changed.report["generation"]["changed"] == 1
    assert "Changed." in await _content(crawls, page)
    # without a browser, the rendered version stays
    crawls.settings = crawls.settings.model_copy(update={"browser": "none"})
    without = await crawls.run(site.url, source="app", retries=0)
    assert without.outcomes(site.url)["/app/2"] == "failed:render"
    assert without.ledger["carried_over_by_reason"] == {"render": 1}
    assert "Changed." in await _content(crawls, page)


async def test_pictures_are_stored_with_their_pages(
    crawls: Crawls, site: Site, settings: Settings
) -> None:
    site.pages["/"] = html("Home", ["/app/4"])
    await crawls.run(site.url, source="app", screenshots=True)
    rows = await crawls.sql(
        "SELECT url, segment, segment_offset, segment_length FROM crawl_visited"
    )
    refs = {url.removeprefix(site.url): ArchiveRef(*place) for url, *place in rows}
    storage = archive_options(settings).open()
    assert (await read_response(storage, refs["/app/4"])).picture.startswith(b"\x89PNG")
    assert not (await read_response(storage, refs["/"])).picture


async def test_hash_routes_are_pages_where_asked(crawls: Crawls, site: Site) -> None:
    route = (
        "const show = () => { const title = location.hash || 'Start';"
        f"{SHOW}; document.getElementById('app').insertAdjacentHTML('beforeend',"
        ' \'<a href="#/one">1</a><a href="#top">top</a>\') }; show()'
    )
    site.pages["/"] = shell(route)
    assert (await crawls.run(site.url)).outcomes(site.url) == {"/": "fetched"}
    routed = await crawls.run(site.url, hash_routes=True)
    assert routed.outcomes(site.url) == {"/": "fetched", "/#/one": "fetched"}
    assert routed.ledger["rendered_by_reason"] == {"no_content": 1, "hash_route": 1}


async def _renderings(crawls: Crawls, job_id: object, site: Site) -> dict[str, str | None]:
    rows = await crawls.sql("SELECT url, rendering FROM crawl_visited WHERE job_id = %s", job_id)
    return {url.removeprefix(site.url): words for url, words in rows}


async def _content(crawls: Crawls, url: str) -> str:
    rows = await crawls.sql(
        """
        SELECT s.content FROM documents_active d JOIN sections s ON s.document_id = d.id
         WHERE d.url = %s
        """,
        url,
    )
    return " ".join(content for (content,) in rows)


async def _check_archive(crawls: Crawls, settings: Settings, url: str) -> None:
    """The static response, the rendered page and what was loaded are records of one segment."""
    [(segment, offset, length)] = await crawls.sql(
        "SELECT segment, segment_offset, segment_length FROM crawl_visited WHERE url = %s", url
    )
    storage = archive_options(settings).open()
    rendered = await read_response(storage, ArchiveRef(segment, offset, length))
    assert b"Second." in rendered.body
    records = {r.kind: r async for _, r in SegmentScan(storage, segment) if r.url == url}
    assert set(records) == {"metadata", "response", "conversion"}
    assert b"Second." not in records["response"].block
    assert b"/data/2" in records["metadata"].block


@pytest.mark.long
async def test_a_runner_killed_while_it_renders_leaves_nothing_behind(
    crawls: Crawls, site: Site, settings: Settings
) -> None:
    site.pages["/"] = html("Home", ["/hangs", "/doc"])
    job_id = await crawls.ask(site.url)
    with working(settings) as worker:
        await eventually(lambda: site.hanging > 0)
        tree = worker.tree()[1:]
        assert any("chrom" in process.name() for process in tree)
        site.pages["/hangs"] = shown("Back")
        worker.kill_runner()
        gone, alive = psutil.wait_procs(tree, timeout=30)
        assert not alive, f"{len(gone)} ended"

        async def is_finished() -> bool:
            return (await crawls.queue.get(job_id)).status in FINISHED

        await eventually(is_finished)
    crawled = await crawls.look(job_id)
    assert crawled.outcomes(site.url) == {"/": "fetched", "/hangs": "fetched", "/doc": "fetched"}


async def test_a_domain_that_never_renders_is_named(crawls: Crawls, site: Site) -> None:
    await Domains(crawls.database).add(site.url, DomainChanges(render=RenderMode.NEVER))
    await crawls.run(site.url + "/doc", source="app")
    found = await explain(crawls.database, crawls.queue, f"{site.url}/doc")
    name = site.url.removeprefix("http://")
    assert found.rendering == f"not rendered: the domain {name} is set to render never"


async def test_a_crawl_that_always_renders_waits_for_the_worker_with_a_browser(
    crawls: Crawls, site: Site, settings: Settings
) -> None:
    rendered = await crawls.ask(f"{site.url}/doc", render="always")
    static = await crawls.ask(f"{site.url}/doc", render="never")

    async def ended(job_id: UUID) -> bool:
        return (await crawls.queue.get(job_id)).status in FINISHED

    with working(settings.model_copy(update={"browser": "none"})):
        # the later one, so that the first was passed over
        await eventually(lambda: ended(static))
        assert [event.move for event in await crawls.queue.events(rendered)] == ["enqueue"]
        wait = (await crawl_report(crawls.database, crawls.queue, rendered)).wait
        assert wait == CrawlWait("waiting for a worker that renders (forager worker --render)")
        with working(settings):
            await eventually(lambda: ended(rendered))
    crawled = await crawls.look(rendered)
    assert crawled.job.status is Status.COMPLETED
    assert crawled.ledger["rendered_by_reason"] == {"always": 1}


async def test_an_auto_crawl_is_handed_over_to_a_worker_with_a_browser(
    crawls: Crawls, site: Site, settings: Settings
) -> None:
    site.pages = {**site.pages, "/": html("Home", ["/doc", "/app/4"])}
    renderer = Registration(crawls.database, new_id(), capacity=1, renders=True)
    await renderer.renew()
    job_id = await crawls.ask(site.url, source="app")
    static = Crawls(crawls.database, settings.model_copy(update={"browser": "none"}))
    crawled = await static.go_on(job_id)
    assert crawled.job.status is Status.PENDING
    assert "/app/4" not in crawled.outcomes(site.url)
    events = await crawls.queue.events(job_id)
    assert events[-1].reason == "some pages need a worker with a browser"
    wait = (await crawl_report(crawls.database, crawls.queue, job_id)).wait
    assert wait == CrawlWait("waiting for a worker that renders (forager worker --render)")
    assert await crawls.queue.claim(new_id(), kinds=["crawl"]) == []
    crawled = await crawls.go_on(job_id, renders=True)
    assert crawled.job.status is Status.COMPLETED
    assert crawled.ledger["rendered_by_reason"] == {"no_content": 1}
    # no worker renders any more: pages are read without a browser
    await renderer.end()
    again = await static.run(site.url, source="app")
    assert again.job.status is Status.COMPLETED
