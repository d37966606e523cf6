"""Images are fetched politely, and hostile files are rejected."""

from __future__ import annotations

import asyncio

import pytest

from forager.fetch.polite import Fetching
from forager.images import fetcher
from forager.images.fetcher import ImageFetcher
from images.image_shop import HTML, SVG, Shop, picture, png_of_size
from servers.site import Page, moved, text
from support.waiting import eventually

HOSTILE = {
    "/empty.jpg": (b"", "empty"),
    "/page.jpg": (HTML, "web page"),
    "/drawing.jpg": (SVG, "SVG"),
    "/cut.jpg": (picture()[:-300], "broken"),
    "/bomb.jpg": (png_of_size(20_000, 20_000), "too large"),
}


async def test_hostile_files_are_rejected_with_the_reason(shop: Shop) -> None:
    for path, (body, _) in HOSTILE.items():
        shop.site.pages[path] = Page(body, headers={"Content-Type": "image/jpeg"})
    await shop.show(1, *HOSTILE)
    await shop.fetch()

    for row, (_, problem) in zip(await shop.rows(), HOSTILE.values(), strict=True):
        assert row["status"] == "refused"
        assert problem in row["problem"]
    assert shop.stored == []
    assert await shop.fetch() == 0


@pytest.mark.parametrize("path", ["/a.jpg", "/endless"])
async def test_a_file_past_the_limit_is_refused_while_it_arrives(shop: Shop, path: str) -> None:
    shop.site.pages["/a.jpg"] = Page(picture("BMP", (300, 300)))
    await shop.show(1, path)
    await shop.fetch(image_max_mb=0.1)

    row = await shop.row()
    assert row["status"] == "refused"
    assert "100,000 bytes" in row["problem"]


async def test_robots_and_private_addresses_count_for_images(shop: Shop) -> None:
    shop.site.pages |= {
        "/robots.txt": text("User-agent: *\nDisallow: /private/"),
        "/private/a.jpg": Page(picture()),
        "/away.jpg": moved("http://localhost:1/a.jpg"),
    }
    await shop.show(1, "/private/a.jpg", "/away.jpg")
    await shop.fetch()

    robots, private = await shop.rows()
    assert robots["status"] == private["status"] == "refused"
    assert "robots.txt" in robots["problem"]
    assert "loopback" in private["problem"]
    assert shop.site.hits["/private/a.jpg"] == 0


async def test_a_missing_image_is_a_failure(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(b"", "404 Not Found")
    await shop.show(1, "/a.jpg")
    await shop.fetch()
    row = await shop.row()
    assert (row["status"], row["problem"]) == ("failed", "the server answered 404 Not Found")


async def test_transient_errors_are_retried_a_few_times(shop: Shop) -> None:
    shop.site.pages["/a.jpg"] = Page(b"", "500 Oops")
    await shop.show(1, "/a.jpg")
    for attempt in range(1, fetcher.MAX_ATTEMPTS):
        assert await shop.fetch() == 1
        row = await shop.row()
        assert (row["status"], row["attempts"], row["waits"]) == ("pending", attempt, True)
        assert await shop.fetch() == 0
        await shop.execute("UPDATE images SET next_attempt_at = now()")
    await shop.fetch()
    assert (await shop.row())["status"] == "failed"


async def test_a_domain_that_is_switched_off_is_not_asked(shop: Shop) -> None:
    await shop.show(1, "/a.jpg")
    await shop.execute("UPDATE domains SET is_active = false")
    await shop.fetch()
    row = await shop.row()
    assert (row["status"], row["attempts"], row["waits"]) == ("pending", 0, True)
    assert "not active" in row["problem"]


async def test_two_fetchers_share_the_work(shop: Shop) -> None:
    paths = [f"/{number}.jpg" for number in range(12)]
    shop.site.pages |= {path: Page(picture(color=n)) for n, path in enumerate(paths)}
    await shop.show(1, *paths)

    await asyncio.gather(shop.fetch(), shop.fetch())

    assert {row["status"] for row in await shop.rows()} == {"stored"}
    assert all(shop.site.hits[path] == 1 for path in paths)


async def test_a_host_with_expired_slots_waits(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "HOST_TURN", -1.0)
    await shop.show(1, "/a.jpg")
    assert await shop.fetch() == 1
    row = await shop.row()
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert shop.site.hits["/a.jpg"] == 0


async def test_an_image_that_waited_long_takes_the_slot_of_a_page(shop: Shop) -> None:
    paths = ("/a.jpg", "/b.jpg")
    shop.site.pages |= {path: Page(picture(color=n)) for n, path in enumerate(paths)}
    await shop.show(1, *paths)
    await shop.execute(
        """
        INSERT INTO crawl_tasks (domain_id, url, url_hash)
        SELECT id, 'http://due.example/', 'due' FROM domains
        """
    )
    # pages of the host are due: nothing is fetched, so that the fetcher sleeps
    assert await shop.fetch() == 0
    assert [row["waits"] for row in await shop.rows()] == [True, True]
    await shop.execute("UPDATE images SET next_attempt_at = now(), pending_since = 'yesterday'")
    assert await shop.fetch() == 1
    assert sorted(row["status"] for row in await shop.rows()) == ["pending", "stored"]


async def test_with_images_off_nothing_runs(shop: Shop) -> None:
    settings = shop.settings.model_copy(update={"images": False})
    shop.site.pages["/a.jpg"] = Page(picture())
    await shop.show(1, "/a.jpg")
    async with Fetching(shop.database, settings) as fetching:
        await ImageFetcher(shop.database, settings, fetching).run()
    assert shop.site.hits["/a.jpg"] == 0


async def test_a_running_fetcher_finds_new_images(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetcher, "INTERVAL", 0.01)
    shop.site.pages["/a.jpg"] = Page(picture())
    async with Fetching(shop.database, shop.settings) as fetching:
        running = asyncio.create_task(ImageFetcher(shop.database, shop.settings, fetching).run())
        await shop.show(1, "/a.jpg")

        async def is_stored() -> bool:
            return bool((await shop.row())["status"] == "stored")

        await eventually(is_stored)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
