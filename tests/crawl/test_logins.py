"""Crawls behind a login that end there: they pause, and go on with new headers."""

from __future__ import annotations

from typing import Any

import pytest

from crawl.crawling import Crawled, Crawls
from crawl.refreshing import SOURCE, generations, published
from forager.crawl.frontier.entry import Via, found_url
from forager.crawl.operations.sources import Login, login
from forager.crawl.visit import logins
from forager.crawl.visit.logins import LOGGED_OUT, LoginWatch
from forager.errors import InvalidInput
from forager.events.event import EventKind
from forager.events.service import list_events
from forager.extract.urls import NormalizedUrl
from forager.jobs.lifecycle import Status
from forager.operations.operation import Context
from servers.site import Answer, Page, Site, html, moved

FORM = Page(
    b"<html><title>Sign in</title><body><h1>Welcome</h1><form action=/login method=post>"
    b"<input name=user><input type=PASSWORD name=password></form></body>"
)


class Members:
    """A site whose pages need the cookie of the day."""

    def __init__(self, site: Site, refusal: Page, pages: int = 6) -> None:
        self.site, self.refusal = site, refusal
        self.cookie = "session=monday"
        paths = [f"/p{number}" for number in range(pages)]
        site.pages = {"/": self._guarded("/", html("Home", paths))}
        site.pages |= {path: self._guarded(path, html(f"Secret {path}")) for path in paths}
        site.pages["/login"] = FORM

    def _guarded(self, path: str, page: Page) -> Answer:
        def answer(_: int) -> Page:
            head = self.site.heads[path].decode().lower()
            return page if f"cookie: {self.cookie}" in head else self.refusal

        return answer


async def crawl(crawls: Crawls, site: Site, cookie: str, **options: Any) -> Crawled:
    return await crawls.run(
        f"{site.url}/", source=SOURCE, headers={"Cookie": cookie}, concurrency=1, **options
    )


@pytest.fixture(autouse=True)
def second_look_is_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "SECOND_LOOK", 0.2)


REFUSALS = [FORM, moved("/login?next=/p1", "302 Found"), Page(b"", "401 Unauthorized")]


@pytest.mark.parametrize("refusal", REFUSALS, ids=["form", "redirect", "401"])
async def test_a_crawl_that_is_logged_out_pauses(crawls: Crawls, site: Site, refusal: Page) -> None:
    members = Members(site, refusal)
    await crawl(crawls, site, "session=monday")
    before = await published(crawls)
    members.cookie = "session=tuesday"
    paused = await crawl(crawls, site, "session=monday")
    assert paused.job.status is Status.PAUSED
    moves = await crawls.queue.events(paused.job.id)
    assert any((each.reason or "").startswith(LOGGED_OUT) for each in moves)
    assert await published(crawls) == before
    assert len(await generations(crawls)) == 2
    [event] = (await list_events(crawls.database, kind=EventKind.CRAWL_STALLED)).items
    assert event.payload["reason"].startswith(LOGGED_OUT)
    # with the new cookie, the same job goes on; no URL was lost
    context = Context(crawls.database, crawls.settings)
    changed = await login(context, SOURCE, Login(headers={"Cookie": "session=tuesday"}))
    assert changed.job_id == paused.job.id
    done = await crawls.go_on(paused.job.id)
    assert done.job.status is Status.COMPLETED
    assert set(done.outcomes(site.url).values()) == {"unchanged:same_content"}
    assert "tuesday" not in str((await crawls.queue.get(paused.job.id)).payload)
    # and so do later refreshes
    await crawls.run(f"{site.url}/", source=SOURCE, headers={"Cookie": "session=tuesday"})
    assert await published(crawls) == before


async def test_the_second_half_of_a_crawl(crawls: Crawls, site: Site) -> None:
    members = Members(site, FORM)
    good = site.pages["/p2"]
    assert callable(good)

    def ends(hits: int) -> Page:
        members.cookie = "session=tuesday"
        return Page(html("Secret /p2").body)

    site.pages["/p2"] = ends
    paused = await crawl(crawls, site, "session=monday")
    assert paused.job.status is Status.PAUSED
    assert {"/", "/p0", "/p1", "/p2"} <= paused.pages(site.url)
    assert {path.removeprefix(site.url) for path in paused.pending} == {"/p3", "/p4", "/p5"}


async def test_one_page_for_others_is_left_out(crawls: Crawls, site: Site) -> None:
    Members(site, FORM)
    site.pages["/p1"] = FORM
    done = await crawl(crawls, site, "session=monday")
    assert done.job.status is Status.COMPLETED
    assert done.outcomes(site.url)["/p1"] == "excluded:login"


async def test_login_pages_of_public_sites_are_pages(crawls: Crawls, site: Site) -> None:
    site.pages = {"/": html("Home", ["/login", "/form"]), "/login": FORM}
    site.pages["/form"] = html("A form", body='<form><input type="password"></form>')
    done = await crawls.run(f"{site.url}/", source=SOURCE)
    assert done.job.status is Status.COMPLETED
    assert done.pages(site.url) == {"/", "/login", "/form"}


async def test_login_of_a_source_that_has_no_crawl(crawls: Crawls, site: Site) -> None:
    Members(site, FORM)
    await crawl(crawls, site, "session=monday")
    context = Context(crawls.database, crawls.settings)
    changed = await login(context, SOURCE, Login(headers={"Cookie": "session=x"}))
    assert changed.job_id is None
    with pytest.raises(InvalidInput, match="Host"):
        await login(context, SOURCE, Login(headers={"Host": "x"}))


async def test_login_leaves_a_crawl_that_a_person_has_paused(crawls: Crawls, site: Site) -> None:
    Members(site, FORM)
    await crawl(crawls, site, "session=monday")
    job_id = await crawls.ask(f"{site.url}/", source=SOURCE, headers={"Cookie": "session=x"})
    await crawls.queue.pause(job_id, reason="not now")
    context = Context(crawls.database, crawls.settings)
    changed = await login(context, SOURCE, Login(headers={"Cookie": "session=monday"}))
    assert (changed.job_id, changed.resumed) == (job_id, False)
    assert (await crawls.queue.get(job_id)).status is Status.PAUSED


async def test_suspects_are_forgotten_when_they_are_settled(site: Site) -> None:
    watch = LoginWatch(is_on=True)
    for number in range(10):
        form, page = (
            found_url(NormalizedUrl(f"{site.url}/{name}{number}"), Via.LINK, 1)
            for name in ("form", "page")
        )
        for _ in range(2):
            watch.suspect(form, None)
            watch.read_page(page)
        watch.suspect(page, None)
        watch.read_page(page)
    assert watch.message is None
    assert not watch._suspects


async def test_documentation_about_logins_is_no_sign(crawls: Crawls, site: Site) -> None:
    """Neither a redirect to a page about authorization, nor one page that shows a form."""
    site.pages = {
        "/": html("Home", ["/old", "/form", "/a", "/b"]),
        "/old": moved("/auth/overview"),
        "/auth/overview": html("Authorization"),
        "/form": html("A form", body='<form><input type="password"></form>'),
        "/a": html("A"),
        "/b": html("B"),
    }
    await crawls.run(f"{site.url}/", source=SOURCE)
    done = await crawl(crawls, site, "session=monday")
    assert done.job.status is Status.COMPLETED
    outcomes = done.outcomes(site.url)
    assert outcomes["/auth/overview"] == "unchanged:same_content"
    assert outcomes["/form"] == "excluded:login"
