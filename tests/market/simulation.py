"""A simulated market: hours pass in rounds, shops fall ill on a schedule, workers are killed.

An hour passes by moving the times in the tables back. Everything else is real: worker processes,
the scheduler, webhook deliveries and the database. A round ends when every shop that answers was
visited, whatever the others do.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import cycle
from pathlib import Path

from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.parsers import registry
from forager.parsers.rollouts import roll_out
from forager.products.alerts.rules import AlertKind, NewAlert, add_alert
from forager.secrets import Vault
from forager.services.supervisor import running
from forager.settings import Settings
from forager.tasks.rereading import reread_archive
from forager.tasks.scheduler import Scheduler
from forager.webhooks.delivery import Deliverer
from forager.webhooks.service import NewWebhook, Webhooks
from market.shops import Fault, Shop, Shops, SlowProxy, Template, Wrong
from servers.proxies import HttpProxy
from support.waiting import eventually
from tasks.working import Process, Tasks
from webhooks.receiver import Receiver

# by shop: what it has, and in which hours of a day
SCHEDULE = {
    0: (Fault.BUSY, range(2, 4)),
    1: (Fault.OUTAGE, range(2, 6)),
    2: (Fault.CAPTCHA, range(2, 4)),
    3: (Fault.GONE, range(2, 6)),
    4: (Fault.HANGS, range(2, 5)),
    7: (Fault.SAME_PAGE, range(2, 4)),
    8: (Fault.EMPTY, range(2, 4)),
}
# by shop: what its pages show instead of their products, one after the other, in which hours
WRONG_PAGES = {11: range(2, 6)}
# by shop: how it shows its prices, and in which hours they are missing or its parser fails
TEMPLATES = {
    12: (Template.DEAL, range(0)),
    13: (Template.CROWNS, range(0)),
    14: (Template.EMPTY, range(3, 4)),
    15: (Template.RAISING, range(2, 5)),
    16: (Template.HANGING, range(2, 4)),
    17: (Template.FLIPPING, range(0)),
    18: (Template.UNTRIED, range(0)),
    19: (Template.LATE, range(0)),
}
# the hour in which a parser is rolled out that corrects what was read before
LATE_ROLLOUT = 4
PARSERS = str(Path(__file__).parent.parent / "parsers" / "faulty_parsers.py")
OUTAGE, LATE = 1, 19
# these are visited through the proxies
PROXIED = (5, 6)
DAY = 8
QUIET_HOURS = 2
LIMIT = 120.0
DROP = Decimal(5)
COMPRESSED = {
    "recrawl_every": 3600.0, "revisit_changed": False, "revisit_withheld": 0,
    "images": False, "browser": "none",
    "scheduler_interval": 0.1, "poll_interval": 0.1, "heartbeat_interval": 1.0,
    "task_retries": 1, "task_retry_delay": 0.05, "task_retry_delay_max": 0.1,
    "parser_bypass_time": 1.0, "gone_visits": 3, "gone_after": 5 * 3600.0,
    "dead_letter_visits": 5, "dead_letter_after": 3 * 86400.0,
}  # fmt: skip


@dataclass(slots=True)
class Market:
    """Shops, tasks for their products, a receiver that fails 15 % of the time, and a worker."""

    tasks: Tasks
    receiver: Receiver
    shops: Shops
    chance: random.Random
    worker: Process | None = None
    hours: int = 0
    kills: int = 0
    # seconds until all shops that answer were visited, by hour
    rounds: list[float] = field(default_factory=list)

    @property
    def all(self) -> list[Shop]:
        return self.shops.shops

    async def pass_an_hour(self, *, quiet: bool = False) -> None:
        """Change offers, let shops fall ill, and wait until those that answer were visited."""
        hour = self.hours % DAY
        self.hours += 1
        ill = {n: f for n, (f, when) in SCHEDULE.items() if hour in when and not quiet}
        self.shops.fall_ill(ill)
        if hour == LATE_ROLLOUT and not quiet:
            await roll_out(self.tasks.database, self.tasks.settings, "late", "1")
        for number, when in WRONG_PAGES.items():
            shown = hour in when and not quiet
            pages = dict(zip(self.all[number].products, cycle(Wrong), strict=False))
            self.all[number].wrong = pages if shown else {}
        for number, (_, when) in TEMPLATES.items():
            self.all[number].is_incomplete = hour in when and not quiet
        for shop in self.all:
            shop.hour = self.hours
            # what such a shop changes meanwhile cannot be read
            if not shop.is_incomplete:
                shop.change_offers(self.chance)
        await self._move_times_back()
        started = time.monotonic()
        try:
            await eventually(self.visited, LIMIT)
        except TimeoutError:
            raise AssertionError(f"hour {hour}: {await self._late()}") from None
        self.rounds.append(time.monotonic() - started)

    async def _move_times_back(self) -> None:
        """Tasks that a worker holds are left alone: they are visited in this hour anyway."""
        await self.tasks.sql(
            """
            WITH waiting AS (
                SELECT id FROM crawl_tasks WHERE status IN ('pending', 'completed')
                   FOR UPDATE SKIP LOCKED
            )
            UPDATE crawl_tasks t
               SET scheduled_at = scheduled_at - interval '1 hour',
                   next_crawl_at = next_crawl_at - interval '1 hour',
                   completed_at = completed_at - interval '1 hour',
                   failing_since = failing_since - interval '1 hour'
              FROM waiting WHERE t.id = waiting.id
            """
        )
        await self.tasks.sql(
            "UPDATE task_attempts SET finished_at = finished_at - interval '1 hour'"
        )
        await self.tasks.sql(
            """
            WITH locked AS (SELECT id FROM domains ORDER BY id FOR UPDATE)
            UPDATE domains d SET slowed_at = slowed_at - interval '1 hour',
                                 blocked_until = blocked_until - interval '1 hour'
              FROM locked WHERE d.id = locked.id
            """
        )
        await self.hurry_deliveries()

    async def hurry_deliveries(self) -> None:
        """The backoff of messages that were refused is over."""
        await self.tasks.sql("UPDATE webhooks SET rests_until = NULL")
        await self.tasks.sql(
            """
            WITH waiting AS (
                SELECT id FROM outbox
                 WHERE sent_at IS NULL AND claimed_by IS NULL AND due_at > now() AND attempts > 0
                   FOR UPDATE SKIP LOCKED
            )
            UPDATE outbox o SET due_at = now() FROM waiting WHERE o.id = waiting.id
            """
        )

    async def visited(self) -> bool:
        """Whether the products of all shops that answer were visited within the hour."""
        return not await self._late()

    async def _late(self) -> list[object]:
        """A shop that answers with wrong pages is visited too, until its alarm pauses that."""
        healthy = [shop.host for shop in self.all if shop.fault is None]
        wrong = (Fault.GONE, Fault.SAME_PAGE)
        alarming = [shop.host for shop in self.all if shop.fault in wrong]
        return await self.tasks.sql(
            """
            SELECT t.url, t.status, t.scheduled_at - now(), t.next_crawl_at - now(),
                   t.started_at - now(), t.error_message, d.blocked_until - now(), d.slow_delay
              FROM crawl_tasks t JOIN domains d ON d.id = t.domain_id
              LEFT JOIN domain_health h ON h.domain_id = d.id
             WHERE (d.domain_name = ANY(%s) OR d.domain_name = ANY(%s) AND h.alarm IS NULL)
               AND NOT (t.status IN ('completed', 'pending')
                        AND coalesce(t.next_crawl_at, t.scheduled_at) > now() + interval '10 min'
                        AND t.started_at > now() - interval '1 hour')
            """,
            healthy,
            alarming,
        )

    async def kill_worker(self) -> None:
        """Kill the worker in the middle of its work, and start another one."""
        assert self.worker is not None
        await self.worker.kill()
        self.kills += 1
        await self.tasks.silence()
        await self.tasks.recover()
        self.worker = Process(self.tasks)

    async def settle(self) -> None:
        """Hours without faults, until all products were visited and all events delivered."""
        for _ in range(QUIET_HOURS):
            await self.pass_an_hour(quiet=True)
        await eventually(self._delivered, LIMIT)

    async def correct_histories(self) -> None:
        """Rewrite what was read before a parser was rolled out, without an alert."""
        preview = await reread_archive(self.tasks.database, self.tasks.settings, "late")
        done = await reread_archive(self.tasks.database, self.tasks.settings, "late", write=True)
        assert done.corrected == preview.corrected > 0
        assert done.repriced == 0

    async def _delivered(self) -> bool:
        await self.hurry_deliveries()
        rows = await self.tasks.sql("SELECT count(*) FROM outbox WHERE sent_at IS NULL")
        return bool(rows[0][0] == 0)


@asynccontextmanager
async def open_market(
    tasks: Tasks, *, shops: int = 20, products: int = 3, seed: int = 1
) -> AsyncIterator[Market]:
    tasks.settings = Settings(**(tasks.settings.model_dump() | COMPRESSED))
    chance = random.Random(seed)
    tasks.settings = tasks.settings.model_copy(update={"parser_modules": (PARSERS,)})
    served = Shops([Shop(n, products) for n in range(shops)], [HttpProxy(), SlowProxy()])
    for number, (template, _) in TEMPLATES.items():
        served.shops[number].template = template
    before = registry.loaded_modules()
    registry.load_parsers([PARSERS])
    async with AsyncExitStack() as stack:
        stack.callback(setattr, registry, "_modules", before)
        stack.enter_context(served.open())
        receiver = await stack.enter_async_context(Receiver())
        receiver.refuses = lambda _: chance.random() < 0.15
        market = Market(tasks, receiver, served, chance)
        await _prepare(market)
        services = [
            Scheduler(tasks.database, tasks.settings).service(),
            Deliverer(tasks.database, tasks.settings).service(),
        ]
        await stack.enter_async_context(running(services))
        market.worker = Process(tasks)
        try:
            yield market
        finally:
            if not market.worker.worker.exited.is_set():
                await market.worker.kill()


async def _prepare(market: Market) -> None:
    tasks = market.tasks
    vault = Vault(tasks.settings)
    hook = NewWebhook(market.receiver.url, allow_private=True)
    await Webhooks(tasks.database, vault).add(hook)
    for proxy in market.shops.proxies:
        spec = ProxySpec.parse(f"http://127.0.0.1:{proxy.port}")
        await Proxies(tasks.database, vault).add(spec, allow_private=True)
    await add_alert(tasks.database, NewAlert(AlertKind.PRICE_DROP, percent=DROP))
    await add_alert(tasks.database, NewAlert(AlertKind.BACK_IN_STOCK))
    for shop in market.all:
        urls = [shop.url(name) for name in shop.products]
        await tasks.add(*urls, status="pending")
    for name in ("raising", "hanging"):
        await roll_out(tasks.database, tasks.settings, name, "1")
    await tasks.sql(
        "UPDATE domains SET use_proxies = true WHERE domain_name = ANY(%s)",
        [market.all[n].host for n in PROXIED],
    )
