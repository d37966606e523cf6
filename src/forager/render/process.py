"""A browser process: drives Chromium through Playwright, without network access.

The runner sends pages to render; this process requests every resource of theirs from the runner.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import orjson
from playwright.async_api import Browser, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from forager.processes.serving import die_with_parent, limit_memory
from forager.render.link import BrowserLink, Message
from forager.render.page import PageRun
from forager.render.sandbox import FLAGS, leave_network

# a context that does not close within this time belongs to a browser that hangs
CLOSE_SECONDS = 10.0
# a browser that ended is noticed within this time
END_SECONDS = 0.5
# no process may get more than the limit of all and this, which stacks reserve and never use
RESERVED_MB = 1024
_CALL = re.compile(r"^[A-Z]\w+\.\w+: ")


class BrowserProcess:
    """The process beside the browser: it renders pages one by one, and asks for what they load."""

    def __init__(self, link: BrowserLink, browser: Browser) -> None:
        self._link = link
        self._browser = browser
        self._numbers = count()
        self._replies: dict[int, asyncio.Future[Message]] = {}
        self._pages: dict[int, asyncio.Task[None]] = {}
        self._runs: dict[int, PageRun] = {}

    async def serve(self) -> None:
        """Render what the runner sends, until it closes the link."""
        while (message := await self._link.receive()) is not None:
            header, _ = message
            if "page" in header:
                run = asyncio.create_task(self._render(header))
                self._pages[header["page"]] = run
            elif "tick" in header:
                for each in list(self._runs.values()):
                    each.tick(header["tick"])
            elif "drop" in header:
                if (dropped := self._pages.get(header["drop"])) is not None:
                    dropped.cancel()
            elif (reply := self._replies.pop(header["reply"], None)) and not reply.done():
                reply.set_result(message)

    async def _render(self, request: dict[str, Any]) -> None:
        number = request["page"]
        try:
            header, blobs = await self._run(number, request)
        except PlaywrightError as error:
            await self._wait_for_end()
            header, blobs = {"failed": _text(error).splitlines()[0][:300]}, []
        finally:
            self._pages.pop(number, None)
        self._link.send({"done": number, **header}, blobs)

    async def _wait_for_end(self) -> None:
        """End this process if the browser has ended: then the page did not fail by itself."""
        await asyncio.sleep(END_SECONDS)
        if not self._browser.is_connected():
            os._exit(GONE)

    async def _run(self, number: int, request: dict[str, Any]) -> Message:
        context = await self._browser.new_context(
            user_agent=request["user_agent"],
            viewport={"width": 1280, "height": 1024},
            accept_downloads=False,
            service_workers="block",
            reduced_motion="reduce",
        )
        try:
            run = self._runs[number] = PageRun(request, partial(self._send_request, number))
            return await run.run(context)
        finally:
            self._runs.pop(number, None)
            await self._close(context.close())

    async def _close(self, closing: Any) -> None:
        task = asyncio.ensure_future(closing)
        done, _ = await asyncio.wait({task}, timeout=CLOSE_SECONDS)
        if not done:
            os._exit(HUNG)
        if (error := task.exception()) and not isinstance(error, PlaywrightError):
            raise error

    async def _send_request(self, page: int, request: dict[str, Any], body: bytes) -> Message:
        """Request a resource of a page from the runner; return its reply."""
        number = next(self._numbers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            self._link.send({"fetch": number, "of": page, "request": request}, [body])
            return await self._replies[number]
        finally:
            self._replies.pop(number, None)


# exit code of a process whose browser does not close a page
HUNG = 5


async def _launch(
    playwright: Playwright, setup: dict[str, Any], isolated: bool
) -> tuple[Browser, bool]:
    """Start the browser with its sandbox; without it only where the system offers none."""
    folder = os.environ["TMPDIR"]
    environment: dict[str, str | float | bool] = {
        **os.environ,
        "HOME": folder,
        "XDG_CONFIG_HOME": folder,
        "XDG_CACHE_HOME": folder,
    }
    flags = [*FLAGS, f"--js-flags=--max-old-space-size={max(128, setup['memory_mb'] // 2)}"]
    sandboxes = [True, False] if isolated or os.geteuid() != 0 else [False]
    for sandbox in sandboxes:
        try:
            browser = await playwright.chromium.launch(
                executable_path=setup["browser"],
                chromium_sandbox=sandbox,
                args=flags,
                env=environment,
            )
        except PlaywrightError:
            if not sandbox:
                raise
            continue
        return browser, sandbox
    raise AssertionError("one of them was returned or raised")


def _text(error: PlaywrightError) -> str:
    """Its message, without the name of the call that failed: `Page.goto: `."""
    return _CALL.sub("", error.message).strip() or "the browser gave no reason"


async def _serve(setup: dict[str, Any], sock: socket.socket, isolated: bool) -> None:
    link = await BrowserLink.open(sock)
    async with async_playwright() as playwright:
        try:
            browser, sandboxed = await _launch(playwright, setup, isolated)
        except PlaywrightError as error:
            link.send({"unusable": _text(error)[:1000]})
            return
        link.send(
            {
                "ready": True,
                "version": browser.version,
                "sandboxed": sandboxed,
                "isolated": isolated,
            }
        )
        serving = asyncio.create_task(BrowserProcess(link, browser).serve())
        gone = asyncio.Event()
        browser.on("disconnected", lambda _: gone.set())
        leaving = asyncio.create_task(gone.wait())
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
        os._exit(0 if serving.done() else GONE)


# exit code of a process whose browser has crashed or was killed
GONE = 6


def main() -> None:
    setup = orjson.loads(sys.argv[1])
    limit_memory(setup["memory_mb"] + RESERVED_MB)
    isolated = setup["isolate"] and leave_network()
    die_with_parent()
    sock = socket.socket(fileno=os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    asyncio.run(_serve(setup, sock, isolated))


if __name__ == "__main__":
    main()
