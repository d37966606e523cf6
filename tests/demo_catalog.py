"""A realistic catalog for screenshots: three shops, months of prices, and errors.

Products are written as visits write them; then their times are moved back. Nothing is fetched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from demo_surroundings import (
    CHAIRS,
    LAMPS,
    add_domains_and_proxies,
    add_images,
    add_webhooks,
    cached_robots,
    roll_out_parsers,
)
from forager.db.database import Connection, Database
from forager.extract.keys import url_hash
from forager.extract.product.product import Availability, Evidence, Product
from forager.fetch.robots.store import upsert_robots
from forager.products.visit import ParsedPage
from forager.products.writer import write_pages
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks

KIOSK = "kiosk.example"
IN, OUT, FEW = Availability.IN_STOCK, Availability.OUT_OF_STOCK, Availability.LIMITED
# ages in days, and by what share the first price has moved then
VISITS = ((62, 0), (55, 0), (47, -8), (40, -8), (33, 5), (26, 5), (19, -15), (12, -15), (5, -4))


@dataclass(frozen=True, slots=True)
class Thing:
    domain: str
    slug: str
    name: str
    price: str
    brand: str
    category: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"https://{self.domain}/{'item/' if self.domain == KIOSK else ''}{self.slug}"


def _things() -> list[Thing]:
    lamps = (
        "Ada desk lamp", "Bertha floor lamp", "Curie pendant", "Dora clip lamp",
        "Emmy wall light", "Franklin reading lamp", "Grace table lamp", "Hopper spotlight",
    )  # fmt: skip
    chairs = (
        "Oak dining chair", "Folding stool", "Rocking chair, ash", "Office chair Plus",
        "Bar stool, set of two", "Garden bench", "Armchair in green wool", "Child's chair",
    )  # fmt: skip
    kiosk = (
        "Notebook A5, dotted", "Fountain pen M", "Pencil set, 12 colours", "Desk calendar",
        "Paper clips, 100", "Ink, midnight blue", "Stapler No. 9", "Letter tray",
    )  # fmt: skip
    shops = (
        (LAMPS, lamps, "Lumen & Co", ("Home", "Lighting"), 49),
        (CHAIRS, chairs, "Holzwerk", ("Furniture", "Chairs"), 129),
        (KIOSK, kiosk, "Quill", ("Office", "Paper"), 6),
    )
    return [
        Thing(shop, f"{name.lower().split(',')[0].replace(' ', '-').replace(chr(39), '')}", name,
              f"{base + 7 * number}.90", brand, category)
        for shop, names, brand, category, base in shops
        for number, name in enumerate(names)
    ]  # fmt: skip


async def fill_catalog(database: Database, settings: Settings) -> dict[str, str]:
    """Fill it, and name the pages that show it."""
    holds, tasks = Holds(database), Tasks(database, settings)
    await holds.pause(Selection())  # the scheduler runs: nothing here may be fetched
    things = _things()
    await tasks.track([thing.url for thing in things], every=timedelta(days=1))
    ids = [each or 0 for each in await tasks.ids_of([thing.url for thing in things])]
    async with database.transaction() as connection:
        await _visits(connection, settings, things, ids)
        await _attempts(connection)
        await _failures(connection)
        await upsert_robots(connection, f"https://{LAMPS}", cached_robots())
    product_id = await _product(database, things[0])
    await add_images(database, settings, product_id)
    await add_domains_and_proxies(database, settings)
    await roll_out_parsers(database, settings)
    webhook_id, message_id = await add_webhooks(database, settings)
    await holds.resume(Selection())
    await holds.pause(Selection(ids=(ids[3],)))
    return {
        "products": "/products",
        "products-filtered": "/products?q=lamp&min_price=60&availability=in_stock",
        "product": f"/products/{product_id}",
        "product-history": f"/products/{product_id}/history",
        "track": "/track",
        "tasks": "/tasks",
        "tasks-domain": f"/tasks?domain={CHAIRS}",
        "task": f"/tasks/{ids[0]}",
        "errors": "/errors",
        "error-list": "/errors/list",
        "error": "/errors/1",
        "dead-letters": "/dead-letters",
        "domains": "/domains",
        "domain": f"/domains/{LAMPS}",
        "proxies": "/proxies",
        "proxy": "/proxies/1",
        "parsers": "/parsers",
        "webhooks": "/webhooks",
        "webhook": f"/webhooks/{webhook_id}",
        "webhook-message": f"/webhooks/{webhook_id}/messages/{message_id}",
        "alerts": "/alerts",
        "settings": "/settings?changed=yes",
    }


# --- prices ------------------------------------------------------------------------------------


async def _visits(
    connection: Connection, settings: Settings, things: list[Thing], ids: list[int]
) -> None:
    domains = {row[0]: row[1] for row in await _rows(connection,
               "SELECT domain_name, id FROM domains")}  # fmt: skip
    for visit, (days, percent) in enumerate(VISITS):
        pages = [
            _page(task_id, domains[thing.domain], thing, _offer(thing, number, visit, percent))
            for number, (thing, task_id) in enumerate(zip(things, ids, strict=True))
        ]
        await write_pages(connection, pages, settings=settings)
        await _move_back(connection, days)
    await connection.execute(
        """
        UPDATE crawl_tasks
           SET status = 'completed', completed_at = now() - interval '1 hour' * (1 + id % 20),
               next_crawl_at = now() + interval '1 hour' * (4 + id % 20), started_at = now()
        """
    )
    await connection.execute("UPDATE products SET last_seen_at = now() - interval '3 hours'")


def _offer(thing: Thing, number: int, visit: int, percent: int) -> tuple[Decimal, Availability]:
    """Not all move alike: some shops change their prices seldom."""
    moved = percent if (number + visit) % 3 else 0
    price = (Decimal(thing.price) * (100 + moved) / 100).quantize(Decimal("0.01"))
    sold_out = (number + visit) % 7 == 4
    return price, OUT if sold_out else FEW if (number + visit) % 11 == 6 else IN


def _page(
    task_id: int, domain_id: int, thing: Thing, offer: tuple[Decimal, Availability]
) -> ParsedPage:
    price, availability = offer
    said = Evidence(0.95, "json-ld: offers.price")
    product = Product(
        name=thing.name,
        description=f"{thing.name} by {thing.brand}. Built to last and easy to repair: every part"
        " is available separately. Five-year warranty.",
        price=price,
        list_price=Decimal(thing.price) * 2 if thing.slug.startswith("ada") else None,
        currency="EUR",
        availability=availability,
        rating=Decimal("4.6"),
        review_count=214,
        brand=thing.brand,
        category=thing.category,
        sku=thing.slug.upper()[:12],
        evidence={
            "name": Evidence(0.98, "json-ld: name"),
            "price": said,
            "currency": replace(said, origin="json-ld: offers.priceCurrency"),
            "availability": Evidence(0.9, "json-ld: offers.availability"),
            "brand": Evidence(0.9, "microdata: brand"),
            "category": Evidence(0.6, "dom: breadcrumb"),
            "rating": Evidence(0.85, "json-ld: aggregateRating"),
            "sku": Evidence(0.9, "json-ld: sku"),
            "description": Evidence(0.5, "opengraph: og:description"),
        },
        confidence=0.93,
    )
    parser = "kiosk" if thing.domain == KIOSK else "generic"
    return ParsedPage(
        task_id=task_id,
        domain_id=domain_id,
        url=thing.url,
        url_hash=url_hash(thing.url),
        final_url=None,
        parser=parser,
        version="1",
        product=product,
        error=None,
        language="en",
        ref=None,
    )


async def _move_back(connection: Connection, days: int) -> None:
    """Date the rows written just now back by this number of days."""
    for table, columns in {
        "price_history": ("recorded_at",),
        "extractions": ("created_at",),
        "catalog_events": ("occurred_at",),
        "products": ("created_at", "updated_at", "price_changed_at"),
    }.items():
        for column in columns:
            await connection.execute(
                f"""
                UPDATE {table} SET {column} = {column} - make_interval(days => %s, hours => 3)
                 WHERE {column} > now() - interval '1 hour'
                """,
                (days,),
            )


# --- what went wrong, and when -----------------------------------------------------------------


async def _attempts(connection: Connection) -> None:
    await connection.execute(
        """
        INSERT INTO task_attempts (task_id, domain_id, stage, lease, attempt, outcome, http_status,
                                   error_kind, error_message, duration_ms, size, finished_at)
        SELECT t.id, t.domain_id, s.stage, 1, 1,
               CASE WHEN fails THEN 'retry' ELSE 'ok' END,
               CASE WHEN s.stage = 'download' THEN CASE WHEN fails THEN 503 ELSE 200 END END,
               CASE WHEN fails THEN 'http_server' END,
               CASE WHEN fails THEN 'the server answered 503 Service Unavailable' END,
               s.took + (t.id * 7 + day * 3) % 60,
               CASE WHEN s.stage = 'download' THEN 48000 + t.id * 911 END,
               now() - make_interval(days => day, hours => 3) + s.took * interval '1 ms'
          FROM crawl_tasks t
         CROSS JOIN generate_series(6, 0, -1) AS day
         CROSS JOIN (VALUES ('download', 180), ('parse', 22)) AS s (stage, took)
         CROSS JOIN LATERAL (SELECT s.stage = 'download' AND day = 3 AS fails) f
         ORDER BY day DESC, s.took DESC
        """
    )


async def _failures(connection: Connection) -> None:
    await connection.execute(
        """
        INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                error_message, message_key, url, occurred_at)
        SELECT t.id, t.domain_id, w.stage, w.type, w.kind, w.message, w.message, t.url,
               now() - n * interval '23 min'
          FROM crawl_tasks t
          JOIN domains d ON d.id = t.domain_id
          JOIN (VALUES
            ('lamps.example.org', 'download', 'http', 'http_server',
             'the server answered 503 Service Unavailable', 3),
            ('chairs.example.com', 'download', 'network', 'timeout',
             'no answer within 30 s', 2),
            ('kiosk.example', 'parse', 'validation', 'validation',
             'the page looks like a product, but states neither a price nor a SKU', 1)
          ) AS w (domain, stage, type, kind, message, times) ON w.domain = d.domain_name
         CROSS JOIN generate_series(1, w.times) AS n
        """
    )
    await connection.execute(
        """
        WITH failed AS (
            UPDATE crawl_tasks t
               SET status = 'failed', retry_count = 3, error_kind = w.kind,
                   error_message = w.message, next_crawl_at = NULL
              FROM (VALUES
                ('https://chairs.example.com/garden-bench', 'http_client',
                 'the server answered 404 Not Found'),
                ('https://chairs.example.com/folding-stool', 'http_client',
                 'the server answered 404 Not Found'),
                ('https://kiosk.example/item/stapler-no.-9', 'validation',
                 'the page looks like a product, but states neither a price nor a SKU')
              ) AS w (url, kind, message)
             WHERE t.url = w.url
            RETURNING t.id, t.domain_id, t.url, w.kind, w.message
        )
        INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                  error_message, message_key, attempts, died_at)
        SELECT id, domain_id, url, CASE kind WHEN 'validation' THEN 'parse' ELSE 'download' END,
               CASE kind WHEN 'validation' THEN 'validation' ELSE 'http' END, kind, message,
               message, 4, now() - interval '47 min'
          FROM failed
        """
    )


async def _product(database: Database, thing: Thing) -> int:
    async with database.connection() as connection:
        [(product_id,)] = await _rows(
            connection, "SELECT id FROM products WHERE url_hash = %s", url_hash(thing.url)
        )
    return int(product_id)


async def _rows(connection: Connection, statement: Any, *values: object) -> list[Any]:
    return await (await connection.execute(statement, values or None)).fetchall()
