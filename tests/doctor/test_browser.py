"""A browser that is missing or turned off is no failure: everything else works without it."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

import pytest

from forager.checks import Level
from forager.render.checks import UNSANDBOXED, check_browser
from forager.render.finding import INSTALL, find_browser
from forager.settings import Settings


async def test_a_browser_that_cannot_be_run_is_a_warning_with_advice() -> None:
    check = await check_browser(Settings(browser="/nowhere/chromium"))
    assert (check.level, check.next_step) == (Level.WARN, INSTALL)
    check = await check_browser(Settings(browser="/bin/false"))
    assert check.level is Level.WARN
    assert "cannot be started" in check.message


async def test_rendering_that_is_turned_off_is_fine() -> None:
    assert (await check_browser(Settings(browser="none"))).level is Level.OK


WITHOUT_SANDBOX = """#!/bin/sh
case " $* " in *" --no-sandbox "*) exec {browser} "$@" ;; esac
echo "No usable sandbox!" >&2
exit 1
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the wrapper is a shell script")
async def test_impact_of_a_browser_without_sandbox_is_not_missing_content(tmp_path: Path) -> None:
    browser = find_browser(Settings()).path or shutil.which("chromium")
    if browser is None:
        pytest.skip("no browser is installed")
    wrapper = tmp_path / "chromium"
    wrapper.write_text(WITHOUT_SANDBOX.format(browser=browser))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    check = await check_browser(Settings(browser=str(wrapper)))
    assert check.level is Level.WARN
    assert "without its sandbox" in check.message
    assert check.impact == UNSANDBOXED
