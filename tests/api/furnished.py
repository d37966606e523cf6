"""A database with one of everything, so that every endpoint has something to answer about."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from built_site import SOURCE, Crawls
from forager.db.database import Database
from forager.db.ids import new_id
from forager.events.event import EventKind, NewEvent
from forager.events.service import record_events
from forager.fetch.domains.service import Domains
from forager.fetch.proxies.proxy import ProxySpec
from forager.fetch.proxies.service import Proxies
from forager.jobs.queue import Queue
from forager.products.alerts.rules import AlertKind, NewAlert, add_alert
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.service import NewWebhook, Webhooks
from images.stored_image import store_image
from products.product_shop import Shop, lamp
from support.keys import make_key
from support.sql import execute

METHODS = ("get", "post", "put", "patch", "delete")

# Paths with these are answered to their owner alone; what the others name is the installation's.
OWNED = frozenset({"job_id", "crawl_id", "source_id"})
SHARED = frozenset(
    {"product_id", "position", "task_id", "error_id", "letter_id", "webhook_id", "message_id",
     "rule_id", "name",
     "host", "proxy_id", "key_id", "user_id"}
)  # fmt: skip

# asking through a proxy or following a job that continues takes as long as it takes
SLOW = {
    "/api/v1/proxies/{proxy_id}/test",
    "/api/v1/webhooks/{webhook_id}/test",
    "/api/v1/crawls/{crawl_id}/events",
    "/api/crawl-progress/{crawl_id}/events",
}


async def furnish(
    database: Database, settings: Settings, owner: UUID | None = None
) -> dict[str, str]:
    """Ids of things that exist, by the name of the path's parameter."""
    crawls = Crawls(database, Queue(database, settings), settings)
    await crawls.crawl({"a": "one"})
    await crawls.crawl({"a": "two", "b": "zebra"})
    running = await crawls.start()
    if owner is not None:
        await execute(database, "UPDATE crawl_jobs SET user_id = %s RETURNING 1", owner)
        await execute(database, "UPDATE sources SET user_id = %s RETURNING 1", owner)
    await Domains(database).add("furnished.example.org")
    spec = ProxySpec.parse("http://me:secret@proxy.example.org:3128")
    proxy = await Proxies(database, Vault(settings)).add(spec)
    other = await make_key(database, "other")
    job_id = str(running.context.job.id)
    return {
        "job_id": job_id,
        "crawl_id": job_id,
        "source_id": SOURCE,
        "host": "furnished.example.org",
        "proxy_id": str(proxy.id),
        "key_id": other.key.id,
        "user_id": str(other.key.user_id),
        **await _furnish_catalog(database, settings),
    }


async def _furnish_catalog(database: Database, settings: Settings) -> dict[str, str]:
    shop = await Shop(database, settings).open()
    seen = [await shop.visit("lamp", lamp(price)) for price in ("49.90", "44.90", "4490")]
    product_id = seen[0].product_id
    assert product_id is not None
    await store_image(database, settings, product_id)
    [error] = await shop.row(
        """
        INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                error_message, message_key, job_id)
        SELECT id, domain_id, 'parse', 'parse', 'parse', 'broke', 'broke', %s FROM crawl_tasks
        RETURNING id
        """,
        new_id(),
    )
    issued = await Webhooks(database, Vault(settings)).add(NewWebhook("https://hooks.example.org/"))
    rule = await add_alert(database, NewAlert(AlertKind.PRICE_DROP, percent=Decimal(3)))
    async with database.transaction() as connection:
        await record_events(connection, [NewEvent(EventKind.DOMAIN_RECOVERED, None, None, {})])
    [(message,)] = await execute(database, "SELECT id FROM outbox WHERE topic = 'webhooks'")
    return {
        "product_id": str(product_id),
        "position": "0",
        "task_id": str(seen[0].task_id),
        "error_id": str(error),
        "letter_id": str(await add_letter(database)),
        "webhook_id": str(issued.webhook.id),
        "message_id": str(message),
        "rule_id": str(rule.id),
        "name": "generic",
    }


async def add_letter(database: Database) -> int:
    """The only task that failed permanently."""
    await execute(database, "DELETE FROM dead_letters RETURNING 1")
    [(letter,)] = await execute(
        database,
        """
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  error_message, message_key, attempts)
        SELECT id, domain_id, url, 'download', 'timeout', 'timeout', 'broke', 'broke', 4
          FROM crawl_tasks ORDER BY id LIMIT 1
        RETURNING id
        """,
    )
    return int(letter)


async def replace_product(database: Database, product_id: str) -> None:
    """As if its page showed another product."""
    await execute(
        database,
        "INSERT INTO product_replacements (product_id, product_name, url)"
        " VALUES (%s, 'Vase', 'https://shop.example/vase') RETURNING 1",
        product_id,
    )


async def raise_alarm(database: Database, host: str) -> None:
    await execute(
        database,
        """
        INSERT INTO domain_health (domain_id, alarm, alarm_at)
        SELECT id, 'blocked', now() FROM domains WHERE domain_name = %s
        RETURNING 1
        """,
        host,
    )


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of everything that can be called below /api."""
    return [
        (method.upper(), path, methods[method])
        for path, methods in document["paths"].items()
        for method in METHODS
        if method in methods and path.startswith("/api/")
    ]


def parameters(operation: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    return {p["name"]: p for p in operation.get("parameters", []) if p["in"] == where}
