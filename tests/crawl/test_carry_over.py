"""Pages that fail in a refresh for a temporary reason keep their last good version."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from crawl.crawling import Crawled, Crawls
from crawl.refreshing import (
    HANGING,
    SOURCE,
    TWIN,
    crawl,
    generations,
    menu,
    numbered,
    paths,
    published,
    site_of,
)
from crawl.test_kills import Disturbance, recover, working
from forager.crawl import limits
from forager.crawl.explain.explanation import Explanation, explain
from forager.documents.diff import diff_generations
from forager.jobs.lifecycle import Status
from servers.site import Page, Site, html, tagged
from support.waiting import eventually

BROKEN = Page(b"no", "500 Oops")
ONCE = {"retries": 0}


async def lines(crawls: Crawls, site: Site) -> dict[str, tuple[str, int]]:
    """Path -> reason and number of refreshes of the published pages that are carried over."""
    rows = await crawls.sql(
        """
        SELECT d.url, m.carried_reason, m.carried_times
          FROM sources s
          JOIN generation_documents m ON m.generation_id = s.published_generation
          JOIN documents d ON d.id = m.document_id
         WHERE m.carried_since IS NOT NULL
        """
    )
    return {url.removeprefix(site.url): (reason, times) for url, reason, times in rows}


async def explained(crawls: Crawls, url: str) -> Explanation:
    return await explain(crawls.database, crawls.queue, url)


def finished(crawled: Crawled) -> None:
    assert (crawled.job.status, crawled.job.stop_reason) == (Status.COMPLETED, "finished")


# --- which pages stay ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(BROKEN, "http_500"), (None, "network"), (Page(b"", "502 Bad Gateway"), "http_502")],
)
async def test_a_page_that_fails_for_a_while_stays_published(
    crawls: Crawls, site: Site, answer: Page | None, reason: str
) -> None:
    site.pages = site_of(numbered(19) | {"/reset": "Reset"})
    await crawl(crawls, site)
    before = await published(crawls)
    if answer is None:
        del site.pages["/reset"]  # the hostile server resets the connection
    else:
        site.pages["/reset"] = answer
    site.pages["/p1"] = tagged(html("another text", body=menu(["/"])))

    refreshed = await crawl(crawls, site, **ONCE)
    finished(refreshed)
    assert refreshed.outcomes(site.url)["/reset"] == f"failed:{reason}"
    assert refreshed.ledger["failed"] == refreshed.ledger["carried_over"] == 1
    assert refreshed.ledger["carried_over_by_reason"] == {reason: 1}
    after = await published(crawls)
    assert after["reset"] == before["reset"]
    assert set(after) == set(before)
    assert await lines(crawls, site) == {"/reset": (reason, 1)}


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone", "403 Forbidden"])
async def test_a_page_that_is_gone_goes(crawls: Crawls, site: Site, status: str) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    site.pages["/p3"] = Page(b"no", status)
    finished(await crawl(crawls, site, **ONCE))
    assert "p3" not in await published(crawls)
    assert await lines(crawls, site) == {}


async def test_an_excluded_page_goes_even_if_it_fails(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    site.pages["/p3"] = BROKEN
    finished(await crawl(crawls, site, exclude=["/p3"], **ONCE))
    assert "p3" not in await published(crawls)


# --- what is said of them ------------------------------------------------------------------------


async def test_counts_diff_and_explanation_show_pages_that_are_carried_over(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of(numbered(19))
    first = await crawl(crawls, site)
    site.pages = site_of({**numbered(18), "/p2": "Another text", "/new": "New"})
    site.pages["/p4"] = BROKEN
    second = await crawl(crawls, site, **ONCE)

    newest = (await generations(crawls))[-1]
    changes = {"pages": 20, "added": 1, "changed": 1, "removed": 1, "unchanged": 17}
    assert {name: getattr(newest, name) for name in changes} == changes
    assert newest.carried_over == 1
    assert second.report["generation"] == {
        **changes, "carried_over": 1, "number": 2, "state": "published", "note": None,
    }  # fmt: skip

    diff = await diff_generations(crawls.database, SOURCE)
    assert paths(diff, site) == {"added": ["/new"], "removed": ["/p18"], "changed": ["/p2"]}
    [carried] = diff.carried_over
    assert (carried.url, carried.reason, carried.times) == (f"{site.url}/p4", "http_500", 1)
    assert carried.fetched_at < carried.since
    for name, found in (("/p4", [carried]), (f"{site.url}/p4", [carried]), ("/p2", [])):
        assert (await diff_generations(crawls.database, SOURCE, page=name)).carried_over == found

    explanation = await explained(crawls, f"{site.url}/p4")
    assert (explanation.verdict, explanation.reason) == ("failed", "http_500")
    assert explanation.carried_over == carried
    assert "is carried over (refresh 1 of 5)" in explanation.message
    [past] = [fate for fate in explanation.history if fate.job_id == first.job.id]
    assert past.outcome == "fetched"


# --- the site behind a page that fails -----------------------------------------------------------


async def test_a_refresh_whose_home_page_fails_finds_the_whole_site(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of(numbered(30))
    await crawl(crawls, site)
    before = await published(crawls)
    site.pages |= {"/": BROKEN, "/p7": tagged(html("Another text", body=menu(["/p99"])))}
    site.pages["/p99"] = tagged(html("New"))
    refreshed = await crawl(crawls, site, **ONCE)
    finished(refreshed)
    after = await published(crawls)
    assert set(after) == {*before, "p99"}
    assert after["p7"] != before["p7"]
    assert await lines(crawls, site) == {"/": ("http_500", 1)}


async def test_a_refresh_of_a_site_that_is_down_ends_early(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    # noticed early: each failed request makes the delay of the host longer
    monkeypatch.setattr(limits, "SITE_IS_DOWN", 5)
    site.pages = site_of(numbered(300))
    await crawl(crawls, site)
    before = await published(crawls)
    site.log.clear()
    site.pages = dict.fromkeys(site.pages, BROKEN)
    down = await crawl(crawls, site, **ONCE)
    assert down.job.status is Status.FAILED
    assert "no page could be fetched" in (down.job.error_message or "")
    assert await crawls.sql("SELECT error_kind FROM error_logs") == [("http_server",)]
    assert len(site.log) < 150
    assert await published(crawls) == before


async def _close(_site: Site, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_a_host_without_connections_is_given_up_after_a_few_pages(
    crawls: Crawls, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages = site_of(numbered(100))
    await crawl(crawls, site)
    before = await published(crawls)
    monkeypatch.setattr(Site, "handle", _close)
    monkeypatch.setattr(limits, "SITE_IS_DOWN", 10_000)
    down = await crawl(crawls, site, **ONCE)
    assert down.job.status is Status.FAILED
    assert "no page could be fetched" in (down.job.error_message or "")
    # of 100: those of the commits until the end was noticed
    assert len(down.visited) < 100
    assert await published(crawls) == before


# --- for how long --------------------------------------------------------------------------------


async def test_a_page_is_carried_over_for_a_number_of_refreshes(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(19))
    how: dict[str, Any] = {"carry_over": 2, **ONCE}
    await crawl(crawls, site, **how)
    site.pages["/p3"] = BROKEN
    for times in (1, 2):
        finished(await crawl(crawls, site, **how))
        assert await lines(crawls, site) == {"/p3": ("http_500", times)}
    dropped = await crawl(crawls, site, **how)
    finished(dropped)
    assert "p3" not in await published(crawls)
    assert dropped.ledger["carried_over"] == 0
    assert "and is dropped" in (dropped.visited[f"{site.url}/p3"].detail or "")


async def test_a_page_is_carried_over_for_a_number_of_days(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    site.pages["/p3"] = BROKEN
    await crawl(crawls, site, **ONCE)
    await crawls.sql("UPDATE generation_documents SET carried_since = now() - interval '29 days'"
                     " WHERE carried_since IS NOT NULL")  # fmt: skip
    await crawl(crawls, site, **ONCE)
    assert await lines(crawls, site) == {"/p3": ("http_500", 2)}
    await crawls.sql("UPDATE generation_documents SET carried_since = now() - interval '31 days'"
                     " WHERE carried_since IS NOT NULL")  # fmt: skip
    await crawl(crawls, site, **ONCE)
    assert "p3" not in await published(crawls)


async def test_nothing_is_carried_over_if_that_is_switched_off(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    site.pages["/p3"] = BROKEN
    finished(await crawl(crawls, site, carry_over=0, **ONCE))
    assert "p3" not in await published(crawls)


@pytest.mark.parametrize("changed", [True, False])
async def test_a_page_that_recovers_is_no_longer_marked(
    crawls: Crawls, site: Site, *, changed: bool
) -> None:
    site.pages = site_of(numbered(19))
    await crawl(crawls, site)
    good = site.pages["/p3"]
    site.pages["/p3"] = BROKEN
    await crawl(crawls, site, **ONCE)
    site.pages["/p3"] = tagged(html("Another text", body=menu(["/"]))) if changed else good
    recovered = await crawl(crawls, site, **ONCE)
    finished(recovered)
    assert await lines(crawls, site) == {}
    [*_, newest] = await generations(crawls)
    assert (newest.changed, newest.unchanged) == ((1, 19) if changed else (0, 20))
    # the validators were kept with the page
    assert site.conditional["/p3"] == 2


# --- duplicates of what is carried over ----------------------------------------------------------


async def test_duplicates_of_a_page_that_is_carried_over_stay_duplicates(
    crawls: Crawls, site: Site
) -> None:
    canonical = '<link rel="canonical" href="/original">'
    site.pages = site_of(numbered(20))
    site.pages |= {
        "/": tagged(html("Home", body=menu([*numbered(20), "/twin-a", "/original", "/variant"]))),
        "/twin-a": html(TWIN, ["/twin-b"]),
        "/original": html("The original"),
        "/variant": html("A variant of it", head=canonical),
        "/twin-b": html(TWIN, ["/twin-b"]),
    }
    first = await crawl(crawls, site)
    outcomes = first.outcomes(site.url)
    assert outcomes["/variant"] == "duplicate:canonical"
    assert outcomes["/twin-b"] == "duplicate:content"
    before = await published(crawls)
    site.pages |= {"/twin-a": BROKEN, "/original": BROKEN}
    second = await crawl(crawls, site, **ONCE)
    finished(second)
    again = second.outcomes(site.url)
    assert again["/variant"] == "duplicate:canonical"
    assert again["/twin-b"] == "duplicate:content"
    assert await published(crawls) == before


# --- limits --------------------------------------------------------------------------------------


async def test_pages_that_are_carried_over_count_towards_a_limit(
    crawls: Crawls, site: Site
) -> None:
    site.pages = site_of(numbered(9))
    await crawl(crawls, site)
    site.pages = site_of(numbered(30)) | {"/p0": BROKEN}
    limited = await crawl(crawls, site, max_pages=10, **ONCE)
    [*_, newest] = await generations(crawls)
    assert limited.job.stop_reason == "max pages"
    assert newest.pages == 10


# --- kills ---------------------------------------------------------------------------------------


async def test_a_killed_refresh_carries_each_page_over_once(crawls: Crawls, site: Site) -> None:
    site.pages = site_of(numbered(60))
    await crawl(crawls, site)
    before = await published(crawls)
    broken = {f"/p{number}": BROKEN for number in range(4)}
    site.pages |= {**broken, "/p50": HANGING}
    job_id = await crawls.ask(
        f"{site.url}/", source=SOURCE, concurrency=4, max_retries=1000, **ONCE
    )

    async def carried() -> bool:
        count = await crawls.sql("SELECT 1 FROM crawl_visited WHERE carried_over")
        return len(count) >= 4 and site.hanging > 0

    with working(crawls.settings) as worker:
        await eventually(carried)
        worker.kill_everything()
        await crawls.sql("DELETE FROM domain_permits")
        assert await published(crawls) == before
        assert await lines(crawls, site) == {}
        site.pages["/p50"] = BROKEN
        await recover(crawls)
        worker.start_again()
        await eventually(lambda: Disturbance(crawls, site, seed=1).ended(job_id))
    finished(await crawls.look(job_id))
    assert await published(crawls) == before
    assert await lines(crawls, site) == dict.fromkeys([*broken, "/p50"], ("http_500", 1))
    [*_, newest] = await generations(crawls)
    assert (newest.pages, newest.carried_over, newest.removed) == (61, 5, 0)
