"""A shop over simulated days, while everything that runs is killed: history, schedule, events.

Days pass by moving every time in the tables back; everything else is real: `forager up` as a
process, its task worker, a PostgreSQL that is killed, a shop and a receiver of webhooks.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from forager.db.database import Database
from forager.db.embedded import ServerUse
from forager.errors import DatabaseUnavailable
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks import dead_letters
from forager.webhooks.service import NewWebhook, Webhooks
from servers.shop import Item, Markup, Shop
from servers.site import Page
from support.waiting import eventually
from tasks.working import Tasks
from webhooks.receiver import Receiver

FORAGER = Path(sys.executable).parent / "forager"
DELAY = 0.03
# who dies on which day
DEATHS = (("worker", "postgres"), ("up",), ("worker",), ("up", "postgres"))

# every column that says when something was, or will be
TIMES = {
    "crawl_tasks": ("scheduled_at", "started_at", "completed_at", "next_crawl_at"),
    "products": ("created_at", "updated_at", "last_seen_at", "price_changed_at"),
    "price_history": ("recorded_at",),
    "task_attempts": ("started_at", "finished_at"),
    "extractions": ("created_at",),
    "catalog_events": ("occurred_at",),
}


@pytest.fixture
async def tasks(own_server: ServerUse, settings: Settings, tmp_path: Path) -> AsyncIterator[Tasks]:
    changed = Settings(**(settings.model_dump() | {"home": tmp_path / "home", "images": False}))
    async with Database(own_server.url, max_size=4) as database:
        yield Tasks(database, changed)


# longer than the backoff of a worker that died for the third time
LIMIT = 100


class World:
    """All processes of an installation, and a killer."""

    def __init__(self, server: ServerUse, shop: Shop, tasks: Tasks, seed: int) -> None:
        self.server = server
        self.shop = shop
        self.tasks = tasks
        self.chance = random.Random(seed)
        self.up: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = os.environ | {
            "FORAGER_DATABASE_URL": self.server.url,
            "FORAGER_HOME": str(self.tasks.settings.home),
            "FORAGER_SCHEDULER_INTERVAL": "0.1",
            "FORAGER_POLL_INTERVAL": "0.1",
            "FORAGER_HEARTBEAT_INTERVAL": "1",
            "FORAGER_TASK_RETRY_DELAY": "0.05",
            "FORAGER_TASK_RETRY_DELAY_MAX": "0.2",
            "FORAGER_DEAD_LETTER_VISITS": "1",
            "FORAGER_DEAD_LETTER_AFTER": "0",
            "FORAGER_GONE_VISITS": "1",
            "FORAGER_GONE_AFTER": "0",
            "FORAGER_REVISIT_CHANGED": "false",
            "FORAGER_IMAGES": "false",
            "FORAGER_API_PORT": "0",
        }
        self.up = subprocess.Popen([FORAGER, "--log-level", "critical", "up"], env=environment)

    def stop(self) -> None:
        if self.up is not None:
            self.up.send_signal(signal.SIGTERM)
            try:
                self.up.wait(20)
            except subprocess.TimeoutExpired:
                self.up.kill()
                self.up.wait()

    async def kill(self, victim: str) -> None:
        if victim == "worker":
            self.kill_worker()
        elif victim == "up":
            assert self.up is not None
            self.up.kill()
            self.up.wait()
            self.start()
        else:
            await asyncio.to_thread(self.restart_postgres)
        # what the dead held of the host's connections ends by itself, but that takes ten seconds
        with suppress(DatabaseUnavailable):
            await self.tasks.forget_permits()

    def kill_worker(self) -> None:
        assert self.up is not None
        for child in psutil.Process(self.up.pid).children():
            with suppress(psutil.Error):
                if "forager.tasks" in child.cmdline():
                    child.kill()

    def restart_postgres(self) -> None:
        assert self.server.pid is not None
        postmaster = psutil.Process(self.server.pid)
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(30)
        self.server.ensure_running()

    async def live_through(self, deaths: tuple[str, ...]) -> None:
        """Until nothing is due any more, with deaths on the way."""
        for victim in deaths:
            target = len(self.shop.site.log) + self.chance.randint(2, 8)
            await eventually(lambda target=target: self._asked_or_done(target), LIMIT)  # type: ignore[misc]
            await self.kill(victim)
        await eventually(self._done, LIMIT)

    async def _asked_or_done(self, target: int) -> bool:
        return len(self.shop.site.log) >= target or await self._done()

    def keep_up(self) -> None:
        """As a service manager does: one that met no database when it started has left again."""
        if self.up is not None and self.up.poll() is not None:
            self.start()

    async def _done(self) -> bool:
        self.keep_up()
        with suppress(DatabaseUnavailable):
            rows = await self.tasks.sql(
                """
                SELECT count(*) FROM crawl_tasks
                 WHERE status NOT IN ('completed', 'failed')
                    OR (status = 'completed' AND next_crawl_at <= now())
                """
            )
            return bool(rows[0][0] == 0)
        return False


@asynccontextmanager
async def living(world: World) -> AsyncIterator[World]:
    world.start()
    try:
        yield world
    finally:
        world.stop()


async def pass_a_day(tasks: Tasks) -> None:
    for table, columns in TIMES.items():
        moved = ", ".join(f"{name} = {name} - interval '24 hours'" for name in columns)
        await tasks.sql(f"UPDATE {table} SET {moved}")


async def history(tasks: Tasks, task_id: int) -> list[tuple[str, str]]:
    rows = await tasks.sql(
        """
        SELECT h.price, h.availability
          FROM price_history h JOIN products p ON p.id = h.product_id
         WHERE p.crawl_task_id = %s ORDER BY h.id
        """,
        task_id,
    )
    return [(f"{row[0]:.2f}", row[1]) for row in rows]


async def events(tasks: Tasks) -> dict[str, int]:
    rows = await tasks.sql("SELECT kind, count(*) FROM catalog_events GROUP BY kind")
    return {row[0]: row[1] for row in rows if row[0].startswith("product.")}


def offer(item: Item) -> tuple[str, str]:
    return item.price, "in_stock" if item.in_stock else "out_of_stock"


def changes(seen: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [now for before, now in zip([None, *seen], seen, strict=False) if now != before]


def is_within_budget(times: list[float]) -> bool:
    """Twenty requests in a row take at least nineteen delays, but for what sockets blur."""
    return all(times[i + 19] - times[i] >= 19 * DELAY * 0.85 for i in range(len(times) - 19))


async def fill(shop: Shop, tasks: Tasks) -> dict[str, int]:
    """Products in all kinds of markup, every fourth of them visited only every other day."""
    ids: dict[str, int] = {}
    markups = list(Markup)
    for number in range(16):
        name = f"n{number}"
        item = Item(
            f"Product {number}",
            f"{10 + number}.00",
            sku=name,
            markup=markups[number % 3],
            has_etag=number % 5 == 0,
        )
        (ids[name],) = await tasks.add(shop.add(name, item), status="pending", max_retries=1000)
    for name in ("gone", "closed", "moved", "busy"):
        (ids[name],) = await tasks.add(shop.add(name), status="pending", max_retries=1000)
    shop.add("new-place", Item("Product moved", sku="moved"))
    await tasks.sql("UPDATE domains SET crawl_delay_seconds = %s", DELAY)
    await tasks.sql(
        "UPDATE crawl_tasks SET crawl_frequency = interval '48 hours' WHERE id = ANY(%s)",
        [ids[f"n{n}"] for n in range(0, 16, 4)],
    )
    return ids


def misbehave(shop: Shop, day: int) -> None:
    """What else happens in the shop on this day."""
    if day == 1:
        shop.redirect("moved", shop.url("new-place"))
        shop.behave("busy", lambda hits: shop.page("busy") if hits % 3 == 0 else _wait())
        shop.break_markup("closed")
    if day == 2:
        shop.refuse("gone", "404 Not Found")
        shop.behave_again("closed")


def _wait() -> Page:
    return Page(b"later", "503 Busy", {"Retry-After": "1"})


@pytest.mark.timeout(400)
async def test_a_shop_through_simulated_days_of_deaths(
    own_server: ServerUse, shop: Shop, tasks: Tasks
) -> None:
    ids = await fill(shop, tasks)
    hopeless = [ids["closed"], ids["gone"]]
    await tasks.sql("UPDATE crawl_tasks SET max_retries = 2 WHERE id = ANY(%s)", hopeless)
    truth: dict[str, list[tuple[str, str]]] = {name: [] for name in ids}
    chance = random.Random(7)
    async with Receiver() as receiver:
        webhooks = Webhooks(tasks.database, Vault(tasks.settings))
        await webhooks.add(NewWebhook(receiver.url, allow_private=True))
        async with living(World(own_server, shop, tasks, seed=3)) as world:
            for day in range(len(DEATHS)):
                change_the_shop(shop, chance, day)
                misbehave(shop, day)
                if day:
                    await pass_a_day(tasks)
                if day == 2:
                    found = await dead_letters.list_letters(
                        tasks.database, dead_letters.LetterFilter()
                    )
                    assert {letter.task_id for letter in found.items} == {ids["closed"]}
                    await dead_letters.retry_letters(
                        tasks.database, dead_letters.LetterFilter(ids=[found.items[0].id])
                    )
                await world.live_through(DEATHS[day])
                for name in visited(ids, day):
                    truth[name].append(offer(shop.products[name]))
                await check_day(tasks, ids, truth)
            await eventually(lambda: all_delivered(tasks, receiver), LIMIT)
    assert is_within_budget([request.at for request in shop.site.log])
    await check_end(tasks, ids, truth)


def change_the_shop(shop: Shop, chance: random.Random, day: int) -> None:
    for number in range(16):
        if day and chance.random() < 0.4:
            price = float(shop.products[f"n{number}"].price) * chance.choice([0.8, 0.9, 1.1, 1.25])
            shop.change(f"n{number}", price=f"{price:.2f}")
        if day and chance.random() < 0.2:
            item = shop.products[f"n{number}"]
            shop.change(f"n{number}", in_stock=not item.in_stock)


def visited(ids: dict[str, int], day: int) -> list[str]:
    """Whose offer is seen on this day."""
    slow = {f"n{n}" for n in range(0, 16, 4)}
    names = [name for name in ids if name not in slow or day % 2 == 0]
    if day == 1:
        names.remove("closed")
    if day >= 2:
        names.remove("gone")
    return names


async def check_day(
    tasks: Tasks, ids: dict[str, int], truth: dict[str, list[tuple[str, str]]]
) -> None:
    for name, seen in truth.items():
        if name not in ("moved", "gone", "closed"):
            assert await history(tasks, ids[name]) == changes(seen), name
    rows = await tasks.sql(
        """
        SELECT url FROM crawl_tasks
         WHERE status = 'completed'
           AND next_crawl_at <> completed_at + coalesce(crawl_frequency, interval '1 day')
        """
    )
    assert rows == []


async def check_end(
    tasks: Tasks, ids: dict[str, int], truth: dict[str, list[tuple[str, str]]]
) -> None:
    statuses = dict(await tasks.sql("SELECT id, status FROM crawl_tasks"))
    assert {name for name, id_ in ids.items() if statuses[id_] == "failed"} == {"gone"}
    # a product whose page is gone is no longer sold
    price = truth["gone"][-1][0]
    truth["gone"].append((price, "discontinued"))
    assert await history(tasks, ids["gone"]) == changes(truth["gone"])
    assert len(await history(tasks, ids["closed"])) == 1
    seen = await events(tasks)
    assert seen["product.added"] == len(ids)
    offers = {name: changes(entries) for name, entries in truth.items()}
    prices = sum(len(changes_of(entries, 0)) - 1 for entries in offers.values())
    stocks = sum(len(changes_of(entries, 1)) - 1 for entries in offers.values())
    assert seen.get("product.price_changed", 0) == prices
    assert seen.get("product.availability_changed", 0) == stocks


def changes_of(entries: list[tuple[str, str]], which: int) -> list[str]:
    values = [entry[which] for entry in entries]
    return [now for before, now in zip([None, *values], values, strict=False) if now != before]


async def all_delivered(tasks: Tasks, receiver: Receiver) -> bool:
    """Every event has arrived; more than once is allowed, not at all is not."""
    with suppress(DatabaseUnavailable):
        rows = await tasks.sql("SELECT id FROM catalog_events")
        return {row[0] for row in rows} <= {got.json["id"] for got in receiver.got}
    return False
