"""Check of the browser."""

from __future__ import annotations

from forager.checks import Result, Topic, check, warn
from forager.errors import ForagerError, error_text
from forager.render.browser import Browser
from forager.render.finding import INSTALL, NONE, find_browser
from forager.render.limits import RenderLimits
from forager.settings import Settings

NAMESPACES = (
    "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or a container"
    " profile that permits `unshare`)."
)
UNSANDBOXED = "Pages are rendered, but one that exploits a browser bug has the rights of Forager."
NOT_ISOLATED = "Pages are rendered, but one that exploits a browser bug can reach the network."


@check("browser", Topic.MACHINE, "Pages that need JavaScript are stored without their content.")
async def check_browser(settings: Settings) -> Result:
    """Start the browser once; what it lacks is worth a warning, because everything else works."""
    if settings.browser == NONE:
        return "turned off"
    choice = find_browser(settings)
    if choice.path is None:
        return warn(f"{choice.reason}: pages are not rendered", INSTALL)
    try:
        browser = await Browser.start(choice.path, RenderLimits.of(settings))
    except (ForagerError, OSError) as error:
        return warn(f"{choice.path}: {error_text(error).splitlines()[0]}", INSTALL)
    await browser.stop()
    found = f"{choice.path}, version {browser.version}"
    if not browser.sandboxed:
        return warn(f"{found}, runs without its sandbox", NAMESPACES, UNSANDBOXED)
    if not browser.isolated:
        return warn(f"{found}, is kept off the network by flags alone", NAMESPACES, NOT_ISOLATED)
    return f"{found}, sandboxed, without a network"
