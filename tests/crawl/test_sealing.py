"""Secrets of a crawl: in no table and in no output, and there when they are needed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from crawl.crawling import Crawls
from forager.crawl.options import crawl_options
from forager.crawl.service import decrypt_secrets, encrypt_secrets
from forager.errors import GiveUp
from forager.jobs.lifecycle import Status
from forager.secrets import KEY_FILE, Vault
from forager.settings import Settings
from servers.site import Site, html

GIVEN = {
    "urls": ["https://a.example/docs", "https://b.example/"],
    "headers": {"Authorization": "Bearer hidden", "Accept-Language": "de"},
    "proxy": "socks5://me:hidden@proxy.example:1080",
}


def test_secrets_are_masked_and_come_back(settings: Settings) -> None:
    options = crawl_options(GIVEN)
    sealed = encrypt_secrets(options, Vault(settings))
    assert sealed.headers == {"Authorization": "***", "Accept-Language": "de"}
    assert sealed.proxy == "socks5://proxy.example:1080"
    assert "hidden" not in sealed.model_dump_json()
    stored = crawl_options(sealed.model_dump(mode="json", exclude_defaults=True))
    assert decrypt_secrets(stored, Vault(settings)) == options


@pytest.mark.parametrize("proxy", [None, "pool", "http://proxy.example:8080"])
def test_what_holds_no_secret_needs_no_key(settings: Settings, proxy: str | None) -> None:
    plain = {"urls": ["https://a.example/"], "headers": {"Accept": "text/html"}, "proxy": proxy}
    options = crawl_options(plain)
    assert encrypt_secrets(options, Vault(settings)) is options
    assert decrypt_secrets(options, Vault(settings)) is options
    assert not (settings.home / KEY_FILE).exists()


def test_secrets_of_one_site_do_not_open_for_another(settings: Settings) -> None:
    sealed = encrypt_secrets(crawl_options(GIVEN), Vault(settings))
    stolen = sealed.model_copy(update={"urls": ("https://elsewhere.example/",)})
    with pytest.raises(GiveUp):
        decrypt_secrets(stolen, Vault(settings))


async def test_a_crawl_sends_what_no_table_holds(crawls: Crawls, site: Site) -> None:
    site.pages["/"] = html("Start")
    crawled = await crawls.run(f"{site.url}/", headers={"X-Key": "hidden"}, source="docs")
    assert crawled.job.status is Status.COMPLETED
    for [payload] in await crawls.sql("SELECT payload::text FROM crawl_jobs") + await crawls.sql(
        "SELECT payload::text FROM sources"
    ):
        assert "hidden" not in payload
        assert "***" in payload
    assert b"X-Key: hidden" in site.heads["/"]


async def test_without_the_key_a_crawl_fails_at_once_and_says_so(
    crawls: Crawls, site: Site, settings: Settings
) -> None:
    site.pages["/"] = html("Start")
    job_id = await crawls.ask(f"{site.url}/", headers={"X-Key": "hidden"})
    await asyncio.to_thread(Path(settings.home, KEY_FILE).unlink)
    crawled = await crawls.go_on(job_id)
    assert (crawled.job.status, crawled.job.retry_count) == (Status.FAILED, 0)
    assert "FORAGER_SECRET_KEY" in (crawled.job.error_message or "")
