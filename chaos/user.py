"""A user of the API who starts and manages crawls, and repeats failed requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import aiohttp

from chaos.requests import Budget
from chaos.site import Host, Site
from forager.db.ids import new_id

LIMIT = 10.0
CHECK_INTERVAL = 0.5
RESUME_AFTER = 2.0
START_LIMIT = 300.0
RETRIES = 4
TASKS_EVERY = "4s"
ACTIVE = ("pending", "processing", "paused")


class ApiUnavailable(Exception):
    """The API did not answer, or answered with a server error."""


class ApiRefused(Exception):
    """The API rejected a request that is always valid."""


class User:
    """Starts crawls of every host repeatedly; each has a separate user agent."""

    def __init__(self, site: Site, port: int, budget: Budget) -> None:
        self.site = site
        self.rounds: Counter[str] = Counter()
        self.orders = True
        self._budget = budget
        self._base = f"http://127.0.0.1:{port}/api/v1"
        self._paused_since: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(LIMIT))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """The answer of the API; None if it rejects the request."""
        try:
            async with self._session.request(
                method, self._base + path, json=body, headers=headers
            ) as answer:
                if answer.status >= 500:
                    raise ApiUnavailable(await answer.text())
                return await answer.json() if answer.status < 400 else None
        except (aiohttp.ClientError, TimeoutError, ConnectionError, ValueError) as error:
            raise ApiUnavailable(repr(error)) from error

    # --- set-up ----------------------------------------------------------------------------------

    async def set_up(self) -> None:
        """Configure each host, track the products, and add a webhook."""
        async with asyncio.timeout(START_LIMIT):
            terms = {"delay": self._budget.delay, "concurrency": self._budget.concurrency}
            for host in self.site.hosts:
                await self._repeat_until_answered("/domains", {"host": host.address, **terms})
            hook = {"url": self.site.hook_host.url, "allow_private": True}
            self.site.receiver.secret = (await self._repeat_until_answered("/webhooks", hook))[
                "secret"
            ]
            urls = [self.site.shop_host.url + name for name in self.site.shop.versions]
            order = {"items": urls, "every": TASKS_EVERY, "allow_private": True}
            await self._repeat_until_answered("/tasks", order)

    async def _repeat_until_answered(self, path: str, body: Any) -> Any:
        """Repeat an idempotent request until it is answered."""
        key = {"Idempotency-Key": str(new_id())}
        while True:
            with suppress(ApiUnavailable):
                answer = await self.ask("POST", path, body, **key)
                assert answer is not None, f"the API rejects {body}"
                return answer
            await asyncio.sleep(CHECK_INTERVAL)

    # --- during the run --------------------------------------------------------------------------

    async def keep_busy(self) -> None:
        """Start missing crawls, resume paused ones and retry failed ones, until cancelled."""
        while True:
            with suppress(ApiUnavailable):
                await self._look()
            await asyncio.sleep(CHECK_INTERVAL)

    async def _look(self) -> None:
        found = await self.jobs(*ACTIVE, "failed")
        busy = {job["source"] for job in found}
        for job in found:
            if job["status"] == "failed":
                await self.move(job["id"], "retry")
            elif job["status"] == "paused":
                await self._resume_in_time(job["id"])
        for host in self.site.docs:
            if self.orders and host.name not in busy:
                await self.order(host)

    async def _resume_in_time(self, job_id: str) -> None:
        since = self._paused_since.setdefault(job_id, time.monotonic())
        if time.monotonic() - since > RESUME_AFTER:
            await self.move(job_id, "resume")
            del self._paused_since[job_id]

    async def order(self, host: Host) -> None:
        """Start a crawl. After a lost answer, the same idempotent request is repeated."""
        agent = f"{host.name}-round-{self.rounds[host.name]}"
        order = {
            "urls": [host.url],
            "source": host.name,
            "user_agent": agent,
            "concurrency": self._budget.concurrency,
            "retries": RETRIES,
            "retry_delay": 0.2,
            "allow_private": True,
        }
        key = {"Idempotency-Key": agent}
        if await self.ask("POST", "/crawls", order, **key) is not None:
            self.rounds[host.name] += 1

    async def jobs(self, *statuses: str) -> list[dict[str, Any]]:
        """The crawls in some of these states."""
        query = "&".join(f"status={status}" for status in statuses)
        found = await self.ask("GET", f"/jobs?limit=200&{query}")
        if found is None:
            raise ApiRefused(f"the list of jobs with {query}")
        return [job for job in found["items"] if job["kind"] == "crawl"]

    async def move(self, job_id: str, action: str) -> bool:
        """Pause, resume, cancel or retry a job; return whether its state allowed it."""
        return await self.ask("POST", f"/jobs/{job_id}/{action}") is not None

    async def hold_tasks(self) -> None:
        await self.ask("POST", "/tasks/pause", {"all": True})
