"""A browser that is missing or turned off is no failure: everything else works without it."""

from __future__ import annotations

from forager.doctor.check import Level
from forager.doctor.server import check_browser
from forager.render.finding import INSTALL
from forager.settings import Settings


async def test_a_browser_that_cannot_be_run_is_a_warning_with_advice() -> None:
    check = await check_browser(Settings(browser="/nowhere/chromium"))
    assert (check.level, check.advice) == (Level.WARN, INSTALL)
    check = await check_browser(Settings(browser="/bin/false"))
    assert check.level is Level.WARN
    assert "cannot be started" in check.finding


async def test_rendering_that_is_turned_off_is_fine() -> None:
    assert (await check_browser(Settings(browser="none"))).level is Level.OK
