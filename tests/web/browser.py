"""A real browser, and what it complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    async_playwright,
    expect,
)

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = (
    "NO BROWSER, SO THE DASHBOARD IS NOT TESTED: install Debian's `chromium-headless-shell`, run"
    " `playwright install chromium`, or name one in FORAGER_TEST_BROWSER"
)
DESKTOP, PHONE = 1280, 390
# long enough for a busy machine; not a measurement
LIMIT = 60_000


def browser_path(playwright: Playwright) -> str:
    """The browser that is there: a named one, the system's, or Playwright's own."""
    named = os.environ.get("FORAGER_TEST_BROWSER")
    own = playwright.chromium.executable_path
    found = [named, *map(shutil.which, NAMES), own if Path(own).exists() else None]
    path = next((each for each in found if each), None)
    if path is not None:
        return path
    if os.environ.get("FORAGER_TEST_REQUIRE_BROWSER"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@asynccontextmanager
async def open_browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            # as root, which test machines often are, Chromium refuses its sandbox
            executable_path=browser_path(playwright),
            args=["--no-sandbox"],
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass(slots=True)
class Tab:
    """A page of the browser; `complaints` are errors of scripts and of the security policy."""

    address: str
    page: Page
    complaints: list[str] = field(default_factory=list)

    async def go(self, path: str) -> None:
        await self.page.goto(self.address + path)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.keyboard.press(key)

    async def tab_to(self, text: str, *, most: int = 80) -> None:
        """Press Tab until the focus is on something of this name."""
        for _ in range(most):
            await self.press("Tab")
            if text in await self.focused():
                return
        raise AssertionError(f"no way to {text!r} with the keyboard")

    async def focused(self) -> str:
        """The name and the text of what has the focus, if it can be used."""
        return str(
            await self.page.evaluate(
                "() => { const e = document.activeElement;"
                " return e.matches('a, button, input, summary')"
                " ? [e.ariaLabel, e.id, e.textContent].join(' ').trim() : '' }"
            )
        )

    async def overflow(self) -> int:
        """By how much the page is wider than the screen."""
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(await self.page.evaluate(wider))


async def open_tab(
    browser: Browser, address: str, *, width: int = DESKTOP, **how: Any
) -> tuple[Tab, BrowserContext]:
    context = await browser.new_context(viewport={"width": width, "height": 900}, **how)
    context.set_default_timeout(LIMIT)
    expect.set_options(timeout=LIMIT)
    page = await context.new_page()
    tab = Tab(address, page)

    def collect(said: ConsoleMessage) -> None:
        if said.type == "error":
            tab.complaints.append(said.text)

    page.on("console", collect)
    page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    return tab, context
