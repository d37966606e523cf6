"""Crawls through the proxies of the installation."""

from __future__ import annotations

from crawl.crawling import Crawls
from forager.db.database import Database
from forager.fetch.proxies.proxy import ProxyRecord, ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.jobs.lifecycle import Status
from forager.secrets import Vault
from forager.settings import Settings
from servers.proxies import Socks5Proxy
from servers.site import Site, html


async def add(database: Database, settings: Settings, *addresses: str) -> None:
    proxies = Proxies(database, Vault(settings))
    for address in addresses:
        await proxies.add(ProxySpec.parse(address), allow_private=True)


async def records(database: Database, settings: Settings) -> list[ProxyRecord]:
    return (await Proxies(database, Vault(settings)).page(limit=10)).items


async def test_a_crawl_uses_the_pool_and_survives_a_dead_proxy(
    crawls: Crawls, site: Site, database: Database, settings: Settings
) -> None:
    pages = [f"/{n}" for n in range(6)]
    site.pages["/"] = html("Start", pages)
    for path in pages:
        site.pages[path] = html(f"Page {path}")
    async with Socks5Proxy() as dying:
        dead = dying.port
    async with Socks5Proxy() as first, Socks5Proxy() as second:
        ports = [dead, first.port, second.port]
        await add(database, settings, *(f"socks5://127.0.0.1:{port}" for port in ports))
        crawled = await crawls.run(f"{site.url}/", proxy="pool", concurrency=4)
    assert crawled.job.status is Status.COMPLETED
    assert crawled.pages(site.url) == {"/", *pages}
    gone, one, two = await records(database, settings)
    assert one.success_count > 0
    assert two.success_count > 0
    # robots.txt, the start and its pages: nothing was asked for directly
    assert one.success_count + two.success_count == len(site.log) == len(pages) + 2
    assert (gone.success_count, gone.total_failures > 0) == (0, True)


async def test_a_crawl_without_any_proxy_says_so(
    crawls: Crawls, site: Site, database: Database
) -> None:
    site.pages["/"] = html("Start", [])
    crawled = await crawls.run(f"{site.url}/", proxy="pool")
    assert "no proxy" in (crawled.job.error_message or "")
    assert not site.log
