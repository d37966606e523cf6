"""The browser that renders pages: found, started, and kept in its sandbox."""

from __future__ import annotations

from forager.doctor.check import Check, ok, warn
from forager.errors import ForagerError
from forager.render.browser import Browser
from forager.render.finding import INSTALL, NONE, find_browser
from forager.render.limits import RenderLimits
from forager.settings import Settings

NAMESPACES = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or a container"
    " profile that permits `unshare`)."
)


async def check_browser(settings: Settings) -> Check:
    """Start the browser once; what it lacks is worth a warning, because everything else works."""
    if settings.browser == NONE:
        return ok("browser", "turned off")
    choice = find_browser(settings)
    if choice.path is None:
        return warn("browser", f"{choice.reason}: pages are not rendered", INSTALL)
    try:
        browser = await Browser.start(choice.path, RenderLimits.of(settings))
    except (ForagerError, OSError) as error:
        return warn("browser", f"{choice.path}: {str(error).splitlines()[0]}", INSTALL)
    await browser.stop()
    found = f"{choice.path}, version {browser.version}"
    if not browser.sandboxed:
        return warn("browser", f"{found}, runs without its sandbox", NAMESPACES)
    if not browser.isolated:
        return warn("browser", f"{found}, is kept off the network by flags alone", NAMESPACES)
    return ok("browser", f"{found}, sandboxed, without a network")
