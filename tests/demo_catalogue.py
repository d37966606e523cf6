"""A believable catalogue for pictures: three shops, months of prices, and things that went wrong.

Products are written as visits write them; then their times are moved back. Nothing is fetched.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

from PIL import Image, ImageDraw

from forager.db.database import Connection, Database
from forager.extract.keys import url_hash
from forager.extract.product.record import Availability, Evidence, Product
from forager.fetch.domains.service import DomainChanges, Domains
from forager.fetch.proxies.record import parse_cost
from forager.fetch.proxies.service import Proxies, ProxyChanges, parse_address
from forager.fetch.robots.cache import CachedRobots
from forager.fetch.robots.store import upsert_robots
from forager.images.files import image_path, open_image_files
from forager.outbox.store import record_responses
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import roll_out
from forager.products.alerts import AlertKind, NewAlert, add_alert
from forager.products.visit import ReadPage
from forager.products.writer import write_pages
from forager.secrets import Vault
from forager.settings import Settings
from forager.tasks.holds import Holds
from forager.tasks.selection import Selection
from forager.tasks.service import Tasks
from forager.webhooks.posting import Posted
from forager.webhooks.service import NewWebhook, Webhooks

LAMPS, CHAIRS, KIOSK = "lamps.example.org", "chairs.example.com", "kiosk.example"
IN, OUT, FEW = Availability.IN_STOCK, Availability.OUT_OF_STOCK, Availability.LIMITED
# ages in days, and by what share the first price has moved then
VISITS = ((62, 0), (55, 0), (47, -8), (40, -8), (33, 5), (26, 5), (19, -15), (12, -15), (5, -4))
ROBOTS = b"""\
User-agent: *
Disallow: /cart
Disallow: /account
Crawl-delay: 2

Sitemap: https://lamps.example.org/sitemap.xml
"""
COLOURS = ("#d8b04a", "#6f8fb3", "#a35f52", "#5d8a66", "#7c6aa6")


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


async def fill_catalogue(database: Database, settings: Settings) -> dict[str, str]:
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
        await upsert_robots(connection, f"https://{LAMPS}", _robots())
    product_id = await _product(database, things[0])
    await _images(database, settings, product_id)
    await _network(database, settings)
    await _parsers(database, settings)
    webhook_id, message_id = await _webhooks(database, settings)
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
) -> ReadPage:
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
    return ReadPage(
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
    """What was written just now happened so many days ago."""
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


# --- everything around it ----------------------------------------------------------------------


async def _images(database: Database, settings: Settings, product_id: int) -> None:
    files = open_image_files(settings)
    for position, colour in enumerate(COLOURS):
        data = _picture(colour, position)
        content_hash = sha256(data).digest()
        path = image_path(content_hash, "png")
        await files.put_all(path, data)
        async with database.transaction() as connection:
            values = {"hash": content_hash, "path": path, "size": len(data), "id": product_id,
                      "position": position, "type": "gallery" if position else "primary",
                      "url": f"https://{LAMPS}/img/{position}.png"}  # fmt: skip
            await connection.execute(
                """
                INSERT INTO image_files (content_hash, path, media_type, width, height, file_size)
                VALUES (%(hash)s, %(path)s, 'image/png', 600, 600, %(size)s)
                """,
                values,
            )
            await connection.execute(
                """
                INSERT INTO images (product_id, image_url, url_hash, position, status, image_path,
                                    content_hash, file_size, width, height, image_type, alt_text)
                VALUES (%(id)s, %(url)s, %(hash)s, %(position)s, 'stored', %(path)s, %(hash)s,
                        %(size)s, 600, 600, %(type)s, 'A lamp')
                """,
                values,
            )


def _picture(colour: str, turn: int) -> bytes:
    image = Image.new("RGB", (600, 600), "#f4f2ec")
    draw = ImageDraw.Draw(image)
    lean = 30 * (turn - 2)
    draw.ellipse((200, 500, 400, 540), fill="#3b3b3b")
    draw.line((300, 515, 300 + lean, 260), fill="#3b3b3b", width=14)
    draw.polygon(
        [(230 + lean, 150), (370 + lean, 150), (430 + lean, 300), (170 + lean, 300)], fill=colour
    )
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def _robots() -> CachedRobots:
    now = datetime.now(UTC)
    return CachedRobots(ROBOTS, now - timedelta(hours=5), now + timedelta(hours=19), 200)


async def _network(database: Database, settings: Settings) -> None:
    domains = Domains(database)
    await domains.set(LAMPS, DomainChanges(delay=2.0, concurrency=2, currency="EUR",
                                           every=timedelta(hours=12)))  # fmt: skip
    await domains.set(CHAIRS, DomainChanges(region="eu"))
    proxies = Proxies(database, Vault(settings))
    for number, price, region in ((1, "3.50/GB", "eu"), (2, "0.0004/request", None),
                                  (3, "25/GB", "us"), (4, None, None)):  # fmt: skip
        address = parse_address(f"http://forager:demo@proxy{number}.example.net:3128")
        cost = None if price is None else parse_cost(price)
        added = await proxies.add(address)
        await proxies.set(added.id, ProxyChanges(region=region, cost=cost))
    async with database.transaction() as connection:
        await connection.execute(
            """
            UPDATE domains SET slow_delay = 6, blocked_until = now() + interval '14 min'
             WHERE domain_name = %s
            """,
            (CHAIRS,),
        )
        await connection.execute(
            """
            UPDATE proxies
               SET success_count = 900 * id, failure_count = 30 * (id - 1) * (id - 1),
                   avg_response_time_ms = 210 + 85 * id, last_used_at = now() - interval '40 s',
                   last_success_at = now() - interval '41 s',
                   last_failure_at = CASE WHEN id > 1 THEN now() - interval '9 min' END,
                   last_failure_reason = CASE WHEN id > 1 THEN 'connection refused' END
            """
        )
        await connection.execute(
            """
            UPDATE proxies SET is_active = false, disabled_reason = '11 failures in a row',
                   consecutive_failures = 11, next_probe_at = now() + interval '50 min'
             WHERE id = (SELECT max(id) FROM proxies)
            """
        )
        await connection.execute(
            """
            INSERT INTO proxy_usage (day, domain_name, proxy_id, requests, bytes)
            SELECT current_date - back, domain, p.id, 40 + 13 * p.id + back,
                   (40 + 13 * p.id + back) * 61000 * length(domain)
              FROM proxies p, unnest(%s::text[]) AS domain, generate_series(0, 20) AS back
             WHERE p.region IS DISTINCT FROM 'us'
            """,
            ([LAMPS, CHAIRS],),
        )
        await connection.execute("UPDATE proxies SET created_at = now() - interval '60 days'")


async def _parsers(database: Database, settings: Settings) -> None:
    load_parsers(settings.parser_modules)
    await roll_out(database, settings, "kiosk", "1")
    await roll_out(database, settings, "kiosk", "2", canary=0.1)
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO parse_rates (domain_id, parser, parser_version, role, day, pages, good)
            SELECT domain_id, parser, version, role, current_date - day, 240, good
              FROM (SELECT id, domain_name FROM domains) d
              JOIN (VALUES ('lamps.example.org', 'generic', '1', 'active', 236),
                           ('chairs.example.com', 'generic', '1', 'active', 221),
                           ('kiosk.example', 'kiosk', '1', 'active', 171),
                           ('kiosk.example', 'kiosk', '2', 'canary', 232)
                   ) AS r (domain, parser, version, role, good) ON r.domain = d.domain_name
             CROSS JOIN generate_series(1, 6) AS day
             CROSS JOIN LATERAL (SELECT d.id AS domain_id) x
            ON CONFLICT DO NOTHING
            """
        )


async def _webhooks(database: Database, settings: Settings) -> tuple[int, int]:
    webhooks = Webhooks(database, Vault(settings))
    kinds = ("product.price_changed", "product.availability_changed")
    made = await webhooks.add(NewWebhook("https://hooks.example.org/prices", kinds))
    other = await webhooks.add(NewWebhook("https://ops.example.org/alerts", ("parser.degraded",)))
    await webhooks.disable(other.webhook.id, "it answered 410 Gone")
    await webhooks.add(NewWebhook("mailto:prices@example.org"))
    await add_alert(database, NewAlert(AlertKind.PRICE_BELOW, amount=Decimal(40), currency="EUR"))
    await add_alert(database, NewAlert(AlertKind.BACK_IN_STOCK, brand="Lumen & Co"))
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO outbox (topic, ref_id, lane, created_at, due_at, attempts,
                                last_error, sent_at, given_up_at)
            SELECT 'webhooks', e.id, %s, e.occurred_at, e.occurred_at,
                   CASE WHEN bad THEN 8 ELSE 1 END,
                   CASE WHEN bad THEN 'it answered 500 Internal Server Error' END,
                   CASE WHEN NOT bad THEN e.occurred_at + interval '1 s' END,
                   CASE WHEN bad THEN e.occurred_at + interval '2 days' END
              FROM (SELECT id, occurred_at, id %% 9 = 4 AS bad FROM catalog_events
                     WHERE kind IN ('product.price_changed', 'product.availability_changed')
                     ORDER BY id DESC LIMIT 14) e
             ORDER BY e.id
            """,
            (made.webhook.id,),
        )
        [(message_id,)] = await _rows(
            connection, "SELECT max(id) FROM outbox WHERE last_error IS NOT NULL"
        )
        posted = Posted(
            500, "the receiver answered 500", 0.34, None, {"Server": "nginx"}, '{"error": "full"}'
        )
        for attempt in (6, 7, 8):
            await record_responses(connection, {message_id: posted.record(attempt)})
    return made.webhook.id, message_id


async def _product(database: Database, thing: Thing) -> int:
    async with database.connection() as connection:
        [(product_id,)] = await _rows(
            connection, "SELECT id FROM products WHERE url_hash = %s", url_hash(thing.url)
        )
    return int(product_id)


async def _rows(connection: Connection, statement: Any, *values: object) -> list[Any]:
    return await (await connection.execute(statement, values or None)).fetchall()
