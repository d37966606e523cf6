"""The runner's side of a browser process: start, requests, limits, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Self

import orjson
import psutil

from forager.clock import wait_for_event
from forager.errors import ForagerError
from forager.logs import get_logger
from forager.processes.child import ChildProcess
from forager.processes.started import clean_environment
from forager.processes.tree import BROWSER_MODULE, mark_below
from forager.processes.usage import Usage, read_usage
from forager.render.limits import RenderLimits
from forager.render.link import BrowserLink, Message
from forager.render.sandbox import NO_MAPPING

log = get_logger("render")

START_SECONDS = 90.0
KILL_SECONDS = 5.0
LOOK_INTERVAL = 0.5
# beyond its own limits, until the process itself counts as hung
GRACE_SECONDS = 30.0
FOLDER = "forager-browser-"


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """A request of a page. `main`: for its own document."""

    url: str
    method: str
    headers: dict[str, str]
    type: str
    main: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class ResourceReply:
    """The response to a request of a page, or the reason why there is none."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    refused: str | None = None
    # the page has reached the limit of what it may load
    over: bool = False


Serve = Callable[[ResourceRequest], Awaitable[ResourceReply]]


class BrowserDied(Exception):
    """The process ended while it rendered a page. `guilty`: the page is known to be the cause."""

    def __init__(self, cause: str, *, guilty: bool) -> None:
        super().__init__(cause)
        self.cause = cause
        self.guilty = guilty


class BrowserUnusable(ForagerError):
    """The browser cannot be started."""


@dataclass(slots=True)
class _BrowserPage:
    serve: Serve
    done: asyncio.Future[Message]
    began: float = field(default_factory=time.monotonic)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class Browser:
    """One browser process. If it ends, BrowserDied is raised for each of its pages."""

    def __init__(self, limits: RenderLimits) -> None:
        self.pages_rendered = 0
        self.memory_mb = 0.0
        self.version = ""
        self.sandboxed = False
        self.isolated = False
        self._limits = limits
        self._numbers = count()
        self._pages: dict[int, _BrowserPage] = {}
        self._cause: str | None = None
        self._folder = _new_folder()
        self._child: ChildProcess
        self._link: BrowserLink
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(cls, path: str, limits: RenderLimits) -> Self:
        browser = cls(limits)
        try:
            await browser._start(path)
        except BaseException:
            await browser.stop()
            raise
        return browser

    @property
    def is_alive(self) -> bool:
        return not self._child.exited.is_set() and self._cause is None

    @property
    def is_busy(self) -> bool:
        return bool(self._pages)

    @property
    def pid(self) -> int:
        return self._child.pid

    async def render(self, page_request: dict[str, Any], serve: Serve) -> Message:
        """Render a page as requested (see `Renderer.render`); `serve` answers its requests."""
        number = next(self._numbers)
        page = self._pages[number] = _BrowserPage(serve, asyncio.get_running_loop().create_future())
        if not self.is_alive:
            self._abandon()
        self._link.send(
            {
                "page": number,
                **page_request,
                "seconds": self._limits.seconds,
                "settle_seconds": self._limits.settle_seconds,
                "wall_seconds": self._limits.wall_seconds,
            }
        )
        try:
            return await page.done
        finally:
            self._link.send({"drop": number})
            self._pages.pop(number, None)
            for task in page.tasks:
                task.cancel()
            self.pages_rendered += 1

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "_link"):
            self._link.close()
        if hasattr(self, "_child"):
            self._child.kill()
            await wait_for_event(self._child.exited, KILL_SECONDS)
        self._cause = self._cause or "the browser was stopped"
        self._abandon()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- the process -----------------------------------------------------------------------

    async def _start(self, path: str) -> None:
        started = await self._spawn(path, isolate=True)
        if started is None and self._child.exit_code == NO_MAPPING:
            started = await self._spawn(path, isolate=False)
        if started is None:
            raise BrowserUnusable(f"the browser cannot be started: {self._child.how_it_ended()}")
        if "unusable" in started:
            raise BrowserUnusable(f"the browser cannot be started: {started['unusable']}")
        self.version = str(started["version"])
        self.sandboxed, self.isolated = started["sandboxed"], started["isolated"]
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._watch(path))]
        log.debug("browser started", version=self.version, sandboxed=self.sandboxed)

    async def _spawn(self, path: str, *, isolate: bool) -> dict[str, Any] | None:
        """The first message of a new process; None if it ended without one."""
        setup = {"browser": path, "isolate": isolate, "memory_mb": self._limits.memory_mb}
        ours, theirs = socket.socketpair()
        with theirs:
            self._link = await BrowserLink.open(ours)
            self._child = ChildProcess.start(
                [BROWSER_MODULE, orjson.dumps(setup)],
                mark=mark_below(f"browser-{secrets.token_hex(8)}"),
                environment={**clean_environment(), "TMPDIR": self._folder},
                stdin=theirs.fileno(),
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                message = await self._link.receive()
        except (TimeoutError, ValueError):
            self._child.kill()
            message = None
        if message is None:
            await self._child.exited.wait()
            self._link.close()
            return None
        return message[0]

    async def _read(self) -> None:
        with contextlib.suppress(ValueError, LookupError, TypeError):
            while (message := await self._link.receive()) is not None:
                self._take(message)
        self._child.kill()
        await self._child.exited.wait()
        self._cause = self._cause or f"the browser {self._child.how_it_ended()}"
        log.warning("browser ended", cause=self._cause, pages=len(self._pages))
        self._abandon()

    def _take(self, message: Message) -> None:
        header, blobs = message
        if "fetch" in header:
            page = self._pages.get(header["of"])
            if page is not None:
                task = asyncio.create_task(self._serve(page, header, blobs[0]))
                page.tasks.add(task)
                task.add_done_callback(page.tasks.discard)
            return
        page = self._pages.get(header["done"])
        if "failed" in header and self._cause is not None:
            return  # this process has killed the browser
        if page is not None and not page.done.done():
            page.done.set_result(message)

    async def _serve(self, page: _BrowserPage, header: dict[str, Any], body: bytes) -> None:
        reply = await page.serve(ResourceRequest(**header["request"], body=body))
        answer: dict[str, Any] = {"reply": header["fetch"]}
        if reply.refused is not None:
            self._link.send({**answer, "refused": reply.refused, "over": reply.over})
        else:
            answer |= {"status": reply.status, "headers": reply.headers}
            self._link.send(answer, [reply.body])

    def _abandon(self) -> None:
        """Fail every page that is being rendered; a page that was alone is the cause."""
        guilty = len(self._pages) == 1
        for page in self._pages.values():
            if not page.done.done():
                death = BrowserDied(self._cause or "the browser ended", guilty=guilty)
                page.done.set_exception(death)

    # --- limits ----------------------------------------------------------------------------

    async def _watch(self, path: str) -> None:
        """Report to the process what its pages have used, and kill it beyond its limits."""
        cpu, last = 0.0, time.monotonic()
        while not self._child.exited.is_set():
            await asyncio.sleep(LOOK_INTERVAL)
            usages = _tree_usages(self._child.pid)
            self.memory_mb = sum(usage.memory_mb for usage in usages)
            used = sum(usage.cpu_seconds for usage in usages)
            now = time.monotonic()
            # after a longer gap this process did not run either: that time does not count
            passed = min(now - last, 2 * LOOK_INTERVAL)
            idle = all(usage.is_asleep for usage in usages)
            self._link.send({"tick": passed if idle else self._share(used - cpu, passed)})
            cpu, last = used, now
            self._cause = self._cause or self._broken_limit(now)
            if self._cause is not None:
                log.warning("browser killed", path=path, cause=self._cause)
                self._child.kill()
                return

    def _share(self, cpu: float, passed: float) -> float:
        """Processor time of one page. A browser that waits for a processor is not at fault."""
        return min(max(0.0, cpu) / max(1, len(self._pages)), passed)

    def _broken_limit(self, now: float) -> str | None:
        if self.memory_mb > self._limits.memory_mb:
            return f"the browser used more than {self._limits.memory_mb} MB"
        longest = self._limits.wall_seconds + GRACE_SECONDS
        if any(now - page.began > longest for page in self._pages.values()):
            return f"the browser did not respond for {longest:g} s"
        return None


def _new_folder() -> str:
    """Make a folder for the files of one browser; remove those of runners that were killed."""
    for left in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        owner = left.name.removeprefix(FOLDER).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{FOLDER}{os.getpid()}-")


def _tree_usages(pid: int) -> list[Usage]:
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    usages = [read_usage(each) for each in (pid, *(process.pid for process in below))]
    return [usage for usage in usages if usage is not None]
