"""Forms whose result is shown once: a reload creates nothing, and no secret stays in the page."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from forager.access.keys import list_keys
from forager.db.database import Database
from support.sql import fetch_value
from web.browser import Tab

pytestmark = pytest.mark.timeout(600)

PASSWORD = "correct-horse-battery"


async def test_reloads_create_no_second_webhook_and_no_second_key(
    tab: Tab, database: Database
) -> None:
    await tab.go("/webhooks")
    await tab.page.locator("form [name=url]").fill("https://hooks.example/in")
    await tab.page.get_by_role("button", name="Add", exact=True).click()
    secret = tab.page.locator("#secret")
    await expect(secret).to_be_visible()
    await tab.page.reload()
    await expect(tab.page.get_by_role("heading", name="Webhook secret")).to_be_visible()
    assert await fetch_value(database, "SELECT count(*) FROM webhooks") == 1

    await tab.go("/keys")
    await tab.page.locator("form [name=name]").fill("nightly")
    await tab.page.get_by_role("button", name="Create key").click()
    await expect(secret).to_be_visible()
    await tab.page.reload()
    await expect(tab.page.get_by_role("heading", name="nightly")).to_be_visible()
    assert len((await list_keys(database)).items) == 1


async def test_the_proxy_form_keeps_no_password(tab: Tab, database: Database) -> None:
    await tab.go("/proxies")
    await tab.page.locator("form [name=urls]").fill("http://operator@proxy.example:3128")
    password = tab.page.locator("form [name=password]")
    await expect(password).to_have_attribute("type", "password")
    await password.fill(PASSWORD)
    await tab.page.get_by_role("button", name="Add", exact=True).click()
    await expect(tab.page.locator("#live_proxies")).to_contain_text("operator:***@proxy.example")
    await expect(password).to_have_value("")
    assert PASSWORD not in await tab.page.content()
    stored = await fetch_value(database, "SELECT to_jsonb(p)::text FROM proxies p")
    assert PASSWORD not in str(stored)
