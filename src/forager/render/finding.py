"""Finds a browser: the configured one, one of the system, or that of Playwright."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from forager.errors import ForagerError
from forager.settings import Settings

# the headless shell first: the same engine without a user interface, at half the processor time
SYSTEM_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "chrome",
)
# in the folder where `playwright install chromium` puts its browsers
PLAYWRIGHT_PATTERNS = (
    "chromium_headless_shell-*/chrome-*linux*/*headless?shell",
    "chromium-*/chrome-linux*/chrome",
)
# as the setting `browser`: render nothing
NONE = "none"
INSTALL = (
    "Install the extra `browser` (pip install 'forager-crawler[browser]') and a browser:"
    " `playwright install chromium`, or Debian's package `chromium-headless-shell`."
)


class BrowserMissing(ForagerError):
    """There is no browser that could render a page."""


@dataclass(frozen=True, slots=True)
class BrowserChoice:
    """A browser that can be started, or the reason why there is none."""

    path: str | None
    reason: str = ""


def find_browser(settings: Settings) -> BrowserChoice:
    if settings.browser == NONE:
        return BrowserChoice(None, "rendering is turned off (browser = none)")
    if find_spec("playwright") is None:
        return BrowserChoice(None, "Playwright is not installed")
    if settings.browser is not None:
        found = shutil.which(str(Path(settings.browser).expanduser()))
        return BrowserChoice(found, "" if found else f"{settings.browser} cannot be run")
    path = _system_browser() or _playwright_browser()
    return BrowserChoice(path, "" if path else "no browser is installed")


def browser_path(settings: Settings) -> str:
    """The path of the browser; an error that says how to get one if there is none."""
    choice = find_browser(settings)
    if choice.path is None:
        raise BrowserMissing(f"the page cannot be rendered: {choice.reason}", hint=INSTALL)
    return choice.path


def _system_browser() -> str | None:
    return next((path for name in SYSTEM_NAMES if (path := shutil.which(name))), None)


def _playwright_browser() -> str | None:
    given = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    folder = Path(given) if given else Path.home() / ".cache" / "ms-playwright"
    for pattern in PLAYWRIGHT_PATTERNS:
        if found := sorted(folder.glob(pattern)):
            return str(found[-1])
    return None
